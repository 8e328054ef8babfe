"""The search through a history: found wherever it is planted, whatever cannot be judged, and however often killed."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_tasks.records import CandidateRecord, KernelIdentity, Outcome
from local import bisect_command, bisect_judging, bisect_state, first_look, history
from local.bisect_judging import Seen, side
from local.bisect_state import BAD, GOOD, SKIPPED, Search, Step
from local.errors import LauncherError, Usage
from local.first_look import Told
from local.paths import Home
from regression.results.outcome import CheckLine
from tests.unit.local.test_history import Repository

COMMITS = 20
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GOOD_END, BAD_END, BETWEEN = ("e" * 40, "b" * 40, "c" * 40)
SEARCH = Search("bisect", "", "modelled_cycles", GOOD_END, BAD_END, "class_blocks", "candidate-1", "auto", None, {})
ENDS = [Step(GOOD_END, GOOD, 0.0, "", "candidate-g"), Step(BAD_END, BAD, 2.0, "", "candidate-b")]


@dataclass
class Kernels:
    """What is seen of each commit, in the place of the emulator; ``asked`` are those that were looked at."""

    commits: list[str]
    first_bad: int = 0
    skipped: frozenset[int] = frozenset()
    killed_at: frozenset[int] = frozenset()
    asked: list[str] = field(default_factory=list)

    def see(self, _home: Home, _search: Search, commit: str, _held: object) -> Seen:
        if len(self.asked) in self.killed_at:
            self.killed_at -= {len(self.asked)}
            raise KeyboardInterrupt
        self.asked.append(commit)
        number = self.commits.index(commit)
        if number in self.skipped:
            return Seen(None, "does not build", None)
        value = 4216.0 + number + (500 if number >= self.first_bad else 0)
        return Seen(value, f"{value:.0f} cycles", f"candidate-{number:016x}")

    def freeze(self, spec: str) -> CandidateRecord:
        kernel = KernelIdentity("class_blocks", "ab" * 32, 1, [])
        common = ("candidate", "2026-12-01T00:00:00Z", Outcome.OK, None, "qda")
        return CandidateRecord(
            *common, spec, "ref", spec, False, "candidate-b", kernel, kernel, "candidate-g", False, []
        )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[str]]:
    """Twenty commits that change kernels, and one before them; others stand between."""
    place = Repository(tmp_path_factory.mktemp("history"))
    commits = [place.commit("kernels/a.py", "0", "kernels 0")]
    for number in range(1, COMMITS + 1):
        commits.append(place.commit("kernels/a.py", str(number), f"kernels {number}"))
        if number % 3 == 0:
            place.commit("README.md", str(number))
    return place, commits


@pytest.fixture
def kernels(repository: tuple[Repository, list[str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernels]:
    place, commits = repository
    found = Kernels(commits)

    def freeze(_home: Home, spec: str, *, variant: str | None, against: str | None, quiet: bool) -> CandidateRecord:
        return found.freeze(spec)

    monkeypatch.setattr(history, "ROOT", place.folder)
    monkeypatch.setattr(first_look, "freeze", freeze)
    monkeypatch.setattr(bisect_command, "see", found.see)
    yield found


def arguments(**given: object) -> Namespace:
    nothing = dict.fromkeys(("good", "bad", "metric", "variant", "device", "blocks", "dsn"))
    return Namespace(**(nothing | {"param": [], "resume": False, "reset": False} | given))


def search(home: Home, kernels: Kernels) -> None:
    """Begin the search between the ends, and go on with it after each time that it is interrupted."""
    begin = arguments(good=kernels.commits[0], bad="main", metric="modelled_cycles")
    for _ in range(COMMITS):
        try:
            assert bisect_command.command_bisect(home, begin) == 0
            return
        except KeyboardInterrupt:
            begin = arguments(resume=True)
    pytest.fail("never came to an end")


@FEW
@given(first_bad=st.integers(1, COMMITS), killed_at=st.frozensets(st.integers(0, 8)))
def test_the_planted_commit_is_found_and_no_step_is_made_twice(
    kernels: Kernels,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
    first_bad: int,
    killed_at: frozenset[int],
) -> None:
    kernels.first_bad, kernels.killed_at, kernels.skipped, kernels.asked = first_bad, killed_at, frozenset(), []
    capsys.readouterr()
    search(Home(tmp_path_factory.mktemp("home")), kernels)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "first bad commit:"
    assert printed[1].split()[0] == kernels.commits[first_bad]
    assert printed[1].endswith(f"kernels {first_bad}")
    before, after = (kernels.commits[number][:12] for number in (first_bad - 1, first_bad))
    assert printed[2] == f"modelled_cycles before: {4215 + first_bad} cycles ({before})"
    assert printed[3] == f"modelled_cycles after:  {4716 + first_bad} cycles ({after})"
    assert len(kernels.asked) == len(set(kernels.asked))
    assert len(kernels.asked) <= 2 + math.ceil(math.log2(COMMITS)) + 1


@FEW
@given(first_bad=st.integers(1, COMMITS), skipped=st.frozensets(st.integers(1, COMMITS - 1)))
def test_what_cannot_be_judged_is_left_out_and_named(
    kernels: Kernels,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
    first_bad: int,
    skipped: frozenset[int],
) -> None:
    kernels.first_bad, kernels.killed_at, kernels.skipped, kernels.asked = first_bad, frozenset(), skipped, []
    capsys.readouterr()
    search(Home(tmp_path_factory.mktemp("home")), kernels)
    printed = capsys.readouterr().out
    # Those that nothing told apart from it: the run of unjudged commits right before the first judged bad one.
    last = next(n for n in range(first_bad, COMMITS + 1) if n not in skipped)
    first = next(n for n in range(first_bad - 1, -1, -1) if n not in skipped) + 1
    possible = [kernels.commits[number] for number in range(first, last + 1)]
    named = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")]
    assert sorted(named) == sorted(possible)
    for number in range(first, last):
        assert f"not judged: {kernels.commits[number][:12]}: does not build" in printed
    assert ("first bad commit:" in printed) == (len(possible) == 1)


def test_a_search_in_progress_is_not_replaced_and_can_be_forgotten(
    kernels: Kernels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path)
    begin = arguments(good=kernels.commits[0], bad="main", metric="modelled_cycles")
    kernels.first_bad, kernels.killed_at = 5, frozenset({3})
    with pytest.raises(KeyboardInterrupt):
        bisect_command.command_bisect(home, begin)
    with pytest.raises(Usage, match=r"is in progress, 3 steps; --continue goes on with it, --reset forgets it"):
        bisect_command.command_bisect(home, begin)
    with pytest.raises(Usage, match="--continue: expected alone, found --good"):
        bisect_command.command_bisect(home, arguments(resume=True, good="main"))
    assert bisect_command.command_bisect(home, arguments(reset=True)) == 0
    with pytest.raises(Usage, match="expected a search in progress, found none"):
        bisect_command.command_bisect(home, arguments(resume=True))
    assert bisect_command.command_bisect(home, begin) == 0
    capsys.readouterr()
    assert bisect_command.command_bisect(home, arguments(resume=True)) == 0  # the answer once more
    assert kernels.commits[5] in capsys.readouterr().out


def test_ends_that_mean_nothing_are_refused_and_leave_nothing(kernels: Kernels, tmp_path: Path) -> None:
    home, (first, *_, last) = Home(tmp_path), kernels.commits
    for wrong, told in (
        ({}, "expected --good REF and --bad REF"),
        ({"good": last, "bad": first}, "expected a commit in the history of"),
        ({"good": "main", "bad": "main"}, "expected a change of kernels/ between, found none"),
        ({"good": "nowhere", "bad": "main"}, "nowhere: expected a git ref"),
        ({"good": first, "bad": "main", "device": "simulated"}, "--device: expected with --metric cuda_ms or"),
        ({"good": first, "bad": "main", "metric": "cuda_ms", "param": ["inject=throttle"]}, "param inject: expected"),
    ):
        with pytest.raises(Usage, match=told):
            bisect_command.command_bisect(home, arguments(**wrong))
        assert not bisect_state.path(home).exists()


def test_ends_that_do_not_differ_are_refused(kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    monkeypatch.setattr(bisect_command, "see", lambda *_: Seen(0.0, "11000 of 11000 predictions agree", None))
    with pytest.raises(Usage, match=r"expected a bad commit by agreement, found 11000 of 11000 predictions agree, and"):
        bisect_command.command_bisect(home, arguments(good=kernels.commits[0], bad="main"))
    monkeypatch.setattr(bisect_command, "see", lambda *_: Seen(1.0, "race", None))
    with pytest.raises(Usage, match=r"expected a good commit by agreement, found race"):
        bisect_command.command_bisect(home, arguments(good=kernels.commits[0], bad="main"))
    assert not bisect_state.path(home).exists()


def test_an_end_that_cannot_be_judged_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    kernels.first_bad, kernels.skipped = 3, frozenset({COMMITS})
    with pytest.raises(Usage, match=r"--bad .*: expected kernels that can be judged, found: does not build"):
        bisect_command.command_bisect(Home(tmp_path), arguments(good=kernels.commits[0], bad="main"))


def test_a_failure_of_the_machine_is_no_answer_and_can_be_gone_on_from(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, kernels.first_bad = Home(tmp_path), 7

    def fail_once(*given: object) -> Seen:
        if len(kernels.asked) == 4:
            monkeypatch.setattr(bisect_command, "see", kernels.see)
            raise LauncherError("no disk")
        return kernels.see(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(bisect_command, "see", fail_once)
    with pytest.raises(LauncherError, match="no disk"):
        bisect_command.command_bisect(home, arguments(good=kernels.commits[0], bad="main", metric="modelled_cycles"))
    assert bisect_command.command_bisect(home, arguments(resume=True)) == 0
    assert kernels.commits[7] in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "bisect"}'])
def test_a_damaged_state_is_named_and_can_be_forgotten(tmp_path: Path, content: str) -> None:
    home = Home(tmp_path)
    home.bisect.mkdir()
    bisect_state.path(home).write_text(content)
    with pytest.raises(Usage, match=r"search\.json.*--reset` forgets it"):
        bisect_state.read(home)
    assert bisect_state.forget(home)
    assert bisect_state.read(home) is None


def test_a_state_survives_writing_and_is_of_its_checkout(tmp_path: Path) -> None:
    home = Home(tmp_path)
    step = Step(BETWEEN, SKIPPED, None, "does not build", None)
    written = replace(SEARCH, root=str(bisect_state.ROOT), params={"payload": "original"}, steps=ENDS).with_step(step)
    bisect_state.write(home, written)
    assert bisect_state.read(home) == written
    bisect_state.write(home, replace(written, root="/elsewhere"))
    with pytest.raises(Usage, match="a search in another checkout, /elsewhere, was begun"):
        bisect_state.read(home)


def test_a_search_that_goes_on_takes_no_number_of_blocks_not_even_none(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="--continue: expected alone, found --blocks"):
        bisect_command.command_bisect(Home(tmp_path), arguments(resume=True, blocks=0))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, kernels: Kernels) -> list[str]:
    """The real judging of a commit, but for its build, its look on the emulator and its run; the runs so far."""
    asked: list[str] = []

    def freeze(_home: Home, spec: str, *, variant: str | None, against: str | None, quiet: bool) -> CandidateRecord:
        found = kernels.freeze(spec)
        return replace(found, bundle=f"candidate-{spec[:16]}", equals_pinned=spec == kernels.commits[0])

    def compare(_held: object, params: dict[str, object]) -> tuple[object, Told]:
        asked.append(str(params["candidate"]))
        checks = {
            "compare_time": CheckLine("ok", "time is there"),
            "compare_energy": CheckLine("unavailable", "there is no energy here (no counter)"),
        }
        figures = {"effect_ms": 0.1, "low_ms": 0.05, "high_ms": 0.15}
        return object(), Told(checks, {"compare_time": figures, "compare_energy": {}}, "")

    fine = Told({"compare_predictions": CheckLine("ok", "why")}, {"compare_predictions": {}}, "")
    monkeypatch.setattr(bisect_command, "see", bisect_judging.see)
    monkeypatch.setattr(bisect_command, "hold", lambda *_, **__: nullcontext(object()))
    monkeypatch.setattr(first_look, "freeze", freeze)
    monkeypatch.setattr(first_look, "look", lambda *_, **__: None)
    monkeypatch.setattr(first_look, "told", lambda *_: fine)
    monkeypatch.setattr(bisect_judging, "compare", compare)
    return asked


def test_a_device_without_the_figure_is_told_once_and_with_what_to_do(
    kernels: Kernels, measured: list[str], tmp_path: Path
) -> None:
    """Of the end, before any commit between; and of a search that goes on where there is no counter."""
    home = Home(tmp_path)
    begin = arguments(good=kernels.commits[0], bad=kernels.commits[-1], metric="adjusted_mj", device="simulated")
    refusal = (
        r"^bisect --metric adjusted_mj: expected a device that has this figure, found none: there is no energy here "
        r"\(no counter\)\. --continue goes on where there is one, --reset forgets the search; --metric cuda_ms needs"
    )
    with pytest.raises(Usage, match=refusal):
        bisect_command.command_bisect(home, begin)
    assert len(measured) == 1
    search = bisect_state.read(home)
    assert search is not None
    assert [step.judged for step in search.steps] == [GOOD]
    bisect_state.write(home, search.with_step(Step(search.bad, BAD, 2.0, "measured elsewhere", "candidate-x")))
    with pytest.raises(Usage, match=refusal):
        bisect_command.command_bisect(home, arguments(resume=True))
    assert len(measured) == 2, "not a run for each commit that is left"
    assert len((bisect_state.read(home) or SEARCH).steps) == 2


@pytest.mark.parametrize(("good", "bad"), [(0.0, 2.0), (2.0, 0.0)], ids=["upwards", "downwards"])
def test_a_value_is_on_the_side_of_the_end_that_it_is_nearer_to(good: float, bad: float) -> None:
    ends = [replace(end, value=value) for end, value in zip(ENDS, (good, bad), strict=True)]
    measured = replace(SEARCH, metric="cuda_ms", steps=ends)
    near = 0.1 if good < bad else -0.1
    assert side(measured, Seen(good + near, "", "x")) == GOOD
    assert side(measured, Seen(1.0 - near, "", "x", 1 - 2 * abs(near), 1.0 + 1e-9)) == SKIPPED
    assert side(measured, Seen(bad - near, "", "x", bad - 2 * abs(near), bad + 2 * abs(near))) == BAD
    assert side(measured, Seen(None, "", "x")) == SKIPPED
    assert side(measured, Seen(bad, "", "candidate-g")) == GOOD  # the same kernel has the same answer


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "run"}, "kind"),
        ({"metric": "speed"}, "metric"),
        ({"device": "abacus"}, "device"),
        ({"good": "--output=x"}, r"steps\.commit"),
        ({"first_bad": ["HEAD"], "is_over": True}, r"steps\.commit"),
        ({"steps": [*ENDS, Step(BETWEEN, "maybe", 1.0, "", None)]}, r"steps\.judged"),
        ({"steps": ENDS[::-1]}, "steps"),
        ({"steps": ENDS[1:]}, "steps"),
        ({"steps": [ENDS[0], replace(ENDS[1], value=None)]}, r"steps\.value"),
        ({"is_over": True}, "first_bad"),
        ({"is_over": True, "first_bad": [BETWEEN], "steps": []}, "first_bad"),
    ],
)
def test_a_state_that_no_search_has_written(tmp_path: Path, change: dict[str, object], field: str) -> None:
    home = Home(tmp_path)
    whole = replace(SEARCH, root=str(bisect_state.ROOT), steps=ENDS)
    bisect_state.write(home, replace(whole, **change))  # type: ignore[arg-type]
    with pytest.raises(Usage, match=rf"search\.json: \$\.{field}: expected .*--reset` forgets it"):
        bisect_state.read(home)


def test_what_all_commits_are_held_against_is_made_again(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against a bundle that is gone, every commit would be one that cannot be judged."""
    home, frozen, asked = Home(tmp_path), first_look.freeze, []
    kernels.first_bad, kernels.killed_at = 5, frozenset({3})
    begin = arguments(good=kernels.commits[0], bad=kernels.commits[-1], metric="modelled_cycles")
    with pytest.raises(KeyboardInterrupt):
        bisect_command.command_bisect(home, begin)

    def freeze(home: Home, spec: str, *, variant: str | None, against: str | None, quiet: bool) -> CandidateRecord:
        asked.append(against)
        return frozen(home, spec, variant=variant, against=against, quiet=quiet)

    monkeypatch.setattr(first_look, "freeze", freeze)
    assert bisect_command.command_bisect(home, arguments(resume=True)) == 0
    assert asked == [kernels.commits[0]]

    bisect_state.write(home, replace(bisect_state.read(home) or SEARCH, is_over=False, against="candidate-other"))
    with pytest.raises(Usage, match=r"expected candidate-other of the good commit .*, found that its sources build"):
        bisect_command.command_bisect(home, arguments(resume=True))


