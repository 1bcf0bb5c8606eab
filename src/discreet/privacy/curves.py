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
from discreet.exact import down, up
from discreet.privacy import group
from discreet.privacy.rigorous import crossing, enclose, float_up

if TYPE_CHECKING:
    from flint import arb

    from discreet.privacy.pld import Profile

__all__ = ["Best", "Closed", "Curve", "Edge", "Group", "Numerical", "Worst"]


class Curve(Protocol):
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
class Closed:
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
    """A loss distribution composed on a grid."""

    profile: Profile

    def upper(self, delta: Fraction) -> float:
        return self.profile.epsilon_upper(delta)

    def lower(self, delta: Fraction) -> float:
        return self.profile.epsilon_lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        return self.profile.delta_upper(epsilon)


@final
@dataclass(frozen=True, slots=True)
class Best:
    """Several curves of one event: all hold, so the best of them does."""

    curves: Sequence[Curve]

    def upper(self, delta: Fraction) -> float:
        return min(curve.upper(delta) for curve in self.curves)

    def lower(self, delta: Fraction) -> float:
        return max(curve.lower(delta) for curve in self.curves)

    def delta(self, epsilon: Fraction) -> float:
        return min(curve.delta(epsilon) for curve in self.curves)


@final
@dataclass(frozen=True, slots=True)
class Worst:
    """Several cases, one of which is true: the worst of them holds."""

    cases: Sequence[Curve]

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

    curve: Curve
    size: int

    def upper(self, delta: Fraction) -> float:
        start = self.curve.upper(delta / self.size)
        if delta == 0 or not math.isfinite(start):
            return up(self.size * Fraction(start)) if math.isfinite(start) else math.inf
        low, high = 0.0, self._enough(start, delta)
        while math.isfinite(high) and high - low > 1e-9 * high:
            middle = low + (high - low) / 2
            low, high = (low, middle) if self._holds(middle, delta) else (middle, high)
        return up(self.size * Fraction(high)) if math.isfinite(high) else math.inf

    def _enough(self, start: float, delta: Fraction) -> float:
        level = max(start, 2.0**-60)
        for _ in range(12):
            if self._holds(level, delta):
                return level
            level *= 2
        return math.inf

    def _holds(self, level: float, delta: Fraction) -> bool:
        return Fraction(self.delta(self.size * Fraction(level))) <= delta

    def lower(self, delta: Fraction) -> float:
        """A group is at least as exposed as each of its members."""
        return self.curve.lower(delta)

    def delta(self, epsilon: Fraction) -> float:
        share = epsilon / self.size
        single = Fraction(self.curve.delta(share))
        return min(1.0, float_up(enclose(lambda: ball(single) * group.factor(share, self.size)))) if single else 0.0
