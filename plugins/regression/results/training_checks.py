"""What a record of a workload that trains must not contradict: settings, states, qualification and memory, by field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_tasks.records import SETTING_ORIGINS, Inventory, MemoryRecord, Outcome, QualificationRecord, RunRecord

Rule = tuple[str, bool, str, Any]
"""Field, whether it holds, what was expected, what was found."""
LARGEST = 2**63 - 1
LARGEST_COUNT = 2**31 - 1
LARGEST_DRAW = 2**15 - 1
SHA256 = r"[0-9a-f]{64}"


def training_rules(record: RunRecord) -> Iterator[Rule]:
    """Of everything that only such a workload has."""
    settings = record.provision.settings if record.provision else []
    for index, setting in enumerate(settings):
        where = f"$.provision.settings[{index}]"
        yield (
            f"{where}.origin",
            setting.origin in SETTING_ORIGINS,
            f"one of {', '.join(SETTING_ORIGINS)}",
            setting.origin,
        )
        fine = (setting.value is None) == (setting.origin == "unset")
        yield f"{where}.value", fine, "none where it is unset, and only there", setting.value
        yield f"{where}.name", bool(setting.name.strip()), "a name", setting.name
    yield from _distinct("$.provision.settings[{}].name", [setting.name for setting in settings])
    for index, validation in enumerate(record.validations):
        yield from _hashes(f"$.validations[{index}].state_hashes", validation.state_hashes)
        if validation.outcome is Outcome.OK:
            where, reference = f"$.validations[{index}]", validation.reference_state
            states = validation.replay_states_equal
            yield f"{where}.replay_states_equal", all(states), "true of each replay of an ok draw", states
            if reference is not None and reference.expected_sha256 is not None:
                same = reference.found_sha256 == reference.expected_sha256
                yield f"{where}.reference_state.found_sha256", same, reference.expected_sha256, reference.found_sha256
    for index, measured in enumerate(record.rounds):
        calibration = measured.calibration_ms
        yield f"$.rounds[{index}].calibration_ms", calibration is None or calibration > 0, "more than 0", calibration
    if record.qualification is not None:
        yield from _qualification(record.qualification)
    if record.memory is not None:
        yield from _memory(record.memory)


def _distinct(where: str, keys: Sequence[Any]) -> Iterator[Rule]:
    for index, key in enumerate(keys):
        yield where.format(index), key not in keys[:index], "another one than before", key


def _within(where: str, value: int | None, most: int, least: int = 0) -> Iterator[Rule]:
    yield where, value is None or least <= value <= most, f"{least} to {most}", value


def _hashes(where: str, found: Mapping[str, str] | None) -> Iterator[Rule]:
    for name, value in (found or {}).items():
        yield f"{where}.{name}", re.fullmatch(SHA256, value) is not None, "64 hexadecimal digits", value


def _qualification(qualified: QualificationRecord) -> Iterator[Rule]:
    where = "$.qualification"
    fine = (qualified.passed is True) == (qualified.outcome is Outcome.OK)
    yield f"{where}.passed", fine, f"what goes with {qualified.outcome.value}", qualified.passed
    both = (qualified.passed is None) == (qualified.checks is None)
    yield f"{where}.checks", both, "both passed and checks, or neither", qualified.checks
    yield from _within(f"{where}.checks", qualified.checks, LARGEST_COUNT)
    for name in ("maximum_abs_error", "duration_s"):
        value = getattr(qualified, name)
        yield f"{where}.{name}", value is None or value >= 0, "0 or more", value
    for index, case in enumerate(qualified.cases):
        here = f"{where}.cases[{index}]"
        yield f"{here}.passed", case.passed == (not case.failures), "whether nothing failed", case.passed
        yield from _within(f"{here}.checks", case.checks, LARGEST_COUNT)
        yield f"{here}.name", bool(case.name.strip()), "a name", case.name
    yield from _distinct(f"{where}.cases[{{}}].name", [case.name for case in qualified.cases])


def _memory(looked: MemoryRecord) -> Iterator[Rule]:
    where, memory = "$.memory", looked.memory
    for name, value in vars(memory).items() if memory else ():
        yield f"{where}.memory.{name}", value is None or 0 <= value <= LARGEST, "0 or more bytes", value
    if memory is not None:
        peak, entry = memory.prepare_and_invoke_peak_allocated_bytes, memory.allocated_before_prepare_bytes
        for name in ("allocated_before_prepare_bytes", "allocated_after_prepare_bytes", "allocated_after_invoke_bytes"):
            value = getattr(memory, name)
            yield f"{where}.memory.{name}", value is None or value <= peak, f"at most the peak, {peak}", value
        reserved, added = memory.prepare_and_invoke_peak_reserved_bytes, memory.added_peak_over_entry_allocated_bytes
        fine = reserved is None or reserved >= peak
        yield f"{where}.memory.prepare_and_invoke_peak_reserved_bytes", fine, f"{peak} or more", reserved
        yield f"{where}.memory.added_peak_over_entry_allocated_bytes", added == peak - entry, str(peak - entry), added
    for name in ("memory", "cache", "profile"):
        value = getattr(looked, "cache_bytes" if name == "cache" else name)
        fine = value is None or getattr(looked, f"{name}_reason") is None
        yield f"{where}.{name}_reason", fine, "none, as there is one", "one"
    fine = (looked.total is None) == (looked.agreed is None) and 0 <= (looked.agreed or 0) <= (looked.total or 0)
    yield f"{where}.agreed", fine, f"none, or 0 to {looked.total}", looked.agreed
    strange = [name for name in looked.hashes_matched if name not in (looked.state_hashes or {})]
    yield f"{where}.hashes_matched", not strange, "names of state_hashes", strange
    yield from _hashes(f"{where}.state_hashes", looked.state_hashes)
    sha256 = looked.predictions_sha256
    fine = sha256 is None or re.fullmatch(SHA256, sha256) is not None
    yield f"{where}.predictions_sha256", fine, "64 hexadecimal digits", sha256
    yield f"{where}.duration_s", looked.duration_s is None or looked.duration_s >= 0, "0 or more", looked.duration_s
    yield from _within(f"{where}.invocations", looked.invocations, LARGEST_COUNT, least=1)
    yield from _within(f"{where}.total", looked.total, LARGEST_COUNT)
    yield from _within(f"{where}.cache_bytes", looked.cache_bytes, LARGEST)
    yield from _within(f"{where}.draw", looked.draw, LARGEST_DRAW)
    if looked.inventory is not None:
        yield from _inventory(f"{where}.inventory", looked.inventory)


def _inventory(where: str, inventory: Inventory) -> Iterator[Rule]:
    storages = {storage.storage_id for storage in inventory.unique_storages}
    yield from _distinct(f"{where}.unique_storages[{{}}].storage_id", [s.storage_id for s in inventory.unique_storages])
    yield from _distinct(f"{where}.named_tensors[{{}}].name", [t.name for t in inventory.named_tensors])
    for index, storage in enumerate(inventory.unique_storages):
        here = f"{where}.unique_storages[{index}]"
        yield from _within(f"{here}.storage_id", storage.storage_id, LARGEST_COUNT)
        yield from _within(f"{here}.address", storage.address, LARGEST)
        yield from _within(f"{here}.bytes", storage.bytes, LARGEST)
        yield f"{here}.device", bool(storage.device.strip()), "a device", storage.device
    for index, tensor in enumerate(inventory.named_tensors):
        here = f"{where}.named_tensors[{index}]"
        for name in ("name", "dtype"):
            yield f"{here}.{name}", bool(getattr(tensor, name).strip()), f"a {name}", getattr(tensor, name)
        for name in ("storage_offset", "logical_bytes"):
            yield from _within(f"{here}.{name}", getattr(tensor, name), LARGEST)
        for name, least in (("shape", 0), ("stride", -LARGEST)):
            for axis, value in enumerate(getattr(tensor, name)):
                yield from _within(f"{here}.{name}[{axis}]", value, LARGEST, least)
        yield f"{here}.storage_id", tensor.storage_id in storages, "a storage of the inventory", tensor.storage_id
        fine = len(tensor.stride) == len(tensor.shape)
        yield f"{here}.stride", fine, f"{len(tensor.shape)} of them", tensor.stride
    allocated, named = inventory.allocator_allocated_bytes, inventory.unique_named_storage_bytes
    yield from _within(f"{where}.allocator_allocated_bytes", allocated, LARGEST)
    yield from _within(f"{where}.unique_named_storage_bytes", named, LARGEST)
    rest = None if allocated is None else allocated - named
    found = inventory.allocated_bytes_without_named_storage_reference
    yield f"{where}.allocated_bytes_without_named_storage_reference", found == rest, repr(rest), found
