"""Propose a bound, test whether the data are far from where it fails, and only then release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, final

from discreet.adaptive.paid_release import NO_ANSWER, NOTHING_TO_ENCLOSE, charge
from discreet.adaptive.stability import DistanceTest
from discreet.mechanisms.parameters import read_relation, settle
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed, Event
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["ProposeTestRelease", "Proposed", "total_event"]


class Proposed(Protocol):
    """A mechanism that keeps its claim between data sets for which a proposal is right, and is defined on all."""

    @property
    def event(self) -> Event:
        """What it spends between neighbours for which the proposal is right."""

    @property
    def relation(self) -> Relation: ...

    def release(self, data: Any, /) -> Release[Any]: ...

    def distribution(self, data: Any, /) -> Outcomes: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease:
    """Release what `mechanism` releases if the noisy distance is above a threshold; otherwise do not answer.

    `distance` returns a whole number that moves by at most 1 between neighbours under the mechanism's relation. Of
    any two neighbours between which the mechanism does not keep its claim, both have a distance of at most 1. One
    such is how many units must change to get to such a pair and across it; so is the distance to the nearest data
    set for which the proposal is wrong, 0 there, and any lower bound of these that moves by at most 1.

    Guarantee   (epsilon + e, max(delta, d)) for a mechanism that is (e, d) where the proposal is right; the same
                whether an answer is given or not. A further proposal costs as much again.
    Theorem     Neighbours between which the mechanism is private differ by the test and by it. All others are
                refused alike, but for a chance of delta. [DL09, ST13]
    Utility     answers with probability c if the distance is `test.reliable_distance(c)`. The noise is that of the
                proposal, which is public, and so is its interval.
    """

    distance: Callable[[Any], int]
    mechanism: Proposed
    epsilon: Fraction  # of the test
    delta: Fraction  # of the test

    def __post_init__(self) -> None:
        settle(self, epsilon=self.test.epsilon, delta=self.test.delta)
        read_relation(self.mechanism.relation)

    @property
    def relation(self) -> Relation:
        return self.mechanism.relation

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Event:
        return total_event(self.test, self.mechanism.event)

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Any]:
        """Answer, or decline to; both take the same steps."""
        charge(self, session, purpose="a release that is tested first")
        answer = self.mechanism.release(data)
        passed = self.test.passes(self.distance(data))
        paid = replace(answer, event=self.event, delta=self._quoted(answer.delta))
        refused = Release(
            value=NO_ANSWER,
            event=self.event,
            relation=self.relation,
            accuracy=NOTHING_TO_ENCLOSE,
            delta=paid.delta,
        )
        return paid if passed else refused

    def distribution(self, data: Any) -> Outcomes:
        chance = self.test.chance(self.distance(data))
        parts = [(chance, self.mechanism.distribution(data)), (1 - chance, outcomes.point(NO_ANSWER))]
        return outcomes.mixture(parts)

    def true_distance(self, data: Any) -> NotPrivate[int]:
        """Tell the custodian how far the data are from where the proposal fails."""
        return NotPrivate(self.distance(data))

    def _quoted(self, inner: Fraction | None) -> Fraction | None:
        """Return the delta to quote the cost at; none where the mechanism has no cost at the delta of the test."""
        if isinstance(self.event, ApproxDP):
            return self.event.delta
        if inner is not None:
            return self.delta + inner
        return self.delta if _is_pure(self.mechanism.event, self.relation) else None


@lru_cache(256)
def _is_pure(event: Event, relation: Relation) -> bool:
    from discreet.privacy import epsilon

    return not math.isinf(epsilon(event, 0, relation=relation))


def total_event(test: DistanceTest, inner: Event) -> Event:
    """Return what a test and the release after it spend together.

    Either the proposal is right for two neighbours, and then only the deltas of the release count, or it is not, and
    then only the delta of the test does. So of two deltas the larger one is spent, not their sum.
    """
    if isinstance(inner, ApproxDP):
        return ApproxDP(test.epsilon + inner.epsilon, max(test.delta, inner.delta))
    return Composed([*test.event.events, inner])
