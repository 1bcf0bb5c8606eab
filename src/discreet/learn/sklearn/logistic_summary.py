"""The coefficients of a logistic regression with their errors, and what may be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.learn.sklearn.summary import Summary, SummaryRow
from discreet.robust.normal_model import quantile

__all__ = ["Estimates"]

Floats: TypeAlias = NDArray[np.float64]

_COVERS = (
    "Intervals are for the source of the rows if it is such a model, sampling and noise together: of many such fits to "
    "many rows, that share covers."
)
_NOT_ASKED = "no budget was kept for them, say inference=True."
_DROWNED = (
    "the noise hides how much the rows tell in some direction: use more rows, a larger budget or fewer columns, and "
    "leave out columns that follow from others."
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Coefficients in the units of the data, one row a problem, the intercept first. All of it is public."""

    values: Floats
    errors: Floats | None  # standard errors, infinite where none can be told; nothing where they were not asked for

    @property
    def reason(self) -> str | None:
        """Why there are no intervals, if there are none."""
        if self.errors is None:
            return _NOT_ASKED
        return None if np.isfinite(self.errors).all() else _DROWNED

    @property
    def _lack(self) -> str:
        return "No intervals" if self.errors is None else "Intervals are unbounded"

    def intervals(self, confidence: Fraction) -> Floats:
        """Return the ends of an interval for each coefficient."""
        assert self.errors is not None
        # What noise hides in one direction is in every coefficient, more or less.
        errors = self.errors if self.reason is None else np.full_like(self.errors, np.inf)
        reach = quantile((1 + float(confidence)) / 2) * errors
        return np.stack([self.values - reach, self.values + reach], axis=-1)

    def summary(self, *, title: str, cost: str, confidence: Fraction, names: Sequence[str]) -> Summary:
        """Write the table."""
        ends: list[tuple[Fraction, Fraction] | None] = [None] * len(names)
        if self.reason is None:
            pairs = self.intervals(confidence).reshape(-1, 2).tolist()
            ends = [(Fraction(low), Fraction(high)) for low, high in pairs]
        values = map(Fraction, self.values.reshape(-1).tolist())
        return Summary(
            title=title,
            cost=cost,
            confidence=confidence,
            rows=tuple(
                SummaryRow(name=name, coefficient=value, interval=pair)
                for name, value, pair in zip(names, values, ends, strict=True)
            ),
            covers=_COVERS if self.reason is None else f"{self._lack}: {self.reason}",
        )
