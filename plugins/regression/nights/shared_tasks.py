"""The tasks that the DAGs have in common: each is made in one place here, and a DAG file wires those it needs.

Called within a ``with DAG(...)`` that was given ``dag_settings``; what the small tasks do is in ``tasks``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import Param, TriggerRule, get_current_context, task

from regression import settings
from regression.nights import alerting, tasks
from regression.nights.folder import Night
from regression.nights.schema import Schema
from regression.nights.workloads import WORKLOADS
from regression.operators import GpuTaskOperator

NIGHT = "night(dag.dag_id, run_id)"
FOLDER = f"{{{{ {NIGHT}.folder }}}}"
PAYLOAD = f"{{{{ {NIGHT}.request.payload }}}}"
DEVICE = f"{{{{ {NIGHT}.device.kind }}}}"
DEVICE_UUID = f"{{{{ {NIGHT}.device.uuid }}}}"
VARIANT = {"variant": f"{{{{ {NIGHT}.request.variant or '' }}}}"}
"""The kernels of a night: the committed ones, of the variant that was asked for."""
NO_KERNELS: dict[str, str] = {}
"""Those of a workload that has none."""
CANDIDATE = {"manifest": f"{{{{ {NIGHT}.manifest }}}}"}
"""Those of a candidate."""
SIMULATION = {
    "inject": f"{{{{ {NIGHT}.request.inject or '' }}}}",
    "seed": f"{{% set seed = {NIGHT}.request.seed %}}{{{{ '' if seed is none else seed }}}}",
}
ON_GPU = {"pool": settings.gpu_pool(), "max_active_tis_per_dagrun": 1, "execution_timeout": timedelta(minutes=30)}
TURN_POLL = timedelta(seconds=10)
TURN_TIMEOUT = timedelta(hours=12)


def _settings_of(workload: str) -> dict[str, str]:
    """Environment of a workload's programs: each of its settings as the request has it, else empty."""
    return {
        variable: f"{{{{ {NIGHT}.request.variables.get('{variable}', '') }}}}"
        for variable in WORKLOADS[workload].settings.values()
    }


def dag_settings(workload: str, schema: Schema, *tags: str) -> dict[str, Any]:
    """Arguments of a DAG whose runs are stored and judged."""
    return {
        "start_date": settings.start_date(),
        "catchup": False,
        "max_active_runs": 1,  # the others wait in Airflow's own queue, where they cost nothing
        "params": {name: Param(**rule) for name, rule in schema.items()},
        "user_defined_macros": {"night": Night},
        "tags": ["kernel-nightly", workload, *tags],
    }


def request(workload: str, schema: Schema | None = None) -> Any:
    """Accepts the params, those of the workload's nights unless ``schema`` is given; gives the numbers of the draws."""

    @task(task_id="request")
    def accept() -> list[int]:
        return tasks.accept_request(get_current_context(), workload, schema)

    return accept()


def turn() -> Any:
    """Waits, without a worker, until no other run uses the GPU."""

    @task.sensor(
        task_id="turn",
        mode="reschedule",
        poke_interval=TURN_POLL,
        timeout=TURN_TIMEOUT,
        execution_timeout=timedelta(minutes=5),
        retries=3,
        retry_delay=timedelta(seconds=30),
    )
    def wait() -> bool:
        return tasks.has_turn(get_current_context())

    return wait()


def release() -> Any:
    """Gives the turn to the next run; one that is killed before is taken out of the queue by that."""

    @task(task_id="release", trigger_rule=TriggerRule.ALL_DONE, retries=3, retry_delay=timedelta(seconds=5))
    def leave() -> None:
        tasks.release_turn(get_current_context())

    return leave()


def candidate(workload: str) -> GpuTaskOperator:
    """Finds the candidate and what it is held against, and freezes both."""
    return GpuTaskOperator(
        task_id="candidate",
        program="candidate",
        options={
            "workload": workload,
            "spec": f"{{{{ {NIGHT}.request.candidate }}}}",
            **VARIANT,
            "against": f"{{{{ {NIGHT}.request.against or '' }}}}",
            "candidates": f"{{{{ {NIGHT}.candidates }}}}",
            "expect": f"{{{{ 'another' if {NIGHT}.request.kernel_changed else 'same' }}}}",
            "environment": settings.gpu_environment(workload),
        },
        python=sys.executable,  # it builds kernels, and is the first to need the environment
        record=f"{FOLDER}/candidate.json",
        execution_timeout=timedelta(minutes=10),
    )


def provision(workload: str, kernels: Mapping[str, str]) -> GpuTaskOperator:
    """Makes the environment, and chooses and fingerprints the device."""
    return GpuTaskOperator(
        task_id="provision",
        program="provision",
        options={
            "workload": workload,
            "device": f"{{{{ {NIGHT}.request.device }}}}",
            **kernels,
            "environment": settings.gpu_environment(workload),
            **SIMULATION,
        },
        python=sys.executable,  # the environment that it may have to repair cannot be the one that it starts in
        record=f"{FOLDER}/provision.json",
        env=_settings_of(workload),
        **ON_GPU,
    )


def verify(workload: str, subject: str, **options: str | bool) -> GpuTaskOperator:
    """Hashes the sources or the payload against what is pinned."""
    return GpuTaskOperator(
        task_id=f"verify_{subject}",
        program="verify",
        options={"workload": workload, "subject": subject, "payload": PAYLOAD, **options},
        workload=workload,
        record=f"{FOLDER}/verify-{subject}.json",
        execution_timeout=timedelta(minutes=10),
    )


