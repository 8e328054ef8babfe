"""How the tasks of a night hang together, for every workload: a DAG file names one, and has nothing of its own.

What the tasks do is in ``tasks`` and in the programs, what a workload's night has in ``workloads``.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import TriggerRule

from regression import operators, settings
from regression.nights import shared_tasks as shared
from regression.nights.workloads import CONFIRM, MEMORY, QUALIFY, RACES, Workload, named
from regression.operators.checks import CheckOperator

CHECKS: Mapping[str, type[CheckOperator]] = {
    "agreement": operators.AgreementRegressionOperator,
    "energy": operators.EnergyDriftOperator,
    "time": operators.TimeDriftOperator,
    "memory": operators.MemoryDriftOperator,
    "repeatability": operators.RepeatabilityOperator,
    "qualification": operators.QualificationOperator,
    "environment": operators.EnvironmentChangeOperator,
}
"""What makes each check that a workload may name."""


def schedule_of(workload: Workload) -> str | None:
    """Cron line of a workload's nights; None where they only run when somebody asks."""
    return settings.schedule() if workload in named(settings.scheduled_workloads()) else None


def wire_night(workload: Workload) -> None:
    """Make the tasks of a workload's night and their order, in the DAG whose ``with`` block this is called in."""
    name, kernels = workload.name, shared.VARIANT if workload.has_kernels else shared.NO_KERNELS
    draws = shared.request(name)
    turn, release = shared.turn(), shared.release()
    provision = shared.provision(name, kernels)
    verify = [shared.verify(name, "sources"), shared.verify(name, "payload", build=True)]
    telemetry_before, telemetry_after = (shared.telemetry(name, moment, kernels) for moment in ("before", "after"))
    numbers = shared.rounds()
    validate = shared.validate(name, draws, kernels, races=RACES in workload.parts)
    # Whatever the validations say, the rounds are measured; but a mismatch above leaves no upstream that succeeded.
    first_rounds = shared.measure(name, "measure", numbers, kernels, TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
    # No task follows a skipped one and yet needs one that succeeded; this one costs nothing, no worker runs it.
    measured = EmptyOperator(task_id="measured", trigger_rule=TriggerRule.ALL_DONE)
    summarise = shared.summarise(name)
    checks = [CHECKS[check](task_id=check) for check in workload.checks]
    loaded = shared.load()
    reported = shared.report(loaded, expected=workload.checks)

    draws >> turn >> provision >> verify >> validate >> first_rounds >> measured >> telemetry_after
    verify >> telemetry_before >> first_rounds >> summarise
    # They succeed where rounds are to be measured, whatever became of these.
    verify >> numbers >> telemetry_after
    [draws, provision, *verify, telemetry_before] >> summarise
    telemetry_after >> summarise >> loaded >> checks >> reported
    # Beside the rest of the run, which has no use for the GPU any more.
    [turn, measured, telemetry_before, telemetry_after] >> release
    if QUALIFY in workload.parts:
        qualify = shared.qualify(name, kernels)
        verify >> qualify >> first_rounds
        qualify >> summarise
    if CONFIRM in workload.parts:
        # Mostly there is nothing to confirm: mapped over no rounds, the task is then skipped.
        confirmed = shared.confirm()
        confirmation_rounds = shared.measure(name, "remeasure", confirmed, kernels)
        first_rounds >> confirmed >> confirmation_rounds >> measured
        numbers >> confirmed >> summarise
    if MEMORY in workload.parts:
        memory = shared.memory(name, kernels)
        # Made where rounds are measured, too, and after all that a hot or a busy device would disturb.
        [numbers, telemetry_after] >> memory >> [summarise, release]
    # Beside the verdict, which waits for nobody's mail server.
    reported >> shared.alert()
    # Red when nothing was stored, too: a run that is repeated has an older result, which the report is about.
    loaded >> shared.verdict(reported)
