"""Tables of what runs have in common: device, environment, sources and payload, one row for each distinct one."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from gpu_tasks.records import DEVICE_KINDS, PAYLOAD_NAME
from regression.results.columns import json_kind, key, metadata, not_blank, one_of, optional, required, sha256

device = Table(
    "device",
    metadata,
    key("device_id", "Key"),
    required("kind", Text, "cuda, emulated, reference or simulated; figures are never compared across kinds"),
    required("uuid", Text, "Identity of one board (of one machine, for a CPU device)"),
    required("name", Text, "Model name as the driver gives it"),
    optional("memory_total_bytes", BigInteger, "Memory in bytes, as first seen"),
    optional("multiprocessors", Integer, "Number of streaming multiprocessors, as first seen"),
    optional("compute_capability", Text, "CUDA compute capability, for example 8.0, as first seen"),
    one_of("kind", DEVICE_KINDS),
    UniqueConstraint("kind", "uuid", "name"),
    not_blank("names", "uuid", "name"),
    CheckConstraint("least(memory_total_bytes, multiprocessors) > 0", name="size"),
    CheckConstraint("compute_capability ~ '^[0-9]+[.][0-9]+$'", name="compute_capability"),
    comment="Devices that runs were made on, one row a board and model",
)

environment = Table(
    "environment",
    metadata,
    key("environment_id", "Key"),
    required("fingerprint_sha256", Text, "sha256 of the canonical JSON of all fields below", unique=True),
    required(
        "environment_class",
        Text,
        "Versions that start a new baseline when they change: driver, CUDA and torch; without any, Python and numpy",
    ),
    required("python", Text, "Version of the interpreter of the GPU tasks"),
    required("platform", Text, "Operating system and machine"),
    optional("driver", Text, "Version of the GPU driver"),
    optional("cuda", Text, "Version of CUDA"),
    required("packages", JSONB, "Installed packages: name to version"),
    UniqueConstraint("environment_id", "environment_class"),
    json_kind("packages", "object"),
    sha256("fingerprint_sha256"),
    comment="Software environments that runs were made in, one row a distinct set of versions",
)

source_state = Table(
    "source_state",
    metadata,
    key("source_state_id", "Key"),
    required("fingerprint_sha256", Text, "sha256 of the canonical JSON of the two fields below", unique=True),
    optional("sources_sha256", Text, "sha256 of the file of pinned source hashes"),
    required("sources", JSONB, "Every pinned source file: path to the sha256 found"),
    sha256("fingerprint_sha256"),
    sha256("sources_sha256"),
    json_kind("sources", "object"),
    comment="States of the pinned sources (GPU programs and kernels) that runs were made with",
)

payload = Table(
    "payload",
    metadata,
    key("payload_id", "Key"),
    required("name", Text, "Name of the set of frozen draws"),
    required("manifest_sha256", Text, "sha256 of its manifest"),
    UniqueConstraint("name", "manifest_sha256"),
    CheckConstraint(f"name ~ '^{PAYLOAD_NAME}$'", name="name"),
    sha256("manifest_sha256"),
    comment="Named sets of frozen draws",
)

payload_draw = Table(
    "payload_draw",
    metadata,
    required("payload_id", Integer, "Set of draws", ForeignKey("payload.payload_id"), primary_key=True),
    required("draw", SmallInteger, "Number of the draw in its set, from 0", primary_key=True),
    required("dataset_seed", BigInteger, "Seed that the draw was made from"),
    required("payload_sha256", Text, "sha256 of the file with the draw's arrays"),
    required("frozen_prediction_sha256", Text, "sha256 of the frozen predictions"),
    CheckConstraint("draw >= 0", name="draw"),
    sha256("payload_sha256"),
    sha256("frozen_prediction_sha256"),
    comment="Frozen draws of each payload, as its manifest names them",
)

__all__ = ["device", "environment", "payload", "payload_draw", "source_state"]
