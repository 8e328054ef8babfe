"""The programs behind ``python -m gpu_tasks``; the command line itself is in ``cli``, what they share in ``runner``."""
