"""Sampling by a process of its own: what becomes of its errors, and of what the GPU cannot say."""

from __future__ import annotations

import pytest

from gpu_tasks.energy import sampler as module
from gpu_tasks.energy.trace import HEADER, Sample, read_samples
from tests.unit.gpu_tasks.energy import sampled_nvml
from tests.unit.gpu_tasks.energy.samplers import refused, sampled, sampler, wait_for, written


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("lost", "nvml_gpu_is_lost"),
        ("not_ready_any_more", "nvml_not_ready"),
        ("averaging", "power_kind_changed"),
        ("dying", "sampler_crashed"),
        ("crashing", "sampler_crashed"),
    ],
)
def test_what_ends_the_sampling_is_the_error_of_the_trace_and_what_was_sampled_is_kept(kind: str, code: str) -> None:
    trace = sampled(kind)
    assert trace.error is not None
    assert trace.error.code == code
    assert ": expected " in trace.error.message
    samples = read_samples(trace)
    assert len(samples) == sampled_nvml.GOOD_SAMPLES
    assert {sample.power_w for sample in samples} == {57.7}
    assert trace.power_kind == "instantaneous"


def test_a_crash_is_told_with_status_and_last_words() -> None:
    dying, crashing = sampled("dying").error, sampled("crashing").error
    assert dying is not None
    assert crashing is not None
    assert dying.message == "sampler: expected exit status 0, found 7"
    assert crashing.message.startswith("sampler: expected exit status 0, found 1: KeyError: 'what nobody thought of'")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("lost_at_once", "nvml_gpu_is_lost"),
        ("no_driver", "nvml_driver_not_loaded"),
        ("dying_at_once", "sampler_crashed"),
        ("no_such_stand_in", "sampler_crashed"),
    ],
)
def test_a_child_that_ends_before_its_first_sample_is_told_at_once_with_its_own_reason(kind: str, code: str) -> None:
    running = sampler(kind)
    refused(running, code)
    with pytest.raises(RuntimeError, match="stop: expected a sampler that was started"):
        running.stop()


def test_an_xid_error_is_the_error_of_the_trace_and_sampling_goes_on() -> None:
    running = sampler("with_an_xid")
    running.start()
    wait_for(lambda: any(line.startswith("#error") for line in written(running)))
    told = len(written(running))
    wait_for(lambda: len(written(running)) > told + 5)
    trace = running.stop()
    assert trace.error is not None
    assert (trace.error.code, trace.error.message) == (
        "xid",
        "Xid errors of the driver: expected none meanwhile, found Xid 79",
    )
    assert len(read_samples(trace)) >= told + 2  # all lines but the header, the kind and the error, and five more


def test_a_gpu_that_is_lost_after_an_xid_error_is_lost_by_it() -> None:
    error = sampled("lost_after_an_xid").error
    assert error is not None
    assert error.code == "xid"


def test_a_gpu_whose_xid_errors_cannot_be_watched_is_sampled_all_the_same() -> None:
    running = sampler("unwatchable")
    running.start()
    trace = running.stop()
    assert trace.error is None
    assert read_samples(trace)


def test_processes_are_in_the_first_sample_and_then_about_twice_a_second() -> None:
    running = sampler("shared")
    running.start()
    wait_for(lambda: sum(line.endswith(",2") for line in written(running)) >= 3)
    samples = read_samples(running.stop())
    counted = [sample for sample in samples if sample.processes is not None]
    assert samples[0] is counted[0]
    assert {sample.processes for sample in counted} == {2}
    assert len(counted) < len(samples)
    assert {sample.throttle_reasons for sample in samples} == {0}


def test_a_line_that_is_no_sample_is_an_error_and_the_samples_around_it_are_kept() -> None:
    running = sampler("babbling")
    running.start()
    wait_for(lambda: len(written(running)) > sampled_nvml.GOOD_SAMPLES + 6)
    trace = running.stop()
    assert trace.error is not None
    assert trace.error.code == "sampler_garbage"
    assert "found 'WARNING: a library says hello'" in trace.error.message
    assert len(read_samples(trace)) > sampled_nvml.GOOD_SAMPLES


def test_a_gpu_that_is_not_ready_once_costs_one_sample() -> None:
    running = sampler("not_ready_once")
    running.start()
    trace = running.stop()
    assert trace.error is None
    assert read_samples(trace)


def test_what_this_gpu_cannot_say_is_empty_in_the_trace() -> None:
    for kind, missing in (("without_power", "power_w"), ("unsupported_counter", "counter_mj")):
        running = sampler(kind)
        running.start()
        trace = running.stop()
        assert trace.error is None
        first = read_samples(trace)[0]
        assert getattr(first, missing) is None
        assert first.sm_clock_mhz == 1410
        assert trace.power_kind == (None if missing == "power_w" else "instantaneous")


@pytest.mark.parametrize("time_s", [1.0, 2.0])
def test_samples_that_run_backwards_or_stand_still_are_no_trace(time_s: float) -> None:
    later, earlier = Sample(2.0, 1.0), Sample(time_s, 1.0)
    text = "".join(f"{line}\n" for line in (HEADER, *map(module.csv_line, (later, earlier))))
    samples, _, error = module._parsed(text.encode())
    assert samples == [later]
    assert error is not None
    assert error.code == "sampler_garbage"


def test_half_a_line_at_the_end_is_an_error_unless_the_child_said_why() -> None:
    _, _, error = module._parsed(f"{HEADER}\n1.000000,".encode())
    assert error is not None
    assert error.code == "sampler_garbage"
    _, _, error = module._parsed(f"{HEADER}\n#error nvml_gpu_is_lost x: expected y\n1.00".encode())
    assert error is not None
    assert (error.code, error.message) == ("nvml_gpu_is_lost", "x: expected y")
