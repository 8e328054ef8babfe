"""The night of the qda workload: wiring only; what the tasks do is in ``regression`` and ``gpu_tasks``."""

import sys
from datetime import timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, TriggerRule, get_current_context, task

from regression import settings
from regression.nights import alerting, params, tasks
from regression.nights.folder import Night
from regression.operators import (
    AgreementRegressionOperator,
    EnergyDriftOperator,
    EnvironmentChangeOperator,
    GpuTaskOperator,
    TimeDriftOperator,
)

WORKLOAD = "qda"
FOLDER = "{{ night(dag.dag_id, run_id).folder }}"
PAYLOAD = "{{ night(dag.dag_id, run_id).request.payload }}"
VARIANT = "{{ night(dag.dag_id, run_id).request.variant or '' }}"
DEVICE = "{{ night(dag.dag_id, run_id).device.kind }}"
DEVICE_UUID = "{{ night(dag.dag_id, run_id).device.uuid }}"
SIMULATION = {
    "inject": "{{ night(dag.dag_id, run_id).request.inject or '' }}",
    "seed": "{% set seed = night(dag.dag_id, run_id).request.seed %}{{ '' if seed is none else seed }}",
}
ON_GPU = {"pool": settings.gpu_pool(), "max_active_tis_per_dagrun": 1, "execution_timeout": timedelta(minutes=30)}

with DAG(
    "nightly_qda",
    description="Same predictions, same time, same energy? The frozen draws, every night",
    doc_md=__doc__,
    schedule=settings.schedule(),
    start_date=settings.start_date(),
    catchup=False,
    max_active_runs=1,
    params={name: Param(**rule) for name, rule in params.SCHEMA.items()},
    user_defined_macros={"night": Night},
    tags=["kernel-nightly", WORKLOAD],
) as dag:

    @task
    def request() -> list[int]:
        return tasks.accept_request(get_current_context(), WORKLOAD)

    @task
    def rounds() -> list[int]:
        return tasks.plan_rounds(get_current_context())

    @task(trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    def confirm() -> list[int]:
        return tasks.plan_confirmation(get_current_context())

    @task(multiple_outputs=False, trigger_rule=TriggerRule.ALL_DONE, retries=3, retry_delay=timedelta(seconds=30))
    def load() -> dict:
        return tasks.load(get_current_context())

    @task(multiple_outputs=False, trigger_rule=TriggerRule.ALL_DONE)
    def report(loaded: dict | None) -> dict:
        expected = ("agreement", "energy", "time", "environment")
        return tasks.report(get_current_context(), loaded, expected=expected)

    @task(multiple_outputs=False, trigger_rule=TriggerRule.ALL_DONE)
    def alert() -> dict:
        return alerting.alert(get_current_context())

    @task
    def verdict(reported: dict) -> None:
        tasks.require_fine(reported)

    provision = GpuTaskOperator(
        task_id="provision",
        program="provision",
        options={
            "workload": WORKLOAD,
            "device": "{{ night(dag.dag_id, run_id).request.device }}",
            "variant": VARIANT,
            "environment": settings.gpu_environment(),
            **SIMULATION,
        },
        python=sys.executable,  # the environment that it may have to repair cannot be the one that it starts in
        record=f"{FOLDER}/provision.json",
        **ON_GPU,
    )
    verify = [
        GpuTaskOperator(
            task_id=f"verify_{subject}",
            program="verify",
            options={"subject": subject, "payload": PAYLOAD},
            record=f"{FOLDER}/verify-{subject}.json",
            execution_timeout=timedelta(minutes=10),
        )
        for subject in ("sources", "payload")
    ]
    # Whatever they find or fail at, the rounds are measured; what their energy is worth is for the summary to say.
    telemetry_before, telemetry_after = (
        GpuTaskOperator(
            task_id=f"telemetry_{moment}",
            program="telemetry",
            options={
                "when": moment,
                "workload": WORKLOAD,
                "device": DEVICE,
                "variant": VARIANT,
                "request": f"{FOLDER}/request.json",
                **SIMULATION,
            },
            record=f"{FOLDER}/telemetry-{moment}.json",
            lock=DEVICE_UUID,
            **ON_GPU,
        )
        for moment in ("before", "after")
    )
    draws, numbers = request(), rounds()
    validate = GpuTaskOperator.partial(
        task_id="validate",
        program="validate",
        options={
            "draw": "{{ task.number }}",
            "payload": PAYLOAD,
            "device": DEVICE,
            "variant": VARIANT,
            "check": "races",
            **SIMULATION,
        },
        record=f"{FOLDER}/validation-{{{{ '%02d' % task.number }}}}.json",
        lock=DEVICE_UUID,
        map_index_template="draw {{ task.number }}",
        **ON_GPU,
    ).expand(number=draws)
    # Whatever the validations say, the rounds are measured; but a mismatch above leaves no upstream that succeeded.
    # Mostly there is nothing to confirm: mapped over no rounds, the task is then skipped.
    measure, remeasure = (
        GpuTaskOperator.partial(
            task_id=name,
            program="measure",
            options={
                "round": "{{ task.number }}",
                "payload": PAYLOAD,
                "device": DEVICE,
                "variant": VARIANT,
                "repeats": "{{ night(dag.dag_id, run_id).request.repeats or '' }}",
                "protocol": "{{ night(dag.dag_id, run_id).protocol }}",
                "telemetry": f"{FOLDER}/telemetry-before.json",
                **SIMULATION,
            },
            record=f"{FOLDER}/round-{{{{ '%02d' % task.number }}}}.json",
            lock=DEVICE_UUID,
            map_index_template="round {{ task.number }}",
            trigger_rule=rule,
            **ON_GPU,
        )
        for name, rule in (("measure", TriggerRule.ALL_DONE_MIN_ONE_SUCCESS), ("remeasure", TriggerRule.ALL_SUCCESS))
    )
    first_rounds, confirmed = measure.expand(number=numbers), confirm()
    confirmation_rounds = remeasure.expand(number=confirmed)
    # No task follows a skipped one and yet needs one that succeeded; this one costs nothing, no worker runs it.
    measured = EmptyOperator(task_id="measured", trigger_rule=TriggerRule.ALL_DONE)
    # Needs the request and nothing else to have succeeded: a run that failed is summarised, loaded and judged too.
    summarise = GpuTaskOperator(
        task_id="summarise",
        program="summarise",
        options={"request": f"{FOLDER}/request.json", "folder": FOLDER},
        record=f"{FOLDER}/run.json",
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        execution_timeout=timedelta(minutes=5),
    )
    checks = [
        AgreementRegressionOperator(task_id="agreement"),
        EnergyDriftOperator(task_id="energy"),
        TimeDriftOperator(task_id="time"),
        EnvironmentChangeOperator(task_id="environment"),
    ]
    loaded = load()
    reported = report(loaded)

    draws >> provision >> verify >> validate >> first_rounds >> confirmed >> confirmation_rounds
    confirmation_rounds >> measured >> telemetry_after >> summarise >> loaded >> checks >> reported
    verify >> telemetry_before >> first_rounds >> summarise
    # They succeed where rounds are to be measured, whatever became of these.
    verify >> numbers >> [confirmed, telemetry_after]
    [draws, provision, *verify, telemetry_before, confirmed] >> summarise
    # Beside the verdict, which waits for nobody's mail server.
    reported >> alert()
    # Red when nothing was stored, too: a run that is repeated has an older result, which the report is about.
    loaded >> verdict(reported)
