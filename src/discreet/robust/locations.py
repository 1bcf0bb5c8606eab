"""A robust location of a column: exact and not private, or private with what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final, overload

import numpy as np

from discreet.adaptive.paid_release import charge
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact_or_none, positive_integer
from discreet.mechanisms.additive_noise import Noise
from discreet.mechanisms.column import Data
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_relation, settle
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.adaptive_queries import AdaptiveQueries
from discreet.robust.coefficients import NOT_ASKED, accuracy_of
from discreet.robust.location_queries import LocationSchedule, Newton, Place
from discreet.robust.loss_functions import Floats, Huber, Psi
from discreet.robust.m_estimates import location_fit
from discreet.robust.named_bounds import noise_for, public_rows, quoted, reader_of

__all__ = ["PrivateLocation", "location", "needs_bounds"]

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


# --- private_location: A robust location of a bounded column, found by questions with noise. ---


_FINEST = 1 << 30  # Steps; sums of 2^22 rows of them stay exact in blocks.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateLocation:
    """Release an M-estimate of location: the root of the sum of psi((x - t) / scale).

    Guarantee   what the noise spends, in the shares of the schedule.
    Theorem     Every question is a sum of whole numbers that one row makes by itself, between public limits; later
                ones depend on the data through noisy answers only. [ABL23, DRS22]
    Utility     for many rows from one law the estimate is normal around its location with the variance of the
                M-estimate and of the noise together; the interval is made of both, and paid for.
    """

    psi: Psi
    grid: Grid
    relation: Relation
    noise: Noise
    schedule: LocationSchedule
    scale: Fraction | None = None  # of the residuals, public; asked for without one
    resolution: int = 1 << 20  # steps up to the largest psi

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            scale=exact_or_none(self.scale, name="scale"),
            resolution=positive_integer(self.resolution, name="resolution"),
        )
        if self.scale is not None and self.scale <= 0:
            raise InvalidParameter("scale must be above 0")
        if self.resolution > _FINEST:
            raise InvalidParameter("resolution must be at most 2^30")
        _ = self.dialogue  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def dialogue(self) -> AdaptiveQueries[Place]:
        """The questions, with the noise that pays for each."""
        questions = self.schedule.questions(psi=self.psi, grid=self.grid, scale=self.scale, resolution=self.resolution)
        start = self.schedule.begin(grid=self.grid, scale=self.scale)
        return AdaptiveQueries(questions=questions, start=start, relation=self.relation, noise=self.noise)

    @property
    def event(self) -> Event:
        return self.dialogue.event

    def release(self, data: Data, *, session: Payer | None = None) -> Release[Fraction]:
        """Charge, then ask everything."""
        charge(self, session, purpose="robust location")
        dialogue, known = self.dialogue, self.schedule.inference
        place = dialogue.run(self.values(data))
        return Release(
            value=Fraction(place.centre),
            event=dialogue.event,
            relation=self.relation,
            accuracy=accuracy_of(self.schedule.standard_error(place)) if known else NOT_ASKED,
            limits=(self.grid.low, self.grid.high),
        )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of all noisy answers, from which everything released follows."""
        return self.dialogue.distribution(self.values(data))

    def values(self, data: Data) -> Floats:
        """Return the rows, clamped and on the grid. This is private."""
        return self.grid.indices(data).astype(np.float64) * float(self.grid.step)