def telemetry(workload: str, moment: str, kernels: Mapping[str, str]) -> GpuTaskOperator:
    """Looks at the energy counter before or after the rounds.

    Whatever it finds or fails at, the rounds are measured; what their energy is worth is for the summary to say.
    """
    return GpuTaskOperator(
        task_id=f"telemetry_{moment}",
        program="telemetry",
        options={
            "when": moment,
            "workload": workload,
            "device": DEVICE,
            **kernels,
            "request": f"{FOLDER}/request.json",
            **SIMULATION,
        },
        workload=workload,
        record=f"{FOLDER}/telemetry-{moment}.json",
        lock=DEVICE_UUID,
        env=_settings_of(workload),
        **ON_GPU,
    )


def qualify(workload: str, kernels: Mapping[str, str]) -> GpuTaskOperator:
    """Holds the device against an independent implementation."""
    return GpuTaskOperator(
        task_id="qualify",
        program="qualify",
        options={"workload": workload, "device": DEVICE, **kernels, **SIMULATION},
        workload=workload,
        record=f"{FOLDER}/qualification.json",
        lock=DEVICE_UUID,
        env=_settings_of(workload),
        **ON_GPU,
    )


def validate(workload: str, numbers: Any, kernels: Mapping[str, str], *, races: bool) -> Any:
    """Each draw against its frozen predictions."""
    return GpuTaskOperator.partial(
        task_id="validate",
        program="validate",
        options={
            "workload": workload,
            "draw": "{{ task.number }}",
            "payload": PAYLOAD,
            "device": DEVICE,
            **kernels,
            "check": "races" if races else "",
            **SIMULATION,
        },
        workload=workload,
        record=f"{FOLDER}/validation-{{{{ '%02d' % task.number }}}}.json",
        lock=DEVICE_UUID,
        env=_settings_of(workload),
        map_index_template="draw {{ task.number }}",
        **ON_GPU,
    ).expand(number=numbers)


def memory(workload: str, kernels: Mapping[str, str]) -> GpuTaskOperator:
    """Says where the memory of one task is, whatever became of the rounds."""
    return GpuTaskOperator(
        task_id="account_memory",
        program="memory",
        options={
            "workload": workload,
            "payload": PAYLOAD,
            "device": DEVICE,
            **kernels,
            "predictions": f"{FOLDER}/predictions.npy",
            "profile": True,
            **SIMULATION,
        },
        workload=workload,
        record=f"{FOLDER}/memory.json",
        lock=DEVICE_UUID,
        env=_settings_of(workload),
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        **ON_GPU,
    )


def measure(
    workload: str,
    task_id: str,
    numbers: Any,
    kernels: Mapping[str, str],
    rule: TriggerRule = TriggerRule.ALL_SUCCESS,
) -> Any:
    """One round for each of the ``numbers``; skipped where there are none."""
    return GpuTaskOperator.partial(
        task_id=task_id,
        program="measure",
        options={
            "workload": workload,
            "round": "{{ task.number }}",
            "payload": PAYLOAD,
            "device": DEVICE,
            **kernels,
            "repeats": f"{{{{ {NIGHT}.request.repeats or '' }}}}",
            "protocol": f"{{{{ {NIGHT}.protocol }}}}",
            "telemetry": f"{FOLDER}/telemetry-before.json",
            **SIMULATION,
        },
        workload=workload,
        record=f"{FOLDER}/round-{{{{ '%02d' % task.number }}}}.json",
        lock=DEVICE_UUID,
        env=_settings_of(workload),
        map_index_template="round {{ task.number }}",
        trigger_rule=rule,
        **ON_GPU,
    ).expand(number=numbers)


def rounds() -> Any:
    """Numbers of the rounds to measure; skipped where a candidate computes something wrong."""

    @task(task_id="rounds")
    def plan() -> list[int]:
        return tasks.plan_rounds(get_current_context())

    return plan()


def confirm() -> Any:
    """Numbers of the confirmation rounds, mostly none."""

    @task(task_id="confirm", trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    def plan() -> list[int]:
        return tasks.plan_confirmation(get_current_context())

    return plan()


def summarise(workload: str) -> GpuTaskOperator:
    """Puts the record of the run together from what there is.

    Needs the request and nothing else to have succeeded: a run that failed is summarised, loaded and judged too.
    """
    return GpuTaskOperator(
        task_id="summarise",
        program="summarise",
        options={"request": f"{FOLDER}/request.json", "folder": FOLDER},
        workload=workload,
        record=f"{FOLDER}/run.json",
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        execution_timeout=timedelta(minutes=5),
    )


def load() -> Any:
    """Stores the run in the results database."""

    @task(
        task_id="load",
        multiple_outputs=False,
        trigger_rule=TriggerRule.ALL_DONE,
        retries=3,
        retry_delay=timedelta(seconds=30),
    )
    def store() -> dict:
        return tasks.load(get_current_context())

    return store()


def alert() -> Any:
    """Tells people what the night showed."""

    @task(task_id="alert", multiple_outputs=False, trigger_rule=TriggerRule.ALL_DONE)
    def tell() -> dict:
        return alerting.alert(get_current_context())

    return tell()


def report(loaded: Any, expected: Sequence[str]) -> Any:
    """Settles the verdict from the ``expected`` checks, and shows it."""

    @task(task_id="report", multiple_outputs=False, trigger_rule=TriggerRule.ALL_DONE)
    def settle(loaded: dict | None) -> dict:
        return tasks.report(get_current_context(), loaded, expected=expected)

    return settle(loaded)


def verdict(reported: Any) -> Any:
    """Red unless the verdict is fine."""

    @task(task_id="verdict")
    def require(reported: dict) -> None:
        tasks.require_fine(reported)

    return require(reported)
