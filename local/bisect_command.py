"""``nightly bisect``: the commit that changed the kernels for the worse, by halving the history between two."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gpu_tasks.records import MAX_BLOCKS, Outcome
from local import bisect_state, first_look, history, runs
from local.bisect_judging import AGREEMENT, MEASURED, see, step_of
from local.bisect_state import BAD, GOOD, SKIPPED, Search, Step
from local.errors import Usage, told_in_one_line
from local.locks import exclusive
from local.paths import ROOT, Home
from local.people import said
from local.processes import terminable
from local.runs import COMPARISON
from local.stack import Stack, hold

OF_EACH_STEP = ("candidate", "against", "variant", "kernel_changed")
"""Params of a comparison that a search decides itself."""


def command_bisect(home: Home, arguments: argparse.Namespace) -> int:
    """Begin a search, go on with one, or forget it."""
    with terminable(), told_in_one_line(), exclusive(home.locks / "bisect", "another `nightly bisect`"):
        if arguments.reset:
            print("forgotten" if bisect_state.forget(home) else "no search was in progress")
            return Outcome.OK.exit_code
        search = _resumed(home, arguments) if arguments.resume else _begun(home, arguments)
        if not search.is_over:
            try:
                search = _searched(home, arguments, search)
            except KeyboardInterrupt:
                said("interrupted; `./nightly bisect --continue` goes on with the step that was not finished")
                raise
        print("\n".join(_found(search)))
    return Outcome.OK.exit_code


def _begun(home: Home, arguments: argparse.Namespace) -> Search:
    """A new search; refused where one is in progress, and where there is nothing between the two commits."""
    if not arguments.good or not arguments.bad:
        found = "--good" if arguments.good else "--bad" if arguments.bad else "none of them"
        raise Usage(f"bisect: expected --good REF and --bad REF, or --continue, found {found}")
    before = bisect_state.read(home)
    if before is not None and not before.is_over:
        raise Usage(
            f"bisect: a search between {before.good[:12]} and {before.bad[:12]} is in progress, {len(before.steps)} "
            "steps; --continue goes on with it, --reset forgets it"
        )
    metric = arguments.metric or AGREEMENT
    for name in ("device", "blocks"):
        if getattr(arguments, name) is not None and metric not in MEASURED:
            raise Usage(f"--{name}: expected with --metric {' or '.join(MEASURED)}, found {metric}, which needs none")
    params = runs.parse_params(arguments.param, None)
    _check_blocks("--blocks", arguments.blocks)
    _check_blocks("--param blocks", params.get("blocks"))
    for name in OF_EACH_STEP:
        if name in params:
            raise Usage(f"--param {name}: expected none, as each step has its own, found {params[name]!r:.80}")
    good, bad = history.commit(arguments.good), history.commit(arguments.bad)
    if not history.is_ancestor(good, bad):
        found = "a later one: are the two swapped?" if history.is_ancestor(bad, good) else "another one"
        raise Usage(f"--good {arguments.good}: expected a commit in the history of {arguments.bad}, found {found}")
    newest = history.newest(bad, good)
    if not newest:
        raise Usage(f"--good {arguments.good} --bad {arguments.bad}: expected a change of kernels/ between, found none")
    # The variant that differs between the ends is the one that is looked for in the commits between.
    frozen = first_look.freeze(home, newest, variant=arguments.variant, against=good, quiet=True)
    search = Search(
        kind=bisect_state.KIND,
        root=str(ROOT),
        metric=metric,
        good=good,
        bad=newest,
        variant=frozen.kernel.variant if frozen.kernel else None,
        against=frozen.against_bundle,
        device=arguments.device or "auto",
        blocks=arguments.blocks,
        params=params,
    )
    example = {"candidate": good, "device": search.device, "blocks": search.blocks}
    # Refused before anything is tried.
    runs.requested(home, {**example, **search.params}, COMPARISON, options=("device", "blocks"))
    bisect_state.write(home, search)
    return search


def _check_blocks(name: str, blocks: object) -> None:
    """A comparison may have none, a step of a search needs one; what is no number is refused with the other params."""
    if isinstance(blocks, int) and not 1 <= blocks <= MAX_BLOCKS:
        raise Usage(f"{name}: expected 1 to {MAX_BLOCKS}, as each step is measured, found {blocks}")


def _resumed(home: Home, arguments: argparse.Namespace) -> Search:
    options = ("good", "bad", "metric", "variant", "device", "blocks")
    given = [name for name in options if getattr(arguments, name) is not None]
    if given or arguments.param:
        raise Usage(f"--continue: expected alone, found --{(given or ['param'])[0]}; it goes on as it was begun")
    search = bisect_state.read(home)
    if search is None:
        raise Usage("bisect --continue: expected a search in progress, found none; begin one with --good and --bad")
    if not search.is_over:
        _check_kernel(home, search)
    return search


def _check_kernel(home: Home, search: Search) -> None:
    """What all commits are held against, made again where its bundle is gone; otherwise each would be left out."""
    frozen = first_look.freeze(home, search.bad, variant=search.variant, against=search.good, quiet=True)
    if frozen.against_bundle != search.against:
        raise Usage(
            f"bisect --continue: expected {search.against} of the good commit {search.good[:12]}, found that its "
            f"sources build {frozen.against_bundle} by now; --reset forgets the search"
        )


def _searched(home: Home, arguments: argparse.Namespace, search: Search) -> Search:
    with _stack(home, arguments, search) as held:
        for commit, word in ((search.good, GOOD), (search.bad, BAD)):
            if search.step(commit) is None:
                search = _end(home, search, commit, word, held)
        _check_ends(home, search)
        while (between := _next(search)) is not None:
            _say_progress(search)
            search = _kept(home, search, step_of(search, between, see(home, search, between, held)))
    return _kept_as_over(home, search)


@contextmanager
def _stack(home: Home, arguments: argparse.Namespace, search: Search) -> Iterator[Stack | None]:
    """One stack for all steps where something is measured; none is started for what the emulator can tell."""
    if search.metric not in MEASURED:
        yield None
        return
    with hold(home, arguments.dsn, need_airflow=True) as held:
        yield held


def _end(home: Home, search: Search, commit: str, word: str, held: Stack | None) -> Search:
    """One of the two ends, which is what people said it is, unless it cannot be judged at all."""
    seen = see(home, search, commit, held)
    if seen.value is None:
        raise Usage(f"--{word} {commit[:12]}: expected kernels that can be judged, found: {seen.told}")
    return _kept(home, search, Step(commit, word, seen.value, seen.told, seen.bundle))


def _check_ends(home: Home, search: Search) -> None:
    """The search is for the commit between two that differ: where they do not, every answer would be chance."""
    good, bad = search.steps[:2]
    wrong = search.metric == AGREEMENT and good.value != 0
    if wrong or good.value == bad.value or bad.value is None or good.value is None:
        bisect_state.forget(home)
        which = f"--good {good.commit[:12]}" if wrong else f"--bad {bad.commit[:12]}"
        told = good.told if wrong else f"{bad.told}, and {good.told} at the good commit"
        raise Usage(f"{which}: expected {'a good' if wrong else 'a bad'} commit by {search.metric}, found {told}")


def _next(search: Search) -> str | None:
    """The commit that halves what is left; None where nothing is left that could be judged."""
    for commit in history.between([step.commit for step in search.judged(GOOD)], _latest_bad(search)):
        if search.step(commit) is None:
            return commit
    return None


def _latest_bad(search: Search) -> str:
    """The earliest bad commit that is known: each bad step is in the history of the one before."""
    return search.judged(BAD)[-1].commit


def _left(search: Search) -> list[str]:
    """The commits one of which is the first bad one."""
    return history.between([step.commit for step in search.judged(GOOD)], _latest_bad(search))


def _kept(home: Home, search: Search, step: Step) -> Search:
    found = search.with_step(step)
    bisect_state.write(home, found)
    said(f"{step.judged:<7} {step.commit[:12]}  {step.told}")
    return found


def _kept_as_over(home: Home, search: Search) -> Search:
    found = replace(search, is_over=True, first_bad=_left(search))
    bisect_state.write(home, found)
    return found


def _say_progress(search: Search) -> None:
    left = len(_left(search))
    steps = math.ceil(math.log2(max(left, 2)))
    said(f"{left} commits left, about {steps} step{'s' * (steps != 1)}")


def _found(search: Search) -> list[str]:
    """The answer: the commit with author, date and subject, and the figure before and after it."""
    skipped = [step for step in search.judged(SKIPPED) if step.commit in search.first_bad]
    after, before = search.judged(BAD)[-1], search.judged(GOOD)[-1]
    commits = history.describe(search.first_bad)
    if len(commits) == 1:
        lines = ["first bad commit:"]
    else:
        lines = ["the first bad commit is one of these, as those between could not be judged:"]
    lines += [f"  {each.commit}  {each.author}  {each.date}  {each.subject}" for each in commits]
    lines += [f"{search.metric} before: {before.told} ({before.commit[:12]})"]
    lines += [f"{search.metric} after:  {after.told} ({after.commit[:12]})"]
    return lines + [f"not judged: {step.commit[:12]}: {step.told}" for step in skipped]
