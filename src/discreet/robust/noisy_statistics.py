"""Least squares from noisy moments, measured once within the declared bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.exact import nonnegative
from discreet.mechanisms.accuracy import Accuracy
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.mean import check_size
from discreet.mechanisms.release import Release
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.coefficients import NO_INTERVAL, check_rows, coefficients_release
from discreet.robust.design import Design, Integers, Records
from discreet.robust.inference import Floats, ResidualSquares, Seen, read_inference, read_penalties, residual_squares
from discreet.robust.lens import Lens, bounded
from discreet.robust.moments import Moments, best_weight
from discreet.robust.shrinking import shrunken

__all__ = ["NoisyStatistics"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyStatistics:
    """Fit a linear model from X'X and X'y with Gaussian noise.

    Guarantee   Gaussian privacy with the mu of `noise`: both moments are one release with one joint sensitivity.
    Theorem     See `Moments`. Solving afterwards is free, and so is shrinking by how noisy the moments are.
                [DRS22, Wan18]
    Utility     noise of about d / mu on X'X and X'y, in the frame in which the bounds are -1 and 1.
    """

    design: Design
    relation: Relation
    noise: GaussianNoise
    size: int | None = None  # the public number of records, under replace-one
    coefficient_norm: Fraction = Fraction(1)  # a public guess, within the frame; it balances the two moments
    inference_share: Fraction = Fraction(0)  # of the budget, for intervals; without it there are none
    penalties: tuple[Fraction, ...] = ()  # on the square of each coefficient within the frame, the intercept first

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            size=check_size(self.relation, self.size),
            coefficient_norm=nonnegative(self.coefficient_norm, name="coefficient_norm"),
            inference_share=read_inference(self.inference_share),
            penalties=read_penalties(self.penalties, self.design.dimension),
        )
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def moments(self) -> Moments:
        return Moments(
            dimension=self.design.dimension,
            relation=self.relation,
            mu_squared=(1 - self.inference_share) / self.noise.squared_multiplier,
            weight=best_weight(self.coefficient_norm, self.relation),
        )

    @property
    def squares(self) -> ResidualSquares | None:
        """What is measured once there is a fit, for intervals."""
        return residual_squares(self.design.dimension, self.relation, self.noise, self.inference_share)

    @property
    def event(self) -> events.GDP:
        last = self.squares.event.mu_squared if self.squares is not None else 0
        return events.GDP(mu_squared=self.moments.event.mu_squared + last)

    def release(self, records: Records) -> Release[tuple[Fraction, ...]]:
        """Fit with noise; the intercept comes first, in the units of the data."""
        rows = self.design.rows(records)
        check_rows(rows, self.size)
        lens, radius, moments = Lens.plain(self.design.dimension), self.design.dimension**0.5, self.moments
        measured = moments.measure(*bounded(*lens.look(rows), radius, 1.0, moments.radius))
        seen = Seen(lens, radius, 1.0, measured).penalised(self.penalties)
        fit = shrunken(seen.measured) / radius
        return coefficients_release(self, fit.tolist(), self._accuracy(rows, seen, fit))

    def _accuracy(self, rows: Integers, seen: Seen, fit: Floats) -> Accuracy:
        if self.squares is None:
            return NO_INTERVAL
        steps = self.moments.radius
        look = Lens(seen.lens.turn, fit).look(rows)
        measured = self.squares.measure(*bounded(*look, seen.radius, seen.reach, steps), steps)
        return seen.errors(self.design, fit, measured, self.squares.deviation)
