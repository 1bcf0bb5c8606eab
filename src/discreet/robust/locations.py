"""A robust location of a column: exact and not private, or private with what it costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, overload

from discreet.adaptive.charging import charge
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact_or_none
from discreet.mechanisms.fields import read_relation
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.fits import location_fit
from discreet.robust.private_location import PrivateLocation
from discreet.robust.psi import Huber, Psi
from discreet.robust.schedules import LocationSchedule, Newton
from discreet.robust.spending import noise_for, public_rows, quoted, reader_of

__all__ = ["location", "needs_bounds"]

_HUBER = Huber()
_NEWTON = Newton()


@overload
def location(values: Any, *, psi: Psi = ..., scale: Number | None = ...) -> NotPrivate[float]: ...
@overload
def location(
    values: Any,
    *,
    relation: Relation,
    bounds: tuple[Number, Number] | None = ...,
    psi: Psi = ...,
    scale: Number | None = ...,
    step: Number | None = ...,
    missing: Number | None = ...,
    epsilon: Number | None = ...,
    delta: Number | None = ...,
    rho: Number | None = ...,
    mu: Number | None = ...,
    population: int | None = ...,
    allow_large_delta: bool = ...,
    schedule: LocationSchedule = ...,
    session: Payer | None = ...,
) -> Release[Fraction]: ...
def location(
    values: Any,
    *,
    relation: Relation | None = None,
    bounds: tuple[Number, Number] | None = None,
    psi: Psi = _HUBER,
    scale: Number | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    schedule: LocationSchedule = _NEWTON,
    session: Payer | None = None,
) -> Release[Fraction] | NotPrivate[float]:
    """Estimate the location of a column by an M-estimate.

    With a budget (epsilon, epsilon and delta, rho or mu) and a relation it is private, and its interval is for what
    the rows were sampled from. Without any, it is the exact estimate of the data, marked as not private. Residuals are
    measured in units of `scale`, or of the median absolute deviation.
    """
    if relation is None:
        special = None if schedule is _NEWTON else schedule
        _refuse(bounds, step, missing, epsilon, delta, rho, mu, population, session, special)
        return NotPrivate(location_fit(values, psi=psi, scale=scale).value.estimates[0])
    noise = noise_for(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        population=public_rows(values, read_relation(relation)) if population is None else population,
        allow_large_delta=allow_large_delta,
    )
    mechanism = PrivateLocation(
        psi=psi,
        grid=Grid.between(*needs_bounds(bounds), step=step, default=missing),
        relation=relation,
        noise=noise,
        schedule=schedule,
        scale=exact_or_none(scale, name="scale"),
    )
    read = reader_of(values)
    charge(mechanism, session, purpose="robust location")
    return quoted(mechanism.release(read(values)), noise)


def needs_bounds(bounds: tuple[Number, Number] | None, *, name: str = "bounds") -> tuple[Number, Number]:
    """Refuse to guess bounds from the data."""
    if bounds is None:
        raise Refused(
            f"this needs {name}=(low, high), which must not be read from the data: take them from what is publicly "
            "known. A robust estimate loses almost nothing by bounds that are far too wide"
        )
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a pair (low, high)") from None
    return low, high


def _refuse(*named: object) -> None:
    if any(value is not None for value in named):
        raise InvalidParameter(
            "a private estimate needs relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE, bounds and a budget; "
            "without any of these the exact estimate is returned, marked as not private"
        )
