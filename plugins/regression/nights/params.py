"""The strict reading of a run's params.

Airflow checks values against the schema but silently accepts unknown keys, so the first task reads them again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from gpu_tasks.records import MAX_SEED, BadInput, RunRequest, parse_effects, run_id_for, utc_now
from regression.nights import workloads
from regression.nights.payload_sets import payload_draws
from regression.nights.schema import SIMULATED, Schema

MOST_QUOTED = 80


def build_request(
    given: Mapping[str, Any],
    *,
    workload: str,
    dag_id: str,
    dag_run_id: str,
    trigger: str,
    logical_date: str | None,
    payload_folders: list[Path],
    schema: Schema | None = None,
) -> RunRequest:
    """The request that ``given`` parameters make, defaults filled in.

    ``payload_folders`` are looked through in order for a named set; the last one holds the sets that ship. ``schema``
    is that of the workload's nights unless it is given; only those have parts of their own.
    A simulated device always has a seed, and a night always a number of confirmation rounds. Raises ``BadInput`` naming
    parameter, expected and found: unknown key, missing one, wrong type or range, unknown payload or draw, and what only
    a simulated device takes for another one.
    """
    declared = workloads.find(workload)
    parts = [part for part in declared.recorded_parts if schema is None]
    schema = schema or declared.schema
    values = {name: rule.get("default") for name, rule in schema.items()} | check_params(given, schema)
    for name, rule in schema.items():
        if "default" not in rule and name not in given:
            raise BadInput("bad_param", f"{name}: expected {rule['description']!r}, found none")
    run_id = run_id_for(dag_id, dag_run_id)
    _check_simulation(values)
    if "confirm_rounds" in values and values["confirm_rounds"] is None:
        values["confirm_rounds"] = values["rounds"]
    if values["device"] == SIMULATED and values["seed"] is None:
        values["seed"] = UUID(run_id).int % (MAX_SEED + 1)
    available = payload_draws(values["payload"], payload_folders, declared.pinned_sets(payload_folders[-1].parent))
    wanted = available if values["draws"] is None else sorted(values["draws"])
    missing = sorted(set(wanted) - set(available))
    if missing:
        raise BadInput("bad_param", f"draws: payload {values['payload']} has {available}, found {missing}")
    set_by_params = {variable: values.pop(name, None) for name, variable in declared.settings.items()}
    return RunRequest(
        accepted_at=utc_now(),
        workload=workload,
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        run_id=run_id,
        trigger=trigger,
        logical_date=logical_date,
        **{"variant": None, **values, "draws": wanted},
        variables={variable: value for variable, value in set_by_params.items() if value is not None},
        parts=parts,
    )


def check_params(given: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """``given`` itself, once every key is known and every value fits its schema; raises ``BadInput``."""
    import jsonschema  # type: ignore[import-untyped]

    unknown = sorted(given.keys() - schema.keys())
    if unknown:
        raise BadInput("unknown_param", f"{unknown[0]:.{MOST_QUOTED}}: expected one of {', '.join(schema)}, found this")
    for name, value in given.items():
        rule = schema[name]
        if name == "device" and value not in rule["enum"]:
            raise BadInput("bad_param", f"device: expected one of {', '.join(rule['enum'])}, found {_quoted(value)}")
        # JSON Schema takes true for no integer but 7.0 for one: the request would then hold a float.
        numbers = value if isinstance(value, list) else [value]
        whole = not any(isinstance(number, float) for number in numbers)
        try:
            jsonschema.validate(value, rule, cls=jsonschema.Draft202012Validator)
        except jsonschema.ValidationError as error:
            raise BadInput("bad_param", f"{name}: {_short(error)}") from None
        if not whole or (isinstance(value, str) and not _is_line(value, rule.get("pattern"))):
            raise BadInput("bad_param", f"{name}: expected {rule['description']!r}, found {_quoted(value)}")
    return dict(given)


def _short(error: Any) -> str:
    """What jsonschema says, which quotes the value whole, however long that is; of a bound, both of them."""
    if error.validator in ("minimum", "maximum"):
        return f"expected {error.schema['minimum']} to {error.schema['maximum']}, found {_quoted(error.instance)}"
    return str(error.message).replace(repr(error.instance), _quoted(error.instance))


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}... ({len(text)} characters)"


def _is_line(value: str, pattern: str | None) -> bool:
    """Whether PostgreSQL can hold the text and, where it has a pattern, all of it fits: ``$`` lets a newline pass."""
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a character, which JSON can write
        return False
    return "\0" not in value and (pattern is None or re.fullmatch(pattern, value) is not None)


def _check_simulation(values: Mapping[str, Any]) -> None:
    for name in ("inject", "seed"):
        if values[name] is not None and values["device"] != SIMULATED:
            message = f"{name}: expected none unless the device is {SIMULATED}, found {values[name]!r} for "
            raise BadInput("bad_param", f"{message}{values['device']}")
    parse_effects(values["inject"])
