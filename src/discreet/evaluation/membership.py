"""Membership: who was in the data of a synthetic table? Guessed by attackers who see it, and held against the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks import Attacker, FoundRate, judge
from discreet.evaluation.caps import PEOPLE
from discreet.evaluation.cliques import chosen_cliques
from discreet.evaluation.densities import density_scores
from discreet.evaluation.nearest import closest
from discreet.evaluation.promised import ceiling
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows
from discreet.synth.promise import Promise

__all__ = ["CLOSEST", "DENSITY", "RATES", "MembershipSearch", "closer_first", "judged", "search"]

Flags: TypeAlias = NDArray[np.bool_]
RATES = (0.01, 0.1, 0.3)  # Of false alarms: sure about few people, or fairly sure about more.
CLOSEST, DENSITY = "closest row", "commoner than elsewhere"
_LEAST = 1e-9  # Less than any two distances differ by.
_ENDS = 1e-3  # At which the drawn limits may be wrong.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSearch:
    """Whom each attacker finds, and what the promise leaves for any attacker."""

    people: int  # in the data, of whom it was asked
    others: int
    tables: int  # synthetic tables that were attacked
    refitted: bool  # made for this purpose from random halves; or the one that is to be published
    attackers: tuple[Attacker, ...]
    promise: Promise | None  # None if none was made, or if it is about others than single rows
    level: float | None = None  # an ε that was shown by one table, but for a chance of `error`; only if refitted

    @property
    def swapped(self) -> bool:
        """Whether those who are not in the data are so because others are in their place."""
        return not self.refitted

    @property
    def best(self) -> tuple[Attacker, FoundRate]:
        """The attacker who finds most people, at few false alarms if that tells more than at many."""
        found = [(one, at) for one in self.attackers for at in one.found]
        return max(found, key=lambda pair: (pair[1].members.share - pair[1].alarms.share, pair[0].auc))

    def ceiling(self, found: FoundRate, error: float = _ENDS) -> float | None:
        """Return the share of people that no attacker exceeds, at the upper limit of the rate of alarms."""
        rate = found.alarms.interval(error)[1]
        return None if self.promise is None else ceiling(self.promise, rate, swapped=self.swapped)

    def refutes(self, error: float) -> bool:
        """Whether more people were found than the promise allows, but for a chance of `error`."""
        if self.promise is None:
            return False
        if self.level is not None and self.level > self.promise.epsilon:
            return True
        tried = [found for one in self.attackers for found in one.found]
        each = error / len(tried)
        return any(found.members.interval(each)[0] > (self.ceiling(found, each) or 0.0) for found in tried)

    def finds(self, error: float) -> bool:
        """Whether an attacker does better than guessing, but for a chance of `error`."""
        return any(_above_guessing(one, error / len(self.attackers)) for one in self.attackers)


def search(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, holdout: EvaluatedRows, promise: Promise | None
) -> MembershipSearch:
    """Look for people of the real table in one synthetic table, beside people who were held out."""
    outside, reference = holdout.split(min(PEOPLE, (len(holdout) + 1) // 2))
    inside = real.some(PEOPLE)
    asked = _joined(inside, outside)
    truth = np.arange(len(asked)) < len(inside)
    cliques = chosen_cliques(layout.sizes, min(2, len(layout.sizes)))
    common = density_scores(asked.codes, synthetic.codes, reference.codes, layout.sizes, cliques)
    scores = {CLOSEST: closer_first(-closest(layout, asked, synthetic), common), DENSITY: common}
    return MembershipSearch(
        people=len(inside),
        others=len(outside),
        tables=1,
        refitted=False,
        attackers=judged(scores, truth),
        promise=promise,
    )


def judged(scores: Mapping[str, NDArray[Any]], truth: Flags | Sequence[bool]) -> tuple[Attacker, ...]:
    """Hold the scores of all attackers against the truth."""
    return tuple(judge(np.asarray(each, np.float64), truth, name=name, rates=RATES) for name, each in scores.items())


def closer_first(near: NDArray[Any], common: NDArray[np.float64]) -> NDArray[np.float64]:
    """Order people by the closest row, and those who are equally close by how common they are in the table."""
    return near.astype(np.float64) + _LEAST * np.tanh(common)


def _joined(one: EvaluatedRows, other: EvaluatedRows) -> EvaluatedRows:
    return EvaluatedRows(
        np.concatenate([one.codes, other.codes]),
        np.concatenate([one.places, other.places]),
        np.concatenate([one.undeclared, other.undeclared]),
    )


def _above_guessing(attacker: Attacker, error: float) -> bool:
    """Compare the AUC with one half, by Hoeffding's bound for means over all pairs, and the people found. [Hoe63]"""
    pairs = min(attacker.found[0].members.of, attacker.found[0].alarms.of)
    shares = error / (1 + len(attacker.found))
    if attacker.auc - math.sqrt(math.log(1 / shares) / (2 * pairs)) > 0.5:
        return True
    return any(one.members.interval(shares)[0] > one.alarms.interval(shares)[1] for one in attacker.found)
