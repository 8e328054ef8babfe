"""Every code with which a candidate is refused, compared or pinned is a word of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
GIVEN = re.compile(r"(?:BadInput|InfrastructureFailure|VerificationMismatch|Regression|Reason)\(\s*\"([a-z_]+)\"")
SOURCES = [
    *sorted((ROOT / "gpu_tasks" / "candidates").glob("*.py")),
    *sorted((ROOT / "gpu_tasks" / "comparison").glob("*.py")),
    *(ROOT / "gpu_tasks" / "programs" / f"{name}.py" for name in ("candidate", "compare", "pin", "pin_kernels")),
    ROOT / "plugins" / "regression" / "results" / "promotion.py",
]
PAGES = " ".join(
    (ROOT / "docs" / page).read_text() for page in ("kernels.md", "operators.md", "baselines.md", "energy.md")
)
WITH_CODES = [path for path in SOURCES if GIVEN.search(path.read_text())]


def test_there_are_some() -> None:
    assert len(WITH_CODES) >= 7


@pytest.mark.parametrize("path", WITH_CODES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_is_documented(path: Path) -> None:
    missing = {code for code in GIVEN.findall(path.read_text()) if f"`{code}`" not in PAGES}
    assert not missing
