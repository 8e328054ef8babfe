"""The lines of the documents in somebody else's DAG, by ``dag.test``: copied as they are, they judge and they tell."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

from regression.results.baselines import accept_baseline
from regression.results.loading import load_run
from tests.integration.dags.conftest import ROOT, Ran
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_nights import asked
from tests.integration.regression.example_records import sha256_of

HIGHER = (0.69, 0.695, 0.7, 0.7, 0.701, 0.705, 0.71)


def documented(document: str, holds: str) -> str:
    """The one block of Python in a document that holds these words."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / document).read_text(), re.DOTALL)
    (found,) = [block for block in blocks if holds in block]
    return str(found)


def dag_file(folder: Path) -> Path:
    """A DAG of somebody's own around the documented lines, with the documented notifier."""
    lines = documented("operators.md", 'TimeDriftOperator(task_id="time", **run)')
    notifier = documented("alerts.md", "on_failure_callback").replace('schedule="@daily"', 'params={"night": ""}')
    callback = (
        r"(on_failure_callback)=(AlertNotifier\(.*?\))"  # that of the DAG is called by the scheduler, which is not here
    )
    notifier = re.sub(callback, r'default_args={"\1": \2}', notifier)
    path = folder / "dags" / "mine.py"
    path.parent.mkdir()
    path.write_text(notifier.replace("...", f"\n{textwrap.indent(lines, '    ')}").replace("):\n", ") as dag:\n", 1))
    return path


def test_the_lines_of_the_documents_judge_a_run_in_somebody_elses_dag(
    run_night: Callable[..., Ran], database: Database, tmp_path: Path
) -> None:
    base, tonight = energy_run("base"), energy_run("tonight", HIGHER)
    for record in (base, tonight):
        load_run(database.writer, record, sha256_of(record))
    accept_baseline(database.writer, base.request.run_id, accepted_by="test", reason="for the test")
    path = dag_file(tmp_path)
    mine = {"NIGHTLY_TEST_DAG": str(path), "AIRFLOW__CORE__DAGS_FOLDER": str(path.parent)}
    ran = run_night(environment=mine, night="tonight")
    states = {"agreement": "success", "energy": "failed", "time": "success", "environment": "success"}
    assert ran.tasks == {name: {state} for name, state in states.items()}, ran.log[-3000:]
    assert "energy regressed: adjusted energy 0.7 mJ a replay (median of 7 of 7 rounds) is " in ran.log
    assert asked(database, "SELECT check_name, verdict FROM check_result WHERE check_name !~ '_' ORDER BY 1") == [
        ("agreement", "ok"),
        ("energy", "regressed"),
        ("environment", "ok"),
        ("time", "ok"),
    ]
    assert asked(database, "SELECT workload, metric, direction FROM alert") == [("my-kernel", "night", "missing")]
