"""One installation for the module that asks for it: what one night leaves behind, the next one finds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.paths import ROOT
from tests.support.installation import Installation


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    place = Installation()
    yield place
    place.remove()


@pytest.fixture
def copied_checkout(installation: Installation, tmp_path: Path) -> Iterator[Path]:
    """A copy of the checkout that a test may spoil; the installation uses it for the length of the test."""
    installation.copy_checkout(tmp_path / "checkout")
    yield installation.root
    installation.root = ROOT
