"""How to compose: the tilt, the step of the grid and the window. Heuristics from a coarse look at the losses.

Nothing here can make a bound wrong, only loose: `compose` proves its bounds for whatever plan it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.privacy.pld.cumulant import Cumulant
from discreet.privacy.pld.pair import DominatingPair

__all__ = ["COARSE", "LOWER", "UPPER", "Aim", "CompositionPlan", "Goal", "Sketch"]

_SMALL = 14.0  # nats: what lies beyond an end of the window shall be smaller than delta by this factor
# How far delta may lie below the tilted law, times the number of steps, for five digits of it to survive.
_DOUBLE = 1e7
_EXTENDED = 2e13 if np.finfo(np.longdouble).eps < 1e-18 else _DOUBLE
_LARGEST_TILT = 1e6  # in standard deviations of the loss
_FEWEST = 2048  # points
_MOST_CELLS = 2**22  # of one step; more would take hundreds of megabytes


@final
@dataclass(frozen=True, slots=True)
class Goal:
    """How fine a grid shall be."""

    error: float  # of epsilon, relative, by which rounding may raise it
    enough: float  # of epsilon or of delta, relative: a bound as close as this is not worth a finer grid
    most: int  # points of the grid
    work: int  # points of the grid times kinds of steps


COARSE = Goal(error=5e-3, enough=math.inf, most=2**17, work=2**26)
UPPER = Goal(error=5e-5, enough=1e-3, most=2**20, work=2**26)
LOWER = Goal(error=5e-6, enough=1e-3, most=2**22, work=2**28)


@final
@dataclass(frozen=True, slots=True)
class CompositionPlan:
    """Tilt the law by exp(tilt * loss), and keep `size` grid points from `start` on."""

    tilt: float
    slope: float  # by how much log delta falls per nat, about
    step: float
    start: int
    size: int
    centre: float  # about the epsilon of interest
    rise: float  # the further tilt that best shows how little lies above the window
    fall: float  # and below
    extended: bool  # whether doubles are too short for the transform


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """What is known of a composition before it is put on a grid."""

    pairs: list[tuple[DominatingPair, int]]
    cumulant: Cumulant
    steps: int
    loose: int  # steps whose losses are not multiples of the lattice
    lattice: Fraction  # 0 if all steps are loose
    span: float  # the largest range of the losses of one step
    top: float  # the largest sum of losses

    def near_delta(self, delta: float) -> Aim:
        """Aim at about epsilon(delta), taking the sum for normal. It may be far from that."""
        target, slope = math.log(delta), 0.0
        if self.log_delta(0.0) > target:
            slope = _bisect(lambda tilt: self.log_delta(tilt) > target, self._unit())
        return self._aim(slope, slope, self.cumulant.moments(slope)[1], delta)

    def at_epsilon(self, epsilon: float, delta: float, care: float = 1.0) -> Aim:
        """Tilt such that the mean is `epsilon`, or not at all if epsilon is below the mean; `delta` is a guess.

        Where rare large losses make that law much wider than the untilted one, a smaller tilt has a smaller window.
        It will do as long as delta stays well above the rounding of the transform, by a factor `care`.
        """
        _, mean, variance = self.cumulant.moments(0.0)
        if mean >= epsilon:
            return self._aim(0.0, 0.0, epsilon, delta)
        slope = _bisect(lambda tilt: self.cumulant.moments(tilt)[1] < epsilon, self._unit())
        best = self._aim(slope, slope, epsilon, delta)
        if best.variance < 9 * variance:
            return best
        others = (self._aim(part * slope, slope, epsilon, delta) for part in (0.0, 0.25, 0.5, 0.7, 0.8, 0.9))
        most = math.log(_EXTENDED / (self.steps * care))
        return min((best, *(aim for aim in others if aim.excess < most)), key=lambda aim: aim.high - aim.low)

    def is_normal(self, tilt: float) -> bool:
        """Whether the sum looks like a normal one, whose variance no tilt changes, up to twice `tilt`."""
        variances = [self.cumulant.moments(part * tilt)[2] for part in (0.0, 1.0, 2.0)]
        return max(variances) <= 2 * min(variances)

    def log_delta(self, tilt: float) -> float:
        """Return about log delta at the epsilon that is the mean under `tilt`, taking the tilted sum for normal."""
        value, mean, variance = self.cumulant.moments(tilt)
        spread = math.sqrt(variance / 2)
        kernel = (_scaled_tail(tilt * spread) - _scaled_tail((tilt + 1) * spread)) / 2
        return value - tilt * mean + math.log(max(kernel, 1e-300))

    def _unit(self) -> float:
        return 1 / (math.sqrt(self.cumulant.moments(0.0)[2]) + 1e-95)

    def _aim(self, tilt: float, slope: float, epsilon: float, delta: float) -> Aim:
        """Find the window, by Chernoff."""
        at, mean, variance = self.cumulant.moments(tilt)
        excess = at - tilt * epsilon - math.log1p(tilt) - math.log(max(delta, 1e-300))
        nats = _SMALL + min(max(excess, 3.0), 100.0)
        scale = math.sqrt(variance) + 1e-12 * abs(mean) + 1e-95
        rates = [2.5**power / scale for power in range(-6, 3)]
        high, rise = min(((self.cumulant(tilt + rate) - at + nats) / rate, rate) for rate in rates)
        low, fall = max((-(self.cumulant(tilt - rate) - at + nats) / rate, rate) for rate in rates)
        return Aim(self, tilt, slope, epsilon, delta, excess, variance, low, high, rise, fall)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """Where the sum lies under a tilt."""

    sketch: Sketch
    tilt: float
    slope: float  # by how much log delta falls per nat, about
    epsilon: float
    delta: float
    excess: float  # A tilted mass of m adds at most m e^excess times delta to delta.
    variance: float
    low: float
    high: float
    rise: float
    fall: float

    def plan(self, step: float, goal: Goal) -> CompositionPlan:
        """Put the window on a grid, with a margin for what rounding adds to the spread of the sum.

        A window that is far too wide for the grid, which another direction chose, is cut around epsilon.
        """
        margin = min(self.sketch.steps, math.isqrt(16 * self.sketch.steps)) + 1
        start = math.floor(self.low / step) - margin
        size = fast_length(math.ceil(self.high / step) + margin + 1 - start)
        longest = min(2 * goal.most, 5 * 2**20)
        if size > longest:
            start, size = max(start, math.floor(self.epsilon / step) - longest // 4), longest
        extended = self.excess > math.log(_DOUBLE / self.sketch.steps)
        return CompositionPlan(self.tilt, self.slope, step, start, size, self.epsilon, self.rise, self.fall, extended)

    def step(self, goal: Goal) -> float:
        """Choose the step of the grid, a divisor of the lattice if there is a good one."""
        sketch, width = self.sketch, self.high - self.low
        finest, coarsest = self._finest(goal), max(self._finest(goal), width / _FEWEST)
        lattice = float(sketch.lattice)
        if not sketch.loose and lattice >= finest:
            return lattice
        if lattice >= finest:
            return lattice / math.ceil(lattice / min(max(self._wanted(goal, sketch.loose), finest), coarsest))
        return min(max(self._wanted(goal, sketch.steps), finest), coarsest)

    def _finest(self, goal: Goal) -> float:
        most = min(goal.most, goal.work // len(self.sketch.pairs))
        return max((self.high - self.low) / most, self.sketch.span / min(2 * most, _MOST_CELLS), 1e-90)

    def reaches(self, goal: Goal) -> bool:
        """Whether the grid can be about as fine as the goal asks for."""
        sketch, finest = self.sketch, self._finest(goal)
        rounded = sketch.loose if sketch.lattice >= finest else sketch.steps
        return rounded == 0 or 8 * self._wanted(goal, rounded) >= finest

    def _wanted(self, goal: Goal, rounded: int) -> float:
        """Return the step at which rounding so many losses moves epsilon as much as the goal allows.

        Rounding to steps of h adds a mean of h^2 / 12 and a variance of h^2 / 6 to a loss, so (t + t^2) h^2 / 12 to
        its cumulant at t; divided by the slope t of log delta that is (1 + t) h^2 / 12.
        """
        size = max(self.epsilon, math.sqrt(self.variance) / 20)
        return math.sqrt(12 * size * goal.error / (rounded * (1 + self.slope)))


def fast_length(least: int) -> int:
    """Return the smallest 2^a, 3 2^a or 5 2^a that is at least `least`."""
    power = 1 << max(3, (least - 1).bit_length())
    return min(size for size in (power, power * 3 // 4, power * 5 // 8) if size >= least)


def _bisect(too_small: Callable[[float], bool], unit: float) -> float:
    low, high = unit / 64, unit
    while not too_small(low) and low > unit / _LARGEST_TILT:
        low, high = low / 64, low
    while too_small(high) and high < unit * _LARGEST_TILT:
        low, high = high, 2 * high
    while high > 1.05 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return high


def _scaled_tail(x: float) -> float:
    """Return about exp(x^2) erfc(x)."""
    return math.exp(x * x) * math.erfc(x) if x < 20 else 1 / (x * math.sqrt(math.pi))
