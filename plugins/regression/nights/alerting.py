"""The task ``alert`` of a nightly DAG: tell people what the night showed. Never in the way of its verdict."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from regression.operators.alerting import tell_of_run

log = logging.getLogger(__name__)


def alert(context: Mapping[str, Any]) -> dict[str, Any]:
    """Raise and deliver the alerts of this run; returns what was raised and what became of each delivery.

    Whatever goes wrong in it is logged and nothing else: the night is what its verdict says.
    """
    try:
        return tell_of_run(context["dag"].dag_id, context["run_id"])
    except Exception:
        log.exception("the alerts of this night are not complete; the next night and the watchdog try again")
        return {"raised": [], "deliveries": []}
