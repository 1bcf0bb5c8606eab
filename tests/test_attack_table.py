"""The table of attacks: every private release keeps below its ceiling, and broken ones are seen to exceed it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks import bench_attacks
from benchmarks.attack_lab.contests import Contest, Outcome, Setting
from benchmarks.attack_lab.listed import CONTESTS, ERROR, LEVELS
from benchmarks.results import Results
from benchmarks.write_docs import LAB, with_table
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import PureDP, epsilon

FALSE_ALARM = 1e-11  # Of each comparison: all of them together stay below 1e-9.
SMALL, LARGER, HALF = Setting(0.05), Setting(0.15), Setting(0.5)
PRIVATE = [contest for contest in CONTESTS if contest.private]
# What claims ε = 0.1 and is not: the naive release where that is quick and the same experiment, else one of ε = 100.
BROKEN = {
    "uniqueness": (100, SMALL),
    "scoreboard": (100, LARGER),
    "differencing": (100, LARGER),
    "reconstruction, marginals": (None, HALF),
    "reconstruction, subsets": (None, LARGER),
    "averaging": (None, HALF),
    "tracing": (None, LARGER),
    "sticky noise, clones": (None, LARGER),
    "sticky noise, asking directly": (100, LARGER),
    "floating point": (None, SMALL),
    "membership": (100, HALF),
    "attributes": (None, SMALL),
}


LONG = ("reconstruction, marginals", "differencing", "membership", "scoreboard")


def quick_or_slow(contest: Contest):
    return pytest.param(contest, id=contest.name, marks=[pytest.mark.slow] if contest.name in LONG else [])


@pytest.mark.statistical
@pytest.mark.parametrize("contest", [quick_or_slow(contest) for contest in PRIVATE])
def test_attacks_stay_below_the_ceilings_of_private_releases(contest):
    for level in LEVELS:
        outcome = contest.attack(level, SMALL)
        assert outcome.event is not None
        assert epsilon(outcome.event, "1e-6", relation=outcome.relation) <= level
        assert outcome.kept(FALSE_ALARM)


@pytest.mark.statistical
@pytest.mark.parametrize("contest", [quick_or_slow(contest) for contest in PRIVATE])
def test_attacks_exceed_the_ceiling_of_a_release_that_claims_too_much(contest):
    level, setting = BROKEN[contest.name]
    broken = contest.attack(None if level is None else Fraction(level), setting)
    claimed = replace(broken, event=PureDP("0.1"))
    assert claimed.kept(1e-6) is False


def test_a_raw_release_promises_nothing():
    for contest in CONTESTS[:2]:
        outcome = contest.attack(None, SMALL)
        assert outcome.event is None
        assert outcome.kept(ERROR) is outcome.ceiling(ERROR) is None


def test_the_ceiling_is_read_off_the_curve_at_the_upper_limit_of_the_baseline():
    """For pure ε the curve is min(e^ε p, 1 - e^-ε (1 - p)): at a limit of 0 to 1 in 5 it is e^ε times that."""
    outcome = Outcome(data="", success=Success(90, 100), without=Success(10, 100), event=PureDP(1))
    limit = Success(10, 100).interval(0.05)[1]
    assert outcome.ceiling(0.05) == pytest.approx(2.718281828 * limit)
    assert outcome.kept(0.05) is False
    assert replace(outcome, success=Success(20, 100)).kept(0.05)
    assert replace(outcome, without=None).ceiling(0.05) == pytest.approx(0.7310585786)
    assert outcome.baseline == 0.1


class TestPage:
    def test_the_page_of_the_lab_quotes_the_table(self):
        text = LAB.read_text(encoding="utf-8")
        assert with_table(text) == text
        assert bench_attacks.table(Results.read("attacks")).text() in text

    def test_the_quoted_run_keeps_every_ceiling(self):
        results = Results.read("attacks")
        assert all(goal.reached for goal in bench_attacks.goals(results))
        told = {(row["name"], row["release"]) for row in results.rows}
        levels = ("raw", *bench_attacks.LEVELS)
        assert told == {(one.name, level) for one in CONTESTS for level in (levels if one.private else ("raw",))}

    def test_a_ceiling_that_is_not_kept_is_shouted(self):
        results = Results.read("attacks")
        rows = [row | {"kept": row["kept"] and row["name"] != "tracing"} for row in results.rows]
        spoilt = replace(results, rows=rows)
        shown = {row[0]: row[-1] for row in bench_attacks.table(spoilt).rows}
        assert shown["tracing"] == "NO"
        assert shown["differencing"] == "yes"
        assert shown["linkage"] == "–"
        assert bench_attacks.goals(spoilt)[0].reached is False
