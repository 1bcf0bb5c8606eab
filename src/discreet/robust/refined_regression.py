"""Least squares in rounds: each measures within tighter bounds and better coordinates than the one before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.formatting import record
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.mean import check_size
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.release import Accuracy, Release
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.least_squares import (
    NO_INTERVAL,
    Floats,
    ResidualSquares,
    Seen,
    check_rows,
    coefficients_release,
    read_inference,
    read_penalties,
    residual_squares,
    shrunken,
    whitening,
)
from discreet.robust.noisy_moments import Moments
from discreet.robust.regression_design import Design, Integers, Records
from discreet.robust.reweighting import EACH_ROW, Lens, SharedWeights, bounded, lengths, shares_of
from discreet.robust.tail_bounds import Tails

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
                Where units have several records, these share one weight, and records may weigh less than the
                heaviest; see `SharedWeights`.
    Utility     an error of about d reach / (mu n) in the predictions, where `reach` is the size of residuals. Rows and
                residuals that are shortened pull less than they do in ordinary least squares.

    Args:
        design: The public bounds of features and response.
        relation: The neighbouring relation.
        noise: What all rounds, and the intervals if there are any, spend together.
        public_rows: The public number of records, under replace-one.
        shares: The parts that the rounds get of what is left for moments; at least two, which add up to 1.
        tails_share: The part of the budget for the lengths of rows and residuals.
        inference_share: The part of the budget for intervals, from 0 to below 1; with 0 there are none.
        penalties: On the square of each coefficient where the bounds are -1 and 1, the intercept first; or none.

    Raises:
        InvalidParameter: If shares are out of range or leave nothing for the fit.

    Examples:
        >>> records = [(i % 10, 2 * (i % 10)) for i in range(2000)]
        >>> fit = dp.robust.RefinedRegression(
        ...     design=dp.robust.Design.between([(0, 10)], (0, 30)), relation=dp.Relation.ADD_REMOVE,
        ...     noise=dp.mechanisms.GaussianNoise.for_rho(0.5),
        ... )
        >>> intercept, slope = fit.release(records).value
        >>> abs(slope - 2) < 1
        True
    """

    design: Design
    relation: Relation
    noise: GaussianNoise
    public_rows: int | None = None  # the public number of records, under replace-one
    shares: tuple[Fraction, ...] = _SHARES  # of what is left for moments, one a round
    tails_share: Fraction = Fraction(3, 20)  # of the budget, for the lengths of rows and residuals
    inference_share: Fraction = Fraction(0)  # of the budget, for intervals; without it there are none
    penalties: tuple[Fraction, ...] = ()  # on the square of each coefficient within the frame, the intercept first

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        shares = tuple(read_share(share, name="a share") for share in self.shares)
        if len(shares) < 2 or sum(shares) != 1:
            raise InvalidParameter("shares must be those of at least two rounds and add up to 1")
        settle(
            self,
            public_rows=check_size(self.relation, self.public_rows),
            shares=shares,
            tails_share=read_share(self.tails_share, name="tails_share"),
            inference_share=read_inference(self.inference_share),
            penalties=read_penalties(self.penalties, self.design.dimension),
        )
        if self.tails_share + self.inference_share >= 1:
            raise InvalidParameter("tails_share and inference_share must leave something for the fit")
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def moments(self) -> tuple[Moments, ...]:
        """What each round measures. The last one needs the residuals more than it needs X'X."""
        whole = (1 - self.tails_share - self.inference_share) / self.noise.squared_multiplier
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
    def squares(self) -> ResidualSquares | None:
        """What is measured once there is a fit, for intervals."""
        return residual_squares(self.design.dimension, self.relation, self.noise, self.inference_share)

    @property
    def event(self) -> events.GDP:
        first, *rest = self.moments
        later = [round.event.mu_squared + self.tails.event.mu_squared for round in rest]
        last = self.squares.event.mu_squared if self.squares is not None else 0
        return events.GDP(mu_squared=first.event.mu_squared + sum(later) + last)

    def release(self, records: Records) -> Release[tuple[Fraction, ...]]:
        """Fit with noise; the intercept comes first, in the units of the data."""
        shares, rows = shares_of(records, self.relation), self.design.rows(records)
        check_rows(rows, self.public_rows)
        seen, last, fit = self._fit(rows, shares)
        return coefficients_release(self, fit.tolist(), self._accuracy(rows, shares, seen, last, fit))

    def _fit(self, rows: Integers, shares: SharedWeights = EACH_ROW) -> tuple[Seen, Moments, Floats]:
        """Return the last look, what measured in it, and the fit that follows."""
        first, *rest = self.moments
        lens, radius = Lens.plain(self.design.dimension), self.design.dimension**0.5
        near = shares.divided(*bounded(*lens.look(rows), radius, 1.0, first.radius))
        seen = Seen(lens, radius, 1.0, first.measure(*near))
        # The first coordinate is 1 in every row, so its square counts them, or the units that share them.
        counted = max(float(seen.measured.gram[0, 0]) * radius**2, 1.0)
        known = self.public_rows if shares.weights is None else None
        count = counted if known is None else float(known)
        for moments in rest:
            lens = self._closer(seen, count)
            coordinates, residuals = lens.look(rows)
            far = shares.first(lengths(coordinates)), shares.first(np.abs(residuals))
            radius, reach = self.tails.chosen(far, self._spared(moments))
            near = shares.divided(*bounded(coordinates, residuals, radius, reach, moments.radius))
            seen = Seen(lens, radius, reach, moments.measure(*near))
        return seen.penalised(self.penalties), rest[-1], self._closer(seen, count).fit

    def _accuracy(self, rows: Integers, shares: SharedWeights, seen: Seen, last: Moments, fit: Floats) -> Accuracy:
        if self.squares is None:
            return NO_INTERVAL
        look = Lens(seen.lens.turn, fit).look(rows)
        near = shares.divided(*bounded(*look, seen.radius, seen.reach, last.radius))
        measured = self.squares.measure(*near, last.radius, shares)
        return seen.errors(self.design, fit, measured, self.squares.deviation)

    def _closer(self, seen: Seen, count: float) -> Lens:
        """Return the next look: coordinates turned once more, and the fit corrected by what was measured."""
        lens = seen.lens
        step = lens.turn @ shrunken(seen.penalised(self.penalties).measured) * (seen.reach / seen.radius)
        return Lens(lens.turn @ whitening(seen.measured, count) / seen.radius, lens.fit + step)

    def _spared(self, moments: Moments) -> float:
        """Return how many rows may be shortened: as many as move a moment by about the noise on it."""
        factor = 0.5 if self.relation is Relation.ADD_REMOVE else 1.0
        return factor * self.design.dimension / math.sqrt(moments.mu_squared)
