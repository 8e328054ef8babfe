"""Numbers, text and bus ids as NVML hands them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.nvml.errors import NvmlBlankValue
from gpu_tasks.energy.nvml.values import bus_id, count, switch, text
from gpu_tasks.records import BadInput

BLANKS = ["[Not Supported]", "N/A", "[N/A]", "n/a", "Not Supported", "[Unknown Error]", "Unknown", "", " ", b"[N/A]"]


@pytest.mark.parametrize("value", [*BLANKS, None, 2**32 - 1, 2**64 - 1, -1, 40.0, True, "40", b"40"])
def test_nvidia_co2_1_netdata_4892_what_stands_for_no_number_is_no_number(value: object) -> None:
    with pytest.raises(NvmlBlankValue, match="power: expected a value, found"):
        count(value, "power")


@pytest.mark.parametrize("value", [0, 1, 57_700, 2**32 - 2, 2**32, 2**64 - 2])
def test_every_other_number_is_what_it_is(value: int) -> None:
    assert count(value, "power") == value


@pytest.mark.parametrize("value", [2, -1, "Enabled", None, True])
def test_a_switch_is_on_or_off_or_blank(value: object) -> None:
    assert switch(1, "mode") is True
    assert switch(0, "mode") is False
    with pytest.raises(NvmlBlankValue):
        switch(value, "mode")


@pytest.mark.parametrize("value", [b"GPU-5c63", "GPU-5c63", b"GPU-5c63\0\0\0", "GPU-5c63\0garbage", " GPU-5c63\n"])
def test_atop_243_nvgpu_29_dask_cuda_1118_bytes_and_text_are_the_same_text(value: str | bytes) -> None:
    assert text(value, "uuid") == "GPU-5c63"


@pytest.mark.parametrize("value", [*BLANKS, None, 5, b"\0\0"])
def test_what_stands_for_no_text_is_no_text(value: object) -> None:
    with pytest.raises(NvmlBlankValue):
        text(value, "uuid")


def test_bytes_that_are_no_utf8_are_text_that_says_so() -> None:
    assert text(b"A100\xff", "name") == "A100�"


@pytest.mark.parametrize(
    "value", ["0000:50:00.0", "00000000:50:00.0", b"0000:50:00.0\0", "50:00.0", "0:50:0.0", "50:00", "00000000:50:00"]
)
def test_all_spellings_of_a_bus_id_are_one(value: str | bytes) -> None:
    assert bus_id(value) == "00000000:50:00.0"


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_a_bus_id_is_the_same_in_either_case_and_with_or_without_padding(
    domain: int, bus: int, device: int, function: int
) -> None:
    padded = f"{domain:08X}:{bus:02X}:{device:02X}.{function}"
    assert bus_id(padded) == padded
    assert bus_id(f"{domain:x}:{bus:x}:{device:x}.{function}") == padded


@pytest.mark.parametrize("value", ["", "0", "GPU-5c63", "000000000:50:00.0", "0000:g0:00.0", "0000:50:00.8", "[N/A]"])
def test_anything_else_is_no_bus_id(value: str) -> None:
    with pytest.raises(BadInput, match=r"PCI bus id: expected such as 0000:50:00\.0, found") as caught:
        bus_id(value)
    assert caught.value.code == "bad_pci_bus_id"
