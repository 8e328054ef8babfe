"""Programs that run beside the GPU: ``python -m gpu_tasks PROGRAM``, JSON in, JSON out.

Needs numpy only (torch and nvidia-ml-py for a real GPU); knows neither Airflow nor a database.
"""
