"""The reversible learner: ten classes on 9x9 images, trained by SGD through a core that runs backwards.

Nothing here imports torch before a task is made.
"""

from gpu_tasks.workloads.learner.workload import Learner

__all__ = ["Learner"]
