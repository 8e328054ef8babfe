"""What the original records of the learner say beside draws and trials: states, settings, qualification and memory."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpu_tasks.convert.known import LEARNER_DRAW_0
from gpu_tasks.convert.learner_checks import STATE, training_checks
from gpu_tasks.convert.learner_form import CpuCheck, CudaCase, CudaValidation, Energy, Measurement, Metadata
from gpu_tasks.convert.learner_memory_form import Inventory as OriginalInventory
from gpu_tasks.convert.learner_memory_form import QualifiedMemory
from gpu_tasks.records import (
    DeviceMemory,
    Inventory,
    LibrarySetting,
    MemoryRecord,
    NamedTensor,
    Outcome,
    QualificationCase,
    QualificationRecord,
    Reason,
    Storage,
)

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
NOT_TOLD = "which of its comparisons did not hold was not recorded"
NO_CACHE = Reason("not_recorded", "the original qualification did not record the size of the L2 cache")
NO_PROFILE = Reason("not_recorded", "the original made no profile")


def states(metadata: Metadata) -> dict[str, str]:
    """Every hash under one name, as the programs of this project name them: ``final_parameter_sha256.head.bias``."""
    found: dict[str, str] = {}
    for name in STATE:
        value = getattr(metadata, name)
        if isinstance(value, str):
            found[name] = value
        else:
            items = value.items() if isinstance(value, dict) else enumerate(value)
            found |= {f"{name}.{key}": sha256 for key, sha256 in items}
    return found


def settings_of(result: Measurement) -> list[LibrarySetting]:
    """The workspace of cuBLAS and where it came from; a qualification recorded neither."""
    origin = "environment" if result.environment_was_set_externally else "program"
    return [LibrarySetting(WORKSPACE, result.cublas_workspace_config, origin)]


def qualification(
    metadata: Metadata, device_uuid: str, workload: str, now: str, trained: CudaValidation | None = None
) -> QualificationRecord:
    """The checks of the core on the CPU, and of a qualification also those of the training on the GPU."""
    core, training = metadata.validation.checks, trained.cases if trained else []
    cases = [*map(_core_case, core), *map(_training_case, training)]
    failed = [case.name for case in cases if not case.passed]
    checks = sum(case.checks for case in cases)
    return QualificationRecord(
        kind="qualification",
        created_at=now,
        outcome=Outcome.REGRESSION if failed else Outcome.OK,
        reason=Reason("not_qualified", f"{', '.join(failed)}: {NOT_TOLD}") if failed else None,
        workload=workload,
        device_uuid=device_uuid,
        computed_on=trained.device if trained else metadata.validation.device,
        captured=trained is not None,
        passed=not failed,
        checks=checks,
        maximum_abs_error=trained.maximum_abs_error if trained else None,
        tolerance=trained.tolerance if trained else {},
        cases=cases,
        duration_s=None,
    )


def measured_memory(result: Measurement, workload: str, payload: str, now: str) -> MemoryRecord:
    """The memory of a measurement, with its inventory; looked at again after all trials."""
    figures = {name: getattr(result.memory, name) for name in _names(DeviceMemory)}
    prefixes = tuple(result.same_process_reference_hashes_matched)
    record = _memory(result.energy, DeviceMemory(**figures), workload, payload, now)
    return dataclasses.replace(
        record,
        inventory=_inventory(result.buffer_inventory),
        cache_bytes=result.cache_reference.bytes,
        cache_reason=None,
        invocations=result.metadata.run_count,
        hashes_matched=[name for name in states(result.metadata) if name.partition(".")[0] in prefixes],
        predictions_sha256=result.predictions_file_sha256,
        predictions_file=result.predictions_file,
    )


def qualified_memory(memory: QualifiedMemory, energy: Energy, workload: str, payload: str, now: str) -> MemoryRecord:
    """The memory of a qualification: four figures of the allocator, and no inventory."""
    figures: dict[str, Any] = dict.fromkeys(_names(DeviceMemory))
    figures |= {name: value for name, value in vars(memory).items() if name in figures}
    peak, entry = memory.prepare_and_invoke_peak_allocated_bytes, memory.allocated_before_prepare_bytes
    figures["added_peak_over_entry_allocated_bytes"] = peak - entry
    return _memory(energy, DeviceMemory(**figures), workload, payload, now)


def _memory(energy: Energy, memory: DeviceMemory, workload: str, payload: str, now: str) -> MemoryRecord:
    found = states(energy.before_metadata)
    return MemoryRecord(
        kind="memory",
        created_at=now,
        outcome=Outcome.OK,
        reason=None,
        workload=workload,
        payload=payload,
        device_uuid=energy.hardware.uuid,
        draw=LEARNER_DRAW_0.draw,
        memory=memory,
        memory_reason=None,
        inventory=None,
        cache_bytes=None,
        cache_reason=NO_CACHE,
        state_hashes=found,
        invocations=energy.after_metadata.run_count,
        hashes_matched=list(found) if energy.repeat_state_hashes_equal else [],
        total=LEARNER_DRAW_0.total,
        agreed=LEARNER_DRAW_0.total,
        predictions_sha256=None,
        predictions_file=None,
        profile=None,
        profile_reason=NO_PROFILE,
        duration_s=None,
    )


def _inventory(original: OriginalInventory) -> Inventory:
    return Inventory(
        named_tensors=[NamedTensor(**vars(tensor)) for tensor in original.named_tensors],
        unique_storages=[Storage(**vars(storage)) for storage in original.unique_storages],
        unique_named_storage_bytes=original.unique_named_storage_bytes,
        allocator_allocated_bytes=original.allocator_allocated_bytes,
        allocated_bytes_without_named_storage_reference=original.allocated_bytes_without_named_storage_reference,
    )


def _core_case(check: CpuCheck) -> QualificationCase:
    name = f"core {check.dtype.removeprefix('torch.')}, depth {check.depth}"
    failures = [] if check.passed else ["forward, gradients, inverse or what is kept"]
    return QualificationCase(name, check.passed, 1, failures, dataclasses.asdict(check))


def _training_case(case: CudaCase) -> QualificationCase:
    failures = [] if case.passed else [NOT_TOLD]
    figures = dataclasses.asdict(case)
    return QualificationCase(f"training, depth {case.depth}", case.passed, training_checks(case), failures, figures)


def _names(cls: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]
