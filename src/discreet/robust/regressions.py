"""A robust regression: exact and not private, or private with what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, positive, positive_integer
from discreet.frames.column import Column, Data, column_of
from discreet.frames.tables import column_names
from discreet.mechanisms.additive_noise import Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import declared_rows, read_flag, rows_if_public, settle
from discreet.mechanisms.release import Accuracy, EachCell, Release
from discreet.privacy.events import Event
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation, read_relation_if_any
from discreet.robust.adaptive_queries import AdaptiveQueries
from discreet.robust.least_squares import NOT_ASKED, accuracy_of
from discreet.robust.locations import Place, needs_bounds
from discreet.robust.loss_functions import Floats, Huber, Psi
from discreet.robust.m_estimates import leverage_weights, regression_fit
from discreet.robust.named_bounds import bounds_in_order, noise_for, quoted, reader_of
from discreet.robust.regression_design import RegressionRows
from discreet.robust.regression_queries import Line, RegressionFacts, RegressionNewton, RegressionSchedule
from discreet.schema.columns import Bounds

__all__ = ["PrivateRegression", "regression", "usual_leverage"]

_HUBER = Huber()
_NEWTON = RegressionNewton()


@overload
def regression(
    X: Any,
    y: Any,
    *,
    psi: Psi = ...,
    scale: Number | None = ...,
    leverage: Number | None = ...,
    intercept: bool = ...,
) -> NotPrivate[tuple[float, ...]]: ...
@overload
def regression(
    X: Any,
    y: Any,
    *,
    relation: Relation | str,
    x_bounds: Bounds | Sequence[Bounds] | Mapping[str, Bounds] | None = ...,
    y_bounds: Bounds | None = ...,
    psi: Psi = ...,
    scale: Number | None = ...,
    leverage: Number | None = ...,
    intercept: bool = ...,
    x_units: Sequence[Number] | None = ...,
    names: Sequence[str] | None = ...,
    epsilon: Number | None = ...,
    delta: Number | None = ...,
    rho: Number | None = ...,
    mu: Number | None = ...,
    public_rows: int | None = ...,
    allow_large_delta: bool = ...,
    schedule: RegressionSchedule = ...,
    session: Payer | None = ...,
) -> Release[tuple[Fraction, ...]]: ...
def regression(
    X: Any,
    y: Any,
    *,
    relation: Relation | str | None = None,
    x_bounds: Bounds | Sequence[Bounds] | Mapping[str, Bounds] | None = None,
    y_bounds: Bounds | None = None,
    psi: Psi = _HUBER,
    scale: Number | None = None,
    leverage: Number | None = None,
    intercept: bool = True,
    x_units: Sequence[Number] | None = None,
    names: Sequence[str] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    schedule: RegressionSchedule = _NEWTON,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]] | NotPrivate[tuple[float, ...]]:
    """Regress y on the columns of X by an M-estimate; the intercept comes first.

    With a budget (epsilon, epsilon and delta, rho or mu) and a relation it is private. `x_bounds` is one pair for all
    columns or one for each, in order or by name. Columns are centred and divided by `x_units`, public guesses of how
    far they spread, half the width of their bounds by default; rows longer than `leverage` in these units count less.
    Without a budget it is the exact estimate of the data, marked as not private.

    Args:
        X: The private features: an array, rows of numbers, or a table of pandas, polars or Arrow.
        y: The private responses, one a row.
        relation: The neighbouring relation; None asks for the exact estimate.
        x_bounds: The public bounds of the features.
        y_bounds: The public bounds of the response.
        psi: The loss.
        scale: The scale of the residuals, public; without it a part of the budget is spent on finding it.
        leverage: The length from which on a row counts less.
        intercept: Whether there is an intercept.
        x_units: By what centred columns are divided, public.
        names: The names of the columns, for `labels`; x1, x2, … if not said.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        mu: What to spend of Gaussian privacy, instead of epsilon.
        public_rows: The public number of rows, or a guess of it, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        schedule: Which questions are asked: `RegressionNewton()` or `RegressionGradientDescent(…)`.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The noisy coefficients, with their intervals; or the exact ones, marked as not private.

    Raises:
        Refused: If there is a relation but no bounds: they must not be read from the data.
        InvalidParameter: If a number is out of range, or there is a budget but no relation.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> import numpy as np
        >>> X = np.arange(5000).reshape(-1, 1) % 10
        >>> release = dp.robust.regression(
        ...     X, 1 + 2 * X[:, 0], relation=dp.Relation.ADD_REMOVE, x_bounds=(0, 10), y_bounds=(0, 30), scale=1,
        ...     rho=0.5,
        ... )
        >>> release.cost
        'ρ = 0.5'
    """
    relation = read_relation_if_any(relation)
    if relation is None:
        special = None if schedule is _NEWTON else schedule
        _refuse(x_bounds, y_bounds, x_units, names, epsilon, delta, rho, mu, public_rows, session, special)
        fit = regression_fit(X, y, psi=psi, scale=scale, leverage=leverage, intercept=intercept)
        return NotPrivate(fit.value.estimates)
    people = declared_rows(public_rows, rows_if_public(y, relation))
    noise = noise_for(
        epsilon=epsilon, delta=delta, rho=rho, mu=mu, public_rows=people, allow_large_delta=allow_large_delta
    )
    columns = _columns(X, bounds_in_order(x_bounds, column_names(X), parameter="x_bounds"), x_units, leverage)
    mechanism = PrivateRegression(
        psi=psi,
        x_grids=columns.grids,
        y_grid=Grid.between(*needs_bounds(y_bounds, name="y_bounds")),
        relation=relation,
        noise=noise,
        schedule=schedule,
        leverage=columns.leverage,
        units=columns.units,
        scale=exact_or_none(scale, name="scale"),
        has_intercept=intercept,
    )
    labels = _labels(len(columns.grids), names, intercept)
    rows, targets = reader_of(X), reader_of(y)
    with paid(session, mechanism, purpose="robust regression"):
        return quoted(mechanism.release((rows(X), targets(y)), labels=labels), noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The public facts about the columns of a table."""

    grids: tuple[Grid, ...]
    units: tuple[Fraction, ...]
    leverage: Fraction


