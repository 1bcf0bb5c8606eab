"""Influence functions: what one value does, at the normal model (public) or at data (for the custodian)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final, overload

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative, positive, positive_integer, probability
from discreet.privacy.not_private import NotPrivate
from discreet.robust.functionals import Functional, Mean, MLocation, cumulative, density, quantile
from discreet.robust.loss_functions import Floats, Huber, Psi, Quantile
from discreet.robust.m_estimates import location_fit, read_sample

__all__ = [
    "Expectation",
    "as_functional",
    "asymptotic_noise",
    "breakdown_point",
    "chaudhuri_hsu",
    "gross_error_sensitivity",
    "influence_function",
    "largest_influence_near",
]

_FAR = 1e6  # Deviations; a bounded influence has settled there.
_POINTS = 801


@overload
def influence_function(
    estimator: Functional | Psi, points: Any, *, values: None = None, fraction: None = None
) -> Floats: ...
@overload
def influence_function(
    estimator: Functional | Psi, points: Any, *, values: Any, fraction: Number | None = None
) -> NotPrivate[Floats]: ...
def influence_function(
    estimator: Functional | Psi, points: Any, *, values: Any = None, fraction: Number | None = None
) -> Floats | NotPrivate[Floats]:
    """Return how fast an estimate moves per share of mass put at each point, over that share. [Ham74]

    Without `values` it is the limit at the standard normal law. With them it is private: for a psi with its scale
    fixed the limit at the data, for others, or with a `fraction`, (T((1 - t) F + t at the point) - T(F)) / t with
    that fraction t, 1 / (n + 1) if none is named: what adding the point as one more value does. [CH12]

    Args:
        estimator: A functional such as `TrimmedMean(0.1)`, or a loss such as `Huber()`.
        points: One place or several.
        values: The private values, for the influence at the data; the standard normal law if not said.
        fraction: The mass that is put at a point, for the data.

    Returns:
        The influence at each point, which is public at the normal law; of data it is marked as not private.

    Raises:
        InvalidParameter: If a fraction is named without values.

    Examples:
        >>> dp.robust.influence_function(dp.robust.Mean(), [-1, 0, 2])
        array([-1.,  0.,  2.])
        >>> dp.robust.influence_function(dp.robust.Huber(), 9).round(4)
        array([1.6375])
    """
    functional, places = as_functional(estimator), np.atleast_1d(np.asarray(points, dtype=np.float64))
    if values is None:
        if fraction is not None:
            raise InvalidParameter("fraction has a meaning for data only: name values too")
        return functional.influence(places)
    sample = read_sample(values)
    return NotPrivate(_at_data(functional, places, sample, _read_fraction(fraction)))


@overload
def gross_error_sensitivity(estimator: Functional | Psi, *, values: None = None) -> float: ...
@overload
def gross_error_sensitivity(
    estimator: Functional | Psi,
    *,
    values: Any,
    fraction: Number | None = None,
    bounds: tuple[float, float] | None = ...,
) -> NotPrivate[float]: ...
def gross_error_sensitivity(
    estimator: Functional | Psi,
    *,
    values: Any = None,
    fraction: Number | None = None,
    bounds: tuple[float, float] | None = None,
) -> float | NotPrivate[float]:
    """Return the largest |influence| of any point, or of any within `bounds`. [Ham74]

    At the standard normal law without `values`; with them the empirical one, which is private and sets no noise: on
    501 zeros and 500 hundreds it is small, and still one value moves a Huber estimate from one end to the other.

    Args:
        estimator: A functional such as `TrimmedMean(0.1)`, or a loss such as `Huber()`.
        values: The private values, for the sensitivity at the data; the standard normal law if not said.
        fraction: The mass that is put at a point, for the data; see `influence_function`.
        bounds: Between which points are looked for, for the data.

    Returns:
        The number, which is public at the normal law; of data it is marked as not private.

    Raises:
        InvalidParameter: If `values` is empty.

    Examples:
        >>> round(dp.robust.gross_error_sensitivity(dp.robust.Huber()), 4)
        1.6375
        >>> dp.robust.gross_error_sensitivity(dp.robust.Mean(), values=[1, 2, 3], bounds=(0, 10)).value
        8.0
    """
    functional = as_functional(estimator)
    if values is None:
        return functional.gross_error_sensitivity()
    sample, part = read_sample(values), _read_fraction(fraction)
    if isinstance(functional, Mean) and bounds is None:
        return NotPrivate(math.inf)
    places = _search(sample, bounds)
    return NotPrivate(float(np.abs(_at_data(functional, places, sample, part)).max()))


def breakdown_point(estimator: Functional | Psi) -> float:
    """Return the share of values that must be bad before the estimate can be anything, for many values. [HRRS86]

    Args:
        estimator: A functional such as `TrimmedMean(0.1)`, or a loss such as `Huber()`.

    Returns:
        The share, from 0 to one half. It is public.

    Examples:
        >>> dp.robust.breakdown_point(dp.robust.Huber())
        0.5
        >>> dp.robust.breakdown_point(dp.robust.TrimmedMean("0.1"))
        0.1
    """
    return as_functional(estimator).breakdown


def as_functional(estimator: Functional | Psi) -> Functional:
    """Take a psi for the M-estimator of location with scale one."""
    return MLocation(estimator) if hasattr(estimator, "rho") else estimator  # type: ignore[arg-type]


def _at_data(functional: Functional, points: Floats, sample: Floats, fraction: float | None) -> Floats:
    if fraction is None and isinstance(functional, MLocation) and functional.scale is not None:
        return _limit(functional, points, sample)
    share = 1 / (sample.size + 1) if fraction is None else fraction
    equal = np.full(sample.size, 1 / sample.size)
    before = functional.estimate(sample, equal)
    weights = np.append((1 - share) * equal, share)
    after = [functional.estimate(np.append(sample, point), weights) for point in points]
    return (np.array(after) - before) / share


def _limit(functional: MLocation, points: Floats, sample: Floats) -> Floats:
    """Return psi over the mean slope: the derivative of the root by the implicit function theorem."""
    equal, scale = np.full(sample.size, 1 / sample.size), float(functional.scale or 1)
    centre = functional.estimate(sample, equal)
    slope = float(functional.psi.derivative((sample - centre) / scale).mean())
    reach = functional.psi.psi((points - centre) / scale) * scale
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(reach == 0, 0.0, reach / slope)


def _search(sample: Floats, bounds: tuple[float, float] | None) -> Floats:
    low, high = float(sample.min()), float(sample.max())
    spread = (high - low) or 1.0
    if bounds is not None:
        return np.concatenate([np.linspace(*bounds, _POINTS), sample.clip(*bounds)])
    near = np.linspace(low - 10 * spread, high + 10 * spread, _POINTS)
    return np.concatenate([near, np.unique(sample)[:_POINTS], [low - _FAR * spread, high + _FAR * spread]])


def _read_fraction(fraction: Number | None) -> float | None:
    if fraction is None:
        return None
    share = exact(fraction, name="fraction")
    if not 0 < share < 1:
        raise InvalidParameter("fraction must lie strictly between 0 and 1")
    return float(share)


# --- utility: What theory expects of noise that follows robust estimates. None of these numbers may set any noise. ---
#
# They hold for samples from an unknown law, with high probability, or for very many values. Privacy must hold for all
# data sets, so they are of a type that no mechanism takes as a parameter.


_HUBER = Huber()


@final
@dataclass(frozen=True, slots=True)
class Expectation:
    """A number that describes what to expect. It is no number in the sense of any mechanism.

    Args:
        value: The number.
        holds: When it holds, in words.

    Examples:
        >>> expected = dp.robust.chaudhuri_hsu(size=10_000, eta=0.05, beta=1, influence=2, diameter=100)
        >>> print(expected)
        0.0004, with probability 0.95 over samples; never a bound for the data
    """

    value: float
    holds: str

    def __str__(self) -> str:
        return f"{self.value:g}, {self.holds}"

    __repr__ = __str__


def chaudhuri_hsu(
    *, size: int, eta: Number, beta: Number, influence: Number | Huber | Quantile, diameter: Number
) -> Expectation:
    """Return what the smooth sensitivity exceeds with probability `eta` at most, over samples from one law.

    It is max(2 G / n, R exp(-beta (sqrt(n log(2 / eta) / 2) - 1))): G the largest fixed-scale gross error
    sensitivity, at mass 1 / n, of all laws within sqrt(2 log(2 / eta) / n) of it; R the diameter of the estimates.
    The empirical law is that close by the DKW inequality. [CH12]

    For samples from the standard normal law G is computed: say `influence=Quantile(q)` for what it is, and
    `influence=Huber(c)`, with scale one, for an upper bound.

    Args:
        size: The number of values in a sample.
        eta: The chance with which the smooth sensitivity may be larger, strictly between 0 and 1.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        influence: G, or the loss of an estimator for which it is computed.
        diameter: R.

    Returns:
        What to expect; no mechanism takes it.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> expected = dp.robust.chaudhuri_hsu(size=10_000, eta=0.05, beta=1, influence=2, diameter=100)
        >>> expected.value
        0.0004
        >>> huber = dp.robust.Huber()
        >>> expected = dp.robust.chaudhuri_hsu(size=10_000, eta=0.05, beta=1, influence=huber, diameter=100)
        >>> round(expected.value * 10_000 / 2, 4)
        1.7576
    """
    n, chance = positive_integer(size, name="size"), float(probability(eta, name="eta"))
    if not 0 < chance < 1:
        raise InvalidParameter("eta must lie strictly between 0 and 1")
    reach, most = math.sqrt(n * math.log(2 / chance) / 2) - 1, float(positive(diameter, name="diameter"))
    far = most * math.exp(-float(positive(beta, name="beta")) * reach)
    if isinstance(influence, (Huber, Quantile)):
        radius = math.sqrt(2 * math.log(2 / chance) / n)
        near = min(2 * largest_influence_near(influence, size=n, radius=radius) / n, most)
    else:
        near = 2 * float(nonnegative(influence, name="influence")) / n
    return Expectation(max(near, far), f"with probability {1 - chance:g} over samples; never a bound for the data")


def largest_influence_near(psi: Huber | Quantile, *, size: int, radius: float) -> float:
    """Return the largest fixed-scale gross error sensitivity, at t = 1 / n, of laws G within r of the normal one, F.

    Theorem     Quantile: mass at infinity moves q to the quantile q / (1 - t) of G, which is F^-1(q / (1 - t) + r) at
                most, from F^-1(q - r) at least; both at once where G is q from there on until F - r is larger. Mass
                at minus infinity likewise. So this is the supremum.
                Huber: the mean score of G at u, c less the integral of G over [u - c, u + c], is within 2 c r of that
                of F. It is 0 at the estimate and c t / (1 - t) at most in size at all that mass t makes of it, so all
                these lie within v, where that of F is 2 c r + c t / (1 - t) in size. There its slope is at least
                F(v + c) - F(v - c) - 2 r =: s, and the estimate moves by c t / ((1 - t) s) at most: an upper bound.

    It is infinite where nothing follows. As n grows and r falls it tends to the sensitivity at F for Huber's; for
    quantiles it grows like n r, since laws with a gap at the quantile are that near. [CH12]
    """
    if size < 2:
        return math.inf
    share = 1 / size
    if isinstance(psi, Quantile):
        q = float(psi.q)
        up = _inside(q / (1 - share) + radius) - _inside(q - radius)
        down = _inside(q + radius) - _inside((q - share) / (1 - share) - radius)
        return size * max(up, down)
    c = float(psi.c)
    level = 2 * c * radius + c * share / (1 - share)
    place = _place_of_score(level, c)
    slope = cumulative(place + c) - cumulative(place - c) - 2 * radius
    return c / ((1 - share) * slope) if slope > 0 else math.inf


def _inside(share: float) -> float:
    """Return the normal quantile, infinite beyond 0 and 1."""
    return quantile(min(max(share, 0.0), 1.0))


def _place_of_score(level: float, c: float) -> float:
    """Return where Huber's mean score under the normal law is minus the level, from above."""

    def score(u: float) -> float:
        return sum(sign * ((u + sign * c) * cumulative(u + sign * c) + density(u + sign * c)) for sign in (1, -1)) - c

    if level >= c:
        return math.inf
    low, high = 0.0, 1.0
    while score(high) < level and high < _FAR:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if score(middle) < level else (low, middle)
    return high


