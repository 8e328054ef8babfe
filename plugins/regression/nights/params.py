"""Parameters of a nightly run: their schema for the form, and the strict reading of what was given.

Airflow checks values against the schema but silently accepts unknown keys, so the first task reads them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from gpu_tasks.records import (
    AVAILABLE_DEVICES,
    PAYLOAD_NAME,
    PROTOCOLS,
    BadInput,
    RunRequest,
    parse_effects,
    run_id_for,
    utc_now,
)

DEVICES = ("auto", *AVAILABLE_DEVICES)
VARIANTS = ("class_blocks", "record", "fused")
SHIPPED_SET = "original"
SIMULATED = "simulated"
EFFECTS = r"^[A-Za-z][A-Za-z0-9_.,=*+% -]*$"  # for the form; what the words mean is read below
MAX_DRAWS = 100
MAX_ROUNDS = 100
MAX_REPEATS = 1_000_000_000
MAX_SEED = 2**32 - 1
MAX_TEXT = 2000

SCHEMA: dict[str, dict[str, Any]] = {
    "device": {
        "default": "auto",
        "type": "string",
        "enum": list(DEVICES),
        "description": "Where to run; auto takes a GPU where there is one, else the emulator",
    },
    "variant": {
        "default": None,
        "type": ["null", "string"],
        "enum": [None, *VARIANTS],
        "description": "Variant of the kernels; empty for the default, class_blocks",
    },
    "payload": {
        "default": SHIPPED_SET,
        "type": "string",
        "pattern": f"^{PAYLOAD_NAME}$",
        "description": "Named set of frozen draws",
    },
    "draws": {
        "default": None,
        "type": ["null", "array"],
        "items": {"type": "integer", "minimum": 0, "maximum": MAX_DRAWS - 1},
        "minItems": 1,
        "uniqueItems": True,
        "description": "Numbers of the draws to validate; empty for all of the set",
    },
    "rounds": {
        "default": 7,
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_ROUNDS,
        "description": "Measurement rounds",
    },
    "confirm_rounds": {
        "default": None,
        "type": ["null", "integer"],
        "minimum": 0,
        "maximum": MAX_ROUNDS,
        "description": "Further rounds where energy or time leave the round spread of their baseline; empty for as "
        "many as rounds, 0 for none",
    },
    "repeats": {
        "default": None,
        "type": ["null", "integer"],
        "minimum": 1,
        "maximum": MAX_REPEATS,
        "description": "Replays in a round; empty for the device's default",
    },
    "protocol": {
        "default": None,
        "type": ["null", "string"],
        "enum": [None, *PROTOCOLS],
        "description": "Measurement protocol; empty for the device's own: audited where there is an energy counter, "
        "else classic",
    },
    "inject": {
        "default": None,
        "type": ["null", "string"],
        "pattern": EFFECTS,
        "maxLength": 200,
        "description": "What the simulated device shows, such as energy+10%, throttle or faulty_sensor; several with "
        "commas; only with the device simulated",
    },
    "seed": {
        "default": None,
        "type": ["null", "integer"],
        "minimum": 0,
        "maximum": MAX_SEED,
        "description": "Seed of the simulated device's noise; empty for one made from the name of the run",
    },
    "label": {
        "default": None,
        "type": ["null", "string"],
        "maxLength": 200,
        "description": "Short name for this run, to find it again",
    },
    "note": {
        "default": None,
        "type": ["null", "string"],
        "maxLength": MAX_TEXT,
        "description": "Free text kept with the run",
    },
}


def build_request(
    given: Mapping[str, Any],
    *,
    workload: str,
    dag_id: str,
    dag_run_id: str,
    trigger: str,
    logical_date: str | None,
    payload_folders: list[Path],
) -> RunRequest:
    """The request that ``given`` parameters make, defaults filled in.

    ``payload_folders`` are looked through in order for a named set; the last one holds the sets that ship.
    A simulated device always has a seed, and a run always a number of confirmation rounds. Raises ``BadInput`` naming
    parameter, expected and found: unknown key, wrong type or range, unknown payload or draw, and what only a simulated
    device takes for another one.
    """
    values = {name: rule["default"] for name, rule in SCHEMA.items()} | check_params(given)
    run_id = run_id_for(dag_id, dag_run_id)
    _check_simulation(values)
    if values["confirm_rounds"] is None:
        values["confirm_rounds"] = values["rounds"]
    if values["device"] == SIMULATED and values["seed"] is None:
        values["seed"] = UUID(run_id).int % (MAX_SEED + 1)
    available = payload_draws(values["payload"], payload_folders)
    wanted = available if values["draws"] is None else sorted(values["draws"])
    missing = sorted(set(wanted) - set(available))
    if missing:
        raise BadInput("bad_param", f"draws: payload {values['payload']} has {available}, found {missing}")
    return RunRequest(
        accepted_at=utc_now(),
        workload=workload,
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        run_id=run_id,
        trigger=trigger,
        logical_date=logical_date,
        **{**values, "draws": wanted},
    )


def check_params(given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` itself, once every key is known and every value fits its schema; raises ``BadInput``."""
    import jsonschema  # type: ignore[import-untyped]

    unknown = sorted(given.keys() - SCHEMA.keys())
    if unknown:
        raise BadInput("unknown_param", f"{unknown[0]}: expected one of {', '.join(SCHEMA)}, found this")
    for name, value in given.items():
        if name == "device" and value not in DEVICES:
            raise BadInput("bad_param", f"device: expected one of {', '.join(DEVICES)}, found {value!r}")
        # JSON Schema takes true for no integer but 7.0 for one: the request would then hold a float.
        numbers = value if isinstance(value, list) else [value]
        whole = not any(isinstance(number, float) for number in numbers)
        try:
            jsonschema.validate(value, SCHEMA[name], cls=jsonschema.Draft202012Validator)
        except jsonschema.ValidationError as error:
            raise BadInput("bad_param", f"{name}: {error.message}") from None
        if not whole or (isinstance(value, str) and not _is_line(value, SCHEMA[name].get("pattern"))):
            raise BadInput("bad_param", f"{name}: expected {SCHEMA[name]['description']!r}, found {value!r}")
    return dict(given)


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


def payload_draws(name: str, folders: list[Path]) -> list[int]:
    """Numbers of the draws of a named set, from its manifest; raises ``BadInput`` when there is no such set.

    ``original`` is the set that ships, in the last folder, whatever lies in the others. Only the numbers are read
    here: whether the files are the pinned ones is for ``verify`` to say.
    """
    if not re.fullmatch(PAYLOAD_NAME, name):
        raise BadInput("bad_param", f"payload: expected a name like original, found {name!r}")
    searched = folders[-1:] if name == SHIPPED_SET else folders
    path = next((p for folder in searched if (p := folder / name / "manifest.json").is_file()), None)
    if path is None:
        raise BadInput("payload_not_found", f"payload {name}: expected a manifest.json in a set's folder, found none")
    try:
        draws = [draw["draw"] for draw in json.loads(path.read_text(encoding="utf-8"))["draws"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput("bad_manifest", f"{path}: draws: expected a list of draws, found {error!r}") from None
    if not draws or not all(type(draw) is int and 0 <= draw < MAX_DRAWS for draw in draws):
        raise BadInput("bad_manifest", f"{path}: draws: expected numbers from 0 to {MAX_DRAWS - 1}, found {draws[:20]}")
    return sorted(draws)
