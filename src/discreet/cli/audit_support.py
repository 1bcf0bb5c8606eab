"""`discreet audit`: what is done between its words and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from discreet.cli.options import function_named
from discreet.cli.output import Block, Styled, TextTable, working
from discreet.errors import InvalidParameter
from discreet.formatting import shortened

if TYPE_CHECKING:
    from discreet.lab.audit.black_box import Audit
    from discreet.lab.audit.self_audit.audit_run import Row, SelfAudit
    from discreet.lab.audit.self_audit.subjects import Subject

__all__ = ["AuditAnswer", "AuditedRow", "SelfAuditAnswer", "audited_mechanism", "audited_self"]

# --- auditing: What `discreet audit` does between its words and its answers. ---


_SIZES: dict[str, Literal["small", "full"]] = {"small": "small", "full": "full"}


def audited_mechanism(
    name: str, *, pairs: str, epsilon: str, delta: str, relation: str, runs: int, level: float
) -> AuditAnswer:
    """Audit a function of the user's on the pairs that another one returns."""
    from discreet.lab.audit import audit
    from discreet.privacy import ApproxDP, PureDP
    from discreet.privacy.relation import read_relation

    between = read_relation(relation)
    claim = PureDP(epsilon) if delta == "0" else ApproxDP(epsilon, delta)
    mechanism, listed = _taking(function_named(name), 1, "a data set"), _taking(function_named(pairs), 0, "nothing")
    found = audit(mechanism, _pairs(listed()), claim=claim, relation=between, runs=runs, level=level)
    return AuditAnswer.of(name, between.value, found)


def _taking(function: Callable[..., Any], count: int, words: str) -> Callable[..., Any]:
    """Refuse a function that cannot be called with so many things, before it is."""
    try:
        signature(function).bind(*range(count))
    except (TypeError, ValueError):  # ValueError: some built-in functions do not say what they take.
        raise InvalidParameter(f"{function.__name__} must be a function that takes {words}") from None
    return function


def _pairs(returned: Any) -> list[tuple[Any, Any]]:
    try:
        return [(one, other) for one, other in returned]
    except (TypeError, ValueError):
        raise InvalidParameter("--pairs must name a function that returns pairs of neighbouring data sets") from None


def audited_self(size: str, *, only: str | None, out: Path | None) -> SelfAuditAnswer:
    """Audit the library, and write the report to a file if one is named."""
    from discreet.lab.audit.self_audit import self_audit
    from discreet.lab.audit.self_audit.audit_run import count_audits

    if size not in _SIZES:
        raise InvalidParameter("--size must be small or full")
    if out is not None and out.suffix not in _WRITERS:
        raise InvalidParameter(f"--out must end in one of {', '.join(_WRITERS)}")
    chosen = list(_named(only))
    if not chosen:
        raise InvalidParameter("--only must be part of the name of something that is audited, such as Laplace")
    with working("auditing", total=count_audits(_SIZES[size], chosen)) as current:
        found = self_audit(_SIZES[size], subjects=chosen, told=lambda row: current.step(_told(row)))
    if out is not None:
        out.write_text(_WRITERS[out.suffix](found), encoding="utf-8")
    return SelfAuditAnswer.of(found)


def _named(only: str | None) -> Iterator[Subject]:
    from discreet.lab.audit.self_audit.subjects import catalogue

    wanted = (only or "").lower()
    return (subject for subject in catalogue() if wanted in f"{subject.part}: {subject.name}".lower())


def _told(row: Row) -> str:
    return f"{row.name}: {'holds' if row.holds else 'BROKEN'}"


_WRITERS: dict[str, Any] = {
    ".html": lambda found: found.to_html(),
    ".json": lambda found: found.to_json(),
    ".txt": lambda found: f"{found}\n",
}


# --- audits: What is told about audits. ---


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
        for how, meaning in zip(("exact", "measured"), self.notes, strict=True):
            rows = [row for row in self.rows if row.how == how]
            if rows:
                yield Styled(meaning, labels={f"{how}:": "bold"})
                yield _table(rows)
                yield ""
        yield Styled(f"{self.headline}.", "bold red" if self.broken else "bold green")


def _table(rows: Sequence[AuditedRow]) -> TextTable:
    return TextTable(
        head=("what", "relation", "measure", "claimed", "shown", ""),
        rows=[_cells(row) for row in rows],
        right=frozenset({3, 4}),
        marks={"holds": "green", "BROKEN": "bold red"},
        bars={4: [round(row.shown / row.claimed, 9) if row.claimed else 0.0 for row in rows]},
    )


def _shown(data: object) -> str:
    return shortened(repr(data), _LONGEST)


def _cells(row: AuditedRow) -> tuple[str, ...]:
    name = row.name if row.part == "mechanisms" or "." in row.name else f"{row.part}: {row.name}"
    relation = row.relation.lower().replace("_", "-")
    measure = row.measure.replace("epsilon at delta", "ε at δ =").replace("delta at epsilon", "δ at ε =")
    measure = measure.replace("epsilon", "ε")
    return name, relation, measure, f"{row.claimed:.4g}", f"{row.shown:.4g}", "holds" if row.holds else "BROKEN"
