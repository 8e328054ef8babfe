"""Parameters of a night: what is accepted, what is refused with its name, and where a run's files go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.records import BadInput, RunRequest, run_id_for
from regression.nights.folder import safe_name
from regression.nights.params import build_request, check_params
from regression.nights.schema import COMPARISON, Schema
from regression.nights.workloads import QDA, WORKLOADS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    for name, draws in (("original", range(11)), ("small", [0, 4])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({"draws": [{"draw": draw} for draw in draws]}))
    return [tmp_path / "nothing", tmp_path]


def request(folders: list[Path], **given: Any) -> RunRequest:
    return build_request(
        given, workload="qda", dag_id="d", dag_run_id="r", trigger="manual", logical_date=None, payload_folders=folders
    )


def test_nothing_given_is_a_whole_night(folders: list[Path]) -> None:
    accepted = request(folders)
    assert (accepted.draws, accepted.rounds, accepted.device) == (list(range(11)), 7, "auto")
    assert (accepted.payload, accepted.protocol, accepted.repeats) == ("original", None, None)
    assert (accepted.inject, accepted.seed, accepted.reference_bands) == (None, None, {})
    assert accepted.run_id == run_id_for("d", "r")


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, 7), ({"rounds": 3}, 3), ({"rounds": 3, "confirm_rounds": None}, 3), ({"confirm_rounds": 0}, 0),
     ({"rounds": 100, "confirm_rounds": 100}, 100)],
)  # fmt: skip
def test_as_many_rounds_confirm_as_are_measured_unless_another_number_is_given(
    folders: list[Path], given: dict[str, Any], expected: int
) -> None:
    assert request(folders, **given).confirm_rounds == expected


def test_draws_are_those_of_the_payload(folders: list[Path]) -> None:
    assert request(folders, payload="small").draws == [0, 4]
    assert request(folders, draws=[7, 2]).draws == [2, 7]
    with pytest.raises(BadInput, match=r"draws: payload small has \[0, 4\], found \[1\]"):
        request(folders, payload="small", draws=[0, 1])


@pytest.mark.parametrize(
    "given",
    [
        {"round": 7},
        {"rounds": 0},
        {"rounds": 101},
        {"rounds": "7"},
        {"rounds": 7.0},
        {"rounds": True},
        {"rounds": None},
        {"confirm_rounds": -1},
        {"confirm_rounds": 101},
        {"confirm_rounds": 7.0},
        {"confirm_rounds": "as many"},
        {"draws": []},
        {"draws": [1, 1]},
        {"draws": [-1]},
        {"draws": [1.0]},
        {"draws": "0"},
        {"repeats": 0},
        {"device": "tpu"},
        {"inject": "energy+10%"},
        {"inject": "energy+10%", "device": "cuda"},
        {"seed": 7},
        {"inject": "", "device": "simulated"},
        {"inject": "energy+10%\n", "device": "simulated"},
        {"inject": "-energy", "device": "simulated"},
        {"inject": "throttle; rm", "device": "simulated"},
        {"inject": "energy+10", "device": "simulated"},
        {"inject": "throttle, drift=walk", "device": "simulated"},
        {"inject": 10, "device": "simulated"},
        {"inject": "x" * 201, "device": "simulated"},
        {"seed": -1, "device": "simulated"},
        {"seed": 1.0, "device": "simulated"},
        {"seed": True, "device": "simulated"},
        {"seed": 2**32, "device": "simulated"},
        {"variant": "fastest"},
        {"variant": ""},
        {"protocol": "fast"},
        {"payload": "../original"},
        {"payload": "absent"},
        {"payload": "original\n"},
        {"label": 5},
        {"label": "x" * 201},
        {"note": "nul \0"},
        {"label": "half \ud800"},
    ],
)
def test_what_is_wrong_is_refused_and_named(folders: list[Path], given: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        request(folders, **given)
    assert caught.value.message.startswith(f"{next(iter(given))}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rounds": 0}, "rounds: expected 1 to 100, found 0"),
        ({"confirm_rounds": 101}, "confirm_rounds: expected 0 to 100, found 101"),
        ({"draws": [0, 100]}, "draws: expected 0 to 99, found 100"),
        ({"repeats": 10**9 + 1}, "repeats: expected 1 to 1000000000, found 1000000001"),
        ({"seed": -1, "device": "simulated"}, "seed: expected 0 to 4294967295, found -1"),
    ],
)
def test_a_number_out_of_its_bounds_is_told_both(folders: list[Path], given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        request(folders, **given)
    assert caught.value.message == said


def test_a_device_that_there_is_none_of_is_refused_and_what_there_is_named(folders: list[Path]) -> None:
    with pytest.raises(BadInput) as caught:
        request(folders, device="tpu")
    available = "auto, cuda, emulated, reference, simulated"
    assert caught.value.message == f"device: expected one of {available}, found 'tpu'"


@pytest.mark.parametrize(
    "inject", ["energy+10%", "time+3%, drift=random_walk", "sensor*0.5", "driver=580.1", "faulty_sensor"]
)
def test_a_simulated_device_takes_effects(folders: list[Path], inject: str) -> None:
    assert request(folders, device="simulated", inject=inject).inject == inject


def test_effects_for_another_device_are_refused_in_a_clear_line(folders: list[Path]) -> None:
    with pytest.raises(BadInput) as caught:
        request(folders, inject="throttle")
    expected = "inject: expected none unless the device is simulated, found 'throttle' for auto"
    assert caught.value.message == expected


def test_a_word_that_is_no_effect_is_named(folders: list[Path]) -> None:
    with pytest.raises(BadInput, match=r"^inject: expected some of energy\+P%, .*; found 'energy\+10'$") as caught:
        request(folders, device="simulated", inject="throttle, energy+10")
    assert caught.value.code == "bad_inject"


def test_a_simulated_run_has_a_seed_of_its_own_that_is_always_the_same(folders: list[Path]) -> None:
    def seed(name: str, **given: Any) -> int | None:
        return build_request(
            {"device": "simulated"} | given,
            workload="qda",
            dag_id="d",
            dag_run_id=name,
            trigger="manual",
            logical_date=None,
            payload_folders=folders,
        ).seed

    assert seed("a") == seed("a") != seed("b")
    assert all(0 <= (seed(name) or -1) < 2**32 for name in "abcdef")
    assert (seed("a", seed=0), seed("b", seed=7)) == (0, 7)


def test_variants_are_those_of_the_committed_kernels() -> None:
    manifest = json.loads((ROOT / "kernels" / "ptx" / "manifest.json").read_text())
    variant = QDA.schema["variant"]
    assert variant["enum"][0] is None
    assert set(variant["enum"][1:]) == set(manifest["variants"])
    assert f"empty for the default, {manifest['default']}" in variant["description"]


def test_the_shipped_set_is_the_original_whatever_lies_in_a_users_folder(folders: list[Path]) -> None:
    for name in ("original", "small"):
        own = folders[0] / name / "manifest.json"
        own.parent.mkdir(parents=True)
        own.write_text('{"draws": [{"draw": 50}]}')
    assert request(folders).draws == list(range(11))
    assert request(folders, payload="small").draws == [50]


@pytest.mark.parametrize("manifest", ["{", "[]", '{"draws": [{}]}', '{"draws": []}', '{"draws": [{"draw": -1}]}'])
def test_a_manifest_that_names_no_draws_is_refused(folders: list[Path], manifest: str) -> None:
    (folders[1] / "small" / "manifest.json").write_text(manifest)
    with pytest.raises(BadInput, match="draws: expected"):
        request(folders, payload="small")


@pytest.mark.parametrize("schema", [*(workload.schema for workload in WORKLOADS.values()), COMPARISON])
def test_every_parameter_explains_itself_and_its_default_is_valid(schema: Schema) -> None:
    assert all(rule["description"] for rule in schema.values())
    check_params({name: rule["default"] for name, rule in schema.items() if "default" in rule}, schema)


def comparison(folders: list[Path], **given: Any) -> RunRequest:
    return build_request(
        given,
        workload="qda",
        dag_id="compare_kernels",
        dag_run_id="r",
        trigger="manual",
        logical_date=None,
        payload_folders=folders,
        schema=COMPARISON,
    )


def learner(folders: list[Path], **given: Any) -> RunRequest:
    return build_request(
        given,
        workload="learner",
        dag_id="nightly_learner",
        dag_run_id="r",
        trigger="manual",
        logical_date=None,
        payload_folders=folders,
    )


def test_the_draws_of_a_set_that_is_not_built_yet_are_those_of_its_pinned_manifest(folders: list[Path]) -> None:
    shipped = [folders[0], ROOT / "gpu_tasks" / "payload"]
    accepted = learner(shipped)
    assert (accepted.payload, accepted.draws, accepted.rounds) == ("learner", list(range(11)), 3)
    assert (accepted.variant, accepted.protocol, accepted.confirm_rounds) == (None, None, 3)
    assert accepted.parts == ["qualification", "memory"]
    own = folders[0] / "learner" / "manifest.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"draws": [{"draw": 50}]}')
    assert learner(shipped).draws == [50], "what is there goes first"
    for other in ("other", "original-learner"):
        with pytest.raises(BadInput, match=f"^payload {other}: expected a manifest.json"):
            learner(shipped, payload=other)
    own.unlink()
    with pytest.raises(BadInput, match=r"^payload learner: expected a manifest.json"):
        request(shipped, payload="learner")  # of another workload


def test_a_setting_of_the_library_is_an_environment_variable_of_the_programs(folders: list[Path]) -> None:
    shipped = [folders[0], ROOT / "gpu_tasks" / "payload"]
    assert learner(shipped).variables == {}
    accepted = learner(shipped, cublas_workspace=":4096:8")
    assert accepted.variables == {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    assert (request(folders).variables, request(folders).parts) == ({}, [])
    for wrong in (":0:0", "", ":16:8 ", 16, ["a"]):
        with pytest.raises(BadInput, match=r"^cublas_workspace: "):
            learner(shipped, cublas_workspace=wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"variant": "record"}, "variant: expected one of device, cublas_workspace, payload, draws"),
        ({"kernel_changed": True}, "kernel_changed: expected one of device"),
        ({"device": "emulated"}, "device: expected one of auto, cuda, reference, simulated, found 'emulated'"),
        ({"protocol": "interleaved"}, "protocol: 'interleaved' is not one of"),
    ],
)
def test_what_the_learner_has_no_use_for_is_refused(folders: list[Path], given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        learner([folders[0], ROOT / "gpu_tasks" / "payload"], **given)
    assert caught.value.message.startswith(said)


def test_a_workload_that_there_is_none_of_has_no_night(folders: list[Path]) -> None:
    with pytest.raises(BadInput, match=r"^workload: expected one of qda, learner, found 'x'$"):
        build_request(
            {}, workload="x", dag_id="d", dag_run_id="r", trigger="manual", logical_date=None, payload_folders=folders
        )


def test_a_comparison_needs_a_candidate_and_nothing_else(folders: list[Path]) -> None:
    accepted = comparison(folders, candidate="kernels/class_blocks.py")
    assert (accepted.candidate, accepted.against, accepted.blocks) == ("kernels/class_blocks.py", None, None)
    assert (accepted.kernel_changed, accepted.rounds, accepted.confirm_rounds) == (True, 7, None)
    with pytest.raises(BadInput, match=r"^candidate: expected 'The kernel to try: .* found none$"):
        comparison(folders)


@pytest.mark.parametrize(
    "given",
    [
        {"candidate": None},
        {"candidate": ""},
        {"candidate": "--upload-pack=touch /tmp/x"},
        {"candidate": " main"},
        {"candidate": "main\n"},
        {"candidate": "a\0b"},
        {"candidate": "x" * 301},
        {"candidate": 7},
        {"against": "-x", "candidate": "main"},
        {"variant": "../x", "candidate": "main"},
        {"device": "reference", "candidate": "main"},
        {"protocol": "interleaved", "candidate": "main"},
        {"blocks": -1, "candidate": "main"},
        {"blocks": 101, "candidate": "main"},
        {"blocks": 8.0, "candidate": "main"},
        {"rounds": -1, "candidate": "main"},
        {"rounds": 101, "candidate": "main"},
        {"kernel_changed": "yes", "candidate": "main"},
        {"kernel_changed": None, "candidate": "main"},
        {"confirm_rounds": 3, "candidate": "main"},
        {"inject": "throttle", "candidate": "main"},
    ],
)
def test_what_is_wrong_with_a_comparison_is_refused_and_named(folders: list[Path], given: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        comparison(folders, **given)
    assert caught.value.message.startswith(f"{next(iter(given))}:")


def test_a_night_knows_no_candidate_but_may_be_of_a_changed_kernel(folders: list[Path]) -> None:
    assert request(folders).kernel_changed is False
    assert request(folders, kernel_changed=True).kernel_changed is True
    with pytest.raises(BadInput, match=r"^candidate: expected one of device, "):
        request(folders, candidate="main")


@given(st.text())
def test_no_candidate_can_be_taken_for_an_option_or_break_a_line(spec: str) -> None:
    try:
        check_params({"candidate": spec}, COMPARISON)
    except BadInput as error:
        assert error.message.startswith("candidate: ")
    else:
        assert spec and not spec.startswith("-") and "\0" not in spec and "\n" not in spec


@given(st.text(min_size=1), st.text(min_size=1))
def test_folder_names_are_safe_and_differ(one: str, other: str) -> None:
    name = safe_name(one)
    assert "/" not in name and name not in (".", "..") and not name.startswith(".") and len(name) < 200
    assert (one == other) == (name == safe_name(other))


def test_airflows_own_run_ids_stay_as_they_are() -> None:
    assert safe_name("manual__2026-11-30T02:00:00+00:00") == "manual__2026-11-30T02:00:00+00:00"


def test_what_is_refused_is_not_told_at_length() -> None:
    for name, value in (("note", "x" * 100_000), ("draws", [0] * 100_000), ("device", "y" * 100_000)):
        with pytest.raises(BadInput, match=f"^{name}: ") as refused:
            check_params({name: value}, QDA.schema)
        assert len(refused.value.message) < 500
