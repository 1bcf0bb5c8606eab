"""Several bounded columns together: linear regression, covariances and correlations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Number as NumberType
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.adaptive.bounded_memberships import UnitRows, unit_codes, unit_rows
from discreet.adaptive.no_answer import NoAnswer
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.frames.column import Column, as_column, column_of, reader_for, taken
from discreet.frames.tables import column_names, is_table, table_columns
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.parameters import declared_rows, rows_if_public, small_delta
from discreet.mechanisms.release import Release
from discreet.mechanisms.variance import Covariance, correlation_of
from discreet.privacy.payer import Payer, Price, paid
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.adassp import AdaSSP
from discreet.robust.least_squares import NoisyStatistics
from discreet.robust.named_bounds import bounds_in_order
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design, Records, RegressionColumns, record_columns
from discreet.robust.reweighting import weight_grid, weight_shares
from discreet.robust.tukey_em import TukeyRegression
from discreet.schema.columns import Bounds
from discreet.statistics.budget_and_payment import grid_from, noise_from, paid_for, quoted

__all__ = ["AUTO_METHOD", "METHODS", "correlation", "covariance", "regression", "worth_rounds"]

Method: TypeAlias = Literal["auto", "refined", "noisy_statistics", "adassp", "tukey"]
Regression: TypeAlias = RefinedRegression | NoisyStatistics | AdaSSP | TukeyRegression

METHODS = ("refined", "noisy_statistics", "adassp", "tukey")
AUTO_METHOD = METHODS[0]

_GAUSSIAN: dict[str, type[RefinedRegression] | type[NoisyStatistics] | type[AdaSSP]] = {
    "refined": RefinedRegression,
    "noisy_statistics": NoisyStatistics,
    "adassp": AdaSSP,
}

_WORTH_ROUNDS = 12  # People times mu, for each coefficient; with fewer, rounds lost against one look when measured.


def regression(
    X: Any,
    y: Any,
    *,
    relation: Relation | str,
    x_bounds: Sequence[Bounds] | Mapping[str, Bounds] | None = None,
    y_bounds: Bounds | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    method: Method = "auto",
    weights: Any = None,
    weight_bounds: Bounds | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    unit: Any = None,
    max_rows: int | None = None,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]] | Release[NoAnswer]:
    """Release a linear regression of y on the columns of X, by least squares; the intercept comes first.

    Each value is clamped to public bounds, one pair a feature in `x_bounds`, in order or by the names of
    the columns, `{"age": (0, 120), …}`; what is missing counts as their middle.
    Coefficients are in the units of the data; `robust.predict` applies them. `method="auto"` refines the fit in
    rounds, so that bounds which are wide for the data cost little; where the number of rows is public, or is said in
    `public_rows`, and is too small for that, it looks once. `method="tukey"` takes a point deep among fits of a
    thousand blocks, and may decline. Spend epsilon with delta, or, except for "tukey", rho.

    Args:
        X: The private features: rows of numbers, an array, or a table of pandas, polars or Arrow.
        y: The private responses, one a row.
        relation: The neighbouring relation.
        x_bounds: The public bounds of each feature, in order or by name.
        y_bounds: The public bounds of the response.
        epsilon: What to spend, with delta.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; not for "tukey".
        method: How to fit: "auto", "refined", "noisy_statistics", "adassp" or "tukey".
        weights: The private weight of each row, such as that of a survey; for "auto", "refined" and
            "noisy_statistics". All rows weigh the same if not said.
        weight_bounds: The public bounds (0, high) that weights are clamped to. Noise is that of rows that all weigh
            `high`, so declare no more than is needed.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Rows of a unit share the
            weight of one row, so that more of them cost nothing.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The intercept and one coefficient for each feature; or no answer, where "tukey" declines.

    Raises:
        Refused: If there are no bounds, of columns or of weights: they must not be read from the data; or if the
            method takes no weights.
        InvalidParameter: If bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> rows = [[i % 10] for i in range(2000)]
        >>> release = dp.regression(
        ...     rows, [2 * row[0] for row in rows], x_bounds=[(0, 10)], y_bounds=(0, 30),
        ...     relation=dp.Relation.REPLACE_ONE, rho=0.5,
        ... )
        >>> len(release.value)
        2
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    design = _design(bounds_in_order(x_bounds, column_names(X), parameter="x_bounds"), y_bounds)
    read = _reader(X, y)
    if weights is not None:
        read = _weighted_reader(X, y, weights, weight_bounds, method, len(design.grids))
    size = rows_if_public(X, relation)
    people = declared_rows(public_rows, size)
    mechanism: Regression
    if method == "tukey":
        mechanism = _tukey(design, relation, epsilon, delta, rho, people, allow_large_delta)
    else:
        noise = _noise(epsilon, delta, rho, people, allow_large_delta)
        chosen = _chosen(_automatic(design, noise, people) if method == "auto" else method)
        mechanism = chosen(design=design, relation=relation, noise=noise, public_rows=size)
    if whom is not None:
        return _of_units(mechanism, whom, read, session)
    with paid(session, mechanism, purpose="regression"):
        return mechanism.release(read())


