"""Words that both sides spell alike: devices, protocols, figures, gates, drifts; what a set of draws may be called."""

from __future__ import annotations

DEFAULT_WORKLOAD = "qda"  # the one that is meant where none is named
DEVICE_KINDS = ("cuda", "emulated", "reference", "simulated")
AVAILABLE_DEVICES = ("cuda", "emulated", "reference", "simulated")  # those that this version can open
PROTOCOLS = ("classic", "audited", "interleaved")
TRIAL = "trial"  # of the learner's original records and of its rounds here; also the name of their figure
STORED_PROTOCOLS = (*PROTOCOLS, TRIAL)
FIGURES = ("classic", "aligned", "audited", "interleaved", TRIAL)
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
SETTING_ORIGINS = ("environment", "program", "unset")
PAYLOAD_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"  # a regular expression for the whole name
