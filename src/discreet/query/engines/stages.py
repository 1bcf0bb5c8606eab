"""Write a stage as parts of a SELECT: the unit, the group and the index of every column on its grid."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import final

from discreet.query.engines.domains import Domain, Lookup, coded
from discreet.query.engines.expressions import write
from discreet.query.engines.placing import place
from discreet.query.engines.sources import Relations, write_source
from discreet.query.engines.writing import Writer
from discreet.query.expressions import Expression
from discreet.query.facts import Kind
from discreet.query.stage import Stage, StageColumn

__all__ = ["Index", "Scan", "write_stage"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A column as whole numbers from `low` to `high`; open if its values must be listed before they have numbers."""

    sql: str
    low: int = 0
    high: int = 0
    is_open: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is selected, from where, and what a connection must know for it."""

    origin: str  # FROM and WHERE
    unit: str | None
    group: str | None  # the code of a group, NULL if it is in none; None without keys, or where data must tell them
    groups: int  # 0 where data must tell them
    keys: tuple[str, ...]  # the keys themselves, where data must tell them
    columns: tuple[Index, ...]
    lookups: tuple[Lookup, ...]
    parameters: dict[str, str]


def write_stage(stage: Stage, relations: Relations, writer: Writer) -> Scan:
    """Write a stage. Rows without a unit are left out; those outside of the public domain of a key have no group."""
    rows = write_source(stage.source, relations, writer)
    keys = [_key(key.expression, writer) for key in stage.keys]
    columns = [_key(column.expression, writer) for column in stage.columns]
    listed = [*_aliased("k", keys), *_aliased("c", columns)]
    unit = None if stage.unit is None else writer.column(stage.unit)
    listed += [] if unit is None else [f"{unit} AS u"]
    inner = f"SELECT {', '.join(listed) or 'NULL AS nothing'} FROM ({rows})"
    domains = [
        None if key.domain is None else coded(f"k{number}", key.expression.facts, key.domain, writer)
        for number, key in enumerate(stage.keys, 1)
    ]
    indices = [_index(column, f"c{number}", writer) for number, column in enumerate(stage.columns, 1)]
    used = [domain for domain in [*domains, *(domain for _, domain in indices)] if domain is not None]
    sizes = [len(key.domain) for key in stage.keys if key.domain is not None]
    is_known = len(sizes) == len(stage.keys)
    needed = [] if unit is None else ["u IS NOT NULL"]
    if not is_known:
        needed += [f"{domain.code} IS NOT NULL" for domain in domains if domain is not None]
    return Scan(
        origin=f"FROM ({inner}){''.join(domain.join for domain in used)}{_where(needed)}",
        unit=None if unit is None else "u",
        group=_radix([domain.code for domain in domains if domain is not None], sizes) if is_known and sizes else None,
        groups=prod(sizes) if is_known else 0,
        keys=() if is_known else tuple(f"k{number}" for number in range(1, len(stage.keys) + 1)),
        columns=tuple(index for index, _ in indices),
        lookups=tuple(domain.lookup for domain in used if domain.lookup is not None),
        parameters=writer.parameters,
    )


def _key(expression: Expression, writer: Writer) -> str:
    """Write a value in canonical form: texts normalised, one zero only."""
    value = write(expression, writer)
    if expression.facts.kind is Kind.TEXT:
        return f"nfc_normalize({value})"
    return value


def _aliased(prefix: str, values: list[str]) -> list[str]:
    return [f"{value} AS {prefix}{number}" for number, value in enumerate(values, 1)]


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _radix(codes: list[str], sizes: list[int]) -> str:
    """Put codes together, the last fastest."""
    terms = []
    for number, code in enumerate(codes):
        weight = prod(sizes[number + 1 :])
        terms.append(code if weight == 1 else f"{code} * {weight}")
    return f"CAST({' + '.join(terms)} AS INTEGER)"


def _index(column: StageColumn, name: str, writer: Writer) -> tuple[Index, Domain | None]:
    facts = column.expression.facts
    if column.members is not None:
        domain = coded(name, facts, column.members, writer)
        return Index(sql=domain.code, high=len(column.members) - 1), domain
    if column.grid is None and not column.wants.distinct:  # It is only counted: whether it is there is all there is.
        return Index(sql=f"(CASE WHEN {name} IS NULL THEN NULL ELSE 0 END)"), None
    if column.grid is None:
        return Index(sql=name, is_open=True), None
    grid = column.grid
    sql = place(name, facts, grid.step, grid.first, grid.last, writer)
    return Index(sql=sql, low=grid.first, high=grid.last), None
