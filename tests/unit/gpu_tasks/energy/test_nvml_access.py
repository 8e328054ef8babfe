"""Loading NVML, and the one place where its functions are called."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from gpu_tasks.energy.nvml import access
from gpu_tasks.energy.nvml.access import NvmlLibrary, load_nvml, nvml_packages
from gpu_tasks.energy.nvml.errors import (
    NvmlDriverNotLoaded,
    NvmlFunctionNotFound,
    NvmlHung,
    NvmlLibraryNotFound,
    NvmlNotReady,
    NvmlUninitialized,
)
from gpu_tasks.records import InfrastructureFailure
from tests.unit.gpu_tasks.energy.nvml_scripted import LATENCY_S, ScriptedNvml

REPOSITORY = Path(__file__).parents[4]


def distribution(folder: Path, name: str, version: str, files: str | None) -> None:
    """An installed distribution; ``files`` is its RECORD, and they exist: from Python 3.12 on others are left out."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if files is not None:
        (info / "RECORD").write_text(files)
        for line in files.splitlines():
            path = folder / line.partition(",")[0]
            path.parent.mkdir(exist_ok=True)
            path.touch()


def in_a_fork(work: Callable[[], None]) -> str:
    """What ``work`` raises in a forked child: code and message; empty where it raises nothing."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                work()
            except InfrastructureFailure as error:
                os.write(writing, f"{error.code}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading, "rb") as stream:
        return stream.read().decode()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process had loaded nothing before."""
    monkeypatch.setattr(access, "_loaded_in", None)


def test_calls_go_to_the_function_of_that_name_with_its_arguments() -> None:
    nvml = ScriptedNvml()
    for timeout_s in (None, 5.0):
        with NvmlLibrary(nvml, timeout_s) as opened:
            assert opened.call("nvmlDeviceGetClockInfo", "handle 0", 2) == 1215
    assert nvml.calls == ["nvmlInit", "nvmlDeviceGetClockInfo", "nvmlShutdown"] * 2


def test_the_times_of_a_call_are_taken_right_around_it() -> None:
    nvml = ScriptedNvml()
    for timeout_s in (None, 5.0):
        opened = NvmlLibrary(nvml, timeout_s)
        before = nvml.clock.now()
        timed = opened.timed_call(nvml.clock, "nvmlDeviceGetPowerUsage", "handle 0")
        assert timed.value == 57_700
        assert timed.start_s == before
        assert timed.duration_s == pytest.approx(LATENCY_S)
        assert timed.middle_s == pytest.approx(before + LATENCY_S / 2)


@pytest.mark.parametrize("timeout_s", [None, 5.0])
def test_a_code_becomes_its_error_wherever_the_call_is_made(timeout_s: float | None) -> None:
    nvml = ScriptedNvml()
    opened = NvmlLibrary(nvml, timeout_s)
    nvml.fail("nvmlDeviceGetPowerUsage", pynvml.NVML_ERROR_NOT_READY)
    with pytest.raises(NvmlNotReady, match="nvmlDeviceGetPowerUsage: expected success"):
        opened.call("nvmlDeviceGetPowerUsage", "handle 0")
    with pytest.raises(NvmlNotReady):
        opened.timed_call(nvml.clock, "nvmlDeviceGetPowerUsage", "handle 0")
    nvml.answers["nvmlDeviceGetPowerUsage"] = 1
    assert opened.call("nvmlDeviceGetPowerUsage", "handle 0") == 1


@pytest.mark.parametrize("timeout_s", [None, 5.0])
def test_what_is_no_error_of_nvmls_is_raised_as_it_is(timeout_s: float | None) -> None:
    nvml = ScriptedNvml()
    opened = NvmlLibrary(nvml, timeout_s)
    nvml.answers["nvmlDeviceGetName"] = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    with pytest.raises(UnicodeDecodeError):
        opened.call("nvmlDeviceGetName", "handle 0")


