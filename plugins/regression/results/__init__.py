"""The results database: tables, loading, questions, baselines. Importing this package itself imports nothing."""

RESULTS_CONNECTION = "kernel_nightly_results"  # Airflow connection with the writer role
