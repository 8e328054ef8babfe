"""Every NVML code is an error of its own class."""

from __future__ import annotations

import re

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.nvml.errors import (
    CODES,
    NvmlBlankValue,
    NvmlError,
    NvmlHung,
    NvmlNewerCode,
    NvmlTimeout,
    NvmlTransient,
    NvmlUnavailable,
    nvml_error,
)
from gpu_tasks.records import InfrastructureFailure, InvalidMeasurement, Outcome

BINDINGS = {name: value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")}


def test_the_table_is_the_one_of_the_installed_bindings() -> None:
    assert {value: error.name for value, error in CODES.items()} == {value: name for name, value in BINDINGS.items()}
    assert pynvml.NVML_SUCCESS not in CODES


@pytest.mark.parametrize("value", sorted(CODES))
def test_each_code_has_its_own_class_and_a_line_that_names_call_name_and_number(value: int) -> None:
    error = nvml_error(value, "nvmlDeviceGetPowerUsage")
    assert type(error) is CODES[value]
    assert re.fullmatch(
        rf"nvmlDeviceGetPowerUsage: expected success, found NVML_ERROR_[A-Z_]+ \({value}\): .+", str(error)
    )
    assert error.code == CODES[value].name.lower().replace("nvml_error_", "nvml_")


@pytest.mark.parametrize(
    ("outcome", "transient", "values"),
    [
        (Outcome.INVALID_MEASUREMENT, False, {3, 4, 13, 21, 22, 24, 25, 26, 30}),
        (Outcome.INVALID_MEASUREMENT, True, {7, 10, 27, 29}),
        (Outcome.INFRASTRUCTURE_FAILURE, False, {1, 2, 5, 6, 8, 9, 11, 12, 14, 15, 16, 17, 18, 19, 20, 23, 28, 999}),
    ],
)
def test_what_a_code_means_for_the_measurement(outcome: Outcome, transient: bool, values: set[int]) -> None:
    found = {value for value in CODES if (CODES[value].outcome, CODES[value].transient) == (outcome, transient)}
    assert found == values


def test_not_ready_is_a_measurement_that_may_be_tried_again_and_a_lost_gpu_is_not() -> None:
    assert isinstance(nvml_error(27, "x"), NvmlTransient)
    assert isinstance(nvml_error(27, "x"), InvalidMeasurement)
    assert isinstance(nvml_error(15, "x"), InfrastructureFailure)
    assert not nvml_error(15, "x").transient


@given(st.integers(min_value=1, max_value=2**31).filter(lambda value: value not in CODES))
def test_a_code_newer_than_the_table_keeps_its_number(value: int) -> None:
    error = nvml_error(value, "nvmlInit")
    assert isinstance(error, NvmlNewerCode)
    assert (error.code, error.value) == (f"nvml_{value}", value)
    assert error.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert f"({value})" in str(error)


def test_errors_of_this_project_beside_those_of_nvml() -> None:
    hung = NvmlHung("nvmlInit", 5.0)
    assert isinstance(hung, NvmlTimeout)
    assert (hung.code, hung.transient) == ("nvml_hung", True)
    assert str(hung) == "nvmlInit: expected an answer within 5 s, found none"
    blank = NvmlBlankValue("nvmlDeviceGetPowerUsage", "[Not Supported]")
    assert isinstance(blank, NvmlUnavailable)
    assert blank.code == "nvml_blank_value"
    assert str(blank) == "nvmlDeviceGetPowerUsage: expected a value, found '[Not Supported]'"


def test_no_two_errors_share_a_code() -> None:
    errors: list[NvmlError] = [nvml_error(value, "x") for value in CODES]
    codes = [error.code for error in [*errors, NvmlHung("x", 1.0), NvmlBlankValue("x", 0)]]
    assert len(set(codes)) == len(codes)
