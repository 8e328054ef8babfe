"""What else changed: environment, sources, payload, kernel and power limit of a run beside those of its baseline.

A difference is no verdict on the kernel. It is named beside a drift, so that "the driver changed" is read before "the
kernel got worse"; where it makes figures incomparable, the night begins a new segment and needs a baseline of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from regression.detectors.verdict import CheckVerdict, Verdict

CHECK = "environment"
METRIC = "surroundings"
UNIT = "versions"
SHOWN = 3
SHOWN_CHARACTERS = 12
"""Of a hash; versions are shown whole."""
ALSO_CHANGED = "; also changed: "
"""Stands between the reason of a drift and what else changed."""

DEVICE, PROTOCOL, PAYLOAD, POWER, DRIVER = "device", "protocol", "payload", "power limit", "driver"
CLASS, ENVIRONMENT, PACKAGE, KERNEL, SOURCE = "environment class", "environment", "package", "kernel", "source"
ORDER = (DEVICE, PAYLOAD, PROTOCOL, POWER, CLASS, DRIVER, ENVIRONMENT, KERNEL, SOURCE, PACKAGE)


@dataclass(frozen=True)
class Surroundings:
    """What a run was made with; None or absent where that is not known. ``power_limit_w`` is in W.

    ``environment_class`` are the versions that start a new segment, ``versions`` all others by name (driver, cuda,
    python, platform; one that only one of the two runs has a word on is not compared), ``packages`` and ``sources`` map
    names to versions and paths to sha256 (None: not known, and not compared; so is a power limit that
    only the baseline's run does not say).
    """

    device: str | None
    protocol: str | None
    payload_manifest_sha256: str | None
    environment_class: str | None
    versions: Mapping[str, str | None] = field(default_factory=dict)
    packages: Mapping[str, str] | None = None
    sources: Mapping[str, str] | None = None
    kernel_sha256: str | None = None
    power_limit_w: float | None = None


@dataclass(frozen=True)
class Difference:
    """One difference: ``part`` is one of ``ORDER``, ``name`` what of it; ``before`` and ``after`` are None if absent.

    ``new_segment``: figures from before and after must not be compared.
    """

    part: str
    name: str
    before: str | None
    after: str | None
    new_segment: bool

    def __str__(self) -> str:
        name = self.part if self.part == self.name else f"{self.part} {self.name}"
        return f"{name} {_short(self.before)} -> {_short(self.after)}"


def differences(run: Surroundings, baseline: Surroundings) -> tuple[Difference, ...]:
    """Everything in which ``run`` is not like ``baseline``, what starts a new segment first."""
    found = [
        *_single(DEVICE, baseline.device, run.device, True),
        *_single(PAYLOAD, baseline.payload_manifest_sha256, run.payload_manifest_sha256, True),
        *_single(PROTOCOL, baseline.protocol, run.protocol, True),
        *_power(baseline.power_limit_w, run.power_limit_w),
        *_single(CLASS, baseline.environment_class, run.environment_class, True),
        *_single(KERNEL, baseline.kernel_sha256, run.kernel_sha256, False),
        *_each(ENVIRONMENT, *_stated_by_both(baseline.versions, run.versions)),
        *_each(SOURCE, baseline.sources, run.sources),
        *_each(PACKAGE, baseline.packages, run.packages),
    ]
    return tuple(sorted(found, key=lambda d: (not d.new_segment, ORDER.index(d.part), d.name)))


def judge_environment(run: Surroundings, baseline: Surroundings | None) -> CheckVerdict:
    """Name every difference. Never ``regressed``: ``inconclusive`` where figures must not be compared."""
    if baseline is None:
        return _verdict(Verdict.INCONCLUSIVE, "no_baseline", "no accepted baseline: nothing to compare with", ())
    unknown = [name for name in ("device", "environment_class", "payload_manifest_sha256") if not getattr(run, name)]
    found = differences(run, baseline)
    if unknown:
        text = f"not known of this run: {', '.join(name.replace('_', ' ') for name in unknown)}"
        return _verdict(Verdict.INCONCLUSIVE, "surroundings_unknown", text, found)
    if any(difference.new_segment for difference in found):
        text = f"a new segment begins, which needs a baseline of its own: {in_words(found)}"
        return _verdict(Verdict.INCONCLUSIVE, "new_segment", text, found)
    if found:
        return _verdict(Verdict.OK, "surroundings_changed", f"changed since the baseline: {in_words(found)}", found)
    return _verdict(Verdict.OK, "same_surroundings", "environment, sources, payload and kernel as in the baseline", ())


def beside(verdict: CheckVerdict, found: Sequence[Difference]) -> CheckVerdict:
    """The verdict with what else changed in its reason and details, when it tells of a change; else as it is."""
    if not found or verdict.verdict not in (Verdict.REGRESSED, Verdict.IMPROVED):
        return verdict
    details = {**verdict.details, "also_changed": [asdict(difference) for difference in found]}
    return replace(verdict, reason=f"{verdict.reason}{ALSO_CHANGED}{in_words(found)}", details=details)


def in_words(found: Sequence[Difference], shown: int = SHOWN) -> str:
    """The first differences, and how many more there are."""
    more = f", and {len(found) - shown} more" if len(found) > shown else ""
    return ", ".join(map(str, found[:shown])) + more


def _verdict(verdict: Verdict, code: str, text: str, found: Sequence[Difference]) -> CheckVerdict:
    return CheckVerdict(
        CHECK,
        verdict,
        METRIC,
        UNIT,
        code,
        text,
        value=len(found),
        direction="changed" if found else None,
        details={"differences": [asdict(difference) for difference in found]},
    )


def _single(part: str, before: str | None, after: str | None, new_segment: bool) -> list[Difference]:
    return [] if before == after else [Difference(part, part, before, after, new_segment)]


def _power(before: float | None, after: float | None) -> list[Difference]:
    """A limit that one of the two does not say keeps figures from nothing: energy and time are then compared, too."""
    return [] if before is None else _single(POWER, _watts(before), _watts(after), after is not None)


def _each(
    part: str, before: Mapping[str, str | None] | None, after: Mapping[str, str | None] | None
) -> list[Difference]:
    if before is None or after is None:
        return []
    names = sorted({*before, *after})
    return [
        Difference(DRIVER if name == DRIVER else part, name, before.get(name), after.get(name), False)
        for name in names
        if before.get(name) != after.get(name)
    ]


def _stated_by_both(
    before: Mapping[str, str | None], after: Mapping[str, str | None]
) -> tuple[Mapping[str, str | None], Mapping[str, str | None]]:
    names = before.keys() & after.keys()
    return {name: before[name] for name in names}, {name: after[name] for name in names}


def _watts(value: float | None) -> str | None:
    return None if value is None else f"{value:g} W"


def _short(value: str | None) -> str:
    if value is None:
        return "unknown"
    is_hash = len(value) == 64 and all(letter in "0123456789abcdef" for letter in value)
    return value[:SHOWN_CHARACTERS] if is_hash else value
