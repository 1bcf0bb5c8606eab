"""A robust regression: exact and not private, or private with what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final, overload

from discreet.adaptive.charging import charge
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, positive
from discreet.mechanisms.fields import read_relation
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.robust.fits import regression_fit
from discreet.robust.locations import needs_bounds
from discreet.robust.named_bounds import bounds_in_order, column_names
from discreet.robust.private_regression import PrivateRegression
from discreet.robust.psi import Huber, Psi
from discreet.robust.regression_schedules import RegressionNewton, RegressionSchedule
from discreet.robust.spending import noise_for, public_rows, quoted, reader_of

__all__ = ["regression", "usual_leverage"]

_HUBER = Huber()
_NEWTON = RegressionNewton()

Pair = tuple[Number, Number]


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
    relation: Relation,
    x_bounds: Pair | Sequence[Pair] | Mapping[str, Pair] | None = ...,
    y_bounds: Pair | None = ...,
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
    population: int | None = ...,
    allow_large_delta: bool = ...,
    schedule: RegressionSchedule = ...,
    session: Payer | None = ...,
) -> Release[tuple[Fraction, ...]]: ...
def regression(
    X: Any,
    y: Any,
    *,
    relation: Relation | None = None,
    x_bounds: Pair | Sequence[Pair] | Mapping[str, Pair] | None = None,
    y_bounds: Pair | None = None,
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
    population: int | None = None,
    allow_large_delta: bool = False,
    schedule: RegressionSchedule = _NEWTON,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]] | NotPrivate[tuple[float, ...]]:
    """Regress y on the columns of X by an M-estimate; the intercept comes first.

    With a budget (epsilon, epsilon and delta, rho or mu) and a relation it is private. `x_bounds` is one pair for all
    columns or one for each, in order or by name. Columns are centred and divided by `x_units`, public guesses of how
    far they spread, half the width of their bounds by default; rows longer than `leverage` in these units count less.
    Without a budget it is the exact estimate of the data, marked as not private.
    """
    if relation is None:
        special = None if schedule is _NEWTON else schedule
        _refuse(x_bounds, y_bounds, x_units, names, epsilon, delta, rho, mu, population, session, special)
        fit = regression_fit(X, y, psi=psi, scale=scale, leverage=leverage, intercept=intercept)
        return NotPrivate(fit.value.estimates)
    people = public_rows(y, read_relation(relation)) if population is None else population
    noise = noise_for(
        epsilon=epsilon, delta=delta, rho=rho, mu=mu, population=people, allow_large_delta=allow_large_delta
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
    charge(mechanism, session, purpose="robust regression")
    return quoted(mechanism.release((rows(X), targets(y)), labels=labels), noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """The public facts about the columns of a table."""

    grids: tuple[Grid, ...]
    units: tuple[Fraction, ...]
    leverage: Fraction


def _columns(
    table: Any, bounds: Pair | Sequence[Pair] | None, units: Sequence[Number] | None, leverage: Number | None
) -> _Columns:
    grids = tuple(Grid.between(*pair) for pair in _pairs(table, bounds))
    return _Columns(
        grids=grids,
        units=_units(grids, units),
        leverage=usual_leverage(len(grids)) if leverage is None else positive(leverage, name="leverage"),
    )


def _pairs(table: Any, bounds: Pair | Sequence[Pair] | None) -> Sequence[Pair]:
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