def _of_units(
    mechanism: Regression, whom: UnitRows, read: Callable[[], Records], session: Payer | None
) -> Release[tuple[Fraction, ...]] | Release[NoAnswer]:
    """Pay for one unit, and fit: its rows share a weight, or fill as many slots as those of any other."""
    divides = isinstance(mechanism, (RefinedRegression, NoisyStatistics))
    whom, event = whom if divides else whom.with_slots(), mechanism.event
    if isinstance(mechanism, AdaSSP):
        mechanism = replace(mechanism, noise=mechanism.noise.part(Fraction(1, whom.max_rows**2)))
        event = whom.event_of(mechanism.event)
    account = "row" if session is None else whom.account  # Where nobody pays, nobody asks for a name.
    noun = getattr(getattr(session, "unit", None), "noun", whom.noun)
    with paid(session, Price(event, mechanism.relation), purpose="regression", unit=account):
        records = read()
        columns = [column_of(column) for column in record_columns(records, len(mechanism.design.grids))]
        kept = whom.kept(len(columns[0])) if divides else whom.filled(len(columns[0]))
        units = unit_codes(taken(whom.ids(), kept))
        weights = records.weights if isinstance(records, RegressionColumns) else None
        counted = [taken(column, kept) for column in columns]
        released = mechanism.release(RegressionColumns(counted, units, None if weights is None else weights[kept]))
        return replace(released, event=event, unit=noun, max_rows=whom.max_rows)


def worth_rounds(design: Design, noise: GaussianNoise, people: int | None) -> bool:
    """Tell by public facts only: rounds pay, except where so few people leave nothing but noise to go by."""
    return people is None or people**2 >= (_WORTH_ROUNDS * design.dimension) ** 2 * noise.squared_multiplier


def _automatic(design: Design, noise: GaussianNoise, people: int | None) -> str:
    return "refined" if worth_rounds(design, noise, people) else "noisy_statistics"


def _chosen(method: str) -> type[RefinedRegression] | type[NoisyStatistics] | type[AdaSSP]:
    if method not in _GAUSSIAN:
        raise InvalidParameter(f"method must be one of auto, {', '.join(_GAUSSIAN)}, tukey")
    return _GAUSSIAN[method]


def _tukey(
    design: Design,
    relation: Relation,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    public_rows: int | None,
    allow_large_delta: bool,
) -> TukeyRegression:
    if epsilon is None or delta is None or rho is not None:
        raise InvalidParameter('method="tukey" spends epsilon=… and delta=…')
    chance = small_delta(delta, public_rows=public_rows, allow_large_delta=allow_large_delta)
    return TukeyRegression(design=design, relation=relation, epsilon=exact(epsilon, name="epsilon"), delta=chance)


def _design(x_bounds: Iterable[Bounds] | None, y_bounds: Bounds | None) -> Design:
    if x_bounds is None or y_bounds is None:
        raise Refused(
            "this needs x_bounds=[(low, high), …], a pair a feature, and y_bounds=(low, high), none of them read from "
            "the data. Take them from what is publicly known, as wide as you must: the rounds of a fit narrow them"
        )
    return Design.between(x_bounds, y_bounds)


