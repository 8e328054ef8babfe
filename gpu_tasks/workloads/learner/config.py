"""How the learner trains: eight settings, none of which has a default, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.records import BadInput, from_json, read_record_bytes

MAX_DEPTH = 1000
MAX_EPOCHS = 1000
LARGEST = 3.4e38  # what a float32 holds: torch itself says no more than "overflow"


@dataclass(frozen=True)
class LearnerConfig:
    """``depth`` blocks of two branches; SGD with ``momentum`` on batches of ``batch_size`` for ``epochs`` epochs.

    ``alpha`` scales a branch, ``seed`` fixes the initial parameters and the orders of the epochs.
    """

    depth: int
    alpha: float
    seed: int
    epochs: int
    learning_rate: float
    batch_size: int
    momentum: float
    weight_decay: float


RECORDED = LearnerConfig(
    depth=2, alpha=0.5, seed=11, epochs=2, learning_rate=0.1, batch_size=128, momentum=0.9, weight_decay=0.0
)
"""The settings of the original records, by which the frozen predictions were made."""


def read_config(path: Path) -> LearnerConfig:
    """The config in a JSON file; raises ``BadInput`` on a missing or unknown key and on a value that cannot be."""
    try:
        text = read_record_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("record_not_utf8", f"{path}: expected UTF-8 text, found other bytes") from None
    return parse_config(text, str(path))


def parse_config(text: str, source: str) -> LearnerConfig:
    """The config in a JSON text; ``source`` is its name in error messages."""
    config = from_json(text, LearnerConfig, source)
    check_config(config, source)
    return config


def check_config(config: LearnerConfig, source: str = "config") -> None:
    """Raise ``BadInput`` (``bad_config``) naming the setting that no learner can be trained by."""
    rules: list[tuple[str, bool, str]] = [
        ("depth", 1 <= config.depth <= MAX_DEPTH, f"1 to {MAX_DEPTH}"),
        ("alpha", 0 < abs(config.alpha) <= LARGEST, f"a number other than 0, up to {LARGEST:g} in size"),
        ("seed", 0 <= config.seed < 2**63, "0 to 2**63 - 1"),
        ("epochs", 1 <= config.epochs <= MAX_EPOCHS, f"1 to {MAX_EPOCHS}"),
        ("learning_rate", 0 < config.learning_rate <= LARGEST, f"more than 0, up to {LARGEST:g}"),
        ("batch_size", config.batch_size >= 1, "1 or more"),
        ("momentum", 0 <= config.momentum < 1, "0 up to, not including, 1"),
        ("weight_decay", 0 <= config.weight_decay <= LARGEST, f"0 up to {LARGEST:g}"),
    ]
    for name, holds, expected in rules:
        if not holds:
            message = f"{source}: $.{name}: expected {expected}, found {getattr(config, name)!r}"
            raise BadInput("bad_config", message)


def check_batch(config: LearnerConfig, samples: int, source: str = "config") -> None:
    """Raise ``BadInput`` (``bad_config``) where a batch is larger than the set it is taken of."""
    if config.batch_size > samples:
        message = f"{source}: $.batch_size: expected at most the {samples} samples, found {config.batch_size}"
        raise BadInput("bad_config", message)
