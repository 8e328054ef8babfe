"""Sampling by a process of its own: how it begins, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from gpu_tasks.energy import sampler as module
from gpu_tasks.energy.sampler import ProcessSampler
from gpu_tasks.energy.trace import HEADER, largest_gap_s, read_samples
from gpu_tasks.records import InvalidMeasurement
from tests.unit.gpu_tasks.energy import sampled_nvml
from tests.unit.gpu_tasks.energy.nvml_scripted import OTHER_UUID, UUID
from tests.unit.gpu_tasks.energy.samplers import (
    LONGEST_S,
    REPOSITORY,
    child_of,
    gone,
    refused,
    sampler,
    wait_for,
    written,
)


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


def test_one_that_could_not_start_may_be_started_again() -> None:
    running = sampler("no_driver")
    refused(running, "nvml_driver_not_loaded")
    running._command[-1] = running._command[-1].replace("no_driver", "healthy")
    running.start()
    assert running.stop().error is None


def test_the_child_finds_the_gpu_by_uuid_and_bus_id_as_its_parent_does() -> None:
    for running in (sampler("healthy", uuid=OTHER_UUID), sampler("healthy", pci_bus_id="0000:07:00.0")):
        refused(running, "device_mismatch")


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
    refused(sampler("silent"), "sampler_late")


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
from tests.unit.gpu_tasks.energy.samplers import child_of, sampler
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
