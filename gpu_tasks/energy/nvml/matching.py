"""Which of NVML's GPUs is the CUDA device: by UUID and PCI bus id on both sides, never by index.

CUDA numbers the GPUs that it shows a process, by default the fastest first; NVML numbers all of them by bus id. GPU 1
of one is GPU 0 of the other as soon as ``CUDA_VISIBLE_DEVICES`` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_tasks.energy.nvml.access import NvmlLibrary
from gpu_tasks.energy.nvml.errors import NvmlNotFound
from gpu_tasks.energy.nvml.values import bus_id, text
from gpu_tasks.records import BadInput, InvalidMeasurement

_FEWEST_DIGITS = len("GPU-") + 1


class DeviceMismatch(InvalidMeasurement):
    """What NVML would measure is not the device that computes."""

    def __init__(self, message: str) -> None:
        super().__init__("device_mismatch", message)


def handle_of(nvml: NvmlLibrary, uuid: str, pci_bus_id: str | None) -> tuple[Any, str, str]:
    """NVML's handle of the GPU with this UUID, with UUID and bus id as NVML spells them.

    ``pci_bus_id`` is CUDA's, in any spelling; null where CUDA was not asked for it. Raises ``DeviceMismatch`` where
    NVML has no such GPU or shows another UUID or bus id for it, and ``BadInput`` for a slice of a GPU.
    """
    refuse_slice(uuid, "uuid")
    try:
        handle = nvml.call("nvmlDeviceGetHandleByUUID", uuid)
    except NvmlNotFound:
        shown = ", ".join(gpu_uuids(nvml)) or "none"
        raise DeviceMismatch(f"uuid: expected the CUDA device {uuid} among NVML's GPUs, found {shown}") from None
    found_uuid = _uuid(nvml, handle)
    if found_uuid.casefold() != uuid.casefold():
        raise DeviceMismatch(f"uuid: expected {uuid} of the CUDA device, found {found_uuid} by NVML")
    found_bus_id = bus_id(text(nvml.call("nvmlDeviceGetPciInfo", handle).busId, "nvmlDeviceGetPciInfo"))
    if pci_bus_id is not None and found_bus_id != bus_id(pci_bus_id):
        message = f"PCI bus id: expected {bus_id(pci_bus_id)} of the CUDA device, found {found_bus_id} by NVML"
        raise DeviceMismatch(message)
    return handle, found_uuid, found_bus_id


def gpu_uuids(nvml: NvmlLibrary) -> list[str]:
    """UUIDs of all GPUs that NVML shows, in its own order."""
    handles = [nvml.call("nvmlDeviceGetHandleByIndex", index) for index in range(nvml.call("nvmlDeviceGetCount"))]
    return [_uuid(nvml, handle) for handle in handles]


def check_visible(nvml: NvmlLibrary, uuid: str, visible: str | None) -> None:
    """Raise ``DeviceMismatch`` where a ``CUDA_VISIBLE_DEVICES`` names another GPU first than the one with ``uuid``.

    Raises ``BadInput`` as ``visible_uuid`` does.
    """
    named = visible_uuid(visible, gpu_uuids(nvml)) if visible else None
    if named is not None and named.casefold() != uuid.casefold():
        raise DeviceMismatch(f"CUDA_VISIBLE_DEVICES: expected the CUDA device {uuid} first, found {named}")


def visible_uuid(visible: str | None, known: Sequence[str]) -> str | None:
    """UUID of the first GPU that a ``CUDA_VISIBLE_DEVICES`` names, among the ``known`` ones of this machine.

    Null where it names none by UUID: not set, or an index, which only CUDA can resolve. Raises as ``resolve_uuid``,
    and ``BadInput`` (``mig_not_supported``) for a slice of a GPU anywhere in it.
    """
    entries = [entry.strip() for entry in (visible or "").split(",")]
    for entry in entries:
        refuse_slice(entry, "CUDA_VISIBLE_DEVICES")
    if not entries[0].upper().startswith("GPU-"):
        return None
    return resolve_uuid(entries[0], known)


def resolve_uuid(short: str, known: Sequence[str]) -> str:
    """The one of ``known`` that ``short`` is, or is the beginning of, as CUDA takes it.

    Raises ``BadInput``: ``mig_not_supported``, ``ambiguous_uuid`` (names all that begin so), ``unknown_uuid``.
    """
    refuse_slice(short, "uuid")
    long_enough = len(short) >= _FEWEST_DIGITS and short.upper().startswith("GPU-")
    found = [uuid for uuid in known if uuid.casefold().startswith(short.casefold())] if long_enough else []
    if len(found) > 1:
        message = f"uuid: expected the beginning of one GPU's, found {short!r} of {', '.join(found)}"
        raise BadInput("ambiguous_uuid", message)
    if not found:
        raise BadInput("unknown_uuid", f"uuid: expected one of {', '.join(known) or 'none'}, found {short!r}")
    return found[0]


def refuse_slice(value: str, field: str) -> None:
    """Raise ``BadInput`` (``mig_not_supported``) for the id of a slice of a GPU: NVML meters whole GPUs only."""
    if "MIG-" in value.upper():
        raise BadInput("mig_not_supported", f"{field}: expected a whole GPU (GPU-...), found {value!r}")


def _uuid(nvml: NvmlLibrary, handle: Any) -> str:
    return text(nvml.call("nvmlDeviceGetUUID", handle), "nvmlDeviceGetUUID")
