"""Composition of privacy losses: a tilted FFT with proven bounds, and how its tilt, grid and window are planned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.pld.divergence_bounds import Divergence, exp
from discreet.privacy.pld.losses import GridLoss, binned
from discreet.privacy.pld.pairs import DominatingPair, Floats, RaggedRows

__all__ = ["COARSE", "LOWER", "UPPER", "Aim", "CompositionPlan", "Cumulant", "Goal", "Sketch", "compose", "ever"]

# --- compose: Add independent losses by a tilted FFT, with proven bounds on the hockey-stick divergence of the sum. ---
#
# delta(eps) = E[(1 - e^(eps - S))_+] is dominated by values of S near eps, which are rare. Under the law tilted by
# e^(t S) they are common, and delta(eps) = e^(K(t)) E_t[e^(-t S) (1 - e^(eps - S))_+] is computed to a small *relative*
# error. Everything that a finite window, aliasing and floats can do is bounded and added, or taken off.


Complexes: TypeAlias = NDArray[np.complexfloating]

_ULP = 2.0**-53
_SHORT = 512  # points


def compose(losses: Sequence[tuple[GridLoss, int]], plan: CompositionPlan) -> Divergence:
    """Compose losses on one grid, each so many times."""
    cumulant = Cumulant((loss.loss, loss.mass, count) for loss, count in losses)
    if cumulant(plan.tilt) > plan.tilt * plan.centre + 1:
        # The plan does not fit this grid: a cumulant has K(t) <= t K'(t), and the centre should be about K'(t).
        plan = replace(plan, tilt=0.0)
    tilted, logs = cumulant.tilted(plan.tilt)
    mass, noise = _convolve(losses, tilted, plan)
    first, ahead, behind = _suffix_sums(mass, plan)
    value = math.fsum(count * log for (_, count), log in zip(losses, logs.tolist(), strict=True))
    above, below = _tails(cumulant, value, plan)
    return Divergence(
        step=plan.step,
        first=first,
        ahead=ahead,
        behind=behind,
        tilt=plan.tilt,
        centre=plan.centre,
        scale=exp(value - plan.tilt * plan.centre),
        noise=noise,
        above=above,
        outside=above + below,
        error=_relative_error(losses, logs, plan),
        slip=sum(count * loss.slip for loss, count in losses),
        infinite=ever((loss.infinite, count) for loss, count in losses) * (1 + 1e-14),
        infinite_surely=ever((loss.infinite_surely, count) for loss, count in losses) * (1 - 1e-14),
        lost=sum(count * loss.lost for loss, count in losses),
        top=sum(count * loss.top for loss, count in losses) * (1 + 1e-14),
        moments=_moments(cumulant, plan),
        variance=sum(count * loss.width**2 for loss, count in losses) / 4,
    )


def _moments(cumulant: Cumulant, plan: CompositionPlan) -> tuple[tuple[float, float], ...]:
    """Return slopes s with K(s) - s centre: the planned one, and smaller ones if it does not fit."""
    slopes = [plan.slope, plan.tilt + plan.rise]
    while cumulant(slopes[-1]) > slopes[-1] * plan.centre + 1 and len(slopes) < 12:
        slopes.append(slopes[-1] / 4)
    return tuple((slope, cumulant(slope) - slope * plan.centre) for slope in slopes)


def _suffix_sums(mass: Floats, plan: CompositionPlan) -> tuple[int, Floats, Floats]:
    """Return the first grid point kept, and the two sums of `Divergence` from each point on, with a 0 at the end.

    Weights above e^300 belong to no epsilon of interest. Those below e^-300 are too small to be missed.
    """
    middle, reach = plan.centre / plan.step, min(300 / (max(plan.tilt, 1e-100) * plan.step), 2.0**62)
    first = max(plan.start, math.ceil(middle - reach))
    last = min(plan.start + plan.size, math.floor(middle + reach) + 1)
    weighted = mass[first - plan.start : max(first, last) - plan.start]
    weighted = weighted * _geometric(first * plan.step - plan.centre, plan.tilt, plan.step, len(weighted))
    ahead = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)
    return first, ahead, _discounted(weighted, plan.step)


def _discounted(values: Floats, step: float) -> Floats:
    """Return the sum of values[i] e^((k - i) step) over i >= k, for each k, with a 0 at the end.

    It goes from the right by stretches of at most 500 nats, so that no weight overflows. On a coarse grid, where a
    stretch has few points, it adds what is up to 500 nats ahead; the rest weighs e^-500.
    """
    total = np.zeros(len(values) + 1)
    stretch = max(1, math.floor(500 / step))
    if stretch < 256:
        for ahead in range(min(stretch + 1, len(values))):
            total[: len(values) - ahead] += values[ahead:] * math.exp(-ahead * step)
        return total
    for start in range((len(values) - 1) // stretch * stretch, -1, -stretch):
        part = values[start : start + stretch]
        weight = _geometric(0.0, 1.0, step, len(part))
        carried = total[start + len(part)] * weight[-1] * math.exp(-step)
        total[start : start + len(part)] = (np.cumsum((part * weight)[::-1])[::-1] + carried) / weight
    return total


def _geometric(origin: float, rate: float, step: float, size: int) -> Floats:
    """Return exp(-rate * (origin + i * step)) for i below `size`, from the products of two short lists."""
    # About size / 256 exponentials instead of `size` of them: an exponential costs far more than a product.
    short = np.exp(-rate * step * np.arange(256))
    long = np.exp(-rate * (origin + 256 * step * np.arange(size // 256 + 1)))
    product: Floats = np.multiply.outer(long, short).ravel()[:size]
    return product


def _convolve(
    losses: Sequence[tuple[GridLoss, int]], tilted: Sequence[Floats], plan: CompositionPlan
) -> tuple[Floats, float]:
    """Return the law of the tilted sum, folded into the window, and a bound on the norm of its error.

    A transform of n points errs by at most f = 8 log2(n) ulp of the norm [Hig02]: on a law v by f |v| sqrt(n). No
    frequency exceeds 1, so a power errs by its count times that, and a product by the sum. Each step may add
    3 ulp of the product for its complex multiplication. Back in time, norms shrink by sqrt(n).
    """
    origin = sum(count * int(loss.index.min()) for loss, count in losses)
    steps = sum(count for _, count in losses)
    kind = np.longdouble if plan.extended else np.float64
    ulp = float(np.finfo(kind).eps) / 2
    transform = 8 * math.log2(plan.size) * ulp
    spectra: dict[int, Complexes] = {}
    norms = 0.0
    for law, count in _bundles(losses, tilted, plan.size):
        # Laws of one count are multiplied first, so that one power serves all of them.
        spectrum = np.fft.rfft(law.astype(kind), plan.size)
        spectra[count] = spectra[count] * spectrum if count in spectra else spectrum
        norms += count * _norm(law)
    product = reduce(np.multiply, (_power(spectrum, count) for count, spectrum in spectra.items()))
    folded = np.fft.irfft(product, plan.size).astype(np.float64)
    # Each law was shifted to begin at 0, so entry i of `folded` is the sum origin + i, up to multiples of the size.
    mass = np.roll(folded, (origin - plan.start) % plan.size)
    growth = 1.1 * exp(transform * math.sqrt(plan.size) * norms)
    return mass, growth * transform * norms + (transform + 3 * ulp * steps) * 2 * _norm(mass)


def _bundles(
    losses: Sequence[tuple[GridLoss, int]], tilted: Sequence[Floats], size: int
) -> Iterator[tuple[Floats, int]]:
    """Yield laws from their smallest index on, with their counts; short ones with equal counts as one law.

    A short convolution is cheaper than a long transform, and has nothing but relative errors.
    """
    waiting: dict[int, Floats] = {}
    for (loss, count), masses in zip(losses, tilted, strict=True):
        law = binned((loss.index - loss.index.min()) % size, masses)
        if len(law) <= _SHORT and count in waiting:
            law = np.convolve(waiting.pop(count), law)
        if len(law) <= _SHORT:
            waiting[count] = law
        else:
            yield _folded(law, size), count
    yield from ((_folded(law, size), count) for count, law in waiting.items())


def _folded(law: Floats, size: int) -> Floats:
    return law if len(law) <= size else binned(np.arange(len(law)) % size, law)


def _norm(values: Floats) -> float:
    return math.sqrt(float(np.square(values).sum()))


def _power(base: Complexes, count: int) -> Complexes:
    """Raise to a whole power by repeated squaring, in place to save memory."""
    result = base.copy() if count & 1 else np.ones_like(base)
    while count := count >> 1:
        np.multiply(base, base, out=base)
        if count & 1:
            np.multiply(result, base, out=result)
    return result


def _tails(cumulant: Cumulant, value: float, plan: CompositionPlan) -> tuple[float, float]:
    """Bound the tilted mass above and below the window, by Chernoff."""
    bottom, top = plan.start * plan.step, (plan.start + plan.size) * plan.step
    # Under the tilted law P[S >= x] <= e^(K(t + r) - K(t) - r x) for r >= 0; 1.01 is more than rounding takes off.
    above = cumulant(plan.tilt + plan.rise) - value - plan.rise * top
    below = cumulant(plan.tilt - plan.fall) - value + plan.fall * bottom
    return 1.01 * exp(min(0.0, above)), 1.01 * exp(min(0.0, below))


def _relative_error(losses: Sequence[tuple[GridLoss, int]], logs: Floats, plan: CompositionPlan) -> float:
    """Bound the relative error of a product of masses, tilted and back: exponents are right to a few ulp."""
    total = 1e-11
    for (loss, count), log in zip(losses, logs, strict=True):
        exponents = 800 + plan.tilt * float(np.abs(loss.loss).max()) + abs(float(log))
        total += count * (loss.error + 1e-13 + 8 * _ULP * exponents)
    return math.expm1(total) if total < 1 else 1e100


def ever(chances: Iterable[tuple[float, int]]) -> float:
    """Return the chance that one of independent things happens, each tried so many times."""
    # By log1p and expm1: beside 1 a chance below 1e-16 would be lost, and delta may be far smaller.
    logs = [count * math.log1p(-chance) if chance < 1 else -math.inf for chance, count in chances]
    return abs(math.expm1(sum(logs)))


# --- cumulant: The logarithm of the moment generating function of a sum of losses, and its first two derivatives. ---


@final
class Cumulant:
    """K(t) = sum of count * log E[exp(t loss); loss finite] over independent losses, each with a count.

    A loss is given by its values and their masses, all of them above 0.
    """

    __slots__ = ("_counts", "_log_mass", "_loss", "_rows")

    def __init__(self, losses: Iterable[tuple[Floats, Floats, int]]) -> None:
        values, masses, counts = zip(*losses, strict=True)
        self._loss = np.concatenate(values)
        self._log_mass = np.log(np.concatenate(masses))
        self._rows = RaggedRows.of([len(value) for value in values])
        self._counts = np.array(counts, dtype=np.float64)

    def __call__(self, tilt: float) -> float:
        return float(self._counts @ self._tilt(tilt)[1])

    def tilted(self, tilt: float) -> tuple[list[Floats], Floats]:
        """Return the tilted masses of each loss, normalised, and the logarithms of what they were divided by."""
        weights, logs, totals = self._tilt(tilt)
        return self._rows.split(weights / self._rows.spread(totals)), logs

    def moments(self, tilt: float) -> tuple[float, float, float]:
        """Return K, K' and K'': the latter are the mean and the variance of the tilted sum."""
        weights, logs, totals = self._tilt(tilt)
        mean = self._rows.sum(weights * self._loss) / totals
        centred = self._loss - self._rows.spread(mean)
        variance = self._rows.sum(weights * centred**2) / totals
        return float(self._counts @ logs), float(self._counts @ mean), float(self._counts @ variance)

    def _tilt(self, tilt: float) -> tuple[Floats, Floats, Floats]:
        exponent = self._log_mass + tilt * self._loss
        # Divided by the largest weight of its row, which becomes 1: no tilt overflows.
        peak = self._rows.largest(exponent)
        weights = np.exp(exponent - self._rows.spread(peak))
        totals = self._rows.sum(weights)
        return weights, peak + np.log(totals), totals


# --- plan ---
# How to compose: the tilt, the step of the grid and the window. Heuristics from a coarse look at the losses.
#
# Nothing here can make a bound wrong, only loose: `compose` proves its bounds for whatever plan it is given.


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
