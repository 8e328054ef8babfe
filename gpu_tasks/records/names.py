"""Words that both sides spell alike: devices, protocols, figures, gates, drifts; what a set of draws may be called."""

from __future__ import annotations

DEVICE_KINDS = ("cuda", "emulated", "reference", "simulated")
AVAILABLE_DEVICES = ("cuda", "emulated", "reference", "simulated")  # those that this version can open
PROTOCOLS = ("classic", "audited", "interleaved")
STORED_PROTOCOLS = (*PROTOCOLS, "trial")  # trial: the learner's original records, which nothing here measures by
FIGURES = ("classic", "aligned", "audited", "interleaved")
GATES = (
    "reference_load",
    "meters_agree",
    "sham_window",
    "round_spread",
    "sampling",
    "exclusive",
    "output_verified",
    "same_conditions",
)
DRIFTS = ("none", "linear", "curvature", "random_walk")  # how a simulated board's idle power wanders
TELEMETRY_MOMENTS = ("before", "after")
PAYLOAD_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"  # a regular expression for the whole name
