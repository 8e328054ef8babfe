"""Starts a comparison for each update of the asset ``kernel_changed``, which a git hook or a CI job makes."""

from airflow.sdk import DAG, Asset, get_current_context, task

from regression import settings
from regression.nights import changes
from regression.nights.workloads import WITH_KERNELS
from regression.operators import KernelChangedOperator

CHANGED = Asset(changes.ASSET)

with DAG(
    "kernel_changed",
    description="A kernel was changed somewhere: compares it with the pinned one",
    doc_md=__doc__,
    schedule=CHANGED,
    start_date=settings.start_date(),
    catchup=False,
    max_active_runs=1,
    tags=["kernel-nightly"],
) as dag:

    @task(inlets=[CHANGED])
    def events() -> list[dict]:
        return changes.events(get_current_context())

    # One after the other, so that they are queued in the order of the events.
    KernelChangedOperator.partial(
        task_id="compare",
        trigger_dag_id="compare_kernels",
        workload=WITH_KERNELS.name,
        map_index_template="{{ task.event['run_id'] }}",
        max_active_tis_per_dagrun=1,
    ).expand(event=events())
