"""Many linear queries of one table in one call: all sums of a few, near the least noise that is possible."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adaptive.bounded_memberships import UnitRows, unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number
from discreet.frames.column import Column, column_of, reader_for, taken
from discreet.frames.tables import column_names, is_table, table_columns
from discreet.mechanisms.parameters import declared_rows, rows_if_public
from discreet.mechanisms.release import Release
from discreet.mechanisms.workloads.matrix_mechanism import MatrixMechanism
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation, read_relation
from discreet.statistics.budget_and_payment import noise_from, paid_for, quoted

__all__ = ["workload"]


def workload(
    data: Any,
    queries: Any,
    *,
    cells: Mapping[str, Iterable[Hashable]] | Iterable[Hashable],
    relation: Relation | str,
    aim: str = "sum",
    best_for: Any = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Answer many linear queries of the counts of cells in one release, with about the least noise that is possible.

    Rows are counted in public cells: the values of a column, or all combinations of the values of several. A query is
    a weighted sum of these counts. Instead of every query, a few sums are measured from which all answers follow. With
    Gaussian noise the strategy is within a few per cent of the best one, but for products of several columns under
    replace-one. With Laplace noise it is the best predicted of several, and never worse than noise on each query if
    the weights of a matrix are small whole multiples of one number, and its queries 4,096 at most.

    Queries are said as

    - a matrix with one row a query and one column a cell, up to 2,048 cells, combinations in the order of the columns,
      the last one running fastest;
    - "identity" (all cells), "total", "prefix" (the first cell, the first two, …) or "range" (all ranges of cells);
    - one of these for each column, `{"age": "prefix", "sex": "identity"}`: all products of their rows, up to a million
      cells, of which a prefix, a range or a matrix has at most 2,048; a column that is not named is summed over;
    - a list of such mappings, several products at once, up to 2,048 cells.

    Args:
        data: The private rows: a column, or where `cells` has names a table of pandas, polars or Arrow, a mapping of
            names to columns, a two-dimensional array or a list of rows, these two in the order of `cells`.
        queries: What is asked, see above.
        cells: The public values of the column, in order; of several columns by their names. What is in no cell is not
            counted.
        relation: The neighbouring relation.
        aim: Whether the "sum" of all variances shall be least, or the "largest" of them.
        best_for: The queries that the strategy shall be best for, if these are others: so cells can be asked whose
            sums by ranges are sure. Their number is not limited.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        One answer a query, right on average, with an interval for each; `as_dict` names them. Their errors are
        correlated: `release.accuracy.covariance()` tells how, and `release.accuracy.standard_error(weights)` how sure
        a sum of them is.

    Raises:
        InvalidParameter: If queries and cells do not fit, or the budget is out of range.
        Refused: If there are too many cells or answers.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.workload(
        ...     [3, 5, 5, 8] * 100, "prefix", cells=range(10), relation=dp.Relation.ADD_REMOVE, rho=1
        ... )
        >>> len(release.value), abs(release.value[5] - 300) < 20
        (10, True)
        >>> table = {"age": [20, 40] * 50, "sex": ["f", "m"] * 50}
        >>> release = dp.workload(
        ...     table, {"age": "range", "sex": "identity"}, cells={"age": [20, 30, 40], "sex": ["f", "m"]},
        ...     relation=dp.Relation.ADD_REMOVE, epsilon=1,
        ... )
        >>> release.labels[:4]
        ('20, f', '20, m', '20 … 30, f', '20 … 30, m')
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    _refuse_sql(queries)
    named = cells if isinstance(cells, Mapping) else None
    first, read = _table_reader(data, named) if named is not None else _column_reader(data)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        public_rows=declared_rows(public_rows, rows_if_public(first, relation)),
        allow_large_delta=allow_large_delta,
        whom=whom,
    )
    listed: Any = [cells] if named is None else named
    mechanism = MatrixMechanism.best(queries, cells=listed, relation=relation, noise=noise, aim=aim, best_for=best_for)
    with paid_for(whom, session, mechanism, purpose="workload"):
        return quoted(mechanism.release(_counted(read(), whom)), noise, whom, session)


def _refuse_sql(queries: Any) -> None:
    listed = [queries] if isinstance(queries, str) else queries
    if isinstance(listed, (list, tuple)) and any(isinstance(one, str) and " " in one.strip() for one in listed):
        raise Refused(
            "queries in SQL are asked of a session",
            reason="which rows they count is found in its tables",
            way_out='dp.query.workload(session, ["SELECT COUNT(*) FROM …", …], …)',
        )


def _column_reader(data: Any) -> tuple[Any, Callable[[], Any]]:
    reader = reader_for(data)
    return data, lambda: [reader(data)]


def _table_reader(data: Any, cells: Mapping[str, Any]) -> tuple[Any, Callable[[], Any]]:
    """Return what has a length, and what reads the columns of the cells later; no value is looked at."""
    if not cells or not all(isinstance(name, str) for name in cells):
        raise InvalidParameter("cells must name at least one column, by texts")
    if isinstance(data, np.ndarray) and data.ndim == 2:
        columns = list(table_columns(data))
        if len(columns) != len(cells):
            raise InvalidParameter("an array must have one column for each of cells, in their order")
    elif isinstance(data, Mapping) or is_table(data):
        columns = _named_columns(data, cells)
    elif isinstance(data, (list, tuple)):
        return data, lambda: _by_columns(data, tuple(cells))
    else:
        raise InvalidParameter(
            "the rows must be a table of pandas, polars or Arrow, a mapping of names to columns, a two-dimensional "
            f"array or a list of rows, not {type(data).__name__}"
        )
    readers = [reader_for(column) for column in columns]
    return columns[0], lambda: [read(one) for read, one in zip(readers, columns, strict=True)]


def _by_columns(rows: Sequence[Any], names: Sequence[str]) -> list[Column]:
    """Split rows into columns by a total rule: what is no row of these columns has no values. This is private."""
    values = [_values_of(row, names) for row in rows]
    return [column_of([row[place] for row in values]) for place in range(len(names))]


def _values_of(row: Any, names: Sequence[str]) -> Sequence[object]:
    """Return what a row holds: a mapping by its names, others in order; of a single column also the value itself."""
    try:
        if isinstance(row, Mapping):
            return [row.get(name) for name in names]
        is_value = len(names) == 1 and not (isinstance(row, (list, tuple)) and len(row) == 1)
        values = (row,) if is_value else tuple(row)
    except Exception:  # noqa: BLE001 - an error would tell that somebody's row is none
        values = ()
    return values if len(values) == len(names) else (None,) * len(names)


def _named_columns(data: Any, cells: Mapping[str, Any]) -> list[Any]:
    if isinstance(data, Mapping):
        known = dict(data)
    else:
        known = dict(zip(map(str, column_names(data) or ()), table_columns(data), strict=True))
    missing = [name for name in cells if name not in known]
    if missing:
        raise InvalidParameter(f"the table has no column {missing[0]!r}, which cells=… names")
    return [known[name] for name in cells]


def _counted(rows: Sequence[Column], whom: UnitRows | None) -> Sequence[Column]:
    """Return the rows that count, by columns. This is private."""
    if whom is None:
        return rows
    kept = whom.kept(len(rows[0]))
    return [taken(column, kept) for column in rows]
