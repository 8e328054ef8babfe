"""A run that is still being measured, as the database would have it: enough of it to look up its baselines."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Text, literal, select

from gpu_tasks.records import DeviceFingerprint, PayloadIdentity
from regression.results import tables
from regression.results.rows import device_row, payload_row


def unstored_run(
    connection: Connection,
    *,
    workload: str,
    device: DeviceFingerprint,
    payload: PayloadIdentity | None,
    protocol: str,
    environment_class: str | None,
    energy_trust: str,
) -> Row[Any]:
    """The columns of ``history.find_run`` that the choice of a baseline asks for.

    ``device_id`` and ``payload_id`` are None where the database has never seen them: no baseline is of them.
    """
    known, values = tables.device.c, device_row(device)
    of_device = select(known.device_id).where(*(known[name] == values[name] for name in ("kind", "uuid", "name")))
    sets, identity = tables.payload.c, payload_row(payload) if payload else {"name": None, "manifest_sha256": None}
    of_payload = select(sets.payload_id).where(*(sets[name] == value for name, value in identity.items()))
    row: Row[Any] = connection.execute(
        select(
            literal(workload, Text).label("workload"),
            of_device.scalar_subquery().label("device_id"),
            of_payload.scalar_subquery().label("payload_id"),
            literal(protocol, Text).label("protocol"),
            literal(environment_class, Text).label("environment_class"),
            literal(energy_trust, Text).label("energy_trust"),
            literal(device.kind, Text).label("kind"),
            literal(device.uuid, Text).label("uuid"),
        )
    ).one()
    return row