def test_dask_cuda_909_pynvml_43_a_symbol_that_is_missing_fails_that_call_alone() -> None:
    nvml = ScriptedNvml()
    opened = NvmlLibrary(nvml, None)
    nvml.fail("nvmlDeviceGetRemappedRows", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    nvml.absent = {"nvmlDeviceGetMigMode"}
    for name in ("nvmlDeviceGetRemappedRows", "nvmlDeviceGetMigMode"):
        with pytest.raises(NvmlFunctionNotFound, match=f"{name}: expected success"):
            opened.call(name, "handle 0")
        with pytest.raises(NvmlFunctionNotFound):
            opened.timed_call(nvml.clock, name, "handle 0")
    assert opened.call("nvmlDeviceGetPowerUsage", "handle 0") == 57_700


class Hanging:
    """A call that returns when told to."""

    def __init__(self, nvml: ScriptedNvml, name: str) -> None:
        self.release = threading.Event()
        self.returned = threading.Event()
        nvml.answers[name] = self

    def __call__(self, *arguments: object) -> int:
        self.release.wait(30)
        self.returned.set()
        return 7


def impatient(nvml: ScriptedNvml) -> NvmlLibrary:
    """Of little patience from its initialisation on, in which a busy machine may take its time."""
    opened = NvmlLibrary(nvml, 30.0)
    opened._timeout_s = 0.05
    return opened


def ended(before: set[threading.Thread]) -> None:
    """Threads that were started since have ended."""
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def test_a_call_that_hangs_is_given_up_and_others_do_not_wait_behind_it() -> None:
    nvml = ScriptedNvml()
    before = set(threading.enumerate())
    opened = impatient(nvml)
    hanging = Hanging(nvml, "nvmlDeviceGetPowerUsage")
    with pytest.raises(NvmlHung, match=r"nvmlDeviceGetPowerUsage: expected an answer within 0\.05 s, found none"):
        opened.call("nvmlDeviceGetPowerUsage", "handle 0")
    made = len(nvml.calls)
    with pytest.raises(NvmlHung, match="nvmlDeviceGetName"):
        opened.call("nvmlDeviceGetName", "handle 0")
    opened.close()
    hanging.release.set()
    ended(before)
    assert len(nvml.calls) == made, "neither the next call nor the shutdown may reach a library that hangs"


def test_a_call_that_returns_late_frees_the_way_and_its_value_is_nobody_elses() -> None:
    nvml = ScriptedNvml()
    opened = impatient(nvml)
    hanging = Hanging(nvml, "nvmlDeviceGetPowerUsage")
    with pytest.raises(NvmlHung):
        opened.call("nvmlDeviceGetPowerUsage", "handle 0")
    opened._timeout_s = 30.0
    hanging.release.set()
    assert hanging.returned.wait(10)
    while True:
        try:
            assert opened.call("nvmlDeviceGetName", "handle 0") == "NVIDIA A100-SXM4-40GB"
            break
        except NvmlHung:  # the thread is on its way from the late call to the next
            continue
    opened.close()
    assert nvml.calls[-1] == "nvmlShutdown"


def test_an_initialisation_that_hangs_is_given_up_later_than_a_call() -> None:
    nvml = ScriptedNvml()
    hanging = Hanging(nvml, "nvmlInit")
    with pytest.raises(NvmlHung, match=r"nvmlInit: expected an answer within 0\.12 s"):
        NvmlLibrary(nvml, 0.01)
    hanging.release.set()


@pytest.mark.parametrize("timeout_s", [None, 5.0])
def test_a_driver_that_is_not_loaded_leaves_no_thread(timeout_s: float | None) -> None:
    nvml = ScriptedNvml()
    nvml.fail("nvmlInit", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    before = set(threading.enumerate())
    with pytest.raises(NvmlDriverNotLoaded):
        NvmlLibrary(nvml, timeout_s)
    ended(before)


def test_closed_means_closed() -> None:
    nvml = ScriptedNvml()
    before = set(threading.enumerate())
    opened = NvmlLibrary(nvml, 5.0)
    opened.close()
    opened.close()
    ended(before)
    assert nvml.calls == ["nvmlInit", "nvmlShutdown"]
    with pytest.raises(NvmlUninitialized):
        opened.call("nvmlDeviceGetName", "handle 0")


def test_a_shutdown_that_fails_does_not_hide_why_the_block_was_left() -> None:
    nvml = ScriptedNvml()
    nvml.fail("nvmlShutdown", pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(KeyError, match="why"), NvmlLibrary(nvml, None):
        raise KeyError("why")


def test_scalene_169_geopm_3083_a_handle_in_a_forked_child_is_refused() -> None:
    for timeout_s in (None, 5.0):
        nvml = ScriptedNvml()
        opened = NvmlLibrary(nvml, timeout_s)
        told = in_a_fork(lambda opened=opened: opened.call("nvmlDeviceGetName", "handle 0"))  # type: ignore[misc]
        assert told.startswith(f"nvml_after_fork: NVML was used in process {os.getpid()}: expected a fresh process")
        assert in_a_fork(opened.close) == ""
        assert opened.call("nvmlDeviceGetName", "handle 0") == "NVIDIA A100-SXM4-40GB"


def test_airflow_19701_30061_a_forked_task_of_a_process_that_loaded_nvml_is_refused(fresh: None) -> None:
    assert in_a_fork(lambda: load_nvml() and None) == ""
    load_nvml()
    assert in_a_fork(lambda: load_nvml() and None).startswith("nvml_after_fork: ")
    load_nvml()


def test_the_bindings_are_imported_only_when_they_are_needed() -> None:
    code = "import sys, gpu_tasks.energy.nvml.gpu, gpu_tasks.energy.sampler; print('pynvml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_bindings_that_are_missing_are_named(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # type: ignore[arg-type]
    with pytest.raises(InfrastructureFailure, match=r"packages: expected nvidia-ml-py .*, found none") as caught:
        load_nvml()
    assert caught.value.code == "nvml_package_missing"


@pytest.mark.parametrize("source", ["import a_module_that_nobody_has", "raise RuntimeError('two\\nlines')"])
def test_bindings_that_cannot_be_imported_are_told_from_missing_ones(
    fresh: None, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pynvml.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pynvml")
    with pytest.raises(InfrastructureFailure, match=r"pynvml: expected to be imported, found [^\n]+$") as caught:
        load_nvml()
    assert caught.value.code == "nvml_package_broken"


def test_a_machine_without_the_drivers_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(pynvml, "CDLL", no_library)
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    with pytest.raises(NvmlLibraryNotFound, match=r"libnvidia-ml\.so\.1 cannot be loaded"):
        NvmlLibrary(pynvml)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed distributions, and no other."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    yield tmp_path


def test_vllm_7649_nvitop_44_codecarbon_933_two_packages_of_one_module_are_both_named(fresh: None, site: Path) -> None:
    distribution(site, "nvidia-ml-py", "13.610.43", "pynvml.py,,\nexample.py,,\n")
    assert nvml_packages() == ["nvidia-ml-py 13.610.43"]
    distribution(site, "pynvml", "11.5.3", "pynvml/__init__.py,,\npynvml/nvml.py,,\n")
    with pytest.raises(InfrastructureFailure, match=r"found nvidia-ml-py 13\.610\.43 and pynvml 11\.5\.3") as caught:
        load_nvml()
    assert caught.value.code == "two_nvml_packages"


def test_a_distribution_that_does_not_say_what_it_installed_is_taken_for_one_that_did(site: Path) -> None:
    distribution(site, "nvidia-ml-py", "13.610.43", "pynvml.py,,\n")
    distribution(site, "pynvml", "11.5.3", None)
    assert nvml_packages() == ["nvidia-ml-py 13.610.43", "pynvml 11.5.3"]


def test_the_newer_pynvml_that_brings_no_module_of_its_own_is_no_conflict(fresh: None, site: Path) -> None:
    distribution(site, "nvidia-ml-py", "13.610.43", "pynvml.py,,\n")
    distribution(site, "pynvml", "13.0.1", "pynvml_utils/__init__.py,,\npynvml_utils/smi.py,,\n")
    assert nvml_packages() == ["nvidia-ml-py 13.610.43"]
    assert load_nvml() is sys.modules["pynvml"]
