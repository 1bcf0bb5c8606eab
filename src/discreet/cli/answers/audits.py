"""What is told about audits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block, TextTable

if TYPE_CHECKING:
    from discreet.audit import Audit
    from discreet.audit.own import SelfAudit

__all__ = ["AuditAnswer", "AuditedRow", "SelfAuditAnswer"]

_LONGEST = 80  # Letters of a data set.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAnswer:
    """The audit of one mechanism."""

    mechanism: str
    relation: str
    epsilon: float
    delta: float
    refuted: bool
    epsilon_at_least: float
    worst_pair: tuple[str, str]
    event: str
    seen: tuple[int, int]  # how often the event happened on each of the pair
    runs: int  # of each, which did not choose the event
    pairs_searched: int
    level: float
    seconds: float

    @classmethod
    def of(cls, mechanism: str, relation: str, found: Audit) -> AuditAnswer:
        """Take what is told from a result."""
        worst = found.worst
        return cls(
            mechanism=mechanism,
            relation=relation,
            epsilon=found.stated[0],
            delta=found.stated[1],
            refuted=found.refuted,
            epsilon_at_least=found.epsilon_at_least,
            worst_pair=(_shown(worst.pair[0]), _shown(worst.pair[1])),
            event=worst.event,
            seen=(worst.hits, worst.misses),
            runs=worst.runs,
            pairs_searched=found.pairs_searched,
            level=found.level,
            seconds=found.seconds,
        )

    def blocks(self) -> Iterator[Block]:
        claimed = f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        verdict = "REFUTED" if self.refuted else "not refuted"
        yield f"{self.mechanism}: {verdict}."
        yield f"Claimed {claimed} under {self.relation}; shown ε ≥ {self.epsilon_at_least:.3g}."
        yield f"Worst pair: {self.worst_pair[0]} and {self.worst_pair[1]}, told apart by {self.event}:"
        yield f"seen {self.seen[0]:,} and {self.seen[1]:,} times in {self.runs:,} fresh runs each."
        yield f"{self.pairs_searched} pairs searched in {self.seconds:.1f} s. {self._meaning}"

    @property
    def _meaning(self) -> str:
        if self.refuted:
            return f"A claim that holds is refuted with probability {self.level:g} at most: look at this pair."
        return "This is no proof: another pair, another event or more runs may still refute it."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRow:
    """One thing that was audited."""

    part: str
    name: str
    relation: str
    how: str
    measure: str
    claimed: float
    shown: float
    margin: float
    worst_pair: tuple[str, str]
    runs: int
    seconds: float
    holds: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfAuditAnswer:
    """The audit of this library."""

    size: str
    level: float
    broken: int
    seconds: float
    headline: str
    notes: list[str]
    rows: list[AuditedRow]

    @classmethod
    def of(cls, found: SelfAudit) -> SelfAuditAnswer:
        """Take what is told from a result."""
        names = list(AuditedRow.__dataclass_fields__)
        return cls(
            size=found.size,
            level=found.level,
            broken=len(found.broken),
            seconds=found.seconds,
            headline=found.headline,
            notes=list(found.notes),
            rows=[AuditedRow(**{name: getattr(row, name) for name in names}) for row in found.rows],
        )

    def blocks(self) -> Iterator[Block]:
        head = ("what", "relation", "how", "measure", "claimed", "shown", "margin", "")
        rows = [_cells(row) for row in self.rows]
        styles = ["" if row.holds else "bold red" for row in self.rows]
        yield TextTable(head=head, rows=rows, right=frozenset({4, 5, 6}), styles=styles)
        yield f"{self.headline}."
        yield from self.notes


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _cells(row: AuditedRow) -> tuple[str, ...]:
    numbers = (f"{row.claimed:.4g}", f"{row.shown:.4g}", f"{row.margin:.2g}")
    verdict = "holds" if row.holds else "BROKEN"
    return f"{row.part}: {row.name}", row.relation, row.how, row.measure, *numbers, verdict