def _columns(
    table: Any, bounds: Bounds | Sequence[Bounds] | None, units: Sequence[Number] | None, leverage: Number | None
) -> _Columns:
    grids = tuple(Grid.between(*pair) for pair in _pairs(table, bounds))
    return _Columns(
        grids=grids,
        units=_units(grids, units),
        leverage=usual_leverage(len(grids)) if leverage is None else positive(leverage, name="leverage"),
    )


def _pairs(table: Any, bounds: Bounds | Sequence[Bounds] | None) -> Sequence[tuple[Number, Number]]:
    """Return one pair for each column; how many there are is public."""
    given: Any = needs_bounds(None, name="x_bounds") if bounds is None else bounds
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) or not given:
        raise InvalidParameter("x_bounds must be a pair (low, high), or one for each column")
    if isinstance(given[0], (tuple, list)):
        return [needs_bounds(pair, name="x_bounds") for pair in given]
    return [needs_bounds(tuple(given), name="x_bounds")] * _width(table)


def _width(table: Any) -> int:
    """Return the number of columns of an array, which is public."""
    shape = getattr(table, "shape", None)
    if shape is None or len(shape) not in (1, 2):
        raise InvalidParameter("of rows in a list, say x_bounds for each column: how many there are must be public")
    return int(shape[1]) if len(shape) == 2 else 1


def _units(grids: Sequence[Grid], units: Sequence[Number] | None) -> tuple[Fraction, ...]:
    if units is None:
        return tuple((grid.high - grid.low) / 2 for grid in grids)
    if isinstance(units, (str, bytes)) or not isinstance(units, Sequence) or len(units) != len(grids):
        raise InvalidParameter("x_units must be one positive number for each column")
    return tuple(positive(unit, name="x_units") for unit in units)


