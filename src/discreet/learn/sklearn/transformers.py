"""What transformers share: rows within public bounds, and bounds that are found in the data, privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import InvalidParameter
from discreet.exact import positive
from discreet.learn.sklearn.base import PrivateEstimator
from discreet.learn.sklearn.bounds import FeatureFrame, Pair
from discreet.mechanisms.grid import Grid, number_rows
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.quantile import Quantile
from discreet.privacy import calibrate, events
from discreet.privacy.relation import Relation, read_relation

__all__ = ["PrivateRanges", "PrivateTransformer", "choice_epsilon", "shared_mu_squared"]

# --- scaling: What transformers share: rows seen through public bounds, and results that declare their own. ---


Floats: TypeAlias = NDArray[np.float64]


class PrivateTransformer(PrivateEstimator):
    """A private estimator that turns rows into rows, each by itself."""

    keeps_rows_alone = True

    def _moved(self, X: Any) -> Floats:
        """Return rows clamped and moved to [-1, 1]; with a session nothing about the values can end in an error."""
        if self.session is None:
            return self._seen(X)
        check_is_fitted(self)
        validate_data(self, X, "no_validation", skip_check_array=True, reset=False)  # Names and number of columns.
        values = number_rows(X)
        return np.nan_to_num(self.frame_.scaled(values), nan=0.0)  # What is missing counts as the middle.

    def _middle_and_half(self) -> tuple[Floats, Floats]:
        """Return the middle of the bounds of each column, and half their distance."""
        low, high = self.frame_.limits.T
        return (low + high) / 2, (high - low) / 2


# --- private_ranges ---
# Bounds that are found in the data, privately: two quantiles of each column, within bounds as wide as one likes.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateRanges:
    """Find, for each column, two values between which about a share `coverage` of the rows lies.

    Guarantee   twice as many choices of bounded range `epsilon` as there are columns, one after the other.
    Theorem     See `Quantile`. [Smi11]
    Utility     ranks are off by about (2 / epsilon) ln(points of the grid), whatever the bounds.
    """

    widest: FeatureFrame  # bounds that are publicly certain
    coverage: Fraction
    epsilon: Fraction  # of each of the two quantiles of each column
    relation: Relation

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            coverage=read_share(self.coverage, name="coverage"),
            epsilon=positive(self.epsilon, name="epsilon"),
        )

    @property
    def event(self) -> events.Repeated:
        return events.Repeated(events.BoundedRange(self.epsilon), 2 * len(self.widest.bounds))

    def check_size(self, people: int | None, slots: int = 1) -> None:
        """Refuse, where the number of rows is public, a coverage whose ends would be lost in the noise.

        A point that lies beyond all rows is wrong by as many ranks as are left out on that side. Where each of the
        people fills several slots, ranks are told by people.
        """
        rest = (1 - self.coverage) / 2
        needed = max(self._quantile(grid, rest).rank_error() for grid in self.widest.grids) / slots
        if people is not None and rest * people < needed:
            found = max(Fraction(0), 1 - 2 * needed / people)
            raise InvalidParameter(
                f"with this many rows and this budget, bounds can be found for a coverage of {float(found):.2f} at "
                "most: choose a smaller coverage, spend more, or declare the bounds"
            )

    def find(self, columns: Sequence[Any]) -> FeatureFrame:
        """Choose two grid points for each column; where they are the same, its widest bounds stay."""
        return FeatureFrame(
            tuple(self._pair(grid, column) for grid, column in zip(self.widest.grids, columns, strict=True))
        )

    def _pair(self, grid: Grid, column: Any) -> Pair:
        rest = (1 - self.coverage) / 2
        low, high = sorted(self._quantile(grid, at).release(column).value for at in (rest, 1 - rest))
        return (low, high) if low < high else (grid.low, grid.high)

    def _quantile(self, grid: Grid, at: Fraction) -> Quantile:
        return Quantile(quantile=at, epsilon=self.epsilon, grid=grid, relation=self.relation)


def choice_epsilon(mu_squared: Fraction, times: int) -> Fraction:
    """Return the epsilon of each of so many choices that together weigh as much as Gaussian privacy of mu.

    A choice of bounded range is zCDP of epsilon^2 / 8, Gaussian privacy of mu^2 / 2. [DR19]
    """
    return Fraction(2 * (float(mu_squared) / times) ** 0.5).limit_denominator(1 << 30)


@lru_cache(maxsize=1024)
def shared_mu_squared(
    epsilon: Fraction, delta: Fraction, relation: Relation, *, share: Fraction, choices: int
) -> Fraction:
    """Return the largest mu^2 of which a share pays for choices and the rest for Gaussian noise, within a budget."""

    def event(mu_squared: Fraction) -> events.Composed:
        each = events.BoundedRange(choice_epsilon(share * mu_squared, choices))
        return events.Composed([events.Repeated(each, choices), events.GDP(mu_squared=(1 - share) * mu_squared)])

    return calibrate(event, epsilon=epsilon, delta=delta, relation=relation, increasing=True)
