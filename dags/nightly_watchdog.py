"""Watches that the night came: every hour, whatever became of the DAG that should have run it.

It takes no GPU and no slot of its pool, reads the results database and the folders of runs, and has a task for each
workload whose nights are scheduled: red as long as the latest night that is due is missing, stuck or incomplete. Where
Airflow itself may be dead, `./nightly watchdog` in a system cron does the same.
"""

from datetime import timedelta

from airflow.sdk import DAG

from regression import settings
from regression.nights.workloads import named
from regression.operators import MissingNightOperator

with DAG(
    "nightly_watchdog",
    description="Did the night come? Looks every hour, and raises an alert when it did not",
    doc_md=__doc__,
    schedule="30 * * * *" if settings.schedule() else None,  # no nights, nothing to watch
    start_date=settings.start_date(),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=30),
    tags=["kernel-nightly"],
) as dag:
    for workload in named(settings.scheduled_workloads()):
        MissingNightOperator(
            task_id=f"missing_night_{workload.name}",
            watched_dag_id=workload.dag_id,
            workload=workload.name,
            retries=2,
            retry_delay=timedelta(minutes=5),
            execution_timeout=timedelta(minutes=5),
        )
