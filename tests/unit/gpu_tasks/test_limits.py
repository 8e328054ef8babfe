"""Numbers on the programs' command lines: what the params of a run refuse is refused there, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_tasks.programs import bounds
from gpu_tasks.programs.cli import main
from gpu_tasks.records import MAX_ROUND, RECORDS, BadInput, read_record
from regression.nights.params import check_params
from regression.nights.schema import COMPARISON, Schema
from regression.nights.workloads import QDA

KERNELS = "kernels/ptx/manifest.json"
SEEDED: dict[str, tuple[str, ...]] = {
    "provision": (),
    "qualify": ("--workload", "learner"),
    "memory": (),
    "validate": ("--draw", "0"),
    "measure": ("--round", "0"),
    "telemetry": ("--when", "before"),
    "compare": ("--manifest", KERNELS, "--against-manifest", KERNELS),
    "probe": (),
}
"""Every program that opens a device, with what it needs beside that."""

SHARED: list[tuple[str, Schema, Callable[[int], None]]] = [
    ("seed", QDA.schema, bounds.check_seed),
    ("repeats", QDA.schema, bounds.check_replays),
    ("blocks", COMPARISON, lambda blocks: bounds.check_blocks(blocks, fewest=0)),
]
"""Numbers that are a param and an option both."""


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, *options: str) -> str:
    """Code and message, from the record where there is one, with status 2."""
    out = tmp_path / "record.json"
    record = program in RECORDS
    status = main([program, *SEEDED[program], *options, *(["--out", str(out)] if record else [])])
    complaint = capsys.readouterr().err.splitlines()[-1].partition("bad_input: ")[2]
    assert status == 2
    if record:
        found = read_record(out, RECORDS[program][1]).reason
        assert f"{found.code}: {found.message}" == complaint
    return complaint


@pytest.mark.parametrize("program", SEEDED)
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_no_program_takes_a_seed_that_a_run_cannot_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, seed: int
) -> None:
    found = refused(tmp_path, capsys, program, "--device", "simulated", "--seed", str(seed))
    assert found == f"bad_seed: --seed: expected 0 to 4294967295, found {seed}"


@pytest.mark.parametrize("program", SEEDED)
def test_no_program_takes_a_seed_for_a_device_that_is_real(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    kind = "reference" if program == "qualify" else "emulated"
    found = refused(tmp_path, capsys, program, "--device", kind, "--seed", "0")
    assert found == f"seed_needs_simulated: --seed: expected --device simulated with it, found {kind}"


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        ("measure", ["--repeats", "0"], "bad_repeats: --repeats: expected 1 to 1000000000, found 0"),
        ("measure", ["--repeats", "1000000001"], "bad_repeats: --repeats: expected 1 to 1000000000, found 1000000001"),
        ("measure", ["--repeats", "9" * 90], f"bad_repeats: --repeats: expected 1 to 1000000000, found {'9' * 80}..."),
        ("measure", ["--round", "200"], "bad_round: --round: expected 0 to 199, found 200"),
        ("measure", ["--blocks", "101"], "bad_blocks: --blocks: expected 1 to 100, found 101"),
        ("compare", ["--blocks", "101"], "bad_blocks: --blocks: expected 0 to 100, found 101"),
        ("probe", ["--blocks", "0"], "bad_blocks: --blocks: expected 1 to 100, found 0"),
        ("probe", ["--rounds", "101"], "bad_rounds: --rounds: expected 2 to 100, found 101"),
    ],
)
def test_a_refusal_names_option_expected_and_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, options: list[str], said: str
) -> None:
    assert refused(tmp_path, capsys, program, *options) == said


def accepts(check: Callable[[], Any]) -> bool:
    try:
        check()
    except BadInput:
        return False
    return True


@pytest.mark.parametrize(("name", "schema", "check"), SHARED, ids=[name for name, _, _ in SHARED])
@given(value=st.integers() | st.integers(-2, 102))
@example(value=-1)
@example(value=10**9)
@example(value=10**9 + 1)
@example(value=2**32 - 1)
@example(value=2**32)
def test_option_and_param_take_the_same_numbers(
    name: str, schema: Schema, check: Callable[[int], None], value: int
) -> None:
    assert accepts(lambda: check(value)) == accepts(lambda: check_params({name: value}, schema))


def test_every_round_that_a_night_can_have_can_be_measured_and_none_after() -> None:
    most = sum(QDA.schema[name]["maximum"] for name in ("rounds", "confirm_rounds"))
    assert most - 1 == MAX_ROUND
    bounds.check_round(most - 1)
    assert not accepts(lambda: bounds.check_round(most))
