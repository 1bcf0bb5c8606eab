"""Calibration: find the parameter that meets a target, such as the least noise or the most steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, final, overload

from discreet.errors import InvalidParameter
from discreet.exact import Number, down, positive
from discreet.privacy.convert import read_delta
from discreet.privacy.events import Event
from discreet.privacy.guarantee import epsilon as epsilon_of
from discreet.privacy.relation import Relation, read_relation_if_any

__all__ = ["calibrate"]

_TOLERANCE = 1e-4  # Relative, of the epsilon reached or of the parameter.
_AIM = 3e-5  # How far inside the target to aim, so that a good guess is on the private side.
_DIGITS = 8  # Significant decimal digits of a parameter.
_REACH = 60.0  # Parameters from 2^-60 to 2^60 are tried.
_MOST_EVALUATIONS = 200
_WOBBLE = 2e-3  # An epsilon that grows by more than this where it should fall shows a mistake.


@overload
def calibrate(
    make_event: Callable[[Fraction], Event],
    *,
    epsilon: Number,
    delta: Number,
    relation: Relation | str | None = None,
    increasing: bool = False,
    whole: Literal[False] = False,
) -> Fraction: ...


@overload
def calibrate(
    make_event: Callable[[int], Event],
    *,
    epsilon: Number,
    delta: Number,
    relation: Relation | str | None = None,
    increasing: bool = False,
    whole: Literal[True],
) -> int: ...


def calibrate(
    make_event: Callable[[Any], Event],
    *,
    epsilon: Number,
    delta: Number,
    relation: Relation | str | None = None,
    increasing: bool = False,
    whole: bool = False,
) -> Fraction | int:
    """Return the parameter x for which `make_event(x)` comes closest to epsilon at delta and does not pass it.

    By default the smallest x, where more x means more privacy, such as a noise multiplier; with `increasing` the
    largest x, where more x means less privacy, such as a sampling probability. With `whole` x is an int, such as
    a number of steps, and exactly the last one that holds; else it is within 1e-4 of the best, on the private
    side. A parameter that `make_event` refuses with `InvalidParameter` is out of bounds.

    Args:
        make_event: A function from the parameter to the event that it costs.
        epsilon: The epsilon not to pass.
        delta: The delta at which it holds.
        relation: The neighbouring relation, where the meaning of the event depends on it.
        increasing: Whether a larger parameter costs more privacy.
        whole: Whether the parameter is a whole number.

    Returns:
        The parameter, a Fraction, or an int with `whole`.

    Raises:
        InvalidParameter: If no parameter from 2^-60 to 2^60 reaches the target.

    Examples:
        >>> sigma = dp.privacy.calibrate(dp.privacy.Gaussian, epsilon=1, delta=1e-5)
        >>> round(float(sigma), 2)
        3.73
        >>> def steps(times):
        ...     return dp.privacy.Repeated(dp.privacy.PureDP(0.1), times)
        >>> dp.privacy.calibrate(steps, epsilon=1, delta=0, increasing=True, whole=True)
        10
    """
    relation = read_relation_if_any(relation)
    if not callable(make_event):
        raise InvalidParameter("make_event must be a function from a parameter to an event")
    if not isinstance(increasing, bool) or not isinstance(whole, bool):
        raise InvalidParameter("increasing and whole must be True or False")
    limit, target = positive(epsilon, name="epsilon"), read_delta(delta)
    if not Fraction(10) ** -300 < limit < Fraction(10) ** 300:
        raise InvalidParameter("epsilon must lie between 1e-300 and 1e300")

    def measure(x: Fraction | int) -> float:
        return _measure(make_event, x, target, relation)

    return _ParameterSearch(measure, down(limit), -1 if increasing else 1, whole).run()


def _measure(
    make_event: Callable[[Any], Event], x: Fraction | int, delta: Fraction, relation: Relation | None
) -> float:
    try:
        event = make_event(x)
    except InvalidParameter:
        return math.inf
    return epsilon_of(event, delta, relation=relation)


@dataclass(frozen=True, slots=True)
class _CurvePoint:
    side: float  # The private direction: log2(x), or -log2(x) for a parameter that costs privacy.
    x: Fraction | int
    epsilon: float

    @property
    def log(self) -> float:
        return math.log(self.epsilon) if 0 < self.epsilon < math.inf else math.copysign(math.inf, self.epsilon - 1)


@final
@dataclass(slots=True)
class _ParameterSearch:
    """Steps out until one point fails and one holds the target, then narrows this bracket by secants."""

    measure: Callable[[Fraction | int], float]
    target: float
    sign: int
    whole: bool
    points: list[_CurvePoint] = field(default_factory=list)

    def run(self) -> Fraction | int:
        here = self._tried(self._at(0.0))
        there = self._step_out(here)
        while self._holds(here) == self._holds(there):
            if self._holds(there) and self.whole and self.sign > 0 and there.x == 1:
                return 1  # No whole number is less private.
            here, there = there, self._step_out(there)
        fails, holds = (here, there) if self._holds(there) else (there, here)
        while not self._is_narrow(fails, holds):
            point = self._tried(self._inside(fails, holds))
            fails, holds = (fails, point) if self._holds(point) else (point, holds)
        return holds.x

    def _holds(self, point: _CurvePoint) -> bool:
        return point.epsilon <= self.target

    def _at(self, side: float) -> Fraction | int:
        """Return the parameter at a place, rounded to the private side."""
        up = self.sign > 0
        value = Fraction(2.0 ** (self.sign * side))
        if self.whole:
            return max(1, math.ceil(value) if up else math.floor(value))
        context = Context(prec=_DIGITS, rounding=ROUND_CEILING if up else ROUND_FLOOR)
        return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))

    def _tried(self, x: Fraction | int) -> _CurvePoint:
        if len(self.points) >= _MOST_EVALUATIONS:
            raise InvalidParameter("no parameter was found: epsilon must be monotone in it")
        point = _CurvePoint(self.sign * math.log2(x), x, self.measure(x))
        self._check_falling(point)
        self.points.append(point)
        return point

    def _check_falling(self, new: _CurvePoint) -> None:
        for old in self.points:
            private, exposed = (new, old) if new.side > old.side else (old, new)
            if private.epsilon > exposed.epsilon * (1 + _WOBBLE):
                word = "fall" if self.sign > 0 else "grow"
                raise InvalidParameter(f"epsilon does not {word} with the parameter: see `increasing`")

    def _step_out(self, here: _CurvePoint) -> _CurvePoint:
        """Go on in the direction where the other end must be, by the slope seen so far, twice as far each time."""
        fails = not self._holds(here)
        if abs(here.side) > _REACH - 0.01 or (self.whole and self.sign < 0 and fails):
            raise InvalidParameter(
                "no parameter, down to 1 if whole and else between 2^-60 and 2^60, reaches this target"
                if fails
                else "every parameter between 2^-60 and 2^60 meets this target: nothing to calibrate"
            )
        gap = abs(here.log - math.log(self.target)) / math.log(2)
        stride = min(max(gap, 0.5), 8.0) if math.isfinite(gap) else 4.0
        place = here.side + (1.0 if fails else -1.0) * stride * 2.0 ** (len(self.points) - 1)
        return self._tried(self._at(min(max(place, -_REACH), _REACH)))

    def _is_narrow(self, fails: _CurvePoint, holds: _CurvePoint) -> bool:
        if self.whole:
            return abs(int(holds.x) - int(fails.x)) <= 1
        close = holds.epsilon >= self.target * (1 - _TOLERANCE)
        return close or holds.side - fails.side <= math.log2(1 + _TOLERANCE)

    def _inside(self, fails: _CurvePoint, holds: _CurvePoint) -> Fraction | int:
        """Return a parameter strictly between the ends: by a secant through the two best points, or the middle."""
        low, high = fails.side, holds.side
        place = self._secant()
        margin = (high - low) / 64
        if place is None or len(self.points) % 8 == 7:
            place = low + (high - low) / 2
        x = self._at(min(max(place, low + margin), high - margin))
        if x not in (holds.x, fails.x):
            return x
        middle = (Fraction(holds.x) + Fraction(fails.x)) / 2
        return math.floor(middle) if self.whole else middle

    def _secant(self) -> float | None:
        goal = math.log(self.target * (1 - _AIM))
        finite = [point for point in self.points if math.isfinite(point.log)]
        best = sorted(finite, key=lambda point: abs(point.log - goal))[:2]
        if len(best) < 2 or best[0].log == best[1].log:
            return None
        slope = (best[1].side - best[0].side) / (best[1].log - best[0].log)
        return best[0].side + slope * (goal - best[0].log)
