"""``nightly changed``: tell the running stack of a commit whose kernels changed, as a git hook or a CI job does."""

from __future__ import annotations

import argparse

from gpu_tasks.records import Outcome
from local import history, runs
from local.errors import Usage, told_in_one_line
from local.paths import Home
from local.people import said
from local.stack import Stack, hold
from local.try_command import ASKED


def command_changed(home: Home, arguments: argparse.Namespace) -> int:
    """Update the asset with the commits that the refs name now: a branch may have moved on when its turn comes."""
    with told_in_one_line():
        commit = history.commit(arguments.ref)
        against = arguments.against and history.commit(arguments.against)
    state = Stack(home, arguments.dsn).state()
    if state is None or not state.airflow_ready:
        raise Usage("changed: expected a running stack, found none; `./nightly up` first, or use `./nightly try`")
    given = {"candidate": commit, "against": against, "device": arguments.device, "note": arguments.note}
    extra = {name: value for name, value in given.items() if value is not None}
    with hold(home, arguments.dsn, need_airflow=True) as held:
        client = held.airflow()
        for dag_id in (runs.CHANGED, runs.COMPARISON.dag_id):
            runs.make_available(client, dag_id)
        event = client.asset_event(runs.CHANGED, extra)
    held_against = f"{arguments.against} ({against[:12]})" if against else "the pinned kernels"
    print(f"{runs.CHANGED}: event {event}, {arguments.ref} ({commit[:12]}) against {held_against}")
    said(f'query:   ./nightly sql "{ASKED}"')
    return Outcome.OK.exit_code
