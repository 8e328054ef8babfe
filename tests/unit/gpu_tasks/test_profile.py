"""What is read of Nsight Compute, and what is said where it cannot be asked; a script stands in for it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from gpu_tasks.programs.profile import NOT_ASKED, NOT_INSTALLED, kernel_profile, profiled
from gpu_tasks.records import KernelProfile, ProfiledKernel, Reason

TABLE = """==PROF== Connected to process 4711
{"kind": "memory",
  "reason": null}
==PROF== Disconnected from process 4711
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","lts__t_sector_hit_rate.pct"
"","","us","Kbyte","%"
"0","gemm","2.5","1.5","90"
"1","relu, inplace","1,000","","50"
"2","gemm","1.5","0.5","70"
"""
ARGUMENTS = Namespace(profile=True, workload="learner", payload="learner", draw=3)


def test_launches_are_summed_by_kernel_longest_first() -> None:
    whole = TABLE.replace('"1,000",""', '"1,000","4"')
    assert kernel_profile(whole, "2025.1") == KernelProfile(
        "2025.1",
        3,
        [ProfiledKernel("relu, inplace", 1, 1e6, 4000.0, 50.0), ProfiledKernel("gemm", 2, 4000.0, 2000.0, 80.0)],
    )


def test_a_metric_that_there_is_none_of_is_null() -> None:
    lines = [line for line in TABLE.splitlines() if not line.startswith('"1"')]
    text = "\n".join(lines).replace(',"dram__bytes.sum"', ',"launch__waves"')
    found = kernel_profile(text, "2025.1").kernels
    assert [(kernel.dram_bytes, kernel.l2_hit_percent) for kernel in found] == [(None, 80.0)]


@pytest.mark.parametrize("text", ["", "==ERROR== ERR_NVGPUCTRPERM", '"ID"\n""\n"0"', TABLE])
def test_other_texts_are_no_profile(text: str) -> None:
    with pytest.raises(ValueError):
        kernel_profile(text, "2025.1")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "ncu"
    monkeypatch.setenv("PATH", str(tmp_path))
    return script


def write(script: Path, body: str) -> None:
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)


def test_it_is_asked_for_the_task_of_the_draw(installed: Path) -> None:
    good = TABLE.replace('"1,000",""', '"1,000","4"')
    (installed.parent / "table").write_text(good, encoding="utf-8")
    version = 'if [ "$1" = --version ]; then echo Nsight; echo "Version 2025.1.1.0"; exit; fi'
    read = f'while read -r line; do echo "$line"; done < {installed.parent}/table'
    write(installed, f'{version}\necho "$@" > {installed.parent}/asked\n{read}')
    found = profiled(ARGUMENTS, "cuda")
    assert isinstance(found, KernelProfile)
    assert (found.version, found.launches) == ("Version 2025.1.1.0", 3)
    asked = (installed.parent / "asked").read_text(encoding="utf-8")
    assert "-m gpu_tasks memory --workload learner --payload learner --draw 3 --device cuda" in asked
    assert "--profile" not in asked.split("-m gpu_tasks")[1]


def test_what_the_profiler_says_of_its_failure_is_kept(installed: Path) -> None:
    write(installed, 'if [ "$1" = --version ]; then echo 1; exit; fi\necho "no permission to the counters" >&2; exit 1')
    found = profiled(ARGUMENTS, "cuda")
    assert found == Reason("profile_failed", "ncu: expected a profile, found no permission to the counters")


def test_where_it_cannot_be_asked(installed: Path) -> None:
    assert profiled(ARGUMENTS, "cuda") == NOT_INSTALLED
    assert profiled(Namespace(profile=False), "cuda") == NOT_ASKED
    found = profiled(ARGUMENTS, "simulated")
    assert isinstance(found, Reason)
    assert found.code == "no_profile_here"
