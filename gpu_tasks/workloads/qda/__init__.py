"""Ten-class quadratic discriminant analysis on 3x3 images: the float64 reference and what it accepts."""

from gpu_tasks.workloads.qda.workload import Qda

__all__ = ["Qda"]
