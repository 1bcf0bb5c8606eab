"""Tidy tables: families are made to add up, other tables are moved to where exact answers can be.

Released values and public facts go in, nothing else: tidying is free, and says nothing more about anybody.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.query import ReleaseTable
from discreet.query.answer_columns import AnswerColumn, ExactNumbers
from discreet.query.plan.residuals import Residual, TableLevels, is_below
from discreet.release.plan import Invariant, Level, ReleasePlan, TablePlan
from discreet.release.published import PublishedTable
from discreet.release.tidy.cell_layout import CellLayout, Spot, lay_out
from discreet.release.tidy.consistent_tables import RawColumn, tidy_column

__all__ = [
    "NEVER_POSITIVE",
    "adds_up",
    "canonical_groupings",
    "families",
    "family_layout",
    "known_of",
    "layout_of",
    "raw_column",
    "tidy_tables",
    "too_few",
]

# --- plan_families: What a plan says of a family of tables: where its cells lie, and which of them everybody knows. ---


Values: TypeAlias = tuple[Hashable, ...]

NEVER_POSITIVE = (None, Fraction(0))  # the limits of sums of what is never positive


def families(tables: Iterable[TablePlan]) -> dict[str, list[TablePlan]]:
    """Return the tables of every family."""
    found: dict[str, list[TablePlan]] = {}
    for table in tables:
        if table.family is not None:
            found.setdefault(table.family, []).append(table)
    return found


def layout_of(
    tables: Sequence[TablePlan],
    levels: Sequence[Level],
    keys: Mapping[str, tuple[Values, ...]],
    also: Mapping[str, tuple[str, ...]] | None = None,
) -> CellLayout:
    """Place the cells of all tables of a family; `keys` lists the public values of every key of every table.

    `also` are groupings that are not published, by canonical names.
    """
    groupings, known, domains = canonical_groupings(tables, levels, keys)
    return lay_out(groupings | dict(also or {}), known, domains)


def canonical_groupings(
    tables: Sequence[TablePlan], levels: Sequence[Level], keys: Mapping[str, tuple[Values, ...]]
) -> tuple[dict[str, tuple[str, ...]], list[Level], dict[str, Values]]:
    """Return the groupings of all tables, levels and public values, with columns called alike everywhere."""
    known = {level.name for level in levels}
    domains: dict[str, Values] = {}
    for table in tables:
        for name, values in zip(_canonical(table.by, known), keys[table.name], strict=True):
            if set(domains.setdefault(name, values)) != set(values):
                raise InvalidParameter(f"the tables of this family list different values of {name}: list the same ones")
    groupings = {table.name: _canonical(table.by, known) for table in tables}
    return groupings, [replace(level, of=_canonical([level.of], known)[0]) for level in levels], domains


def _canonical(names: Iterable[str], levels: set[str]) -> tuple[str, ...]:
    """Levels are called by their names; columns whatever the case."""
    return tuple(name if name in levels else name.casefold() for name in names)


def known_of(
    invariants: Iterable[Invariant], tables: Sequence[TablePlan], layout: CellLayout, column: str, grain: Fraction
) -> dict[tuple[str, int], int]:
    """Return what is known of a column, in grains, by table and cell."""
    found: dict[tuple[str, int], int] = {}
    for invariant, table in _about(invariants, tables, column):
        steps = invariant.value / grain
        if steps.denominator != 1:
            raise InvalidParameter(
                f"{_called(invariant)} must be a multiple of {abs(grain)}, as all values of the column"
            )
        place = table.name, layout.spots[table.name].cell(_row(invariant, table, layout))
        if found.setdefault(place, int(steps)) != steps:
            raise InvalidParameter(f"{_called(invariant)} is there twice, with different values: leave one out")
    return found


def _about(
    invariants: Iterable[Invariant], tables: Sequence[TablePlan], column: str
) -> Iterator[tuple[Invariant, TablePlan]]:
    named = {table.name: table for table in tables}
    return ((one, named[one.table]) for one in invariants if one.table in named and one.column == column)


def _row(invariant: Invariant, table: TablePlan, layout: CellLayout) -> list[Hashable]:
    """Return the values of the keys that tell the row."""
    said = {name.casefold(): value for name, value in invariant.where.items()}
    if set(said) != {name.casefold() for name in table.by}:
        keys = ", ".join(table.by) or "none, since the table has one row"
        raise InvalidParameter(f"{_called(invariant)} must name its row by all keys of the table: {keys}")
    row = [said[name.casefold()] for name in table.by]
    for name, value, domain in zip(table.by, row, layout.spots[table.name].domains, strict=True):
        if value not in domain:
            raise InvalidParameter(f"{_called(invariant)} names a value of {name} that is not among its public ones")
    return row


def _called(invariant: Invariant) -> str:
    return f"the invariant of {invariant.column} in {invariant.table}"


# --- measures ---
# Which columns add up: counts of rows or values and sums, not counts of distinct things, means or medians.


def adds_up(measure: str) -> bool:
    """Say whether the value of a group is the sum of the values of its parts."""
    import sqlglot
    from sqlglot import expressions as exp

    try:
        tree = sqlglot.parse_one(measure, dialect="duckdb")
    except sqlglot.errors.ParseError:
        return False
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return type(call) in (exp.Count, exp.Sum) and not isinstance(call.this, exp.Distinct)


Tables: TypeAlias = Mapping[str, PublishedTable]

NO_INTERVAL = "tidy values have been moved; the ± of the raw table is about the raw value"
TIDIED = "tidy: moved to where the exact value surely is, which makes small values a little too large on average"
FEW = "tidy means are missing where too few rows are in a group to tell: their interval holds all that they can be"
LIMITS = "exact tables of one family count the same rows, so they add up whatever the limits leave out"


def tidy_tables(plan: ReleasePlan, tables: Sequence[PublishedTable]) -> tuple[PublishedTable, ...]:
    """Fill in the tidy tables, if the plan wants them."""
    if not plan.output.tidy:
        return tuple(tables)
    named = {table.plan.name: table for table in tables}
    tidied = {name: _alone(plan, table) for name, table in named.items()}
    for family in families(table.plan for table in tables).values():
        members = {table.name: named[table.name] for table in family}
        tidied |= _together(plan, members, {name: tidied[name] for name in members})
    return tuple(replace(table, tidy=tidied[table.plan.name]) for table in tables)


def _alone(plan: ReleasePlan, table: PublishedTable) -> ReleaseTable:
    """Tidy a table by itself, and put in what everybody knows."""
    made = table.raw.tidy
    untold = {column.name: too_few(table, column.name) for column in table.raw.columns}
    cut = (_without(column, untold[column.name]) for column in made.columns)
    columns = tuple(replace(_known(plan, table, column), low=None, high=None) for column in cut)
    reasoned = tuple(replace(column, no_interval=NO_INTERVAL) if column.measured else column for column in columns)
    return _noted(replace(made, columns=reasoned), TIDIED, *([FEW] if any(untold.values()) else []))


def too_few(table: PublishedTable, name: str) -> frozenset[int]:
    """Return the rows of a mean, or of what is divided as one, of which the released values tell nothing.

    Its interval holds all that it can be, or no count of rows beside it is surely above zero.
    """
    column = table.raw.column(name)
    least, most = column.limits
    if not column.measured or column.grain is not None or least is None or most is None or not column.has_interval:
        return frozenset()
    counts = [table.raw.column(other) for other, measure in table.plan.measures.items() if _is_count(measure)]
    cells = [(row, column[row]) for row in range(len(column))]
    whole = {row for row, cell in cells if (cell.low, cell.high) == (least, most)}
    empty = {row for row, _ in cells if counts and not any((one[row].low or 0) > 0 for one in counts)}
    return frozenset(whole | empty)


def _is_count(measure: str) -> bool:
    return re.fullmatch(r"COUNT\([^()]*\)", measure.strip(), re.IGNORECASE) is not None


def _without(column: AnswerColumn, rows: frozenset[int]) -> AnswerColumn:
    if not rows:
        return column
    return replace(column, values=tuple(None if row in rows else column.values[row] for row in range(len(column))))


def _known(plan: ReleasePlan, table: PublishedTable, column: AnswerColumn) -> AnswerColumn:
    rows = {row: one.value for one in plan.invariants for row in _rows(one, table, column.name)}
    if not rows:
        return column
    return replace(column, values=tuple(rows.get(row, column.values[row]) for row in range(len(column))))


def _rows(invariant: Invariant, table: PublishedTable, column: str) -> list[int]:
    """Return the rows of a column that an invariant is about: one, or none if it is hidden."""
    keys = {one.name.casefold(): one for one in table.raw.columns if not one.measured}
    said = {name.casefold(): value for name, value in invariant.where.items()}
    if (invariant.table, invariant.column) != (table.plan.name, column) or set(said) != set(keys):
        return []
    return [row for row in range(len(table.raw)) if all(keys[name].values[row] == said[name] for name in said)]


def _together(plan: ReleasePlan, tables: Tables, alone: dict[str, ReleaseTable]) -> dict[str, ReleaseTable]:
    """Make a family add up; where that cannot be, its tables stay tidied one by one, and say why."""
    try:
        layout = family_layout(plan, tables)
    except InvalidParameter as problem:
        return {name: _noted(table, f"not made to add up: {problem}") for name, table in alone.items()}
    for column, measure in next(iter(tables.values())).plan.measures.items():
        try:
            cells = _solved(plan, tables, layout, column, measure)
        except InvalidParameter as problem:
            alone = {name: _noted(table, f"{column} is not made to add up: {problem}") for name, table in alone.items()}
        else:
            alone = {name: _filled(table, column, cells[name]) for name, table in alone.items()}
    return {name: _noted(table, *_remarks(plan, tables)) for name, table in alone.items()}


def _remarks(plan: ReleasePlan, tables: Tables) -> list[str]:
    together = f"made to add up, by weighted least squares, over {', '.join(tables)}"
    return [together] if plan.policy.unit.is_row else [together, LIMITS]


def _noted(table: ReleaseTable, *notes: str) -> ReleaseTable:
    return replace(table, notes=(*table.notes, *notes))


def _filled(table: ReleaseTable, name: str, values: ExactNumbers) -> ReleaseTable:
    columns = (replace(one, values=values) if one.name == name else one for one in table.columns)
    return replace(table, columns=tuple(columns))


def _solved(plan: ReleasePlan, tables: Tables, layout: CellLayout, name: str, measure: str) -> dict[str, ExactNumbers]:
    """Return the tidy values of one column, by table and row."""
    if not adds_up(measure):
        raise InvalidParameter("only counts of rows and sums do; say tidy = false to publish raw values alone")
    grain, column = raw_column(plan, tables, layout, name)
    cells = tidy_column(layout, column)
    return {table: ExactNumbers(cells[table][_cells(layout, tables[table])], step=grain) for table in tables}


def family_layout(plan: ReleasePlan, tables: Tables) -> CellLayout:
    """Place the cells of all tables of a family; every table must have a row for every combination of public keys."""
    keys = {name: tuple(tuple(dict.fromkeys(key)) for key in _keys(table)) for name, table in tables.items()}
    layout = layout_of([table.plan for table in tables.values()], plan.levels, keys, _between(plan, tables))
    for name, table in tables.items():
        if not len(table.raw) == len(np.unique(_cells(layout, table))) == layout.spots[name].cells:
            raise InvalidParameter(f"{name} does not have each group once")
    return layout


def _between(plan: ReleasePlan, tables: Tables) -> dict[str, tuple[str, ...]]:
    """Return the groupings that the inverse covariance of shared noise has weights for, and no table."""
    named, weights = _shared_weights(plan, tables)
    published = {frozenset(levels) for levels in _shared_levels(tables).values()}
    return {
        _called_between(named, one): tuple(named[key] for key in one)
        for one in weights
        if frozenset(one) not in published
    }


def _shared_levels(tables: Tables) -> dict[str, TableLevels]:
    shared = {name: table.shared for name, table in tables.items()}
    return {name: one.residuals.tables[one.table] for name, one in shared.items() if one is not None}


def _shared_weights(plan: ReleasePlan, tables: Tables) -> tuple[dict[tuple[int, int], str], dict[Residual, float]]:
    """Return what each level is called, and the weights of groupings; none where tables have noise of their own."""
    first = next(iter(tables.values())).shared
    found = None if first is None else first.residuals.precisions()
    if first is None or found is None or None in first.scales:
        return {}, {}
    known = {level.name for level in plan.levels}
    levels = _shared_levels(tables)
    named = {
        key: name
        for table in tables
        for key, name in zip(levels[table], _canonical(tables[table].plan.by, known), strict=True)
    }
    most = max(found.values())
    return named, {one: float(weight / most) for one, weight in found.items() if weight}


def _called_between(named: Mapping[tuple[int, int], str], grouping: Residual) -> str:
    return "+".join(("", *(named[key] for key in grouping)))  # No table is called so.


def _metric(plan: ReleasePlan, tables: Tables, layout: CellLayout) -> list[tuple[Spot, str, float]]:
    """Return the inverse covariance of shared noise as weights of groupings, each added up from the smallest table."""
    named, weights = _shared_weights(plan, tables)
    levels = _shared_levels(tables)
    sized = sorted(levels, key=lambda name: layout.spots[name].cells)
    made = []
    for one, weight in weights.items():
        own = next((name for name in levels if frozenset(levels[name]) == frozenset(one)), None)
        spot = layout.spots[_called_between(named, one) if own is None else own]
        source = own or next(name for name in sized if is_below(one, levels[name]))
        made.append((spot, source, weight))
    return made


def _keys(table: PublishedTable) -> list[list[Any]]:
    # By their place: a plan may write a name in another case than the source does.
    return [_listed(column) for column in table.raw.columns[: len(table.plan.by)]]


def _listed(column: AnswerColumn) -> list[Any]:
    return [column.values[row] for row in range(len(column))]


def _cells(layout: CellLayout, table: PublishedTable) -> NDArray[np.int64]:
    """Return the cell of every row."""
    return layout.spots[table.plan.name].cells_of(_keys(table), len(table.raw))


def raw_column(plan: ReleasePlan, tables: Tables, layout: CellLayout, name: str) -> tuple[Fraction, RawColumn]:
    """Return the grain of a column, and the column in grains; of sums that are never positive, in negative ones."""
    columns = {table: one.raw.column(name) for table, one in tables.items()}
    grains = [column.grain for column in columns.values()]
    grain = grains[0]
    if grain is None or any(other != grain for other in grains):
        raise InvalidParameter("its tables do not count in the same steps")
    if any(name not in table.deviations for table in tables.values()):
        raise InvalidParameter("the width of its noise is not public")
    grain = -grain if all(column.limits == NEVER_POSITIVE for column in columns.values()) else grain
    known = known_of(plan.invariants, [table.plan for table in tables.values()], layout, name, grain)
    return grain, RawColumn(
        {table: _by_cell(layout, tables[table], column, grain) for table, column in columns.items()},
        {table: one.deviations[name] / abs(grain) for table, one in tables.items()},
        known,
        not_negative=grain < 0 or all(column.limits[0] == 0 for column in columns.values()),
        metric=_metric(plan, tables, layout),
    )


def _by_cell(layout: CellLayout, table: PublishedTable, column: AnswerColumn, grain: Fraction) -> NDArray[np.float64]:
    by_cell = np.zeros(layout.spots[table.plan.name].cells)
    by_cell[_cells(layout, table)] = [float(value / grain) for value in _listed(column)]
    return by_cell
