"""Means without tight bounds, for people in a hurry."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.adaptive.charging import charge
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.column import column_of
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.coinpress import CoinPressMean
from discreet.robust.location_scale import LocationAndScale
from discreet.robust.spending import noise_for

__all__ = ["coinpress_mean", "location_and_scale"]


def coinpress_mean(
    rows: Any,
    *,
    centre: Sequence[Number],
    radius: Number,
    deviation: Number,
    relation: Relation,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Average rows of numbers whose deviation in any direction is about known, but not where they lie.

    The mean is within `radius` of `centre`, both public; the radius may be a million deviations.
    """
    size = _public_size(rows, relation)
    mechanism = CoinPressMean(
        centre=tuple(exact(value, name="centre") for value in centre),
        radius=exact(radius, name="radius"),
        deviation=exact(deviation, name="deviation"),
        relation=relation,
        noise=_gaussian(epsilon, delta, rho, mu, size),
        size=size,
    )
    charge(mechanism, session, purpose="mean without tight bounds")
    return mechanism.release(rows.to_numpy() if hasattr(rows, "to_numpy") else rows)


def location_and_scale(
    values: Any,
    *,
    bounds: tuple[Number, Number],
    relation: Relation,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release the mean and the standard deviation of a column within bounds that may be a million times too wide."""
    size = _public_size(values, relation)
    mechanism = LocationAndScale.between(
        bounds, relation=relation, noise=_gaussian(epsilon, delta, rho, mu, size), size=size
    )
    charge(mechanism, session, purpose="mean and deviation without tight bounds")
    return mechanism.release(column_of(values.to_numpy() if hasattr(values, "to_numpy") else values))


def _public_size(data: Any, relation: Relation) -> int | None:
    """Return the number of rows where it is public, and not even look where it is private."""
    return len(data) if relation is Relation.REPLACE_ONE else None


def _gaussian(
    epsilon: Number | None, delta: Number | None, rho: Number | None, mu: Number | None, size: int | None
) -> GaussianNoise:
    noise = noise_for(epsilon=epsilon, delta=delta, rho=rho, mu=mu, population=size)
    if not isinstance(noise, GaussianNoise):
        raise InvalidParameter("say epsilon=… with delta=…, rho=… or mu=…: the noise of rounds is Gaussian")
    return noise
