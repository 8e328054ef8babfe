"""A candidate kernel against the pinned one, both in one run on one device: wiring only, as in ``nightly_qda``."""

from datetime import timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TriggerRule

from regression.nights import shared_tasks as shared
from regression.nights.schema import COMPARISON
from regression.nights.workloads import WITH_KERNELS
from regression.operators import ComparisonOperator, GpuTaskOperator

WORKLOAD = WITH_KERNELS.name
REQUEST = f"{shared.NIGHT}.request"
CHECKS = ("compare_predictions", "compare_time", "compare_energy")

with DAG(
    "compare_kernels",
    description="Still right, faster, cheaper? A changed kernel beside the pinned one",
    doc_md=__doc__,
    schedule=None,
    **shared.dag_settings(WORKLOAD, COMPARISON),
) as dag:
    draws = shared.request(WORKLOAD, COMPARISON)
    turn, release = shared.turn(), shared.release()
    candidate = shared.candidate(WORKLOAD)
    provision = shared.provision(WORKLOAD, shared.CANDIDATE)
    # A changed kernel is what this is about; anything else has to be what is pinned.
    verify = [shared.verify(WORKLOAD, "sources", **{"allow-kernels": True}), shared.verify(WORKLOAD, "payload")]
    # A telemetry that failed stops nothing, a mismatch does; no worker runs this one.
    verified = EmptyOperator(task_id="verified")
    telemetry_before, telemetry_after = (
        shared.telemetry(WORKLOAD, moment, shared.CANDIDATE) for moment in ("before", "after")
    )
    compare = GpuTaskOperator(
        task_id="compare",
        program="compare",
        options={
            **shared.CANDIDATE,
            "against-manifest": f"{{{{ {shared.NIGHT}.against_manifest }}}}",
            "payload": shared.PAYLOAD,
            "device": shared.DEVICE,
            "draws": f"{{{{ {REQUEST}.draws | join(',') }}}}",
            "blocks": f"{{% set blocks = {REQUEST}.blocks %}}{{{{ '' if blocks is none else blocks }}}}",
            "telemetry": f"{shared.FOLDER}/telemetry-before.json",
            **shared.SIMULATION,
        },
        record=f"{shared.FOLDER}/comparison.json",
        lock=shared.DEVICE_UUID,
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        **shared.ON_GPU | {"execution_timeout": timedelta(hours=2)},
    )
    numbers = shared.rounds()
    rounds = shared.measure(WORKLOAD, "measure", numbers, shared.CANDIDATE)
    # After a skipped task the summary would be skipped as well.
    measured, ended = (EmptyOperator(task_id=name, trigger_rule=TriggerRule.ALL_DONE) for name in ("measured", "ended"))
    summarise = shared.summarise(WORKLOAD)
    loaded = shared.load()
    comparison = ComparisonOperator(task_id="comparison")
    reported = shared.report(loaded, expected=CHECKS)

    draws >> turn >> candidate >> provision >> verify >> verified >> compare >> numbers >> rounds >> measured
    verified >> telemetry_before >> compare
    # Skipped with the rounds where the candidate is wrong: nothing that was measured is to be vouched for.
    [numbers, measured] >> telemetry_after >> ended
    [draws, candidate, provision, *verify, telemetry_before, compare, measured, ended] >> summarise
    [turn, telemetry_before, compare, measured, ended] >> release
    summarise >> loaded >> comparison >> reported
    # Red when nothing was stored, too: a run that is repeated has an older result, which the report is about.
    loaded >> shared.verdict(reported)
