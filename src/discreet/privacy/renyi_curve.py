"""A privacy curve from Renyi divergences: any order gives a bound, so take the best one found."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.balls import ball, bounds
from discreet.exact import up
from discreet.privacy import moments
from discreet.privacy.basic import point, reveal
from discreet.privacy.convert import chance_up, epsilon_at, log_delta_at
from discreet.privacy.events import Event, PoissonSampled, PureDP, SampledWithoutReplacement
from discreet.privacy.orders import least
from discreet.privacy.rigorous import enclose, float_up
from discreet.privacy.spent import Choice, Spent

if TYPE_CHECKING:
    from flint import arb

__all__ = ["RenyiCurve", "log_moment_of", "renyi_curve"]

_LARGEST_ORDER = 512  # For sampled events, whose moments are sums of that many terms.


def log_moment_of(total: Spent, order: Fraction) -> arb:
    """Enclose the log moment of everything spent; among cells, the largest ones at this order."""
    summed = moments.total(total.events, order)
    for choice in total.choices:
        summed += choice.times * _worst_cells(choice, order)
    return summed


def _worst_cells(choice: Choice, order: Fraction) -> arb:
    cells = [log_moment_of(cell, order) for cell in choice.cells]
    if not all(cell.is_finite() for cell in cells):
        return sum(cells, ball(0))
    # The sum of the largest upper ends is above the sum of the largest.
    # Compared exactly: two cells may be one float and still not be equal.
    ends = sorted((bounds(cell)[1] for cell in cells), reverse=True)
    return sum((ball(end) for end in ends[: choice.touched]), ball(0))


@final
@dataclass(frozen=True, slots=True)
class RenyiCurve:
    """Divergences of one order add, and convert to epsilon or delta at the end. [Mir17, CKS20]

    An (epsilon, delta) reveals all with chance delta and is purely private otherwise [KOV15]; so the deltas are
    taken off first, in `revealed`, and `rest` is accounted by its divergences.
    """

    rest: Spent
    revealed: Counter[Fraction]

    def upper(self, delta: Fraction) -> float:
        left = self._left_of(delta)
        if left <= 0:
            return math.inf
        return least(lambda order: self._epsilon(order, left)) if self._distance() > left else 0.0

    def lower(self, delta: Fraction) -> float:
        return 0.0

    def delta(self, epsilon: Fraction) -> float:
        by_order = chance_up(least(lambda order: self._log_delta(order, epsilon)))
        rest = min(Fraction(by_order), self._distance())
        return up(reveal(self.revealed + Counter({rest: 1})))

    def _epsilon(self, order: Fraction, delta: Fraction) -> float:
        return math.inf if self._is_too_high(order) else epsilon_at(order, lambda: self._moment(order), delta)

    def _log_delta(self, order: Fraction, epsilon: Fraction) -> float:
        return math.inf if self._is_too_high(order) else log_delta_at(order, lambda: self._moment(order), epsilon)

    def _distance(self) -> Fraction:
        """Bound the total variation distance, delta at epsilon 0: E|y - 1| / 2 <= sqrt(E(y - 1)^2) / 2, y = dP/dQ."""
        order = Fraction(2)  # E(y - 1)^2 is the moment of order two, less one.
        found = float_up(enclose(lambda: self._moment(order).expm1().sqrt() / 2))
        return Fraction(min(found, 1.0))

    def _moment(self, order: Fraction) -> arb:
        return log_moment_of(self.rest, order)

    def _left_of(self, delta: Fraction) -> Fraction:
        """Return the delta that is left for the rest: 1 - (1 - delta) / prod (1 - delta_i), or a little less."""
        revealed = reveal(self.revealed)
        return (delta - revealed) / (1 - revealed) if revealed < 1 else Fraction(0)

    def _is_too_high(self, order: Fraction) -> bool:
        return order > _LARGEST_ORDER and _has_sample(self.rest)


def renyi_curve(total: Spent) -> RenyiCurve:
    """Take the chances to reveal all off, and account the rest by its divergences."""
    rest, revealed = Counter[Event](), Counter[Fraction]()
    for event, count in total.sure:
        pair = point(event)
        if pair is not None and pair.at > 0:
            rest[PureDP(pair.epsilon)] += count
            revealed[pair.at] += count
        else:
            rest[event] += count
    return RenyiCurve(Spent(frozenset(rest.items()), total.choices), revealed)


def _has_sample(total: Spent) -> bool:
    return any(isinstance(event, (PoissonSampled, SampledWithoutReplacement)) for event, _ in total.sure) or any(
        _has_sample(cell) for choice in total.choices for cell in choice.cells
    )
