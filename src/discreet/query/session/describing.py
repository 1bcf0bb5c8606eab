"""What an analyst may know before asking: tables, columns and what is publicly known of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from discreet.mechanisms.text import plain
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.planning.measurements import plain_value

__all__ = ["describe_catalogue"]

_SHOWN = 8  # Categories that are written out.


def describe_catalogue(catalogue: Catalogue) -> str:
    """Write a line for each column of each table."""
    return "\n".join(line for table in catalogue.tables.values() for line in _table(table, catalogue))


def _table(table: CatalogueTable, catalogue: Catalogue) -> Iterator[str]:
    unit = catalogue.unit
    limits = f"in at most {_some(unit.max_groups, 'group')}, with {_some(unit.max_rows_per_group, 'row')} in each"
    whom = "each row is protected" if table.unit is None else f"each {table.unit} is protected, counted {limits}"
    yield f"{table.name}: {whom if table.private else 'public'}"
    width = max((len(name) for name in table.columns), default=0)
    yield from (f"  {name:<{width}}  {_column(column)}" for name, column in table.columns.items())


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _column(column: CatalogueColumn) -> str:
    facts = column.facts
    parts = [facts.kind.value, *_bounds(facts), *_members(facts)]
    if column.format is not None:
        parts.append(f"written as {column.format}")
    if column.missing is not None:
        parts.append(f"{plain(column.missing)} where it is missing")
    return ", ".join(parts)


def _bounds(facts: ExpressionFacts) -> Iterator[str]:
    if facts.members is None and facts.low is not None and facts.high is not None:
        step = "" if facts.step is None else f" in steps of {plain(facts.step)}"
        yield f"{_end(facts.low, facts.kind)} … {_end(facts.high, facts.kind)}{step}"


def _end(value: Fraction, kind: Kind) -> str:
    return str(plain_value(value, kind)) if kind.is_time else plain(value)


def _members(facts: ExpressionFacts) -> Iterator[str]:
    if facts.members is not None and facts.kind is not Kind.BOOLEAN:
        more = len(facts.members) - _SHOWN
        shown = ", ".join(map(str, facts.members[:_SHOWN]))
        yield f"one of {shown}" + (f" and {more:,} more" if more > 0 else "")
