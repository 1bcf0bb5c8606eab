"""Write a stage as parts of a SELECT: the unit, the group and the index of every column on its grid."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

from discreet.query.engines.domains import CodedDomain, Lookup, coded, stored
from discreet.query.engines.expressions import write
from discreet.query.engines.placing import place
from discreet.query.engines.sources import SqlRelations, write_source
from discreet.query.engines.texts import cut
from discreet.query.engines.writing import Writer
from discreet.query.expressions import Expression
from discreet.query.facts import Kind
from discreet.query.stage import Stage, StageColumn, StageKey

__all__ = ["Index", "Scan", "domain_of", "index_of", "projected", "select", "write_stage"]


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

    origin: str  # what stands behind FROM
    where: str
    unit: str | None
    group: str | None  # the code of a group, NULL if it is in none; None where `keys` tell it, or if there is one only
    groups: int  # 0 where data must tell them
    keys: tuple[str, ...]  # the keys themselves, where there is no code of their combinations
    columns: tuple[Index, ...]
    lookups: tuple[Lookup, ...]
    parameters: dict[str, str]


def select(connection: Any, columns: Sequence[str], scan: Scan, *, join: str = "", tail: str = "") -> Any:
    """Start a SELECT of some columns of a scan, called o1, o2, …"""
    named = ", ".join(f"{column} AS o{number}" for number, column in enumerate(columns, 1))
    text = f"SELECT {named} FROM {scan.origin}{join}{scan.where}{tail}"
    return connection.sql(text, params=scan.parameters) if scan.parameters else connection.sql(text)


def write_stage(stage: Stage, relations: SqlRelations, writer: Writer) -> Scan:
    """Write a stage. Rows without a unit are left out; those outside of the public domain of a key have no group."""
    unit = None if stage.unit is None else writer.column(stage.unit)
    inner = projected(stage.keys, stage.columns, unit, write_source(stage.source, relations, writer), writer)
    domains = [domain_of(key, f"k{number}", writer) for number, key in enumerate(stage.keys, 1)]
    indices = [index_of(column, f"c{number}", writer) for number, column in enumerate(stage.columns, 1)]
    sizes = [len(key.domain) for key in stage.keys if key.domain is not None]
    is_known = len(sizes) == len(stage.keys)
    known = [domain for domain in domains if domain is not None]
    # Where rows are only added up, looking texts up is left for the few groups that come out.
    has_code = is_known and not (unit is None and any(domain.lookup for domain in known) and _are_apart(stage.keys))
    used = [domain for _, domain in indices if domain is not None] + (known if has_code or not is_known else [])
    needed = ([] if unit is None else ["u IS NOT NULL"]) + [f"{one.code} IS NOT NULL" for one in known if not is_known]
    return Scan(
        origin=f"({inner}){''.join(domain.join for domain in used)}",
        where=f" WHERE {' AND '.join(needed)}" if needed else "",
        unit=None if unit is None else "u",
        group=_radix([domain.code for domain in known], sizes) if has_code and sizes else None,
        groups=prod(sizes) if is_known else 0,
        keys=() if has_code else tuple(f"k{number}" for number in range(1, len(stage.keys) + 1)),
        columns=tuple(index for index, _ in indices),
        lookups=tuple(domain.lookup for domain in used if domain.lookup is not None),
        parameters=writer.parameters,
    )


def projected(
    keys: Sequence[StageKey],
    columns: Sequence[StageColumn],
    unit: str | None,
    rows: str,
    writer: Writer,
    conditions: Sequence[Expression] = (),
    canonical: Container[StageKey] = (),
) -> str:
    """Write what is needed of every row, under names of its own: keys k1, k2, …, columns c1, c2, … and the unit u.

    Conditions w1, w2, … are 0 where they are true, else NULL. Keys that count only where they are canonical are written
    as they are.
    """
    written = [(write if key in canonical else _canonical)(key.expression, writer) for key in keys]
    listed = [f"{value} AS k{number}" for number, value in enumerate(written, 1)]
    listed += [f"{_canonical(one.expression, writer)} AS c{number}" for number, one in enumerate(columns, 1)]
    listed += [f"(CASE WHEN {write(one, writer)} THEN 0 END) AS w{number}" for number, one in enumerate(conditions, 1)]
    listed += [] if unit is None else [f"{unit} AS u"]
    return f"SELECT {', '.join(listed) or 'NULL AS nothing'} FROM ({rows})"


def _canonical(expression: Expression, writer: Writer) -> str:
    """Write a value; texts that look alike are made alike."""
    value = write(expression, writer)
    return f"nfc_normalize({cut(value, expression)})" if expression.facts.kind is Kind.TEXT else value


def _are_apart(keys: Sequence[StageKey]) -> bool:
    """Whether no two members of a domain are one to the engine, such as two ways to write an accent."""
    domains = [stored(key.domain, key.expression.facts.kind)[0] for key in keys if key.domain is not None]
    return all(len(set(members)) == len(members) for members in domains)


def domain_of(key: StageKey, name: str, writer: Writer) -> CodedDomain | None:
    """Write the code of a key; None if nobody listed its values."""
    return None if key.domain is None else coded(name, key.expression.facts, key.domain, writer)


def _radix(codes: list[str], sizes: list[int]) -> str:
    """Put codes together, the last fastest."""
    if len(codes) == 1:
        return codes[0]
    weights = [prod(sizes[number + 1 :]) for number in range(len(sizes))]
    return " + ".join(f"CAST({code} AS INTEGER) * {weight}" for code, weight in zip(codes, weights, strict=True))


def index_of(column: StageColumn, name: str, writer: Writer) -> tuple[Index, CodedDomain | None]:
    """Write the index of a column, and the list of values that it is looked up in, if there is one."""
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
