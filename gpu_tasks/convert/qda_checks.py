"""What follows from what in the original QDA record, with the shipped draws at hand."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

import numpy as np

from gpu_tasks.convert.checking import Fact, readings_in_order, rule, sha256_rule
from gpu_tasks.convert.qda_form import DrawResult, Provenance, QdaRecord, Round, Validation
from gpu_tasks.energy.figures import round_figures
from gpu_tasks.payload.draws import Payload
from gpu_tasks.payload.npz import array_bytes
from gpu_tasks.records import Summary, WindowEdge

MOST_REPEATS = 1_000_000_000
VERSIONS = frozenset({"cuda", "driver", "python", "platform"})
"""Versions of what is no package: the form keeps them among those of the packages."""


def facts(record: QdaRecord, payload: Payload) -> Iterator[Fact]:
    """Everything but the summary, which needs the rounds converted; ``payload`` is the set that ships."""
    yield rule(
        "$.versions", record.versions.keys() >= VERSIONS, f"at least {sorted(VERSIONS)}", sorted(record.versions)
    )
    yield from _provenance(record.provenance, payload)
    yield from _validation(record.validation, payload)
    yield Fact("$.kernel.launches", 2, record.kernel.launches)
    for index, measured in enumerate(record.rounds):
        yield Fact(f"$.rounds[{index}].round", index, measured.round)
        yield from _round(f"$.rounds[{index}]", measured)


def summary_facts(record: QdaRecord, computed: Summary) -> Iterator[Fact]:
    """The record's summary against the one computed from its rounds."""
    for field in dataclasses.fields(record.summary):
        if field.name != "energy_interpretation":
            where = f"$.summary.{field.name}"
            yield Fact(where, getattr(computed, field.name), getattr(record.summary, field.name))


def _provenance(provenance: Provenance, payload: Payload) -> Iterator[Fact]:
    shipped = payload.identity()
    manifest, where = provenance.payload_manifest, "$.provenance"
    found = hashlib.sha256(manifest.to_json().encode()).hexdigest()
    yield Fact(f"{where}.payload_manifest_sha256", found, provenance.payload_manifest_sha256)
    # The form names no set: only the one that ships can be recognised.
    yield Fact(f"{where}.payload_manifest_sha256", shipped.manifest_sha256, provenance.payload_manifest_sha256)
    for name in ("runner_sha256", "ptx_sha256"):
        yield sha256_rule(f"{where}.{name}", getattr(provenance, name))
    benchmark = {entry.dataset_seed: entry.sha256 for entry in manifest.draws}.get(provenance.benchmark_dataset_seed)
    yield Fact(f"{where}.benchmark_payload_sha256", benchmark, provenance.benchmark_payload_sha256)


def _validation(validation: Validation, payload: Payload) -> Iterator[Fact]:
    draws, where = validation.draws, "$.validation"
    yield Fact(f"{where}.draws", [entry.draw for entry in payload.manifest.draws], [draw.draw for draw in draws])
    for index, draw in enumerate(draws):
        yield from _draw(f"{where}.draws[{index}]", draw, payload)
    for name in ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct"):
        yield Fact(f"{where}.{name}", sum(getattr(draw, name) for draw in draws), getattr(validation, name))
    replays = all(all(draw.graph_replays_equal_eager) for draw in draws)
    yield Fact(f"{where}.all_graph_replays_equal_eager", replays, validation.all_graph_replays_equal_eager)
    yield Fact(f"{where}.all_eleven_frozen_draws_checked", True, validation.all_eleven_frozen_draws_checked)
    yield Fact(f"{where}.passed", replays, validation.passed)


def _draw(where: str, draw: DrawResult, payload: Payload) -> Iterator[Fact]:
    entry, frozen = payload.manifest.draw(draw.draw), payload.load(draw.draw)
    predictions = frozen.frozen_predictions
    correct = int(np.sum(predictions == frozen.test_labels))
    int32_sha256 = hashlib.sha256(array_bytes(predictions.astype(np.int32))).hexdigest()
    yield Fact(f"{where}.dataset_seed", entry.dataset_seed, draw.dataset_seed)
    yield Fact(f"{where}.payload_sha256", entry.sha256, draw.payload_sha256)
    yield Fact(f"{where}.total", len(predictions), draw.total)
    # The form keeps the index of a prediction that differs and not the prediction: it could not be stored.
    yield Fact(f"{where}.mismatching_prediction_indices", [], draw.mismatching_prediction_indices)
    agreed = draw.total - len(draw.mismatching_prediction_indices)
    name = "gpu_agrees_with_frozen_cpu_predictions"
    yield Fact(f"{where}.{name}", agreed, draw.gpu_agrees_with_frozen_cpu_predictions)
    yield Fact(f"{where}.cpu_correct", correct, draw.cpu_correct)
    yield Fact(f"{where}.gpu_correct", correct, draw.gpu_correct)
    yield Fact(f"{where}.gpu_predictions_int32_sha256", int32_sha256, draw.gpu_predictions_int32_sha256)


def _round(where: str, measured: Round) -> Iterator[Fact]:
    """Every figure, to the last bit; the windows must follow each other."""
    yield from _in_order(where, measured)
    yield rule(f"{where}.cuda_ms", measured.cuda_ms > 0, "more than 0", measured.cuda_ms)
    start, end = (WindowEdge(**vars(edge)) for edge in (measured.measurement_start, measured.measurement_end))
    figures = round_figures(measured.repeats, start, end, measured.idle_before, measured.idle_after)
    for name, value in dataclasses.asdict(figures).items():
        yield Fact(f"{where}.{name}", value, getattr(measured, name))
    yield Fact(f"{where}.idle_before.power_w", figures.idle_before_w, measured.idle_before.power_w)
    yield Fact(f"{where}.idle_after.power_w", figures.idle_after_w, measured.idle_after.power_w)


def _in_order(where: str, measured: Round) -> Iterator[Fact]:
    """Windows of positive length, one after the other, around at least one replay."""
    yield rule(f"{where}.repeats", 0 < measured.repeats <= MOST_REPEATS, f"1 to {MOST_REPEATS}", measured.repeats)
    readings = {
        **{"idle_before.start": measured.idle_before.start, "idle_before.end": measured.idle_before.end},
        **{"measurement_start": measured.measurement_start, "measurement_end": measured.measurement_end},
        **{"idle_after.start": measured.idle_after.start, "idle_after.end": measured.idle_after.end},
    }
    yield from readings_in_order(where, [(name, edge.time_s, edge.energy_mj) for name, edge in readings.items()])