@pytest.mark.parametrize("param", ["candidate=fused", "against=fused", "variant=fused", "kernel_changed=false"])
def test_what_each_step_decides_is_no_param_of_a_search(kernels: Kernels, tmp_path: Path, param: str) -> None:
    """It would be the candidate, or what it is held against, of every step."""
    begin = arguments(good=kernels.commits[0], bad=kernels.commits[-1], metric="cuda_ms", param=[param])
    with pytest.raises(Usage, match=f"--param {param.partition('=')[0]}: expected none"):
        bisect_command.command_bisect(Home(tmp_path), begin)
    assert kernels.asked == []


@pytest.mark.parametrize("blocks", [0, 101, -1])
@pytest.mark.parametrize("option", ["--blocks", "--param blocks"])
def test_a_search_takes_as_many_blocks_as_a_comparison_and_needs_one(
    kernels: Kernels, tmp_path: Path, option: str, blocks: int
) -> None:
    how = {"blocks": blocks} if option == "--blocks" else {"param": [f"blocks={blocks}"]}
    begin = arguments(good=kernels.commits[0], bad=kernels.commits[-1], metric="cuda_ms", **how)
    with pytest.raises(Usage, match=rf"^{option}: expected 1 to 100, as each step is measured, found {blocks}$"):
        bisect_command.command_bisect(Home(tmp_path), begin)
    assert kernels.asked == []
    assert bisect_state.read(Home(tmp_path)) is None
