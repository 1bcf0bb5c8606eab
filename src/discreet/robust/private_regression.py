"""A robust regression on bounded columns, found by questions with noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from discreet.adaptive.charging import charge
from discreet.errors import InvalidParameter
from discreet.exact import exact_or_none, positive, positive_integer
from discreet.mechanisms.accuracy import Accuracy, EachCell
from discreet.mechanisms.budget import Noise
from discreet.mechanisms.column import Data, column_of
from discreet.mechanisms.fields import read_flag, read_relation, settle
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.accuracy import NOT_ASKED, accuracy_of
from discreet.robust.bounded_rows import RegressionRows
from discreet.robust.dialogue import AdaptiveQueries
from discreet.robust.fits import leverage_weights
from discreet.robust.location_questions import Place
from discreet.robust.psi import Floats, Psi
from discreet.robust.regression_questions import Line
from discreet.robust.regression_schedules import RegressionFacts, RegressionSchedule

__all__ = ["PrivateRegression"]

_FINEST = 1 << 24
_LEAST_PART = 1 << 14  # Of the bounds of the targets, for the scale.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateRegression:
    """Release the coefficients of an M-estimate of regression with bounded rows.

    Columns are centred and divided by public numbers, and a row longer than `leverage` counts less by the square of
    the ratio. Coefficients come back in the units of the data, the intercept first.

    Guarantee   what the noise spends, in the shares of the schedule.
    Theorem     A row's score is at most sup |psi| * leverage long; it becomes a vector of whole numbers by itself and
                is held in a ball. Later questions depend on the data through noisy answers only. [ABL23, DRS22]
    Utility     for many rows from one law the coefficients are normal around those of that law, with the covariance
                of the M-estimate and of the noise together; the intervals are made of both, and paid for.
    """

    psi: Psi
    x_grids: tuple[Grid, ...]  # of the columns
    y_grid: Grid
    relation: Relation
    noise: Noise
    schedule: RegressionSchedule
    leverage: Fraction  # the length from which rows count less, in public units
    units: tuple[Fraction, ...]  # by which centred columns are divided
    scale: Fraction | None = None  # of the residuals, public; asked for without one
    has_intercept: bool = True
    resolution: int = 1 << 20

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            leverage=positive(self.leverage, name="leverage"),
            units=tuple(positive(unit, name="units") for unit in self.units),
            scale=exact_or_none(self.scale, name="scale"),
            has_intercept=read_flag(self.has_intercept, name="has_intercept"),
            resolution=positive_integer(self.resolution, name="resolution"),
        )
        if len(self.units) != len(self.x_grids) or not self.size:
            raise InvalidParameter("there must be one unit for each column, and at least one coefficient")
        if self.scale is not None and self.scale <= 0:
            raise InvalidParameter("scale must be above 0")
        if self.resolution > _FINEST:
            raise InvalidParameter("resolution must be at most 2^24")
        _ = self.dialogue  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.x_grids) + self.has_intercept

    @property
    def dialogue(self) -> AdaptiveQueries[Line]:
        """The questions, with the noise that pays for each."""
        facts = RegressionFacts(
            size=self.size,
            psi=self.psi,
            leverage=self.leverage,
            resolution=self.resolution,
            has_intercept=self.has_intercept,
            has_scale=self.scale is not None,
        )
        questions = self.schedule.questions(facts)
        return AdaptiveQueries(questions=questions, start=self._start(), relation=self.relation, noise=self.noise)

    @property
    def event(self) -> Event:
        return self.dialogue.event

    def release(
        self, data: tuple[Any, Data], *, session: Payer | None = None, labels: tuple[str, ...] | None = None
    ) -> Release[tuple[Fraction, ...]]:
        """Charge, then ask everything. The data are a table of rows and the column to predict."""
        charge(self, session, purpose="robust regression")
        dialogue = self.dialogue
        line = dialogue.run(self.table(data))
        turn = self._turn()
        return Release(
            value=tuple(Fraction(value) for value in (turn @ line.coefficients + self._shift()).tolist()),
            event=dialogue.event,
            relation=self.relation,
            accuracy=self._accuracy(line, turn),
            labels=labels,
        )

    def distribution(self, data: tuple[Any, Data]) -> Outcomes:
        """List the law of all noisy answers, from which everything released follows."""
        return self.dialogue.distribution(self.table(data))

    def table(self, data: tuple[Any, Data]) -> RegressionRows:
        """Return the rows on their grids, in public units. This is private."""
        table, targets = data
        columns = _columns(table, len(self.x_grids))
        parts = [self._column(index, column) for index, column in enumerate(columns)]
        y = _placed(self.y_grid, targets) - float(self._middle)
        if any(part.size != y.size for part in parts):
            raise InvalidParameter("X must have a row for each value of y")
        rows = np.column_stack([np.ones(y.size), *parts] if self.has_intercept else parts)
        return RegressionRows(rows, y, leverage_weights(rows, float(self.leverage)))

    def _column(self, index: int, column: Data) -> Floats:
        centred = _placed(self.x_grids[index], column) - float(_centre(self.x_grids[index], self.has_intercept))
        return centred / float(self.units[index])

    @property
    def _middle(self) -> Fraction:
        """What is subtracted from the targets; the intercept takes it back."""
        return _centre(self.y_grid, self.has_intercept)

    def _start(self) -> Line:
        width = float(self.y_grid.high - self.y_grid.low)
        scale = width / 4 if self.scale is None else float(self.scale)
        least = max(width / _LEAST_PART, float(self.y_grid.step) / 2)
        low, high = (float(end - self._middle) for end in (self.y_grid.low, self.y_grid.high))
        place = Place(low=low, high=high, centre=(low + high) / 2, scale=scale, least=least, most=width / 2)
        return Line(coefficients=np.zeros(self.size), place=place, matrix=np.eye(self.size))

    def _turn(self) -> Floats:
        """Return the matrix that takes coefficients in public units to those in units of the data."""
        scales = [1 / float(unit) for unit in self.units]
        if not self.has_intercept:
            return np.diag(scales)
        turn = np.diag([1.0, *scales])
        turn[0, 1:] = [-float(_centre(grid, True)) * scale for grid, scale in zip(self.x_grids, scales, strict=True)]
        return turn

    def _shift(self) -> Floats:
        return np.array([float(self._middle)] * self.has_intercept + [0.0] * len(self.x_grids))

    def _accuracy(self, line: Line, turn: Floats) -> Accuracy:
        if not self.schedule.inference:
            return NOT_ASKED
        inner = self.schedule.covariance(line)
        if not np.isfinite(inner).all():
            return accuracy_of(math.inf)
        errors = [math.sqrt(value) if value >= 0 else math.inf for value in np.diag(turn @ inner @ turn.T).tolist()]
        if not all(map(math.isfinite, errors)):
            return accuracy_of(math.inf)
        return EachCell(cells=tuple(accuracy_of(error) for error in errors))


def _centre(grid: Grid, has_intercept: bool) -> Fraction:
    return grid.middle * grid.step if has_intercept else Fraction(0)


def _placed(grid: Grid, column: Data) -> Floats:
    return grid.indices(column_of(column)).astype(np.float64) * float(grid.step)


def _columns(table: Any, count: int) -> list[Data]:
    """Split a table into columns. A row of a list that is no row of this length is missing in every column."""
    if isinstance(table, np.ndarray):
        square = table[:, None] if table.ndim == 1 else table
        if square.ndim != 2 or square.shape[1] != count:
            raise InvalidParameter("X must have the declared number of columns")
        return [square[:, index] for index in range(count)]
    if not isinstance(table, Sequence) or isinstance(table, (str, bytes)):
        raise InvalidParameter("X must be a two-dimensional array or a list of rows")
    rows = [_cells(row, count) for row in table]
    return [[row[index] for row in rows] for index in range(count)]


def _cells(row: Any, count: int) -> list[object]:
    """Read one row by a total rule: an error would tell that somebody's row is none."""
    try:
        cells = list(row)
    except TypeError:
        cells = [row] if count == 1 else []
    return cells if len(cells) == count else [None] * count
