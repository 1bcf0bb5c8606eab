"""Ridge regression from noisy moments, with a ridge that follows the smallest eigenvalue (AdaSSP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet import noise as exact_noise
from discreet.adaptive.eigenvalue_bound import least_eigenvalue
from discreet.formatting import record
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.mean import check_size
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.release import Release
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.functionals import quantile
from discreet.robust.least_squares import check_rows, coefficients_release
from discreet.robust.noisy_moments import Moments, NoisyMoments, exact_moments
from discreet.robust.regression_design import Design, Integers, Records
from discreet.robust.reweighting import Lens, bounded, refuse_weights

__all__ = ["AdaSSP"]

_THIRD = Fraction(1, 3)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaSSP:
    """Fit a ridge regression from X'X, X'y and the smallest eigenvalue of X'X, each with Gaussian noise.

    Guarantee   Gaussian privacy with the mu of `noise`, for the three together; the published calibration divides
                epsilon and delta by three and takes 1.6 times as much noise at epsilon = 1, delta = 1e-6.
    Theorem     One row moves the smallest eigenvalue by at most its squared norm, whether it is added, removed or
                replaced (Weyl), and so does its floor in whole steps. For the rest see `Moments`. [Wan18, DRS22]
    Utility     the ridge is what the noise needs, less what the data have: none where they vary in all directions.

    Args:
        design: The public bounds of features and response.
        relation: The neighbouring relation.
        noise: What the three measurements spend together.
        public_rows: The public number of records, under replace-one.
        failure: The chance with which the eigenvalue may be overrated; strictly between 0 and 1.
        eigenvalue_share: The part of the budget that the eigenvalue gets; strictly between 0 and 1.

    Examples:
        >>> records = [(i % 10, 2 * (i % 10)) for i in range(2000)]
        >>> fit = dp.robust.AdaSSP(
        ...     design=dp.robust.Design.between([(0, 10)], (0, 30)), relation=dp.Relation.ADD_REMOVE,
        ...     noise=dp.mechanisms.GaussianNoise.for_rho(0.5),
        ... )
        >>> fit.event
        GDP(mu_squared=1)
        >>> len(fit.release(records).value)
        2
    """

    design: Design
    relation: Relation
    noise: GaussianNoise
    public_rows: int | None = None  # the public number of records, under replace-one
    failure: Fraction = Fraction(1, 20)  # the chance with which the eigenvalue may be overrated
    eigenvalue_share: Fraction = _THIRD  # of the budget

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            public_rows=check_size(self.relation, self.public_rows),
            failure=read_share(self.failure, name="failure"),
            eigenvalue_share=read_share(self.eigenvalue_share, name="eigenvalue_share"),
        )
        check_noise_variance(self.eigenvalue_variance)
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def moments(self) -> Moments:
        """X'X and X'y, as precise as each other."""
        return Moments(
            dimension=self.design.dimension,
            relation=self.relation,
            mu_squared=(1 - self.eigenvalue_share) / self.noise.squared_multiplier,
            weight=Fraction(1),
        )

    @property
    def eigenvalue_variance(self) -> Fraction:
        """In squares of squared steps: the eigenvalue moves by the squared radius at most."""
        return self.moments.radius**4 * self.noise.squared_multiplier / self.eigenvalue_share

    @property
    def event(self) -> events.GDP:
        moments = self.moments
        return events.GDP(mu_squared=moments.event.mu_squared + moments.radius**4 / self.eigenvalue_variance)

    def release(self, records: Records) -> Release[tuple[Fraction, ...]]:
        """Fit with noise; the intercept comes first, in the units of the data."""
        refuse_weights(records)
        rows = self.design.rows(records)
        check_rows(rows, self.public_rows)
        radius = self.design.dimension**0.5
        moments, lens = self.moments, Lens.plain(self.design.dimension)
        placed, responses = bounded(*lens.look(rows), radius, 1.0, moments.radius)
        lowest = self._noisy_eigenvalue(placed)
        found = _solved(moments.measure(placed, responses), lowest, float(self.failure))
        return coefficients_release(self, (found / radius).tolist())

    def eigenvalue(self, rows: Integers) -> int:
        """Return the smallest eigenvalue of X'X, rounded down to whole squared steps. This is private."""
        gram, _ = exact_moments(rows, rows[:, 0])
        return least_eigenvalue(gram.tolist())

    def _noisy_eigenvalue(self, rows: Integers) -> float:
        """Return what the eigenvalue is above with probability 1 - failure / 2, in units of the radius."""
        drawn = exact_noise.rounded_gaussian(variance=self.eigenvalue_variance)
        allowance = quantile(1 - float(self.failure) / 2) * math.sqrt(self.eigenvalue_variance)
        return max(self.eigenvalue(rows) + drawn - allowance, 0.0) / self.moments.radius**2


def _solved(measured: NoisyMoments, lowest: float, failure: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    size = len(measured.cross)
    # With probability 1 - failure / 2 the noise on X'X is no longer than this. [Wan18]
    needed = measured.gram_deviation * math.sqrt(size * math.log(2 * size**2 / failure))
    ridge = max(needed - lowest, 0.0)
    found, *_ = np.linalg.lstsq(measured.gram + ridge * np.eye(size), measured.cross)
    return np.asarray(found, dtype=np.float64)
