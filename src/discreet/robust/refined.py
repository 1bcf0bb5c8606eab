"""Least squares in rounds: each looks more closely, in coordinates and within bounds that the round before told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.fields import read_relation, read_share, settle
from discreet.mechanisms.mean import check_size
from discreet.mechanisms.release import Release
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.coefficients import check_rows, coefficients_release
from discreet.robust.design import Design, Integers, Records
from discreet.robust.lens import Lens, bounded, lengths
from discreet.robust.moments import Measured, Moments
from discreet.robust.shrinking import shrunken, whitening
from discreet.robust.tails import Tails

__all__ = ["RefinedRegression"]

_SHARES = (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
_LENGTHS = 2.0 ** np.arange(-2.0, 4.01, 0.5)  # Of rows, over the root of their dimension.
_REACHES = tuple((2.0 ** np.arange(-16.0, 1.01, 0.5)).tolist())  # Of residuals, in half the width of the bounds.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RefinedRegression:
    """Fit a linear model to bounded records by least squares.

    The first round measures X'X and X'y within the declared bounds. Every other one turns to coordinates in which the
    measured X'X is about the identity, subtracts the fit so far, counts how long rows and residuals are, and measures
    again with rows and residuals shortened to what few of them exceed. So noise follows the data inside the bounds,
    not the bounds, and none of it is larger in a direction in which the data vary little.

    Guarantee   Gaussian privacy with the mu of `noise`, for all rounds together.
    Theorem     Every round releases moments or counts of rows whose bounds follow from public numbers and from earlier
                rounds; the squares of their mu add up, also when a round depends on the ones before. [DRS22]
    Utility     an error of about d reach / (mu n) in the predictions, where `reach` is the size of residuals. Rows and
                residuals that are shortened pull less than they do in ordinary least squares.
    """

    design: Design
    relation: Relation
    noise: GaussianNoise
    size: int | None = None  # the public number of records, under replace-one
    shares: tuple[Fraction, ...] = _SHARES  # of what is left for moments, one a round
    tails_share: Fraction = Fraction(3, 20)  # of the budget, for the lengths of rows and residuals

    def __post_init__(self) -> None:
        read_relation(self.relation)
        shares = tuple(read_share(share, name="a share") for share in self.shares)
        if len(shares) < 2 or sum(shares) != 1:
            raise InvalidParameter("shares must be those of at least two rounds and add up to 1")
        settle(
            self,
            size=check_size(self.relation, self.size),
            shares=shares,
            tails_share=read_share(self.tails_share, name="tails_share"),
        )
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def moments(self) -> tuple[Moments, ...]:
        """What each round measures. The last one needs the residuals more than it needs X'X."""
        whole = (1 - self.tails_share) / self.noise.squared_multiplier
        weights = [1] * (len(self.shares) - 1) + [4 if self.relation is Relation.ADD_REMOVE else 2]
        return tuple(
            Moments(
                dimension=self.design.dimension,
                relation=self.relation,
                mu_squared=whole * share,
                weight=Fraction(weight),
            )
            for share, weight in zip(self.shares, weights, strict=True)
        )

    @property
    def tails(self) -> Tails:
        """What each round but the first counts before it measures."""
        root = self.design.dimension**0.5
        return Tails(
            levels=(tuple((_LENGTHS * root).tolist()), _REACHES),
            relation=self.relation,
            mu_squared=self.tails_share / self.noise.squared_multiplier / (len(self.shares) - 1),
        )

    @property
    def event(self) -> events.GDP:
        first, *rest = self.moments
        later = [round.event.mu_squared + self.tails.event.mu_squared for round in rest]
        return events.GDP(mu_squared=first.event.mu_squared + sum(later))

    def release(self, records: Records) -> Release[tuple[Fraction, ...]]:
        """Fit with noise; the intercept comes first, in the units of the data."""
        rows = self.design.rows(records)
        check_rows(rows, self.size)
        return coefficients_release(self, self._fit(rows))

    def _fit(self, rows: Integers) -> tuple[float, ...]:
        first, *rest = self.moments
        lens, radius, reach = Lens.plain(self.design.dimension), self.design.dimension**0.5, 1.0
        measured = first.measure(*bounded(*lens.look(rows), radius, reach, first.radius))
        # The first coordinate is 1 in every row, so its square counts them.
        count = float(self.size) if self.size is not None else max(float(measured.gram[0, 0]) * radius**2, 1.0)
        for moments in rest:
            lens = _closer(lens, measured, radius, reach, count)
            coordinates, residuals = lens.look(rows)
            radius, reach = self.tails.chosen((lengths(coordinates), np.abs(residuals)), self._spared(moments))
            measured = moments.measure(*bounded(coordinates, residuals, radius, reach, moments.radius))
        return tuple(_closer(lens, measured, radius, reach, count).fit.tolist())

    def _spared(self, moments: Moments) -> float:
        """Return how many rows may be shortened: as many as move a moment by about the noise on it."""
        factor = 0.5 if self.relation is Relation.ADD_REMOVE else 1.0
        return factor * self.design.dimension / math.sqrt(moments.mu_squared)


def _closer(lens: Lens, measured: Measured, radius: float, reach: float, count: float) -> Lens:
    """Return the next look: coordinates turned once more, and the fit corrected by what was measured."""
    step = lens.turn @ shrunken(measured) * (reach / radius)
    return Lens(lens.turn @ whitening(measured, count) / radius, lens.fit + step)
