"""The pinned files are what the sources emit, and what they say of themselves."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import GlobalMemory
from gpu_tasks.devices.emulated.parser import parse
from gpu_tasks.devices.manifest import COMMITTED, read_manifest
from tests.unit.gpu_tasks.devices.emulated.launching import module

FOLDER = COMMITTED.parent
FILES = sorted(FOLDER.glob("*.ptx"))
REGISTER_CEILING = {"sm_80": 104, "sm_90": 112}  # 65,536 registers / 512 threads = 128 is where launches fail


def test_every_file_has_the_hash_that_is_listed():
    listed = dict(reversed(line.split("  ")) for line in (FOLDER / "SHA256SUMS").read_text().splitlines())
    assert sorted(listed) == sorted(path.name for path in FOLDER.iterdir() if path.name != "SHA256SUMS")
    for name, expected in listed.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected


def test_the_manifest_agrees_with_the_texts():
    for variant in read_manifest(COMMITTED).variants.values():
        together = b""
        for launch in variant.launches:
            raw = (FOLDER / launch.ptx).read_bytes()
            kernel = parse(raw.decode())
            together += raw
            assert hashlib.sha256(raw).hexdigest() == launch.sha256
            assert (kernel.name, kernel.block_required) == (launch.entry, launch.block)
            assert kernel.parameters == [parameter.name for parameter in launch.parameters]
            assert kernel.shared_bytes == launch.shared_static_bytes
            assert launch.ptx_lines == len(raw.splitlines())
            assert bool(kernel.dynamic_shared) == bool(launch.shared_dynamic_bytes)
        assert hashlib.sha256(together).hexdigest() == variant.ptx_sha256


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_text_is_for_old_drivers_and_rounds_explicitly(path):
    text = path.read_text()
    assert text.startswith(".version 7.0\n.target sm_80\n")
    floats = re.findall(r"\b(?:add|sub|mul|fma|rcp|div|sqrt)[\w.]*\.f32\b", text)
    assert floats
    assert all(".rn" in mnemonic for mnemonic in floats)


def test_the_pinned_files_are_what_the_sources_emit(tmp_path: Path):
    pytest.importorskip("pyptx", reason="pyptx is not installed: sources and pinned text are not compared")
    from kernels.build import build, differing

    assert differing() == []
    assert set(build(tmp_path)) == {path.name for path in FOLDER.iterdir()}
    assert differing(tmp_path) == []
    (tmp_path / "fused.ptx").write_text("changed")
    assert differing(tmp_path) == ["fused.ptx"]


def test_build_check_reports_without_writing(tmp_path: Path, capsys):
    pytest.importorskip("pyptx", reason="pyptx is not installed: sources and pinned text are not compared")
    from kernels.__main__ import main

    assert main(["build", "--check"]) == 0
    assert main(["build", "--check", "--folder", str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []
    assert main(["build", "--folder", str(tmp_path)]) == 0
    assert "fused.ptx: written" in capsys.readouterr().out


@pytest.mark.skipif(
    shutil.which("ptxas") is None, reason="ptxas is not installed: registers and spills are not checked"
)
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_ptxas_assembles_without_spills_and_under_the_register_ceiling(path, target, tmp_path):
    command = ["ptxas", f"-arch={target}", "-v", str(path), "-o", str(tmp_path / "out.cubin")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    assert int(re.search(r"Used (\d+) registers", report)[1]) <= REGISTER_CEILING[target]


def test_the_ceiling_leaves_room_for_every_launch():
    for variant in read_manifest(COMMITTED).variants.values():
        for launch in variant.launches:
            assert max(REGISTER_CEILING.values()) * launch.block[0] <= 65536


def test_explain_describes_every_launch_and_calls_its_estimate_modelled(capsys):
    from kernels.__main__ import main

    assert main(["explain"]) == 0
    report = capsys.readouterr().out
    for variant in read_manifest(COMMITTED).variants.values():
        for launch in variant.launches:
            assert f"{launch.entry} ({launch.grid[0]} x {launch.block[0]}), {launch.ptx}" in report
    for line in report.splitlines():
        assert " us " not in line or "modelled" in line


def test_the_critical_path_follows_dependences():
    from gpu_tasks.devices.emulated.critical_path import critical_path

    independent = "mov.u32 %r4, 1; mov.u32 %r5, 1; add.u32 %r6, %r4, 1; add.u32 %r7, %r5, 1;"
    dependent = "mov.u32 %r4, 1; add.u32 %r5, %r4, 1; add.u32 %r6, %r5, 1; add.u32 %r7, %r6, 1;"
    lengths = []
    for body in (independent, dependent):
        machine = Machine(parse(module(body)), GlobalMemory(), (1, 1, 1), (32, 1, 1))
        machine.run([0], set())
        lengths.append(critical_path(machine))
    assert lengths[0] < lengths[1]
    assert lengths[1] >= 4 * 4
