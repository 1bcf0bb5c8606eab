"""Privacy curves: epsilon at a delta and delta at an epsilon, each with a proven direction.

A curve answers three questions: `upper(delta)` is an epsilon that surely holds, `lower(delta)` one that some
mechanism with this event surely exceeds or meets, `delta(epsilon)` a delta that surely holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, final

from discreet.balls import ball
from discreet.errors import UnsupportedEvent
from discreet.exact import down, up
from discreet.privacy import group
from discreet.privacy.rigorous import crossing, enclose, float_up

if TYPE_CHECKING:
    from flint import arb

    from discreet.privacy.pld import LossProfile

_SMALLEST, _LARGEST = Fraction(1, 10**280), Fraction(10**15)  # deltas and epsilons for which floats will do
_ROUNDS, _CLOSE = 40, 1e-6  # of looking for the epsilon of a group
_HALVINGS = 3

__all__ = ["Best", "ClosedFormCurve", "Edge", "Group", "Numerical", "PrivacyCurve", "Split", "Worst"]


class PrivacyCurve(Protocol):
    """What is known about the privacy of an event."""

    def upper(self, delta: Fraction) -> float:
        """Return an epsilon that holds at `delta`, rounded up; infinity if none is known."""

    def lower(self, delta: Fraction) -> float:
        """Return an epsilon that is not too large for the worst case, rounded down; 0 if nothing is known."""

    def delta(self, epsilon: Fraction) -> float:
        """Return a delta that holds at `epsilon`, rounded up."""


@final
@dataclass(frozen=True, slots=True)
class Edge:
    """The profile falls until an epsilon between `low` and `high`, and stays at `delta` from there on."""

    low: Fraction
    high: Fraction
    delta: Fraction = Fraction(0)


@final
@dataclass(frozen=True, slots=True)
class ClosedFormCurve:
    """A profile in closed form. Without an edge it falls to zero and never reaches it."""

    profile: Callable[[Fraction], arb]
    guess: Callable[[Fraction], float]
    edge: Edge | None = None

    def upper(self, delta: Fraction) -> float:
        return self._bounds(delta)[1]

    def lower(self, delta: Fraction) -> float:
        return self._bounds(delta)[0]

    def _bounds(self, delta: Fraction) -> tuple[float, float]:
        edge = self.edge
        if edge is not None and delta == edge.delta:
            return down(edge.low), up(edge.high)
        if delta <= (0 if edge is None else edge.delta):
            return math.inf, math.inf
        lower, upper = crossing(self.profile, delta, self.guess(delta))
        return lower, upper if edge is None else min(upper, up(edge.high))

    def delta(self, epsilon: Fraction) -> float:
        if self.edge is not None and epsilon >= self.edge.high:
            return up(self.edge.delta)
        return min(1.0, max(0.0, float_up(self.profile(epsilon))))


@final
@dataclass(frozen=True, slots=True)
class Numerical:
    """A loss distribution composed on a grid of floats, and what to ask where that gives no answer."""

    profile: LossProfile
    otherwise: PrivacyCurve

    def upper(self, delta: Fraction) -> float:
        found = _or_infinity(lambda: self.profile.epsilon_upper(delta)) if delta >= _SMALLEST else math.inf
        return found if found < math.inf else self.otherwise.upper(delta)

    def lower(self, delta: Fraction) -> float:
        found = _or_infinity(lambda: self.profile.epsilon_lower(delta)) if delta >= _SMALLEST else math.inf
        return found if found < math.inf else 0.0

    def delta(self, epsilon: Fraction) -> float:
        found = _or_infinity(lambda: self.profile.delta_upper(epsilon)) if epsilon <= _LARGEST else math.inf
        return found if found < 1 else self.otherwise.delta(epsilon)


def _or_infinity(compute: Callable[[], float]) -> float:
    """Return infinity where the numerical account says that it does not reach that far."""
    try:
        return compute()
    except UnsupportedEvent:
        return math.inf


@final
@dataclass(frozen=True, slots=True)
class Best:
    """Several curves of one event: all hold, so the best of them does."""

    curves: Sequence[PrivacyCurve]

    def upper(self, delta: Fraction) -> float:
        return min(curve.upper(delta) for curve in self.curves)

    def lower(self, delta: Fraction) -> float:
        return max(curve.lower(delta) for curve in self.curves)

    def delta(self, epsilon: Fraction) -> float:
        return min(curve.delta(epsilon) for curve in self.curves)


@final
@dataclass(frozen=True, slots=True)
class Split:
    """A curve that holds for every mechanism with an event, and the curve of one such mechanism."""

    above: PrivacyCurve
    below: PrivacyCurve

    def upper(self, delta: Fraction) -> float:
        return self.above.upper(delta)

    def lower(self, delta: Fraction) -> float:
        return self.below.lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        return self.above.delta(epsilon)


@final
@dataclass(frozen=True, slots=True)
class Worst:
    """Several cases, one of which is true: the worst of them holds."""

    cases: Sequence[PrivacyCurve]

    def upper(self, delta: Fraction) -> float:
        return max(case.upper(delta) for case in self.cases)

    def lower(self, delta: Fraction) -> float:
        return max(case.lower(delta) for case in self.cases)

    def delta(self, epsilon: Fraction) -> float:
        return max(case.delta(epsilon) for case in self.cases)


@final
@dataclass(frozen=True, slots=True)
class Group:
    """What `size` people see together: delta(k e) <= delta(e) (1 + e^e + … + e^((k-1) e)). [Vad17]"""

    curve: PrivacyCurve
    size: int

    def upper(self, delta: Fraction) -> float:
        if delta == 0:
            return _times(self.curve.upper(delta), self.size)
        level = self.curve.upper(delta / self.size)
        # The delta of a member falls with epsilon and what multiplies it grows: there may be but a short way between.
        for _ in range(_ROUNDS):
            factor = self._factor(level)
            if not math.isfinite(factor):
                break
            needed = self.curve.upper(delta / Fraction(factor))
            if needed <= level:
                return _times(level, self.size)
            level = needed * (1 + _CLOSE)
        start = _times(self.curve.upper(delta / self.size), self.size)
        return crossing(lambda level: ball(Fraction(self.delta(level))), delta, start, tolerance=1e-6)[1]

    def lower(self, delta: Fraction) -> float:
        """A group is at least as exposed as each of its members."""
        return self.curve.lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        return min(self.together(share, self.curve.delta(share)) for share in self.shares(epsilon))

    def shares(self, epsilon: Fraction) -> list[Fraction]:
        """Return epsilons of a member that will do: what holds at a smaller epsilon holds at this one."""
        return [epsilon / self.size / 2**halvings for halvings in range(_HALVINGS)]

    def _factor(self, level: float) -> float:
        if not math.isfinite(level):
            return math.inf
        return float_up(enclose(lambda: group.factor(Fraction(level), self.size)))

    def together(self, epsilon: Fraction, delta: float) -> float:
        """Return the delta at `size` times epsilon, given the one of a member at epsilon."""
        single = Fraction(delta)
        return min(1.0, float_up(enclose(lambda: ball(single) * group.factor(epsilon, self.size)))) if single else 0.0


def _times(level: float, size: int) -> float:
    return up(size * Fraction(level)) if math.isfinite(level) else math.inf
