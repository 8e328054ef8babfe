"""The night of the qda workload: wiring only; what the tasks do is in ``regression`` and ``gpu_tasks``."""

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TriggerRule, get_current_context, task

from regression import settings
from regression.nights import alerting, tasks
from regression.nights import shared_tasks as shared
from regression.nights.schema import NIGHT
from regression.operators import (
    AgreementRegressionOperator,
    EnergyDriftOperator,
    EnvironmentChangeOperator,
    GpuTaskOperator,
    TimeDriftOperator,
)

WORKLOAD = "qda"

with DAG(
    "nightly_qda",
    description="Same predictions, same time, same energy? The frozen draws, every night",
    doc_md=__doc__,
    schedule=settings.schedule(),
    **shared.dag_settings(WORKLOAD, NIGHT),
) as dag:

    @task(trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    def confirm() -> list[int]:
        return tasks.plan_confirmation(get_current_context())

    @task(multiple_outputs=False, trigger_rule=TriggerRule.ALL_DONE)
    def alert() -> dict:
        return alerting.alert(get_current_context())

    draws = shared.request(WORKLOAD, NIGHT)
    turn, release = shared.turn(), shared.release()
    provision = shared.provision(WORKLOAD, shared.VARIANT)
    verify = [shared.verify("sources"), shared.verify("payload")]
    telemetry_before, telemetry_after = (
        shared.telemetry(WORKLOAD, moment, shared.VARIANT) for moment in ("before", "after")
    )
    numbers = shared.rounds()
    validate = GpuTaskOperator.partial(
        task_id="validate",
        program="validate",
        options={
            "draw": "{{ task.number }}",
            "payload": shared.PAYLOAD,
            "device": shared.DEVICE,
            **shared.VARIANT,
            "check": "races",
            **shared.SIMULATION,
        },
        record=f"{shared.FOLDER}/validation-{{{{ '%02d' % task.number }}}}.json",
        lock=shared.DEVICE_UUID,
        map_index_template="draw {{ task.number }}",
        **shared.ON_GPU,
    ).expand(number=draws)
    # Whatever the validations say, the rounds are measured; but a mismatch above leaves no upstream that succeeded.
    # Mostly there is nothing to confirm: mapped over no rounds, the task is then skipped.
    first_rounds = shared.measure("measure", numbers, shared.VARIANT, TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    confirmed = confirm()
    confirmation_rounds = shared.measure("remeasure", confirmed, shared.VARIANT)
    # No task follows a skipped one and yet needs one that succeeded; this one costs nothing, no worker runs it.
    measured = EmptyOperator(task_id="measured", trigger_rule=TriggerRule.ALL_DONE)
    summarise = shared.summarise()
    checks = [
        AgreementRegressionOperator(task_id="agreement"),
        EnergyDriftOperator(task_id="energy"),
        TimeDriftOperator(task_id="time"),
        EnvironmentChangeOperator(task_id="environment"),
    ]
    loaded = shared.load()
    reported = shared.report(loaded, expected=("agreement", "energy", "time", "environment"))

    draws >> turn >> provision >> verify >> validate >> first_rounds >> confirmed >> confirmation_rounds
    confirmation_rounds >> measured >> telemetry_after >> summarise >> loaded >> checks >> reported
    verify >> telemetry_before >> first_rounds >> summarise
    # They succeed where rounds are to be measured, whatever became of these.
    verify >> numbers >> [confirmed, telemetry_after]
    [draws, provision, *verify, telemetry_before, confirmed] >> summarise
    # Beside the rest of the run, which has no use for the GPU any more.
    [turn, measured, telemetry_before, telemetry_after] >> release
    # Beside the verdict, which waits for nobody's mail server.
    reported >> alert()
    # Red when nothing was stored, too: a run that is repeated has an older result, which the report is about.
    loaded >> shared.verdict(reported)
