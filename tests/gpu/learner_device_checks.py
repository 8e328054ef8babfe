"""The learner's device on a GPU, in a process of its own: one JSON object with what it did and took."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing

from gpu_tasks.devices.base import AccountedDevice
from gpu_tasks.devices.registry import open_device
from gpu_tasks.payload.draws import Draw
from gpu_tasks.records import DeviceMemory
from gpu_tasks.validation import execute
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.registry import get_workload
from tests.gpu.learner_checks import RUNS, inputs


def draw(workload: Workload, *, turned: bool = False) -> Draw:
    """Generated data as a draw, with the reference's predictions; ``turned`` has another order of the samples."""
    given = inputs()
    x, labels = (given.x[::-1].copy(), given.labels[::-1].copy()) if turned else (given.x, given.labels)
    return Draw(x, labels, given.q, workload.predict(x, labels, given.q), labels)


def main() -> None:
    """Print what was found; memory first, of a process that has done nothing else on the GPU."""
    workload = get_workload("learner")
    own, other = draw(workload), draw(workload, turned=True)
    with closing(open_device("cuda", workload)) as device:
        assert isinstance(device, AccountedDevice)
        memory = device.prepare_and_invoke(own.x, own.labels, own.q)
        assert isinstance(memory, DeviceMemory)
        inventory = device.inventory()
        execution = execute(device, workload, own, other)
        timing = device.replay(RUNS)
        found = {
            "memory": dataclasses.asdict(memory),
            "unnamed_bytes": inventory.allocated_bytes_without_named_storage_reference,
            "cache_bytes": device.cache_bytes(),
            "agreeing": int((execution.predictions == own.frozen_predictions).sum()),
            "replays": [*execution.replays_equal_eager, *execution.replay_states_equal],
            "settings": {setting.name: [setting.value, setting.origin] for setting in device.settings()},
            "ms": timing.device_ms_per_replay,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