def _noise(
    epsilon: Number | None, delta: Number | None, rho: Number | None, public_rows: int | None, allow_large_delta: bool
) -> GaussianNoise:
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, public_rows=public_rows, allow_large_delta=allow_large_delta
    )
    if not isinstance(noise, GaussianNoise):
        raise InvalidParameter("a regression spends epsilon=… and delta=…, or rho=…: its noise is Gaussian")
    return noise


def _reader(X: Any, y: Any) -> Callable[[], Records]:
    """Return what reads the table later, once it is paid for; now only its kind is looked at."""
    answer = reader_for(y)
    if is_table(X) or (isinstance(X, np.ndarray) and X.ndim == 2):
        return lambda: RegressionColumns([*map(as_column, table_columns(X)), answer(y)])
    if isinstance(X, (list, tuple)):
        return lambda: _joined(X, answer(y).objects())
    raise InvalidParameter(
        f"X must be a two-dimensional array, a table of pandas, polars or Arrow, or a list of rows, "
        f"not {type(X).__name__}"
    )


def _weighted_reader(
    X: Any, y: Any, weights: Any, weight_bounds: Bounds | None, method: str, width: int
) -> Callable[[], RegressionColumns]:
    """Return what reads the table and the weights of its rows later, clamped to their bounds."""
    if method not in ("auto", "refined", "noisy_statistics"):
        raise Refused(
            f"method={method!r} takes no weights of rows",
            way_out='fit with method="refined" or "noisy_statistics", whose sums are proven with them',
        )
    grid, read, weigh = weight_grid(weight_bounds), _reader(X, y), reader_for(weights)

    def records() -> RegressionColumns:
        columns, shares = record_columns(read(), width), weight_shares(grid, weigh(weights))
        if len(shares) != len(columns[0]):  # Before rows of units are picked out, with whoever's weight.
            raise InvalidParameter("weights must have one number for each row of X")
        return RegressionColumns(columns, weights=shares)

    return records


def _joined(rows: Sequence[Any], responses: list[object]) -> list[Any]:
    """Put the response behind the features of each row; what is no row of features is left to be missing."""
    if len(rows) != len(responses):
        raise InvalidParameter("X must have a row for each value of y")
    return [_record(row, response) for row, response in zip(rows, responses, strict=True)]


def _record(row: Any, response: object) -> list[object] | None:
    try:
        return [*row, response]
    except Exception:  # noqa: BLE001 - an error would tell that somebody's row is none
        return None


# --- pairs: Covariances and correlations of several columns, in one release. ---


