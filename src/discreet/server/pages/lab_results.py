"""What the page of the lab shows: attacks on people who do not exist, and what ε means. Nothing that is served is read.

Everything is computed once for each ε that can be chosen, one at a time, and kept: nobody can load the machine with it
a second time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from threading import Lock
from typing import Any, final

import numpy as np

from discreet import data, noise
from discreet.lab import attacks
from discreet.lab.attacks.count_tables import CountNoise, CountTable
from discreet.lab.attacks.success_rates import Success
from discreet.privacy.events import PureDP
from discreet.privacy.meaning import explain_epsilon
from discreet.privacy.relation import Relation

__all__ = ["ATTACKED_AT", "MEANINGS", "LabAttack", "LabBar", "lab_attacks", "meaning_table"]

ATTACKED_AT = ("0.1", "0.3", "1", "3", "10")  # the ε at which attacks are tried
_DELTA = "1e-6"
_ONE_AT_A_TIME = Lock()

# --- what ε means ---

# From 0.01 to 10, ten steps for each factor of ten, as people write them.
MEANINGS = tuple(f"{float(f'{10 ** (step / 10):.2g}'):g}" for step in range(-20, 11))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabBar:
    """How sure somebody is before and can become after, at most; both are shares."""

    words: str
    before: float
    after: float


@cache
def meaning_table() -> Mapping[str, tuple[LabBar, ...]]:
    """Return, for each ε that can be chosen, how far the best attacker gets; rounded up."""
    return {epsilon: _meaning(epsilon) for epsilon in MEANINGS}


def _meaning(epsilon: str) -> tuple[LabBar, ...]:
    told = explain_epsilon(epsilon)
    beliefs = [
        LabBar(words=_belief_words(belief.before), before=float(belief.before), after=belief.after)
        for belief in told.beliefs
        if belief.before < Fraction(9, 10)
    ]
    found = next(one for one in told.found if one.false_alarms == Fraction(1, 20))
    share = LabBar(words="people found by whoever wrongly accuses 1 in 20", before=0.05, after=found.found)
    return (*beliefs, share)


def _belief_words(before: Fraction) -> str:
    return "was right half of the time, like a coin" if before == Fraction(1, 2) else f"was {_percent(before)} sure"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):g} %"


# --- attacks ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LabAttack:
    """One attack on answers that are exact, with small counts hidden, and private at an ε.

    Args:
        name: What it is called, such as "differencing".
        story: What is attacked, and how, in a few sentences.
        exact: What it gets right from exact answers.
        hidden: The same where counts below 5 are hidden.
        private: The same from private answers.
        by_guessing: The share of whoever sees no answer.
        ceiling: The share that no attacker exceeds against the private answers, rounded up.
    """

    name: str
    story: str
    exact: Success
    hidden: Success
    private: Success
    by_guessing: float
    ceiling: float


def lab_attacks(epsilon: str) -> tuple[LabAttack, ...]:
    """Return what attacks find at one of the ε of `ATTACKED_AT`: computed once, and kept."""
    if epsilon not in ATTACKED_AT:
        raise KeyError(epsilon)
    with _ONE_AT_A_TIME:
        return _attacks(epsilon)


@cache
def _attacks(epsilon: str) -> tuple[LabAttack, ...]:
    return _differencing(epsilon), _reconstruction(epsilon), _membership(epsilon)


_BY = ("district", "sex", "diagnosis")
_WHERE = {"all stays": "", "below 95 years": "age_group <> '95+'", "below 28 nights": "nights < 28"}
_HIDDEN_BELOW, _DRAWS = 5, 8


@cache
def _stays() -> Any:
    """Return the stays of a county that does not exist."""
    import pyarrow.parquet as parquet

    with data.folder("hospital") as folder:
        return parquet.read_table(folder / "stays.parquet", columns=[*_BY, "age_group", "nights"])


@cache
def _counts(hidden_below: int) -> tuple[CountTable, ...]:
    named = _WHERE.items()
    found = [attacks.tabulate(_stays(), _BY, where=where, name=name, hide_below=hidden_below) for name, where in named]
    return tuple(one.value for one in found)  # Nobody in it exists.


@cache
def _guessed(hidden_below: int) -> Success:
    rows, exact = _stays(), _counts(0)
    found = attacks.differencing(rows, _counts(hidden_below), attribute="diagnosis", isolating=exact, examples=0)
    return found.value.named


def _noisy(table: CountTable, scale: Fraction) -> CountTable:
    counts = table.counts + np.asarray(noise.discrete_laplace(scale, len(table.counts)), dtype=np.float64)
    return replace(table, counts=counts, noise=CountNoise.LAPLACE, deviation=math.sqrt(2) * float(scale))


def _differencing(epsilon: str) -> LabAttack:
    """Publish three tables for ε / 3 each: one stay changes one count of each table by one."""
    level = Fraction(epsilon)
    private = [_noisy(table, len(_WHERE) / level) for table in _counts(0)]
    found = attacks.differencing(
        _stays(),
        private,
        attribute="diagnosis",
        isolating=_counts(0),
        event=PureDP(level),
        draws=_DRAWS,
        examples=0,
    ).value
    assert found.fresh is not None
    assert found.fresh_without is not None
    assert found.ceiling is not None
    return LabAttack(
        name="differencing",
        story=f"Three tables of {len(_stays()):,} hospital stays in a county that does not exist, by district, sex and "
        "diagnosis: all stays, those below 95 years, those below 28 nights. One table is subtracted from another; "
        "where one person is left, their diagnosis is read off.",
        exact=_guessed(0),
        hidden=_guessed(_HIDDEN_BELOW),
        private=found.fresh,
        by_guessing=found.fresh_without.share,
        ceiling=found.ceiling,
    )


_PEOPLE, _QUESTIONS, _RELEASES = 100, 400, 3


@cache
def _secrets() -> Any:
    return attacks.coins(_PEOPLE).draw(1)[0]


@cache
def _rebuilt() -> Success:
    found = attacks.reconstruction(_secrets(), queries=_QUESTIONS, decoder=attacks.Decoder.LEAST_SQUARES)
    return found.value.right


def _reconstruction(epsilon: str) -> LabAttack:
    mechanism = attacks.gaussian_counts(
        _QUESTIONS, squared_sensitivity=_QUESTIONS, epsilon=epsilon, delta=_DELTA, relation=Relation.REPLACE_ONE
    )
    found = [
        attacks.reconstruction(
            _secrets(), queries=_QUESTIONS, mechanism=mechanism, decoder=attacks.Decoder.LEAST_SQUARES
        ).value
        for _ in range(_RELEASES)
    ]
    assert found[0].ceiling is not None
    return LabAttack(
        name="reconstruction",
        story=f"{_PEOPLE} made-up people have a secret each, yes or no. {_QUESTIONS} questions ask how many of a "
        "random half have a yes, and everybody's secret is computed from the answers. No answer is below 5, so hiding "
        "small counts hides nothing.",
        exact=_rebuilt(),
        hidden=_rebuilt(),
        private=Success(sum(one.right.hits for one in found), sum(one.right.of for one in found)),
        by_guessing=found[0].commonest.share,
        ceiling=found[0].ceiling,
    )


_MEMBERS, _FACTS, _TRIALS, _ALARMS = 60, 1000, 120, 0.05


@cache
def _crowd() -> tuple[Any, Any]:
    return attacks.coins(_FACTS).draw(_MEMBERS), attacks.coins(_FACTS).draw(200)


@cache
def _traced() -> Success:
    found = attacks.tracing(*_crowd(), population=attacks.coins(_FACTS), trials=_TRIALS)
    return found.value.found(_ALARMS)


def _membership(epsilon: str) -> LabAttack:
    mechanism = attacks.gaussian_counts(
        _FACTS, squared_sensitivity=_FACTS, epsilon=epsilon, delta=_DELTA, relation=Relation.REPLACE_ONE
    )
    found = attacks.tracing(*_crowd(), mechanism=mechanism, population=attacks.coins(_FACTS), trials=_TRIALS).value
    ceiling = found.ceiling(_ALARMS)
    assert ceiling is not None
    return LabAttack(
        name="membership",
        story=f"Of {_MEMBERS} made-up people in a study, {_FACTS:,} counts are published: how many have this or that "
        "trait. Whoever knows the traits of one person tells whether they were in the study. Shown is the share of "
        "members who are found by an attacker who wrongly accuses 1 in 20. No count is below 5.",
        exact=_traced(),
        hidden=_traced(),
        private=found.found(_ALARMS),
        by_guessing=_ALARMS,
        ceiling=ceiling,
    )
