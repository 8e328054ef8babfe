"""Workloads behind one interface; ``gpu_tasks.workloads.registry.get_workload`` gives one by name."""
