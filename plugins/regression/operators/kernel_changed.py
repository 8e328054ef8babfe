"""One update of a kernel, one comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from gpu_tasks.records import BadInput, Reason
from regression import settings
from regression.operators.failures import failure

if TYPE_CHECKING:
    from airflow.sdk import Context


class KernelChangedOperator(TriggerDagRunOperator):
    """Trigger a comparison with the params that an update of the asset brings, once they are found to be good.

    Fails with one line where they are not. A comparison that exists already is not started again: the task is then
    skipped.

    :param event: ``run_id`` of the comparison and ``given``, its params; this is what to ``expand`` over. Never
        templated: whoever may update the asset says which kernel, and nothing else.
    :param workload: workload of the comparison.
    """

    template_fields: Sequence[str] = ("trigger_dag_id",)

    def __init__(self, *, event: Mapping[str, Any], workload: str, **kwargs: Any) -> None:
        # Without a logical date: two runs cannot have the same one.
        super().__init__(logical_date=None, skip_when_already_exists=True, **kwargs)
        self.event = event
        self.workload = workload

    def execute(self, context: Context) -> None:
        """Check the params and trigger."""
        from regression.nights.params import build_request
        from regression.nights.schema import COMPARISON

        given, run_id = self.event["given"], self.event["run_id"]
        try:
            build_request(
                given,
                workload=self.workload,
                dag_id=self.trigger_dag_id,
                dag_run_id=run_id,
                trigger="manual",
                logical_date=None,
                payload_folders=settings.payload_folders(),
                schema=COMPARISON,
            )
        except BadInput as error:
            raise failure(error.outcome, Reason(error.code, f"update of {run_id}: {error.message}")) from error
        self.conf, self.trigger_run_id = dict(given), run_id
        super().execute(context)
