"""Airflow operators, for the nightly DAGs of this project and for anyone's own (see docs/operators.md)."""

from regression.operators.alerting import AlertNotifier
from regression.operators.checks import AgreementRegressionOperator, EnergyDriftOperator
from regression.operators.comparison import ComparisonOperator
from regression.operators.drift import EnvironmentChangeOperator, TimeDriftOperator
from regression.operators.gpu_task import GpuTaskOperator
from regression.operators.kernel_changed import KernelChangedOperator
from regression.operators.missing_night import MissingNightOperator
from regression.operators.task_checks import MemoryDriftOperator, QualificationOperator, RepeatabilityOperator

__all__ = [
    "AgreementRegressionOperator",
    "AlertNotifier",
    "ComparisonOperator",
    "EnergyDriftOperator",
    "EnvironmentChangeOperator",
    "GpuTaskOperator",
    "KernelChangedOperator",
    "MemoryDriftOperator",
    "MissingNightOperator",
    "QualificationOperator",
    "RepeatabilityOperator",
    "TimeDriftOperator",
]
