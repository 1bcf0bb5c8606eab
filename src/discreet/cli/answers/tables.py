"""A table of answers, and how a question would be answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, TextTable

if TYPE_CHECKING:
    from discreet.query import Cell, ReleaseTable
    from discreet.query.planning import Explanation

__all__ = ["ColumnFacts", "Explained", "TableAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column: cells of measured ones have an error, keys are plain values."""

    name: str
    kind: str
    measured: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """Rows by name. A measured cell is {value, plus_minus, low, high, text}; numbers are the nearest floats."""

    columns: list[ColumnFacts]
    rows: list[dict[str, Any]]
    cost: str
    relation: str
    confidence: float
    notes: list[str]
    event: dict[str, Any]

    @classmethod
    def of(cls, table: ReleaseTable) -> TableAnswer:
        """Read a table that was released."""
        from discreet.query.results.text import cell_text

        def cell(found: Cell) -> dict[str, Any]:
            ends = {name: _plain(getattr(found, name)) for name in ("value", "plus_minus", "low", "high")}
            return ends | {"text": cell_text(found)}

        return cls(
            columns=[ColumnFacts(name=c.name, kind=c.kind.value, measured=c.measured) for c in table.columns],
            rows=[
                {c.name: cell(c[i]) if c.measured else _plain(c[i].value) for c in table.columns}
                for i in range(len(table))
            ],
            cost=table.cost,
            relation=table.relation.value,
            confidence=float(table.confidence),
            notes=list(table.notes),
            event=json.loads(table.event.to_json()),
        )

    def blocks(self) -> Iterator[Block]:
        names = [column.name for column in self.columns]
        right = frozenset(i for i, column in enumerate(self.columns) if column.measured)
        yield TextTable(head=names, rows=[[_shown(row[name]) for name in names] for row in self.rows], right=right)
        yield f"± at {100 * self.confidence:g} %, {self.cost}, {self.relation}"
        yield from (f"· {note}" for note in self.notes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """How a question would be answered: facts and errors by name."""

    facts: dict[str, str]
    errors: dict[str, str]
    notes: list[str]

    @classmethod
    def of(cls, explanation: Explanation) -> Explained:
        """Read an explanation."""
        return cls(facts=dict(explanation.facts), errors=dict(explanation.errors), notes=list(explanation.notes))

    def blocks(self) -> Iterator[Block]:
        pairs = [*self.facts.items(), *self.errors.items()]
        width = max(len(name) for name, _ in pairs)
        yield from (f"{name:<{width}}  {text}" for name, text in pairs)
        yield from (f"· {note}" for note in self.notes)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value.isoformat() if isinstance(value, date) else value


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return str(value["text"])
    return "NULL" if value is None else str(value)
