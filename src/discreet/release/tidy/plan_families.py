"""What a plan says of a family of tables: where its cells lie, and which of them everybody knows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from discreet.errors import InvalidParameter
from discreet.release.plan import Invariant, Level, TablePlan
from discreet.release.tidy.cell_layout import CellLayout, lay_out

__all__ = ["NEVER_POSITIVE", "adds_up", "families", "known_of", "layout_of"]

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
    tables: Sequence[TablePlan], levels: Sequence[Level], keys: Mapping[str, tuple[Values, ...]]
) -> CellLayout:
    """Place the cells of all tables of a family; `keys` lists the public values of every key of every table."""
    known = {level.name for level in levels}
    domains: dict[str, Values] = {}
    for table in tables:
        for name, values in zip(_canonical(table.by, known), keys[table.name], strict=True):
            if set(domains.setdefault(name, values)) != set(values):
                raise InvalidParameter(f"the tables of this family list different values of {name}: list the same ones")
    groupings = {table.name: _canonical(table.by, known) for table in tables}
    return lay_out(groupings, [replace(level, of=_canonical([level.of], known)[0]) for level in levels], domains)


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