def covariance(
    table: Any,
    *,
    relation: Relation | str,
    bounds: Sequence[Bounds] | Mapping[str, Bounds] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release the matrix of covariances (divisor n) of several columns, each value clamped to the bounds of its column.

    All of them come from one release, with one price: under add-remove from noisy sums of products, squares and values
    and one noisy count; under replace-one from one noisy number a pair. What is missing counts as the middle of its
    bounds. The matrix has noise, so an eigenvalue near zero may be below it.

    Args:
        table: The private rows: a table of pandas, polars or Arrow, a two-dimensional array, a mapping of names to
            columns, or a list of rows.
        relation: The neighbouring relation.
        bounds: The public bounds of every column, pairs or declarations, in order or by name.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The matrix row by row, with an interval for each cell; `as_dict` names them, "age, income", and
        `numpy.reshape(release.estimate, (d, d))` is the matrix of d columns.

    Raises:
        Refused: If there are no bounds, which must not be read from the data, or they do not fit the columns.
        InvalidParameter: If the table has fewer than two columns, or bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> rows = [[i % 10, 2 * (i % 10)] for i in range(5000)]
        >>> release = dp.covariance(rows, bounds=[(0, 10), (0, 20)], relation=dp.Relation.REPLACE_ONE, epsilon=2)
        >>> len(release.value), abs(release.value[1] - 16.5) < 2
        (4, True)
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    names, first, width, read = _pairs_reader(table)
    pairs = bounds_in_order(bounds, names)
    if pairs is None or width not in (None, len(pairs)) or any(isinstance(pair, (NumberType, str)) for pair in pairs):
        raise Refused(
            "this needs bounds=[(low, high), …], a pair for each column, none of them read from the data",
            reason="the noise must hide the largest change that one row can make",
            way_out="take them from what is publicly known, in the order of the columns or by their names",
        )
    size = rows_if_public(first, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        public_rows=declared_rows(public_rows, size),
        allow_large_delta=allow_large_delta,
        whom=whom,
    )
    grids = tuple(grid_from(pair, step=None, missing=None) for pair in pairs)
    mechanism = Covariance(grids=grids, relation=relation, noise=noise, public_rows=size)
    with paid_for(whom, session, mechanism, purpose="covariance"):
        release = quoted(mechanism.release(_counted_rows(read(), whom)), noise, whom, session)
        shown = [f"column {place}" for place in range(1, len(grids) + 1)] if names is None else list(map(str, names))
        return replace(release, labels=tuple(f"{one}, {other}" for one in shown for other in shown))


def correlation(
    table: Any,
    *,
    relation: Relation | str,
    bounds: Sequence[Bounds] | Mapping[str, Bounds] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release the matrix of correlations of several columns: covariances over the roots of variances, for free.

    Each interval has the noise of all numbers behind its cell. A cell is zero where a released variance is not above
    zero, and its interval is then from -1 to 1: nothing is known.

    Args:
        table: The private rows: a table of pandas, polars or Arrow, a two-dimensional array, a mapping of names to
            columns, or a list of rows.
        relation: The neighbouring relation.
        bounds: The public bounds of every column, pairs or declarations, in order or by name.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The matrix row by row, ones on its diagonal, with an interval for each cell.

    Raises:
        Refused: If there are no bounds, which must not be read from the data, or they do not fit the columns.
        InvalidParameter: If the table has fewer than two columns, or bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> rows = [[i % 10, 2 * (i % 10)] for i in range(5000)]
        >>> release = dp.correlation(rows, bounds=[(0, 10), (0, 20)], relation=dp.Relation.REPLACE_ONE, epsilon=2)
        >>> release.value[0], release.value[1] > 0.8
        (Fraction(1, 1), True)
    """
    return correlation_of(
        covariance(
            table,
            relation=relation,
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            public_rows=public_rows,
            allow_large_delta=allow_large_delta,
            session=session,
            unit=unit,
            max_rows=max_rows,
        )
    )


def _pairs_reader(table: Any) -> tuple[Sequence[Any] | None, Any, int | None, Callable[[], Any]]:
    """Return names, what has a length, how many columns there are, and what reads them later; no value is looked at.

    Names and the number of columns are None for a list of rows.
    """
    names: Sequence[Any] | None
    if isinstance(table, Mapping):
        names, columns = tuple(table), list(table.values())
    elif is_table(table) or (isinstance(table, np.ndarray) and table.ndim == 2):
        names, columns = column_names(table), list(table_columns(table))
    elif isinstance(table, (list, tuple)):
        return None, table, None, lambda: table
    else:
        raise InvalidParameter(
            "the rows must be a table of pandas, polars or Arrow, a two-dimensional array, a mapping of names to "
            f"columns, or a list of rows, not {type(table).__name__}"
        )
    if len(columns) < 2:
        raise InvalidParameter("covariances are of two columns or more")
    readers = [reader_for(column) for column in columns]
    return names, columns[0], len(columns), lambda: [read(one) for read, one in zip(readers, columns, strict=True)]


def _counted_rows(rows: Any, whom: UnitRows | None) -> Any:
    """Return the rows that count, by columns if they came so. This is private."""
    if whom is None:
        return rows
    if rows and all(isinstance(part, Column) for part in rows):
        kept = whom.kept(len(rows[0]))
        return [taken(column, kept) for column in rows]
    kept = whom.kept(len(rows))
    return rows if isinstance(kept, slice) else [rows[place] for place in kept]
