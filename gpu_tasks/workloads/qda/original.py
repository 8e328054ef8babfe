"""The set ``original``: the eleven draws of the record that this project starts from.

The provenance hashes name files of the experiment that froze the draws. They are part of the manifest's bytes and are
kept as history; nothing here is checked against them.
"""

from __future__ import annotations

from gpu_tasks.workloads.base import PinnedSet

ORIGINAL = PinnedSet(
    name="original",
    seeds=tuple(range(20261201, 20261212)),
    manifest_sha256="d16f219fcbbe909923e7ad1b3d92f1896020442025db702e2cfb9fedd4bd7ee1",
    source_sha256={
        "run.py": "f131ee62ad2d1ad21d68a14134a4b851d23586a5c1fa15fe3352f0fb334eb2f4",
        "reference.py": "c51008b9ce6671f9b359e2be5c9bf16eb7859f72a7ac5a3f866ccf8dae6c46f0",
        "protocol.json": "48cc44f9d4d9cef385a3ea42dfd3a57f218cc6cf1e226744ecc3799e25bcf4f5",
        "mnist/code/data.py": "982bedbc56d928760f47f78017102652fe5492c57e3160e410514ded445744fa",
    },
    prediction_manifest_sha256="b0c3f4d1024e3d3cb619cb5c059faff34ce6fd5ffc60c5bcbb93abd77a746c52",
    draw_manifest_sha256="713235257b1bffe10a8d86386651a14fce2f9d0b4ca94752d7e0361121fc6e12",
)
