"""What the DAG ``kernel_changed`` was started for: the updates of its asset, none of them lost, none told twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

ASSET = "kernel_changed"
MOST_EVENTS = 1000
PREFIX = "changed__"
OF_AIRFLOW = ("from_rest_api", "from_trigger")
"""Keys that Airflow adds to what came with an update."""


def events(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each update: ``run_id`` of the comparison that it starts, and ``given``, what came with it.

    Airflow 3.3 says with which update the queue began, and drops those that come before the run is made of it, which
    is a moment with a running scheduler, and as long as it takes without one. So all since the first are taken; one
    that another run of this DAG has as well has the same ``run_id`` there, and starts nothing again.
    """
    triggering = context["triggering_asset_events"].get(Asset(ASSET), [])
    if not triggering:
        message = (
            f"bad_input (exit 2): no_event: expected an update of the asset {ASSET}, found none; to compare by hand, "
        )
        raise AirflowFailException(f"{message}trigger compare_kernels")
    since = min(event.timestamp for event in triggering)
    found = context["inlet_events"][Asset(ASSET)].after(since.isoformat()).limit(MOST_EVENTS)
    return [
        {
            "run_id": f"{PREFIX}{event.timestamp.isoformat()}__{event.id}",
            "given": {name: value for name, value in (event.extra or {}).items() if name not in OF_AIRFLOW},
        }
        for event in sorted(found, key=lambda event: (event.timestamp, event.id))
    ]
