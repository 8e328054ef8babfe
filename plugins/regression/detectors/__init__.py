"""Pure functions: the numbers of a run and of a baseline in, a verdict out. No database, no Airflow, no clock.

Detectors over a history (``history``, ``drift``, ``changepoints``, ``backtest``) need numpy and scipy and are imported
from their modules, so that a DAG file that only needs the others is parsed without them.
"""

from regression.detectors.agreement import AgreementBaseline, AgreementRun, BaselineDraw, DrawResult, judge_agreement
from regression.detectors.conditions import MeasurementConditions
from regression.detectors.energy import EnergyBaseline, EnergyRun, FailedGate, RoundEnergy, judge_energy
from regression.detectors.verdict import CheckVerdict, Problem, Verdict

__all__ = [
    "AgreementBaseline",
    "AgreementRun",
    "BaselineDraw",
    "CheckVerdict",
    "DrawResult",
    "EnergyBaseline",
    "EnergyRun",
    "FailedGate",
    "MeasurementConditions",
    "Problem",
    "RoundEnergy",
    "Verdict",
    "judge_agreement",
    "judge_energy",
]
