"""Small closed trees for the tests of engines, and what an engine makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.mechanisms.grid import Grid
from discreet.query.ast import Expression, Field, Source, Table, TableColumn
from discreet.query.engine import Deadline, Engine, ExactCounts, Stage, StageColumn, StageKey, Wants
from discreet.schema.columns import ExpressionFacts, Kind

LONG = 60.0


def field(name: str, kind: Kind, low: float | None = None, high: float | None = None) -> Field:
    """Make a field with bounds, or without."""
    bounds = [None if bound is None else Fraction(bound) for bound in (low, high)]
    return Field(name, ExpressionFacts(kind=kind, low=bounds[0], high=bounds[1]))


def table(name: str, *fields: Field, unit: str | None = None, private: bool = True, prefix: str = "") -> Table:
    """Make a table whose columns are called as its fields, but for a prefix that the fields have."""
    columns = tuple(TableColumn(one.name.removeprefix(prefix), one) for one in fields)
    return Table(name, private, columns, unit)


def column(expression: Expression, low: int, high: int, *, step: Fraction = Fraction(1), **wants: bool) -> StageColumn:
    """Make a column on a grid of which everything is wanted, unless it is said."""
    asked = wants or {"total": True, "squares": True, "distinct": True, "values": True}
    grid = Grid(low=Fraction(low), high=Fraction(high), step=step, default=Fraction(low))
    return StageColumn(expression=expression, wants=Wants(**asked), grid=grid)


def stage(
    source: Source,
    *,
    unit: str | None = None,
    keys: Sequence[tuple[Expression, tuple[Any, ...] | None]] = (),
    columns: Sequence[StageColumn] = (),
    max_groups: int = 1,
    max_rows: int = 1,
) -> Stage:
    """Make a stage."""
    return Stage(
        source=source,
        unit=unit,
        keys=tuple(StageKey(expression=expression, domain=domain) for expression, domain in keys),
        columns=tuple(columns),
        max_groups=max_groups,
        max_rows_per_group=max_rows,
        wants_units=True,
    )


def run(engine: Engine, asked: Stage) -> ExactCounts:
    """Let an engine count."""
    return engine.run(asked, deadline=Deadline.after(LONG))


def plain(tallied: ExactCounts) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return all numbers of a tally by group, as plain Python."""
    tally = tallied.tally
    keys = tallied.keys(range(tallied.groups))
    return {
        key: {
            "units": int(tally.units[group]),
            "rows": int(tally.rows[group]),
            "columns": [_plain_column(measure, group) for measure in tally.measures],
        }
        for group, key in enumerate(keys)
    }


def _plain_column(measure: Any, group: int) -> dict[str, Any]:
    numbers: dict[str, Any] = {"count": int(measure.counts[group])}
    for name in ("total", "squares", "distinct"):
        values = getattr(measure, name)
        if values is not None:
            numbers[name] = int(values[group])
    if measure.values is not None:
        numbers["values"] = measure.values.of(group).tolist()
    return numbers


def computed(
    engine: Engine, source: Source, row: Field, expressions: Sequence[Expression]
) -> dict[int, tuple[Any, ...]]:
    """Return what an engine computes for each row, which `row` numbers: as keys of groups of one row each."""
    keys = [(row, None), *((expression, None) for expression in expressions)]
    tallied = run(engine, stage(source, unit=row.name, keys=keys))
    return {number: values for number, *rest in tallied.keys(range(tallied.groups)) for values in [tuple(rest)]}


Rows = Sequence[dict[str, Any]]


def counted(rows: Rows, key: tuple[str, ...], measured: str | None = None, unit: str | None = None) -> dict[Any, Any]:
    """Count plain rows by group, one by one: what an engine must find if nothing is bounded."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if unit is not None and row[unit] is None:
            continue
        group = groups.setdefault(tuple(row[name] for name in key), {"units": set(), "rows": 0, "values": []})
        group["units"].add(row[unit] if unit is not None else group["rows"])
        group["rows"] += 1
        if measured is not None and row[measured] is not None:
            group["values"].append(row[measured])
    return {key: _summed(group, measured) for key, group in groups.items()}


def _summed(group: dict[str, Any], measured: str | None) -> dict[str, Any]:
    values = sorted(group["values"])
    numbers = {
        "count": len(values),
        "total": sum(values),
        "squares": sum(value * value for value in values),
        "distinct": len(set(values)),
        "values": values,
    }
    return {
        "units": len(group["units"]),
        "rows": group["rows"],
        "columns": [] if measured is None else [numbers],
    }
