"""The public facts that a mechanism is chosen by: everything but the data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer, probability
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import settle
from discreet.noise.laws import Law
from discreet.privacy.relation import Relation, read_relation
from discreet.statistics.expected import Expected, Floats

__all__ = ["TYPICAL", "WIDE", "ChooserInputs", "Predicted", "noise_errors", "of_weights", "with_bias"]

_LONGEST = 10**5  # Rows of an expected column; more of them only shrink the error in proportion.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChooserInputs:
    """What is publicly known about a column, and what may be spent on it."""

    grid: Grid
    relation: Relation
    epsilon: Fraction
    delta: Fraction | None = None
    size: int | None = None  # of the data where it is public, that is under replace-one
    expected_size: int | None = None  # what is publicly said about it, where it is private
    expected: Expected | None = None
    composes: bool = False  # whether it is paid by more than epsilon alone, where a bounded range is cheaper
    rough: bool = False  # whether the guess tells methods apart, and no more

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=None if self.delta is None else _small(self.delta),
            expected_size=_known(self.expected_size),
        )
        if self.expected is not None and not isinstance(self.expected, Expected):
            raise InvalidParameter("expected must be an Expected, such as Expected.normal(mean, sd)")

    @property
    def rows(self) -> int | None:
        """The number of rows to predict for, if there is one."""
        return self.size if self.size is not None else self.expected_size

    @property
    def can_predict(self) -> bool:
        """Whether anything is known by which mechanisms could be told apart."""
        return self.expected is not None and bool(self.rows)

    @property
    def law(self) -> Expected:
        return self.expected or Expected.uniform(self.grid.low, self.grid.high)

    @property
    def column(self) -> Floats:
        """An expected column, in order, within the bounds."""
        return _column(self.law, min(self._rows, _LONGEST), self.grid)

    @property
    def sample(self) -> Ranked:
        """The same, to be asked for ranks."""
        return _sample(self.law, min(self._rows, _LONGEST), self.grid)

    @property
    def shortened(self) -> float:
        """How many times more rows are expected than the expected column has."""
        return max(1.0, self._rows / _LONGEST)

    @property
    def _rows(self) -> int:
        if not self.rows:
            raise InvalidParameter("to predict an error, say for how many rows: public_rows=…")
        return self.rows


@lru_cache(8)
def _column(law: Expected, size: int, grid: Grid) -> Floats:
    found = law.column(size, grid)
    found.setflags(write=False)
    return found


@lru_cache(8)
def _sample(law: Expected, size: int, grid: Grid) -> Ranked:
    return Ranked.ordered(_column(law, size, grid), grid)


def _small(delta: Number) -> Fraction:
    chance = probability(delta, name="delta")
    if not 0 < chance < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1; leave it out for pure epsilon-DP")
    return chance


def _known(size: int | None) -> int | None:
    return None if size is None else positive_integer(size, name="public_rows")


# --- predicted: What a mechanism is predicted to be worth, from public facts only. ---


TYPICAL, WIDE = Fraction(1, 2), Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """How far an answer is from the exact one, if the data are as expected."""

    typical: float  # exceeded half of the time
    wide: float  # exceeded once in twenty
    declines: float = 0.0  # how often there is no answer

    def shrunk(self, factor: float) -> Predicted:
        return Predicted(typical=self.typical / factor, wide=self.wide / factor, declines=self.declines)


def noise_errors(law: Law, step: float) -> Predicted:
    """Predict for noise of a public law, in grid steps."""
    return Predicted(typical=law.half_width(TYPICAL) * step, wide=law.half_width(WIDE) * step)


def with_bias(noise: Predicted, bias: float) -> Predicted:
    """Add what is wrong even without noise; near enough to decide between mechanisms."""
    return Predicted(
        typical=float(np.hypot(noise.typical, bias)), wide=float(np.hypot(noise.wide, bias)), declines=noise.declines
    )


def of_weights(errors: Floats, weights: Floats) -> Predicted:
    """Predict from errors and how often each happens."""
    order = np.argsort(errors)
    chances = np.cumsum(weights[order]) / weights.sum()
    places: NDArray[np.int64] = np.searchsorted(chances, [float(TYPICAL), float(WIDE)])
    typical, wide = errors[order][np.minimum(places, errors.size - 1)]
    return Predicted(typical=float(typical), wide=float(wide))
