"""From a class of outcome to the exception Airflow understands: what may be tried again, and what may not."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from gpu_tasks.records import Outcome, Reason


def failure(outcome: Outcome, reason: Reason) -> AirflowException:
    """Exception to raise; only an infrastructure failure uses the task's retries.

    The text starts with the class: a lost GPU must not be read as a regression.
    """
    text = f"{outcome.value} (exit {outcome.exit_code}): {reason.code}: {reason.message}"
    if outcome is Outcome.INFRASTRUCTURE_FAILURE:
        return AirflowException(text)
    return AirflowFailException(text)
