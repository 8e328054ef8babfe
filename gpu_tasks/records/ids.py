"""Identifiers that both sides derive instead of exchanging them."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5


def run_id_for(dag_id: str, dag_run_id: str) -> str:
    """The run's UUID, from the two names Airflow knows it by: the same run always gets the same one."""
    return str(uuid5(NAMESPACE_URL, f"kernel-nightly:{dag_id}/{dag_run_id}"))
