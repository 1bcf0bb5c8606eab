"""Private versions of estimates, as a report looks at them: where they are centred and how far their noise spreads.

The spread of noise that follows the data is private; it is for `NotPrivate` reports only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

import numpy as np

from discreet.adaptive.delta_recipes import laplace
from discreet.adaptive.order_queries import CentralMeanQuery, WinsorisedMeanQuery
from discreet.adaptive.pure_recipes import polynomial
from discreet.adaptive.recipe import Recipe
from discreet.adaptive.smooth import computed_beta
from discreet.adaptive.tuning import best_recipe
from discreet.exact import Number, exact
from discreet.mechanisms.budget import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import Mean as PrivateMean
from discreet.privacy.relation import Relation
from discreet.robust.functionals import Functional, Mean, MLocation, TrimmedMean, WinsorisedMean
from discreet.robust.private_location import PrivateLocation
from discreet.robust.psi import Floats, Quantile
from discreet.robust.schedules import Newton

__all__ = ["CONFIDENCE", "NoisyMean", "PrivateVersion", "SampledVersion", "SmoothVersion", "private_version"]

CONFIDENCE = Fraction(95, 100)
_DRAWS = 60  # Releases by which a spread is measured.


class PrivateVersion(Protocol):
    """A private estimate under replace-one. What its methods return is private."""

    @property
    def name(self) -> str:
        """How it works, in a few words."""

    def centre(self, sample: Floats, /) -> float:
        """Return what it releases before noise."""

    def spread(self, sample: Floats, /) -> float:
        """Return what its noise exceeds in one of twenty releases."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMean:
    """The mean with noise for its global sensitivity."""

    grid: Grid
    epsilon: Fraction

    @property
    def name(self) -> str:
        return "the mean with Laplace noise"

    def centre(self, sample: Floats) -> float:
        return float(sample.mean())

    def spread(self, sample: Floats) -> float:
        noise, size = LaplaceNoise(epsilon=self.epsilon), len(sample)
        mechanism = PrivateMean(grid=self.grid, relation=Relation.REPLACE_ONE, noise=noise, size=size)
        (measurement,) = mechanism.measurements
        _, high = measurement.accuracy(self.grid.step / size).interval(Fraction(0), CONFIDENCE)
        return float(high)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothVersion:
    """An order statistic or a mean of the middle, with noise for its smooth sensitivity."""

    functional: Quantile | TrimmedMean | WinsorisedMean
    grid: Grid
    recipe: Recipe

    @property
    def name(self) -> str:
        return "smooth sensitivity"

    def centre(self, sample: Floats) -> float:
        return float(self._query(len(sample)).value(sample) * self.grid.step)

    def spread(self, sample: Floats) -> float:
        query = self._query(len(sample))
        beta = computed_beta(query, self.recipe)
        bound = query.smooth_bound(sample, beta).approximate(float(beta))
        return float(self.grid.step) * (bound * self.recipe.half_width(CONFIDENCE) + 0.5)

    def _query(self, size: int) -> CentralMeanQuery | WinsorisedMeanQuery:
        if isinstance(self.functional, WinsorisedMean):
            return WinsorisedMeanQuery(grid=self.grid, size=size, moved=_ends(self.functional.share, size))
        if isinstance(self.functional, TrimmedMean):
            ends = _ends(self.functional.share, size)
            return CentralMeanQuery(grid=self.grid, size=size, lower=ends + 1, upper=size - ends)
        # Where q n is whole, the quantile is the middle of two values.
        rank = exact(self.functional.q) * size
        return CentralMeanQuery(grid=self.grid, size=size, lower=math.ceil(rank), upper=math.floor(rank) + 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledVersion:
    """An M-estimate found by noisy steps. Its spread is measured: some releases of it are made, and thrown away."""

    functional: MLocation
    grid: Grid
    noise: Noise

    @property
    def name(self) -> str:
        return "noisy Newton steps"

    def centre(self, sample: Floats) -> float:
        return self.functional.estimate(sample, np.full(sample.size, 1 / sample.size))

    def spread(self, sample: Floats) -> float:
        middle, mechanism = self.centre(sample), self._mechanism
        errors = sorted(abs(float(mechanism.release(sample).value) - middle) for _ in range(_DRAWS))
        return errors[math.ceil(_DRAWS * CONFIDENCE) - 1]

    @property
    def _mechanism(self) -> PrivateLocation:
        return PrivateLocation(
            psi=self.functional.psi,
            grid=self.grid,
            relation=Relation.REPLACE_ONE,
            noise=self.noise,
            schedule=Newton(inference=False),
            scale=None if self.functional.scale is None else exact(self.functional.scale),
        )


def _ends(share: Number, size: int) -> int:
    return math.floor(exact(share) * size)


def private_version(
    functional: Functional, *, grid: Grid, epsilon: Fraction, delta: Fraction | None
) -> PrivateVersion | None:
    """Return the private version of an estimator at a budget, if there is one here."""
    if isinstance(functional, Mean):
        return NoisyMean(grid=grid, epsilon=epsilon)
    if isinstance(functional, (TrimmedMean, WinsorisedMean)):
        return SmoothVersion(functional=functional, grid=grid, recipe=_recipe(epsilon, delta))
    if isinstance(functional, MLocation):
        if isinstance(functional.psi, Quantile):
            return SmoothVersion(functional=functional.psi, grid=grid, recipe=_recipe(epsilon, delta))
        noise: Noise = LaplaceNoise(epsilon=epsilon)
        if delta is not None:
            noise = GaussianNoise.for_epsilon(epsilon, delta)
        return SampledVersion(functional=functional, grid=grid, noise=noise)
    return None


def _recipe(epsilon: Fraction, delta: Fraction | None) -> Recipe:
    if delta is None:
        return best_recipe(lambda beta: polynomial(epsilon, beta=beta))
    return best_recipe(lambda beta: laplace(epsilon, delta, beta=beta))
