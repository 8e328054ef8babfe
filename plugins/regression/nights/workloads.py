"""The workloads that have a night, one entry each: DAG files and launcher read what a night of theirs is from here.

Standard library and records only: the launcher reads it before there is any environment. docs/workloads.md says how to
add one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpu_tasks.records import DEFAULT_WORKLOAD, PROTOCOLS, TRIAL, BadInput
from regression.nights.schema import Schema, night_schema

QUALIFY = "qualify"
RACES = "races"
CONFIRM = "confirm"
MEMORY = "memory"
PARTS = (QUALIFY, RACES, CONFIRM, MEMORY)
"""What a night may have beside what every night has: a qualification, a look for races in each validation,
confirmation rounds, an account of the task's memory."""


@dataclass(frozen=True)
class Workload:
    """What a night of one workload is; its DAG is ``nightly_`` and its name.

    ``payload`` is the set of draws that is meant where none is named. One that does not ship is built by the first
    night, as ``gpu_tasks/workloads/NAME/frozen/manifest.json`` has it. ``environments`` can run its GPU programs, the
    first of them unless another is asked for. ``settings`` are params that the programs find in their environment: its
    variable by the param's name. ``checks`` are the tasks that judge a run, and what each of them has to say before
    there is a verdict.
    """

    name: str
    description: str
    payload: str
    environments: tuple[str, ...]
    schema: Schema
    parts: tuple[str, ...]
    checks: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def dag_id(self) -> str:
        """Id of the DAG of its nights."""
        return f"nightly_{self.name}"

    @property
    def has_kernels(self) -> bool:
        """Whether there are variants of kernels to choose from."""
        return "variant" in self.schema

    @property
    def recorded_parts(self) -> list[str]:
        """Records that a night of it has beside those that every night has, by name."""
        return [record for part, record in ((QUALIFY, "qualification"), (MEMORY, "memory")) if part in self.parts]

    def environment(self, wanted: str | None) -> str:
        """The environment that its programs run in: the ``wanted`` one where that can run them, else its own."""
        return wanted if wanted in self.environments else self.environments[0]

    def pinned_sets(self, gpu_tasks: Path) -> dict[str, Path]:
        """Manifests of the sets of draws that a night of it can build, by name, in the folder ``gpu_tasks``."""
        manifest = gpu_tasks / "workloads" / self.name / "frozen" / "manifest.json"
        return {self.payload: manifest} if manifest.is_file() else {}


QDA = Workload(
    name="qda",
    description="Same predictions, same time, same energy? The frozen draws, every night",
    payload="original",
    environments=("cpu", "a100", "learner"),
    schema={
        **night_schema(
            {
                "variant": {
                    "default": None,
                    "type": ["null", "string"],
                    "enum": [None, "class_blocks", "record", "fused"],
                    "description": "Variant of the kernels; empty for the default, class_blocks",
                },
            },
            payload="original",
            devices=("cuda", "emulated", "reference", "simulated"),
            without_gpu="the emulator",
            protocols=PROTOCOLS,
        ),
        "kernel_changed": {
            "default": False,
            "type": "boolean",
            "description": "This run tries another kernel: it is marked, and kept out of the series of nights",
        },
    },
    parts=(RACES, CONFIRM),
    checks=("agreement", "energy", "time", "environment"),
)

LEARNER = Workload(
    name="learner",
    description="Same predictions, same bits, same memory, time and energy? The reversible learner, every night",
    payload="learner",
    environments=("learner", "a100"),
    schema=night_schema(
        {
            "cublas_workspace": {
                "default": None,
                "type": ["null", "string"],
                "enum": [None, ":16:8", ":4096:8"],
                "description": "CUBLAS_WORKSPACE_CONFIG of the programs, on a GPU; empty for the environment's, else "
                ":16:8",
            },
        },
        payload="learner",
        devices=("cuda", "reference", "simulated"),
        without_gpu="the reference on the CPU",
        protocols=(TRIAL, *(name for name in PROTOCOLS if name != "interleaved")),
        rounds=3,
    ),
    parts=(QUALIFY, CONFIRM, MEMORY),
    checks=("agreement", "energy", "time", "memory", "repeatability", "qualification", "environment"),
    settings={"cublas_workspace": "CUBLAS_WORKSPACE_CONFIG"},
)

WORKLOADS = {workload.name: workload for workload in (QDA, LEARNER)}
DEFAULT = WORKLOADS[DEFAULT_WORKLOAD]
"""The one that is meant where none is named."""
WITH_KERNELS = QDA
"""The one whose kernels are tried and compared: there is one pinned set of them."""


def find(name: str) -> Workload:
    """The workload called ``name``; raises ``BadInput``: ``unknown_workload``."""
    if name not in WORKLOADS:
        raise BadInput("unknown_workload", f"workload: expected one of {', '.join(WORKLOADS)}, found {name!r:.80}")
    return WORKLOADS[name]


def named(text: str | None, default: Sequence[str] = (DEFAULT.name,)) -> list[Workload]:
    """The workloads in a list with commas, in its order and each once; raises ``BadInput``."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    return [find(name) for name in dict.fromkeys(names or default)]
