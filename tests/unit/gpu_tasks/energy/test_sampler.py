"""Sampling by a process of its own: what it writes, how it ends, what becomes of its errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pynvml
import pytest

from gpu_tasks.energy import sampler as module
from gpu_tasks.energy.nvml.errors import NvmlNotReady
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.sampler import ProcessSampler, sample_until
from gpu_tasks.energy.trace import HEADER, Sample, largest_gap_s, read_samples
from gpu_tasks.records import InvalidMeasurement, Outcome, PowerTrace
from tests.unit.gpu_tasks.energy import sampled_nvml
from tests.unit.gpu_tasks.energy.nvml_scripted import OTHER_UUID, UUID, ScriptedNvml

REPOSITORY = Path(__file__).parents[4]
LONGEST_S = 30.0
"""How long a test waits for another process before it fails."""


def sampler(kind: str, uuid: str = UUID, pci_bus_id: str | None = None) -> ProcessSampler:
    return ProcessSampler(
        uuid=uuid, pci_bus_id=pci_bus_id, period_s=0.01, nvml=f"tests.unit.gpu_tasks.energy.sampled_nvml:{kind}"
    )


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.005)


def child_of(running: ProcessSampler) -> subprocess.Popen[bytes]:
    assert running._child is not None
    return running._child


def written(running: ProcessSampler) -> list[str]:
    """Lines so far."""
    return module._contents(running._written).decode().splitlines()


def gone(pid: int) -> bool:
    """Whether a process has ended, be it that nobody has asked for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def sampled(kind: str) -> PowerTrace:
    """The trace of a child that ends by itself."""
    running = sampler(kind)
    running.start()
    child_of(running).wait(LONGEST_S)
    return running.stop()


def test_a_process_of_its_own_samples_until_it_is_stopped() -> None:
    running = sampler("healthy", pci_bus_id="0000:50:00.0")
    before_s = time.monotonic()
    running.start()
    child = child_of(running)
    assert child.pid != os.getpid()
    assert len(written(running)) >= 3, "kind, header and first sample are there when start returns"
    wait_for(lambda: len(written(running)) >= 12)
    trace = running.stop()
    after_s = time.monotonic()
    assert child.returncode == 0
    assert (trace.period_s, trace.power_kind, trace.error) == (0.01, "instantaneous", None)
    samples = read_samples(trace)
    assert len(samples) >= 10
    assert all(before_s < sample.time_s < after_s for sample in samples), "one clock for both processes"
    assert all(sample.counter_time_s is not None and sample.counter_time_s >= sample.time_s for sample in samples)
    assert {sample.power_w for sample in samples} == {57.7}
    assert {(s.sm_clock_mhz, s.memory_clock_mhz, s.temperature_c, s.performance_state) for s in samples} == {
        (1410, 1215, 31, 0)
    }
    counters = [sample.counter_mj or 0 for sample in samples]
    assert counters == sorted(counters)
    assert largest_gap_s(samples, samples[0].time_s, samples[-1].time_s) > 0


def test_a_sampler_can_be_started_again_and_not_twice_at_once() -> None:
    running = sampler("healthy")
    with pytest.raises(RuntimeError, match="stop: expected a sampler that was started"):
        running.stop()
    for _ in range(2):
        running.start()
        with pytest.raises(RuntimeError, match="start: expected a sampler that is not running"):
            running.start()
        assert running.stop().error is None


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


def refused(running: ProcessSampler, code: str) -> None:
    """Starting it raises this code, and nothing of it is left."""
    with pytest.raises(InvalidMeasurement, match=r": expected .*, found ") as caught:
        running.start()
    assert caught.value.code == code
    assert caught.value.outcome is Outcome.INVALID_MEASUREMENT
    assert running._child is None
    assert running._written.closed
    assert running._complaints.closed


def test_one_that_could_not_start_may_be_started_again() -> None:
    running = sampler("no_driver")
    refused(running, "nvml_driver_not_loaded")
    running._command[-1] = running._command[-1].replace("no_driver", "healthy")
    running.start()
    assert running.stop().error is None


