"""What can be known of a public table by reading it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from discreet.query.catalogue import CatalogueColumn
from discreet.query.engines.leaves import kind_of, layers
from discreet.query.engines.placing import number
from discreet.query.engines.writing import Writer, quote
from discreet.query.expressions import Field
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.sources import TableColumn

__all__ = ["is_unique", "read_public"]

_FEW = 100_000


def read_public(connection: Any, relation: str, types: Mapping[str, str]) -> dict[str, CatalogueColumn]:
    """Return the facts of every column of a public table."""
    return {name: _column(connection, relation, name, sql_type) for name, sql_type in types.items()}


def _column(connection: Any, relation: str, name: str, sql_type: str) -> CatalogueColumn:
    kind = kind_of(sql_type)
    assert kind is not None
    rows = f"(SELECT {_as_read(name, sql_type)} AS x FROM {relation})"
    low, high = _bounds(connection, rows, kind)
    (nulls,) = connection.execute(f"SELECT count(*) - count(x) FROM {rows}").fetchone()
    members = None if kind is Kind.REAL else _members(connection, rows)
    return CatalogueColumn(
        name=name, facts=ExpressionFacts(kind=kind, low=low, high=high, members=members, nullable=nulls > 0)
    )


def _bounds(connection: Any, rows: str, kind: Kind) -> tuple[Fraction | None, Fraction | None]:
    if kind is Kind.TEXT:
        return None, None
    low, high = connection.execute(f"SELECT min({number('x', kind)}), max({number('x', kind)}) FROM {rows}").fetchone()
    return (None, None) if low is None else (Fraction(low), Fraction(high))


def _members(connection: Any, rows: str) -> tuple[Hashable, ...] | None:
    found = connection.execute(
        f"SELECT DISTINCT x FROM {rows} WHERE x IS NOT NULL ORDER BY x LIMIT {_FEW + 1}"
    ).fetchall()
    return tuple(value for (value,) in found) if 0 < len(found) <= _FEW else None


def is_unique(connection: Any, relation: str, columns: frozenset[str]) -> bool:
    """Whether no two rows agree in some columns; rows with NULL there match nothing and do not count.

    Values are compared as a join compares them: two long decimals may differ and be one and the same double.
    """
    asked = ", ".join(quote(column) for column in sorted(columns))
    types = connection.execute(f"DESCRIBE SELECT {asked} FROM {relation}").fetchall()
    read = [f"{_as_read(name, sql_type)} AS x{place}" for place, (name, sql_type, *_) in enumerate(types)]
    names = [f"x{place}" for place in range(len(types))]
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    rows = f"SELECT {', '.join(read)} FROM {relation}"
    counted = f"SELECT count(*) AS n FROM ({rows}) WHERE {present} GROUP BY {', '.join(names)}"
    (copies,) = connection.execute(f"SELECT count(*) FROM ({counted}) WHERE n > 1").fetchone()
    return bool(copies == 0)


def _as_read(name: str, sql_type: str) -> str:
    """Write a stored value as a question sees it, whatever is declared of it."""
    kind = kind_of(sql_type)
    assert kind is not None
    return layers(TableColumn(name, Field("x", ExpressionFacts(kind=kind))), sql_type, "x", Writer())[0]
