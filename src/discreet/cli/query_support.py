"""`discreet query` and `discreet limits`: from words to an offer, from a plan to a table of answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, TextTable, working
from discreet.cli.spending import agree, limit_of, price_of
from discreet.errors import InvalidParameter
from discreet.formatting import labelled

if TYPE_CHECKING:
    from discreet.query import Plan, ReleaseTable, Session
    from discreet.query.answer_columns import Cell
    from discreet.query.plan.explain import Explanation
    from discreet.query.session.private_bounds_and_keys import ProposedLimits, UnitHistogram

__all__ = [
    "ColumnFacts",
    "Explained",
    "LimitsAnswer",
    "TableAnswer",
    "TypedOffer",
    "UnitsInBin",
    "ask",
    "explained",
    "limits_found",
    "planned",
]

# --- asking: One question on the command line: from words to an offer, from a plan to an answer. ---


_LONGEST = 1_000_000  # Characters of a question.


@final
@dataclass(frozen=True, slots=True)
class TypedOffer:
    """What was said about the price, as it was typed."""

    epsilon: str | None = None
    rho: str | None = None
    share: str | None = None
    error: str | None = None
    relative_error: str | None = None
    expected: Sequence[str] | None = None
    delta: str | None = None
    keys: Sequence[str] | None = None
    idempotency_key: str | None = None
    kept_share: str | None = None
    quantile_intervals: bool = False
    population: bool = False

    def words(self) -> dict[str, Any]:
        """Return the words of `Session.sql`."""
        plain = ("epsilon", "rho", "share", "error", "relative_error", "delta", "idempotency_key", "kept_share")
        said: dict[str, Any] = {name: getattr(self, name) for name in (*plain, "quantile_intervals", "population")}
        return said | {"expected": _expected(self.expected or ()), "keys": _keys(self.keys or ())}


def planned(session: Session, sql: str, offer: TypedOffer) -> Plan:
    """Read a question and price it."""
    text = sys.stdin.read(_LONGEST) if sql == "-" else sql
    with working("planning"):
        return session.sql(text, **offer.words())


def ask(session: Session, sql: str, offer: TypedOffer, *, max_epsilon: str | None, at_delta: str | None) -> TableAnswer:
    """Price a question, agree, pay, and answer."""
    plan = planned(session, sql, offer)
    price = price_of(plan.event, plan.cost, session=session, at_delta=at_delta)
    agree(price, limit=limit_of(max_epsilon), what="this question")
    with working("answering"):
        return TableAnswer.of(plan.release())


def explained(session: Session, sql: str, offer: TypedOffer) -> Explained:
    """Price a question and say how it would be answered."""
    return Explained.of(planned(session, sql, offer).explain())


def _expected(said: Sequence[str]) -> int | dict[str, str] | None:
    """Read `1000`, or `age=45` and `*=1000`."""
    pairs = [part.split("=", 1) if "=" in part else ["*", part] for part in said]
    return {name.strip(): value for name, value in pairs} or None


def _keys(said: Sequence[str]) -> dict[str, list[str]] | None:
    """Read `clinic=Harbour,Hillside`."""
    for part in said:
        if "=" not in part:
            raise InvalidParameter("--keys is column=one,two: a column, and all of its values that may appear")
    pairs = (part.split("=", 1) for part in said)
    return {name.strip(): [value.strip() for value in values.split(",")] for name, values in pairs} or None


# --- tables: A table of answers, and how a question would be answered. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column: cells of measured ones have an error, keys are plain values."""

    name: str
    kind: str
    measured: bool
    labels: dict[str, str]  # what keys mean, where that is declared


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
        return cls(
            columns=[
                ColumnFacts(
                    name=c.name,
                    kind=c.kind.value,
                    measured=c.measured,
                    labels={str(value): label for value, label in (c.labels or {}).items()},
                )
                for c in table.columns
            ],
            rows=[
                {c.name: _measured(c[i]) if c.measured else _plain(c[i].value) for c in table.columns}
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
        rows = [[_shown(row[column.name], column.labels) for column in self.columns] for row in self.rows]
        right = frozenset(i for i, column in enumerate(self.columns) if column.measured)
        yield TextTable(head=names, rows=rows, right=right)
        yield Styled(f"± at {100 * self.confidence:g} %, {self.cost}, {self.relation}", "bold")
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
        yield TextTable(head=("", ""), rows=pairs, marks={name: "bold" for name, _ in pairs})
        yield from (f"· {note}" for note in self.notes)


# --- limits: Contribution limits that most units keep. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsInBin:
    """How many units have so many rows, or groups: from a least to a most number, or more than the largest limit."""

    text: str
    least: int
    most: int | None
    units: dict[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsAnswer:
    """Both limits, and the bins of units that they come from; no groups where none were named."""

    max_rows_per_group: int
    max_groups: int
    rows: list[UnitsInBin]
    groups: list[UnitsInBin]
    cost: str

    @classmethod
    def of(cls, found: ProposedLimits) -> LimitsAnswer:
        """Read limits that were found."""
        bins = [_in_bins(found.rows, release) for release in found.releases]
        return cls(
            max_rows_per_group=found.max_rows_per_group,
            max_groups=found.max_groups,
            rows=bins[0],
            groups=bins[1] if len(bins) > 1 else [],
            cost=found.paid,
        )

    def blocks(self) -> Iterator[Block]:
        for what, bins in (("rows", self.rows), ("groups", self.groups)):
            if bins:
                rows = [[one.text, str(one.units["text"])] for one in bins]
                yield TextTable(head=[what, "units"], rows=rows, right=frozenset((0, 1)))
        yield Styled(f"max_rows_per_group = {self.max_rows_per_group}, max_groups = {self.max_groups}", "bold")
        yield self.cost


def limits_found(session: Session, *, max_epsilon: str | None, at_delta: str | None, **said: Any) -> LimitsAnswer:
    """Price limits, agree, pay, and propose them."""
    from discreet.query.session.private_bounds_and_keys import plan_limits

    with working("planning"):
        plan = plan_limits(session, **said)
    price = price_of(plan.event, plan.cost, session=session, at_delta=at_delta)
    agree(price, limit=limit_of(max_epsilon), what="these limits")
    with working("answering"):
        return LimitsAnswer.of(plan.release())


def _in_bins(bins: UnitHistogram, release: ReleaseTable) -> list[UnitsInBin]:
    firsts, lasts = (1, *(end + 1 for end in bins.ends)), (*bins.ends, None)
    return [
        UnitsInBin(text=text, least=least, most=most, units=_measured(release["units"][place]))
        for place, (text, least, most) in enumerate(zip(bins.called, firsts, lasts, strict=True))
    ]


def _measured(found: Cell) -> dict[str, Any]:
    from discreet.query.answer_columns import cell_text

    ends = {name: _plain(getattr(found, name)) for name in ("value", "plus_minus", "low", "high")}
    return ends | {"text": cell_text(found)}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value.isoformat() if isinstance(value, date) else value


def _shown(value: Any, labels: dict[str, str]) -> str:
    if isinstance(value, dict):
        return str(value["text"])
    return "NULL" if value is None else labelled(str(value), labels)
