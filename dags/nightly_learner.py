"""The night of the learner workload: wiring only; what the tasks do is in ``regression`` and ``gpu_tasks``."""

from airflow.sdk import DAG

from regression.nights import shared_tasks as shared
from regression.nights.wiring import schedule_of, wire_night
from regression.nights.workloads import LEARNER as WORKLOAD

with DAG(
    WORKLOAD.dag_id,
    description=WORKLOAD.description,
    doc_md=__doc__,
    schedule=schedule_of(WORKLOAD),
    **shared.dag_settings(WORKLOAD.name, WORKLOAD.schema),
) as dag:
    wire_night(WORKLOAD)