def asymptotic_noise(
    values: Any, *, epsilon: Number, delta: Number, psi: Psi = _HUBER, scale: Number | None = None
) -> NotPrivate[Expectation]:
    """Return the deviation of the noise that follows the empirical gross error sensitivity g. It is not private.

    It is g 5 sqrt(2 log(n) log(2 / delta)) / (epsilon n). [AM21] That this much noise is private holds for many values
    from a law with conditions that no program can check; for 501 zeros and 500 hundreds it fails completely, and
    moreover the number itself tells about the data. It is here to be compared with mechanisms that can be charged.

    Args:
        values: The private values.
        epsilon: The epsilon of the formula.
        delta: The delta of the formula, strictly between 0 and 1.
        psi: The loss.
        scale: The scale of the residuals; the median absolute deviation if not said.

    Returns:
        The deviation, marked as not private; no mechanism takes it.

    Raises:
        InvalidParameter: If delta is not strictly between 0 and 1.

    Examples:
        >>> noise = dp.robust.asymptotic_noise([0] * 501 + [100] * 500, epsilon=1, delta=1e-6, scale=1)
        >>> round(noise.value.value, 2)
        0.19
    """
    level, chance = float(positive(epsilon, name="epsilon")), float(probability(delta, name="delta"))
    if not 0 < chance < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1")
    spread = location_fit(values, psi=psi, scale=scale).value.scale
    largest = gross_error_sensitivity(MLocation(psi, repr(spread)), values=values).value
    n = len(values)
    noise = largest * 5 * math.sqrt(2 * math.log(n) * math.log(2 / chance)) / (level * n)
    return NotPrivate(Expectation(noise, "if the sample were large and well-behaved; it protects nobody"))