def test_the_child_finds_the_gpu_by_uuid_and_bus_id_as_its_parent_does() -> None:
    for running in (sampler("healthy", uuid=OTHER_UUID), sampler("healthy", pci_bus_id="0000:07:00.0")):
        refused(running, "device_mismatch")


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


def test_a_child_that_was_killed_is_an_error_and_its_samples_are_kept() -> None:
    running = sampler("healthy")
    running.start()
    wait_for(lambda: len(written(running)) >= 5)
    child_of(running).kill()
    trace = running.stop()
    assert trace.error is not None
    assert trace.error.message == "sampler: expected exit status 0, found -9"
    assert len(read_samples(trace)) >= 3


def test_a_child_that_does_not_end_is_killed_and_its_samples_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_S", 0.05)
    running = sampler("deaf")
    running.start()
    wait_for(lambda: "deaf" in written(running))
    child = child_of(running)
    trace = running.stop()
    assert child.returncode == -signal.SIGKILL
    assert trace.error is not None
    assert trace.error.code == "sampler_hung"
    assert len(read_samples(trace)) == sampled_nvml.GOOD_SAMPLES


def test_a_first_sample_that_does_not_come_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_SAMPLE_S", 0.0)
    refused(sampler("healthy"), "sampler_late")


def test_a_child_that_ends_before_it_is_stopped_is_an_error() -> None:
    running = sampler("healthy")
    running.start()
    child = child_of(running)
    assert child.stdin is not None
    child.stdin.close()
    child.wait(LONGEST_S)
    trace = running.stop()
    assert trace.error is not None
    assert trace.error.code == "sampler_ended"


def test_without_a_stand_in_the_child_uses_the_real_bindings_and_says_what_is_missing() -> None:
    with pytest.raises(InvalidMeasurement) as caught:
        ProcessSampler(uuid=UUID).start()
    no_such_gpu = {"nvml_library_not_found", "nvml_driver_not_loaded", "device_mismatch"}
    assert caught.value.code in no_such_gpu, "no machine has the GPU of this test"


def test_the_first_sample_is_the_first_line_after_the_header() -> None:
    assert not module._has_sample(b"")
    assert not module._has_sample(f"{HEADER}\n#kind instantaneous\n1.000000,57.7".encode())
    assert module._has_sample(f"{HEADER}\n#kind instantaneous\n1.000000,57.700,,,,,,,,,\n".encode())


def test_the_child_waits_and_ends_when_its_input_is_closed_or_its_parent_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(module, "_STDIN", reading)
    before_s = time.monotonic()
    assert module._stdin_closed(os.getppid(), 0.02) is False
    os.write(writing, b"said to nobody\n")
    assert module._stdin_closed(os.getppid(), 0.02) is False
    assert time.monotonic() - before_s >= 0.04
    assert module._stdin_closed(os.getppid() + 1, 0.0) is True
    os.close(writing)
    assert module._stdin_closed(os.getppid(), LONGEST_S) is True
    os.close(reading)


PARENT = """
import sys, time
from tests.unit.gpu_tasks.energy.test_sampler import child_of, sampler
running = sampler("healthy")
running.start()
print(child_of(running).pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_parent_that_is_killed_leaves_no_child(number: int) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not gone(child)
        parent.send_signal(number)
        parent.wait(LONGEST_S)
        wait_for(lambda: gone(child))
    finally:
        parent.kill()
        parent.communicate()


def test_a_child_whose_input_is_kept_open_by_another_ends_with_its_parent() -> None:
    """A process that the parent forked holds the other end of the pipe: the number of the parent gives it away."""
    reading, writing = os.pipe()
    code = f"""
import subprocess, sys
command = [sys.executable, "-m", "gpu_tasks.energy.sampler", "--uuid", "{UUID}", "--period-s", "0.01"]
command += ["--nvml", "tests.unit.gpu_tasks.energy.sampled_nvml:healthy"]
child = subprocess.Popen(command, stdin={reading}, stdout=subprocess.PIPE)
for _ in range(3):
    child.stdout.readline()
print(child.pid, flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, pass_fds=[reading], capture_output=True, text=True, check=True
    )
    try:
        wait_for(lambda: gone(int(done.stdout)))
    finally:
        os.close(reading)
        os.close(writing)