def usual_leverage(columns: int) -> Fraction:
    """Return the usual length of a row of columns spread evenly between their bounds, to a thousandth."""
    return Fraction(math.isqrt(10**6 * (3 + columns) // 3), 1000)


def _labels(columns: int, names: Sequence[str] | None, intercept: bool) -> tuple[str, ...]:
    given = [f"x{index + 1}" for index in range(columns)] if names is None else list(names)
    if len(given) != columns or not all(isinstance(name, str) for name in given):
        raise InvalidParameter("names must be one text for each column")
    return ("intercept", *given) if intercept else tuple(given)


def _refuse(*named: object) -> None:
    if any(value is not None for value in named):
        raise InvalidParameter(
            "a private regression needs relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE, bounds and a budget; "
            "without any of these the exact estimate is returned, marked as not private"
        )


# --- private_regression: A robust regression on bounded columns, found by questions with noise. ---


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
                Where each unit fills `slots` rows, all sums move with a unit by `slots` times what one row moves them;
                see `Squares` for the errors. A unit spends what a group of so many rows does.
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
    slots: int = 1  # rows that each unit has, exactly, where units are told

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            leverage=positive(self.leverage, name="leverage"),
            units=tuple(positive(unit, name="units") for unit in self.units),
            scale=exact_or_none(self.scale, name="scale"),
            has_intercept=read_flag(self.has_intercept, name="has_intercept"),
            resolution=positive_integer(self.resolution, name="resolution"),
            slots=positive_integer(self.slots, name="slots"),
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
            slots=self.slots,
        )
        questions = self.schedule.questions(facts)
        return AdaptiveQueries(questions=questions, start=self._start(), relation=self.relation, noise=self.noise)

    @property
    def event(self) -> Event:
        return self.dialogue.event

    def release(
        self,
        data: tuple[Any, Data],
        *,
        session: Payer | None = None,
        labels: tuple[str, ...] | None = None,
        units: NDArray[np.int64] | None = None,
    ) -> Release[tuple[Fraction, ...]]:
        """Charge, then ask everything. The data are a table of rows and the column to predict, and whose rows."""
        with paid(session, self, purpose="robust regression"):
            dialogue = self.dialogue
            line = dialogue.run(self.table(data, units))
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

    def table(self, data: tuple[Any, Data], units: NDArray[np.int64] | None = None) -> RegressionRows:
        """Return the rows on their grids, in public units. This is private."""
        table, targets = data
        columns = _private_regression_columns(table, len(self.x_grids))
        parts = [self._column(index, column) for index, column in enumerate(columns)]
        y = _placed(self.y_grid, targets) - float(self._middle)
        if any(part.size != y.size for part in parts):
            raise InvalidParameter("X must have a row for each value of y")
        rows = np.column_stack([np.ones(y.size), *parts] if self.has_intercept else parts)
        if (self.slots > 1 or units is not None) and not _fills(units, y.size, self.slots):
            raise InvalidParameter("each unit must have as many rows as there are slots")
        return RegressionRows(rows, y, leverage_weights(rows, float(self.leverage)), units)

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


def _fills(units: NDArray[np.int64] | None, rows: int, slots: int) -> bool:
    """Tell whether there is a unit for each row, and each unit has as many rows as there are slots."""
    if units is None or len(units) != rows:
        return False
    return not rows or (int(units.min()) >= 0 and bool((np.unique(units, return_counts=True)[1] == slots).all()))


def _centre(grid: Grid, has_intercept: bool) -> Fraction:
    return grid.middle * grid.step if has_intercept else Fraction(0)


def _placed(grid: Grid, column: Data) -> Floats:
    return grid.indices(column_of(column)).astype(np.float64) * float(grid.step)


def _private_regression_columns(table: Any, count: int) -> list[Data]:
    """Split a table into columns. A row of a list that is no row of this length is missing in every column."""
    if isinstance(table, Column) and count == 1:
        return [table]
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
    except Exception:  # noqa: BLE001 - as said
        cells = [row] if count == 1 else []
    return cells if len(cells) == count else [None] * count
