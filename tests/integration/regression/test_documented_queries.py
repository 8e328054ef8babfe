"""Every statement that docs/results.md shows is one that the reader may ask, and it has an answer."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import text

from gpu_tasks.records import Reason
from regression.results.promotion import promote_run
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import candidate_run
from tests.integration.regression.example_energy import INVALID, energy_round, energy_run
from tests.integration.regression.example_learner import learner_run
from tests.integration.regression.example_nights import asked, night, store
from tests.integration.regression.full_database import ALERT
from tests.integration.regression.test_promotion import tried
from tests.integration.regression.test_verdicts import ONE_WRONG, accept, judge, settle
from tests.integration.regression.test_views_history import changed_run

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "results.md"


def test_every_question_of_the_documentation_has_an_answer(database: Database) -> None:
    store(database, night(1, "trained", of=learner_run))
    accept(database, night(1, "good", of=energy_run))
    disturbed = energy_round(1, earlier_attempts=[Reason("not_ready", "not ready")], **INVALID)
    rounds = [energy_round(0), disturbed, energy_round(2)]
    judge(database, night(2, "bad", of=energy_run, rounds=rounds, failed=["sham_window"], validations=ONE_WRONG))
    settle(database, "bad")
    store(database, changed_run(night(3, "new driver", of=energy_run), driver="575.2"))
    judge(database, night(4, "tonight", of=energy_run))
    withdraw_run(
        database.writer, energy_run("new driver").request.run_id, scope="energy", withdrawn_by="ana", reason="wrong"
    )
    with database.writer.begin() as connection:
        connection.execute(text(ALERT))
    promote_run(database.writer, tried(database, candidate_run()), promoted_by="ben", reason="a tenth less")
    questions = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(questions) >= 20
    assert [question for question in questions if not asked(database, question)] == []


def test_every_view_and_every_table_is_in_the_documentation(database: Database) -> None:
    names = asked(
        database,
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') "
        "AND relname <> 'alembic_version'",
    )
    described = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", DOCUMENT.read_text(), re.MULTILINE))))
    assert {name for (name,) in names} - described == set()