def opened(nvml: ScriptedNvml) -> NvmlGpu:
    return NvmlGpu(nvml, uuid=UUID, clock=nvml.clock, timeout_s=None)


def run(nvml: ScriptedNvml, period_s: float, samples: int) -> list[str]:
    """Lines of so many rounds of the loop on the scripted clock."""
    lines: list[str] = []
    left = iter(range(samples - 1))

    def closed(wait_s: float) -> bool:
        assert 0 < wait_s <= period_s
        nvml.clock.sleep(wait_s)
        return next(left, None) is None

    sample_until(opened(nvml), nvml.clock, period_s, lines.append, closed)
    return lines


def times(lines: list[str]) -> list[float]:
    return [float(line.split(",")[0]) for line in lines if line[0].isdigit()]


def test_samples_keep_their_period_whatever_a_sample_takes() -> None:
    found = times(run(ScriptedNvml(), period_s=0.05, samples=40))
    assert [round(after - before, 6) for before, after in pairwise(found)] == [0.05] * 39


def test_moments_that_were_missed_are_left_out() -> None:
    nvml = ScriptedNvml()
    slow = iter([0.0, 0.12, *[0.0] * 10])

    def clock(handle: str, kind: int) -> int:
        nvml.clock.sleep(next(slow) if kind == 1 else 0.0)
        return 1410

    nvml.answers["nvmlDeviceGetClockInfo"] = clock
    found = times(run(nvml, period_s=0.05, samples=5))
    assert [round(after - before, 6) for before, after in pairwise(found)] == [
        0.05,
        0.15,
        0.05,
        0.05,
    ]


def test_the_kind_of_power_comes_before_the_first_sample_that_has_one() -> None:
    lines = run(ScriptedNvml(), period_s=0.05, samples=2)
    assert lines[:2] == [HEADER, "#kind instantaneous"]
    assert len(lines) == 4


def test_processes_are_counted_and_xid_errors_asked_for_every_half_second() -> None:
    nvml = ScriptedNvml()
    lines = run(nvml, period_s=0.05, samples=101)
    looks = [float(line.split(",")[0]) for line in lines if line.endswith(",1")]
    assert len(looks) == pytest.approx(5.0 / 0.5, abs=1)
    assert all(0.5 <= round(after - before, 6) <= 0.56 for before, after in pairwise(looks))
    assert nvml.calls.count("nvmlDeviceGetComputeRunningProcesses") == len(looks)
    assert nvml.calls.count("nvmlEventSetWait_v2") == len(looks) + 2, "once to see whether it can, once at the end"


def test_an_xid_error_that_comes_after_the_last_look_is_told_at_the_end() -> None:
    nvml = ScriptedNvml()
    lines: list[str] = []

    def closed(wait_s: float) -> bool:
        nvml.xids = [79]
        return True

    sample_until(opened(nvml), nvml.clock, 0.05, lines.append, closed)
    assert lines[-1] == "#error xid Xid errors of the driver: expected none meanwhile, found Xid 79"
    assert nvml.calls[-1] == "nvmlEventSetFree"


def test_a_driver_that_is_not_ready_at_the_very_end_takes_nothing_from_the_samples() -> None:
    nvml = ScriptedNvml()
    lines: list[str] = []

    def closed(wait_s: float) -> bool:
        nvml.fail("nvmlEventSetWait_v2", pynvml.NVML_ERROR_NOT_READY)
        return True

    sample_until(opened(nvml), nvml.clock, 0.05, lines.append, closed)
    assert len(times(lines)) == 1


def test_power_of_the_moment_is_never_mixed_with_averages() -> None:
    nvml = sampled_nvml.averaging()
    with pytest.raises(InvalidMeasurement, match="power: expected instantaneous all through, found average"):
        run(nvml, period_s=0.05, samples=10)


def test_a_gpu_that_is_not_ready_is_asked_again_for_half_a_second() -> None:
    nvml = sampled_nvml.not_ready_any_more()
    start_s = nvml.clock.now()
    with pytest.raises(NvmlNotReady):
        run(nvml, period_s=0.05, samples=100)
    assert 0.5 < nvml.clock.now() - start_s < 1.0


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
