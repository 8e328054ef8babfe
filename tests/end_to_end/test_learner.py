"""A night of the learner from the command line: its environment, its draws, and the energy of the simulated board."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from local.environments import ENVIRONMENTS
from regression.nights.workloads import LEARNER
from tests.support.installation import Installation
from tests.support.made_environments import NEEDED

pytest.importorskip("torch")


@pytest.fixture
def with_torch(installation: Installation) -> Installation:
    """The environments that are made already, and as the learner's this one, which has all that it has.

    Making one would be a download of torch.
    """
    folder = installation.home / "environments"  # where PostgreSQL's user comes, too
    folder.mkdir()
    for name in NEEDED:
        made = ENVIRONMENTS[name].folder(installation.environments)
        (folder / made.name).symlink_to(made)
    own, here = ENVIRONMENTS["learner"].folder(folder), Path(sys.prefix)
    own.mkdir()
    for name in ("bin", "lib"):
        (own / name).symlink_to(here / name)
    shutil.copy(here / "pyvenv.cfg", own)
    (own / "complete").touch()
    installation.set("NIGHTLY_ENVIRONMENTS", str(folder))
    return installation


def test_a_night_on_the_simulated_board_builds_its_draws_and_has_energy(with_torch: Installation) -> None:
    installation = with_torch
    params = ("--param", "draws=[0]", "--param", "confirm_rounds=0", "--param", "seed=1")
    night = installation.nightly("run", "--workload", "learner", "--device", "simulated", *params, "--json")
    assert night.returncode == 0, night.stderr
    assert "building the set learner" in night.stderr
    result = json.loads(night.stdout.splitlines()[-1])
    assert (result["workload"], result["exit"]) == ("learner", 0)
    assert result["agreement"] == {"agreed": 10000, "total": 10000}
    told = {name: result["checks"][name]["verdict"] for name in LEARNER.checks}
    assert (told["agreement"], told["qualification"]) == ("ok", "ok")
    assert not {"invalid", "regressed"} & set(told.values())
    (row,) = installation.query(
        "SELECT workload, protocol, rounds_valid, energy_trust, adjusted_mj_median"
        f" FROM nightly WHERE run_id = '{result['run_id']}'"
    )
    assert (row["workload"], row["protocol"], row["rounds_valid"]) == ("learner", "trial", 3)
    assert 900 < row["adjusted_mj_median"] < 1250, "the board takes 1,130 mJ a task"
    assert row["energy_trust"] == "verified"
    assert (installation.home / "payloads" / "learner" / "manifest.json").is_file()
    assert installation.processes() == []
