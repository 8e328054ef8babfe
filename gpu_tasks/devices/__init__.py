"""Devices behind one interface; ``gpu_tasks.devices.registry.open_device`` picks one by kind."""
