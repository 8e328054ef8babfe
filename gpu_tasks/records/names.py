"""Words that both sides must spell alike: kinds of device, protocols, and what a set of draws may be called."""

from __future__ import annotations

DEVICE_KINDS = ("cuda", "emulated", "reference", "simulated")
AVAILABLE_DEVICES = ("cuda", "emulated", "reference")  # those that this version can open
PROTOCOLS = ("classic",)
PAYLOAD_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"  # a regular expression for the whole name
