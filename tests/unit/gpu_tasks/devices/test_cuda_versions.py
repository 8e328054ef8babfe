"""Versions that only a GPU host has, as NVML and torch give them."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gpu_tasks.devices.cuda.versions import driver_release
from gpu_tasks.programs.provision import environment_fingerprint


class NVMLError(Exception):
    """As nvidia-ml-py names it."""


class FakeNvml:
    """NVML with a driver, of which old bindings give the release as bytes."""

    NVMLError = NVMLError

    def __init__(self, release: str | bytes | None) -> None:
        self.release, self.open = release, 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        if self.release is None:
            raise NVMLError("not supported")
        return self.release


@pytest.mark.parametrize(
    ("release", "expected"), [("580.105.08", "580.105.08"), (b"450.51.06", "450.51.06"), (None, None)]
)
def test_the_release_of_the_driver(
    release: str | bytes | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = FakeNvml(release)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
    assert driver_release() == expected
    assert nvml.open == 0


def test_without_nvml_the_release_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # type: ignore[arg-type]
    assert driver_release() is None


def test_a_gpus_environment_has_driver_cuda_and_torchs_build(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(__version__="2.5.1+cu124", version=SimpleNamespace(cuda="12.4"))
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml("580.105.08"))  # type: ignore[arg-type]
    found = environment_fingerprint("cuda")
    assert (found.driver, found.cuda, found.packages["torch"]) == ("580.105.08", "12.4", "2.5.1+cu124")
    found = environment_fingerprint("reference")
    assert (found.driver, found.cuda) == (None, None)
