"""The privacy profile of a composition: epsilon(delta) and delta(epsilon), each from above and from below."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import down, nonnegative, probability, up
from discreet.privacy.events import Event
from discreet.privacy.pld.account import at_delta, at_epsilon, follow
from discreet.privacy.pld.divergence import Divergence
from discreet.privacy.pld.plan import LOWER, UPPER
from discreet.privacy.pld.terms import Term, has_lower_bound, tells_all, terms
from discreet.privacy.relation import Relation

__all__ = ["LossProfile", "profile"]

_SLACKS = (1e-8, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.9)
_GIVEN = (1e-3, 0.03, 0.3)  # of delta


def profile(leaves: Counter[Event], relation: Relation | None) -> LossProfile:
    """Return the profile of a composition of counted leaves under `relation`.

    An event without a known dominating pair raises `UnsupportedEvent`.
    """
    if not leaves or any(count < 1 for count in leaves.values()):
        raise InvalidParameter("leaves must name at least one event, each at least once")
    return LossProfile(terms(leaves, relation))


@final
@dataclass(frozen=True, slots=True)
class LossProfile:
    """Bounds on the hockey-stick divergence of composed dominating pairs.

    Guarantee   No neighbours are easier to tell apart than the upper bounds say.
    Theorem     Domination composes, adaptively [ZDW22]; the grid dominates [DGKKM22]; the rest is in `compose`
                and `divergence`. The lower bounds hold for the dominating pairs. Some neighbours attain those, except
                for `BoundedRange`, and for noise vectors where no neighbours differ in one coordinate only.
    """

    terms: tuple[Term, ...]

    def epsilon_upper(self, delta: Fraction) -> float:
        """Return at least the smallest epsilon that goes with `delta`; infinity if there is none."""
        limit = down(probability(delta, name="delta"))
        if limit == 1 or self._tells_all:
            return 0.0 if limit == 1 else math.inf
        return max(_epsilon_upper(found, limit) for found in at_delta(self.terms, limit, UPPER))

    def epsilon_lower(self, delta: Fraction) -> float:
        """Return at most the smallest epsilon that goes with `delta`; 0 where none is known."""
        limit = up(probability(delta, name="delta"))
        if limit == 1 or self._tells_all:
            return 0.0 if limit == 1 else math.inf
        if not all(map(has_lower_bound, self.terms)):
            return 0.0
        # What holds for a larger delta holds here. It helps where delta is too small for a bound of its own.
        for larger in dict.fromkeys((limit, max(limit, 1e-9), max(limit, 1e-6))):
            epsilon = max(_epsilon_lower(found, larger) for found in at_delta(self.terms, larger, LOWER))
            if epsilon > 0:
                return epsilon
        return 0.0

    def delta_upper(self, epsilon: Fraction) -> float:
        """Return at least the smallest delta that goes with `epsilon`."""
        return self.deltas_upper([epsilon])[0]

    def deltas_upper(self, epsilons: Sequence[Fraction]) -> list[float]:
        """Return `delta_upper` of each epsilon, much faster than one by one if they are in order."""
        points = [min(down(nonnegative(epsilon, name="epsilon")), 1e300) for epsilon in epsilons]
        if self._tells_all:
            return [1.0] * len(points)
        found = zip(points, follow(self.terms, points), strict=True)
        return [max(divergence.upper(at) for divergence in divergences) for at, divergences in found]

    def delta_lower(self, epsilon: Fraction) -> float:
        """Return at most the smallest delta that goes with `epsilon`; 0 where none is known."""
        at = up(nonnegative(epsilon, name="epsilon"))
        if self._tells_all or not all(map(has_lower_bound, self.terms)):
            return 1.0 if self._tells_all else 0.0
        return max(_delta_lower(found, at) for found in at_epsilon(self.terms, min(at, 1e300), LOWER))

    @property
    def _tells_all(self) -> bool:
        return any(tells_all(term) for term in self.terms)


def _epsilon_upper(found: Divergence, delta: float) -> float:
    """Guess and test: what is returned has a proven delta, or is the largest loss there can be."""
    highest = found.top if found.infinite <= delta else math.inf
    left = delta - found.infinite - found.lost
    if left <= 0:
        return highest
    guesses = (found.epsilon_at(left * (1 - slack)) for slack in _SLACKS)
    for guess in chain(guesses, [found.lowest]):
        epsilon = max(0.0, guess)
        if found.upper(epsilon) <= delta:
            return min(epsilon, highest)
    return min(found.chernoff(left * (1 - 1e-12)), highest)


def _epsilon_lower(found: Divergence, delta: float) -> float:
    """Guess and test: what is returned has a delta that is proven to be above `delta`."""
    left = delta - found.infinite_surely
    if left < 0 or delta == 0:
        return math.inf if left < 0 else found.top * (1 - 1e-13)
    if left == 0:
        return 0.0
    given = found.surplus(found.epsilon_at(left))
    near = (_surely_above(found, left, (left + given) * (1 + slack)) for slack in _SLACKS)
    return max(*near, *(_shifted(found, left, share) for share in _GIVEN))


def _surely_above(found: Divergence, left: float, target: float) -> float:
    """Return about where delta on the grid is `target` if its true finite part is above `left` there, else 0."""
    guess = found.epsilon_at(target)
    return max(0.0, guess) if found.surely(guess) > left * (1 + 1e-12) else 0.0


def _shifted(found: Divergence, left: float, share: float) -> float:
    """Return an epsilon at which the true finite part of delta is above `left`, giving `share` of it away; else 0."""
    guess = found.epsilon_at(left * (1 + 2 * share))
    is_above = found.lower(guess) > left * (1 + share + 1e-12)
    return max(0.0, guess - found.shift(left * share)) if is_above else 0.0


def _delta_lower(found: Divergence, epsilon: float) -> float:
    """Take the better of two lower bounds."""
    small = found.lower(epsilon) * _GIVEN[0]
    far = found.lower(epsilon + found.shift(small)) - small if small else 0.0
    return min(1.0, found.infinite_surely + max(found.surely(epsilon), far * (1 - 1e-12)))
