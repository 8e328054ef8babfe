"""Which findings of a check count."""

import itertools

import pytest

from regression.detectors import CheckVerdict, Verdict
from regression.results.checks import Finding, last_findings


def finding(check, step, verdict=Verdict.OK):
    return Finding(CheckVerdict(check, verdict, "metric", "mJ", "code", "reason"), None, step)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_last_step_of_each_check_counts_in_whatever_order_they_come(order):
    findings = [finding("energy", 0, Verdict.REGRESSED), finding("energy", 1), finding("time", 0, Verdict.INVALID)]
    last = last_findings([findings[place] for place in order])
    assert {(f.verdict.check, f.step, f.verdict.verdict) for f in last} == {
        ("energy", 1, Verdict.OK),
        ("time", 0, Verdict.INVALID),
    }


def test_nothing_found_is_no_last_step():
    assert last_findings([]) == []
