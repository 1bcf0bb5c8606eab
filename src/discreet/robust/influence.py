"""What one value does to an estimate: at the normal model, a public fact; at data, for the custodian's own eyes."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.privacy.notprivate import NotPrivate
from discreet.robust.functionals import Functional, Mean, MLocation
from discreet.robust.psi import Floats, Psi
from discreet.robust.samples import read_sample

__all__ = ["as_functional", "breakdown_point", "gross_error_sensitivity", "influence_function"]

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
    """Return the share of values that must be bad before the estimate can be anything, for many values. [HRRS86]"""
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
