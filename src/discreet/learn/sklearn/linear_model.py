"""What linear regressors share: bounds of the target, coefficients with their errors, and predictions within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet.adaptive.no_answer import NoAnswer
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number
from discreet.formatting import decimal, decimal_up, places_for, plain
from discreet.learn.sklearn.base import PrivatePredictor, TrainingTable
from discreet.learn.sklearn.bounds import Pair, read_pair
from discreet.learn.sklearn.validation import rows_to_predict
from discreet.learn.sklearn.weights import RowWeights
from discreet.mechanisms.parameters import read_confidence
from discreet.mechanisms.release import NoInterval, Release
from discreet.robust.least_squares import DROWNED
from discreet.robust.regression_design import Design, RegressionColumns

__all__ = ["Coefficients", "LinearModel", "Summary", "SummaryRow", "read_method", "records"]

# --- summary: Coefficients as a table: each with its ±, its interval, and what that covers. ---


_PROTECTED = (
    "Protected are the rows as they were handed in: what was fitted on them before, such as a plain scaler, "
    "is not covered."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One coefficient; without an interval where none can be told."""

    name: str
    coefficient: Fraction
    interval: tuple[Fraction, Fraction] | None

    @property
    def reach(self) -> Fraction | None:
        """The larger distance to the ends of the interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        return max(high - self.coefficient, self.coefficient - low)

    def cells(self) -> tuple[str, str, str, str]:
        """Write the row with as many digits as its error allows."""
        if self.interval is None or not self.reach:
            return self.name, plain(self.coefficient), "", ""
        places = places_for(self.reach, self.coefficient)
        low, high = (decimal(end, places) for end in self.interval)
        return self.name, decimal(self.coefficient, places), decimal_up(self.reach, places), f"{low} … {high}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a fit found, how sure that is, and what it cost. Everything in it may be published."""

    title: str  # which estimator, found how
    cost: str
    confidence: Fraction
    rows: tuple[SummaryRow, ...]
    covers: str  # what the intervals cover, or why there are none
    is_unbounded: bool = False  # whether intervals were paid for, and any value goes with what was measured

    @property
    def _heads(self) -> tuple[str, str, str, str]:
        return "", "coefficient", "±", f"{plain(100 * self.confidence)} % interval"

    def __str__(self) -> str:
        table = [self._heads, *self._cells()]
        widths = [max(len(row[column]) for row in table) for column in range(4)]
        lines = [self._line(row, widths) for row in table]
        return "\n".join([f"{self.title}: {self.cost}", *lines, self.covers, _PROTECTED])

    __repr__ = __str__

    def _cells(self) -> list[tuple[str, str, str, str]]:
        cells = [row.cells() for row in self.rows]
        return [(name, value, "", "unbounded") for name, value, *_ in cells] if self.is_unbounded else cells

    @staticmethod
    def _line(row: tuple[str, ...], widths: list[int]) -> str:
        name, *numbers = (
            cell.ljust(w) if place == 0 else cell.rjust(w)
            for place, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join([name, *numbers]).rstrip()

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid, paragraph, words

        sides = [place > 0 for place in range(len(self._heads))]
        told = grid(self._cells(), self._heads, right=sides)
        return f"{paragraph(f'{self.title}: {self.cost}')}{told}<small>{words(f'{self.covers} {_PROTECTED}')}</small>"


Coefficients: TypeAlias = Release[tuple[Fraction, ...]] | Release[NoAnswer]

_COVERS = (
    "Intervals are for {} of the source of the rows, sampling and noise together: of many such fits to many rows, that "
    "share covers."
)
_AIMS = 'least squares of all rows is another line, at which LinearRegression(method="noisy_statistics") aims.'
_LEAST_SQUARES = ("the least-squares line", "")
_SHORTENED = (
    "the line",
    " Rows and residuals longer than nearly all others were shortened: where a long tail bends away from the rest, "
    + _AIMS,
)
_ROBUST = (
    "the robust line",
    " Large residuals pull it less: where they are not symmetric about the line everywhere, " + _AIMS,
)
_LINES = {"noisy_statistics": _LEAST_SQUARES, "refined": _SHORTENED}
_DECLINED = "The fit declined: its test failed. The coefficients are public constants, and the price is the same."


class LinearModel(PrivatePredictor):
    """A mixin of linear regressors. Predictions are moved into the bounds of the target, which are public."""

    target_bounds: Any
    release_: Coefficients
    coef_: NDArray[np.float64]
    intercept_: float
    method_: str
    declined_: bool
    target_limits_: tuple[float, float]

    def _facts(self, X: Any, y: Any, unit: Any, max_rows: int | None) -> tuple[TrainingTable, Design]:
        """Read the public facts of a regression."""
        table = self._table(X, y, y_numeric=True, unit=unit, max_rows=max_rows)
        return table, Design(features=table.frame.bounds, response=self._target_pair())

    def _target_pair(self) -> Pair:
        if self.target_bounds is None:
            raise Refused(
                "this needs target_bounds=(low, high)",
                reason="the target is clamped to bounds that must not be read from the data: they set the noise",
                way_out="declare what is publicly known of the target (units, a questionnaire, the law); or ask a "
                "session for private_bounds of its column and declare the answer; wide bounds cost little, since fits "
                'with method="refined" narrow them in rounds',
            )
        return read_pair(self.target_bounds, "target_bounds")

    def _settle(self, table: TrainingTable, released: Coefficients, method: str) -> Self:
        """Keep a release as scikit-learn names it."""
        value = released.value
        low, high = self._target_pair()
        self.declined_ = isinstance(value, NoAnswer)
        found = ((low + high) / 2, *[Fraction(0)] * len(table.frame.bounds)) if isinstance(value, NoAnswer) else value
        spent = self.privacy_spent_
        if spent.max_rows is not None:
            released = replace(released, event=spent.event, unit=spent.unit, max_rows=spent.max_rows)
        self.frame_, self.release_, self.method_ = table.frame, released, method
        self.target_limits_ = (float(low), float(high))
        self.intercept_, self.coef_ = float(found[0]), np.array([float(part) for part in found[1:]])
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict for features clamped to their bounds; predictions stay within those of the target."""
        check_is_fitted(self)
        values = rows_to_predict(self, X)
        inside = np.clip(values, *self.frame_.limits.T)
        found: NDArray[np.float64] = np.clip(inside @ self.coef_ + self.intercept_, *self.target_limits_)
        return found

    def intervals_(self, confidence: Number = 0.95) -> NDArray[np.float64]:
        """Return an interval (low, high) for each coefficient, the intercept first.

        Where intervals were paid for there always are some. In a fit in which the noise hides how much the rows tell in
        some direction they are unbounded, (-inf, inf): any coefficient would go with what was measured, and an
        interval that is always bounded could not cover as often as it says.
        """
        check_is_fitted(self)
        found = self._intervals(read_confidence(confidence))
        if found is not None:
            return np.array([[float(low), float(high)] for low, high in found])
        if not self._is_drowned:
            raise Refused("there are no intervals for this fit", reason=self._reason())
        return np.tile([-np.inf, np.inf], (self.n_features_in_ + 1, 1))

    @property
    def _is_drowned(self) -> bool:
        """Tell whether intervals were paid for and nothing can be told."""
        return not self.declined_ and self.release_.accuracy == DROWNED

    def summary(self, confidence: Number = 0.95) -> Summary:
        """Return a table of the coefficients, the intercept first, with their errors and the price."""
        check_is_fitted(self)
        level = read_confidence(confidence)
        value, found = self.release_.value, self._intervals(level)
        cells = [Fraction(self.intercept_), *map(Fraction, self.coef_)] if isinstance(value, NoAnswer) else value
        ends: Sequence[tuple[Fraction, Fraction] | None] = [None] * len(cells) if found is None else found
        return Summary(
            title=f"{type(self).__name__} ({self.method_})",
            cost=str(self.privacy_spent_),
            confidence=level,
            rows=tuple(
                SummaryRow(name=name, coefficient=cell, interval=pair)
                for name, cell, pair in zip(self._names(), cells, ends, strict=True)
            ),
            covers=self._reason() if found is None else self._covers(),
            is_unbounded=found is None and self._is_drowned,
        )

    def _covers(self) -> str:
        line, where = _LINES.get(self.method_, _ROBUST)
        return _COVERS.format(line) + where

    def _intervals(self, confidence: Fraction) -> Sequence[tuple[Fraction, Fraction]] | None:
        if self.declined_ or isinstance(self.release_.accuracy, NoInterval):
            return None
        return tuple(self.release_.interval(confidence))

    def _reason(self) -> str:
        accuracy = self.release_.accuracy
        if self.declined_ or not isinstance(accuracy, NoInterval):
            return _DECLINED
        return f"{'Intervals are unbounded' if self._is_drowned else 'No intervals'}: {accuracy.reason}."

    def _names(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        features = [f"x{place}" for place in range(self.n_features_in_)] if given is None else given.tolist()
        return ["intercept", *features]


def records(table: TrainingTable, weighing: RowWeights | None = None) -> RegressionColumns:
    """Read the columns of a table, its target and the weights of its rows. This is private."""
    weights = None if weighing is None else weighing.shares(table)
    return RegressionColumns([*table.columns(), table.target()], table.units(), weights)


def read_method(method: Any, known: tuple[str, ...]) -> str:
    """Read the name of a method."""
    if method not in known:
        raise InvalidParameter(f"method must be one of {', '.join(known)}")
    return str(method)
