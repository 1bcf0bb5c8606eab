"""Edits of a plan: the limit that is tried, and the plan that says so, as whoever tries it would write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias, final

from discreet.formatting import decimal_text
from discreet.query.policy import Unit, UnitLimits
from discreet.release.plan import ReleasePlan
from discreet.schema.columns import Declared, Kind

__all__ = ["Bounds", "LimitChange", "bounded", "bounds_text", "edited", "has_bounds", "scaled_bounds", "widened"]

Bounds: TypeAlias = Mapping[str, Declared]  # of columns, by name


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """A limit that a plan is edited to, of what is published under one name; bounds are of columns, for all."""

    limit: str
    current: bool
    max_rows: int | None = None  # of a family
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    bounds: Bounds = field(default_factory=dict)


def edited(plan: ReleasePlan, published: str, change: LimitChange) -> ReleasePlan:
    """Return the plan with another limit. Where the unit's own are too small they grow, and all others stay."""
    unit, limits = plan.policy.unit, change.max_rows_per_group or change.max_rows or 1
    if change.bounds:
        return bounded(plan, change.bounds)
    wider = replace(
        unit,
        max_groups=max(unit.max_groups, change.max_groups or 1),
        max_rows_per_group=max(unit.max_rows_per_group, limits),
    )
    members = {table.name for table in plan.tables if published in (table.family, table.name)}
    tables = tuple(
        replace(table, limits=_limits(table.limits, unit, change if {table.name, table.kept_of} & members else None))
        for table in plan.tables
    )
    return replace(plan, policy=replace(plan.policy, unit=wider), tables=tables)


def _limits(said: UnitLimits, unit: Unit, change: LimitChange | None) -> UnitLimits:
    """Say every limit of a table: those of the unit where nothing was said, or those of a change."""
    rows = said.rows_in_family(unit) if change is None or change.max_rows is None else change.max_rows
    groups = None if change is None else change.max_groups
    each = None if change is None else change.max_rows_per_group
    return replace(
        said,
        max_groups=groups or said.max_groups or unit.max_groups,
        max_rows_per_group=each or said.max_rows_per_group or unit.max_rows_per_group,
        family=None if said.family is None else replace(said.family, max_rows=rows),
    )


def bounded(plan: ReleasePlan, bounds: Bounds) -> ReleasePlan:
    """Return the plan with other bounds of columns, in every private table that has them."""
    tables = {
        name: table
        if table.public
        else replace(table, columns={column: bounds.get(column, said) for column, said in table.columns.items()})
        for name, table in plan.policy.tables.items()
    }
    return replace(plan, policy=replace(plan.policy, tables=tables))


def scaled_bounds(said: Declared, factor: Fraction) -> Declared:
    """Return bounds that are as many times as wide: about zero if it lies within, else from the end that is nearer."""
    low, high = said.facts.low, said.facts.high
    assert low is not None
    assert high is not None
    anchor = min(max(Fraction(0), low), high)
    return widened(said, anchor + factor * (low - anchor), anchor + factor * (high - anchor))


def widened(said: Declared, low: Fraction, high: Fraction) -> Declared:
    """Return other bounds of a column; of whole numbers, the whole ones around them."""
    if said.facts.kind is Kind.INTEGER:
        low, high = Fraction(floor(low)), Fraction(ceil(high))
    return replace(said, facts=replace(said.facts, low=low, high=high))


def bounds_text(bounds: Bounds) -> str:
    """Write bounds as a plan says them."""
    return "; ".join(
        f"{name} = {{ low = {_number(said, said.facts.low)}, high = {_number(said, said.facts.high)} }}"
        for name, said in bounds.items()
    )


def _number(said: Declared, bound: Fraction | None) -> str:
    """Write a bound as a plan does, where 240 would be a whole number."""
    text = decimal_text(bound or Fraction(0))
    return text if said.facts.kind is Kind.INTEGER or "." in text else f"{text}.0"


def has_bounds(said: Declared) -> bool:
    """Whether a column is declared as numbers between two bounds."""
    facts = said.facts
    numeric = facts.kind in (Kind.INTEGER, Kind.REAL) and facts.members is None and said.format is None
    return numeric and facts.low is not None and facts.high is not None and facts.low < facts.high
