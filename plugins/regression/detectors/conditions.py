"""What must be the same before two energies or times may be compared, and what is said where it is not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasurementConditions:
    """Where and how a run was measured; ``kernel_sha256`` may differ, and is said.

    ``device`` is for messages, too; ``uuid`` is the board's own. ``power_limits_w`` and ``power_kinds`` (instantaneous
    or average) are all that telemetry and valid rounds saw, in order; empty: nobody said.
    """

    device: str
    payload_manifest_sha256: str | None
    protocol: str
    environment_class: str | None
    kernel_sha256: str | None = None
    uuid: str | None = None
    power_limits_w: tuple[float, ...] = ()
    power_kinds: tuple[str, ...] = ()


def another_measurement(mine: MeasurementConditions, other: MeasurementConditions, name: str) -> tuple[str, str] | None:
    """Reason code and text where baseline ``name`` is of another payload, device or protocol; None where it is not."""
    if mine.payload_manifest_sha256 is None or other.payload_manifest_sha256 != mine.payload_manifest_sha256:
        return "baseline_other_payload", f"baseline {name} is of another payload"
    if other.device != mine.device:
        return "baseline_other_device", f"baseline {name} is of {other.device}, this is {mine.device}"
    if other.protocol != mine.protocol:
        return "baseline_other_protocol", f"baseline {name} used {other.protocol}, this run {mine.protocol}"
    return None


def other_surroundings(mine: MeasurementConditions, other: MeasurementConditions, name: str) -> tuple[str, str] | None:
    """The same for what surrounds a measurement: versions, power limit, kind of power.

    What one of the two does not say is not compared (see ``not_compared``).
    """
    if other.environment_class != mine.environment_class:
        text = f"baseline {name} ran in [{other.environment_class}], this run in [{mine.environment_class}]"
        return "baseline_other_environment", text
    limits = (mine.power_limits_w, other.power_limits_w)
    if all(limits) and limits[0] != limits[1]:
        used, theirs = (" and ".join(f"{limit:g} W" for limit in side) for side in limits)
        text = f"baseline {name} ran under a power limit of {theirs}, this run under {used}"
        return "baseline_other_power_limit", text
    kinds = (mine.power_kinds, other.power_kinds)
    if all(kinds) and kinds[0] != kinds[1]:
        used, theirs = (" and ".join(side) for side in kinds)
        return "baseline_other_power_kind", f"power is {theirs} in baseline {name}, {used} in this run"
    return None


def not_compared(mine: MeasurementConditions, other: MeasurementConditions) -> list[str]:
    """The conditions that one of the two does not say."""
    known = {
        "power_limit": (mine.power_limits_w, other.power_limits_w),
        "power_kind": (mine.power_kinds, other.power_kinds),
    }
    return [name for name, sides in known.items() if not all(sides)]


def kernel_changed(mine: MeasurementConditions | None, other: MeasurementConditions) -> bool:
    """Whether the kernel is known to be another one."""
    return (
        mine is not None
        and None not in (mine.kernel_sha256, other.kernel_sha256)
        and (mine.kernel_sha256 != other.kernel_sha256)
    )
