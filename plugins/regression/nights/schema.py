"""The params of a run: what each may be, for Airflow's form and for the strict reading of what was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_tasks.records import (
    AVAILABLE_DEVICES,
    MAX_BLOCKS,
    MAX_DRAWS,
    MAX_REPEATS,
    MAX_ROUNDS,
    MAX_SEED,
    PAYLOAD_NAME,
    PROTOCOLS,
)

Schema = Mapping[str, Mapping[str, Any]]
"""JSON Schema of each param by name; one without a default has to be given."""

SIMULATED = "simulated"
REFERENCE = "reference"
INTERLEAVED = "interleaved"
DEVICES = ("auto", *AVAILABLE_DEVICES)
SHIPPED_SET = "original"
EFFECTS = r"^[A-Za-z][A-Za-z0-9_.,=*+% -]*$"  # for the form; what the words mean is read when a run is accepted
SPEC = r"^[^-\s][^\x00-\x1f\x7f]*$"  # never an option; what it names is for the program `candidate` to find
VARIANT = "^[A-Za-z][A-Za-z0-9_]*$"
MAX_SPEC = 300
MAX_TEXT = 2000

COMMON: dict[str, dict[str, Any]] = {
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
"""Of every run, unless it says otherwise."""

_ROUNDS: dict[str, dict[str, Any]] = {
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
}
"""Of every night."""


def night_schema(
    own: Schema, *, payload: str, devices: Sequence[str], without_gpu: str, protocols: Sequence[str], rounds: int = 7
) -> Schema:
    """Params of a workload's nights: those of every night, and its ``own``.

    ``payload`` is the set of draws that is meant where none is named, ``devices`` are the kinds it runs on,
    ``without_gpu`` says in words what takes a GPU's place, and ``protocols`` begin with the one of its own.
    """
    device = {
        "default": "auto",
        "type": "string",
        "enum": ["auto", *devices],
        "description": f"Where to run; auto takes a GPU where there is one, else {without_gpu}",
    }
    changed = {"payload": {"default": payload}, "protocol": {"enum": [None, *protocols]}, "rounds": {"default": rounds}}
    every = {name: rule | changed.get(name, {}) for name, rule in {**COMMON, **_ROUNDS}.items()}
    return {"device": device, **own, **every}


_COMPARED = [name for name in DEVICES if name != REFERENCE]
COMPARISON: Schema = {
    "candidate": {
        "type": "string",
        "pattern": SPEC,
        "maxLength": MAX_SPEC,
        "description": "The kernel to try: a path in the repository (kernels/*.py, a .ptx, a kernel manifest), the "
        "name of a variant, a git ref, or a bundle candidate-<16 hex digits>",
    },
    "against": {
        "default": None,
        "type": ["null", "string"],
        "pattern": SPEC,
        "maxLength": MAX_SPEC,
        "description": "What to hold it against, named in the same way; empty for the committed kernels",
    },
    "device": {
        "default": "auto",
        "type": "string",
        "enum": _COMPARED,
        "description": "Where to run; auto takes a GPU where there is one, else the emulator",
    },
    "variant": {
        "default": None,
        "type": ["null", "string"],
        "pattern": VARIANT,
        "maxLength": 100,
        "description": "Which variant of the candidate, where it has several; empty for the one that differs",
    },
    **COMMON,
    "protocol": COMMON["protocol"] | {"enum": [None, *(name for name in PROTOCOLS if name != INTERLEAVED)]},
    "blocks": {
        "default": None,
        "type": ["null", "integer"],
        "minimum": 0,
        "maximum": MAX_BLOCKS,
        "description": "Blocks in which both kernels are measured in turn; empty for the default, 0 for none",
    },
    "rounds": {
        "default": 7,
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_ROUNDS,
        "description": "Rounds of the candidate as nights measure them, so that it can be promoted; 0 for none",
    },
    "kernel_changed": {
        "default": True,
        "type": "boolean",
        "description": "The candidate is to be another kernel than what it is held against; false for an A/A run, in "
        "which every difference is chance",
    },
}
"""Of a comparison of two kernels."""
