"""Add independent losses by a tilted FFT, with proven bounds on the hockey-stick divergence of the sum.

delta(eps) = E[(1 - e^(eps - S))_+] is dominated by values of S near eps, which are rare. Under the law tilted by
e^(t S) they are common, and delta(eps) = e^(K(t)) E_t[e^(-t S) (1 - e^(eps - S))_+] is computed to a small *relative*
error. Everything that a finite window, aliasing and floats can do is bounded and added, or taken off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.pld.cumulant import Cumulant
from discreet.privacy.pld.divergence import Divergence, exp
from discreet.privacy.pld.grid import GridLoss, binned
from discreet.privacy.pld.pair import Floats
from discreet.privacy.pld.plan import CompositionPlan

__all__ = ["compose", "ever"]

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
        spectrum = np.fft.rfft(law.astype(kind), plan.size)
        spectra[count] = spectra[count] * spectrum if count in spectra else spectrum
        norms += count * _norm(law)
    product = reduce(np.multiply, (_power(spectrum, count) for count, spectrum in spectra.items()))
    folded = np.fft.irfft(product, plan.size).astype(np.float64)
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
    logs = [count * math.log1p(-chance) if chance < 1 else -math.inf for chance, count in chances]
    return abs(math.expm1(sum(logs)))
