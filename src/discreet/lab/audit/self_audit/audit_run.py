"""Audit this library by itself, exactly where a law is listed and by outputs elsewhere, and report it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

from discreet.formatting import shortened
from discreet.lab import verify
from discreet.lab.audit.black_box import audit
from discreet.lab.audit.self_audit.subjects import BlackBox, ListedSubject, Subject, catalogue
from discreet.lab.verify.small_worlds import neighbours
from discreet.pages.kit import PAGE_STYLE, document, opening, paragraph, table, words
from discreet.pages.progress import working

__all__ = ["Row", "SelfAudit", "count_audits", "self_audit"]

# --- auditing: Audit this library: exactly where a law is listed, by outputs where it is not. ---


_LEVEL = 1e-4  # Of all measurements together.
_FULL = 10  # Times as many runs.
_RUNS = 2_000  # Of a listed mechanism that is measured as well.
_PAIRS = 12  # Of its world, spread evenly.


def self_audit(
    size: Literal["small", "full"] = "small",
    *,
    subjects: Iterable[Subject] | None = None,
    told: Callable[[Row], None] | None = None,
) -> SelfAudit:
    """Audit everything, or some `subjects`; `told` hears of each row as it comes.

    The small size takes two to four minutes. The full one takes ten times as many runs, and measures what is listed as
    well: whether a release really follows the law that was verified.
    """
    begun = time.perf_counter()
    chosen = list(_chosen(catalogue() if subjects is None else subjects, size))
    level = _LEVEL / max(1, sum(isinstance(subject, BlackBox) for subject in chosen))
    rows = []
    with working("auditing", total=len(chosen), terminal=False) as current:
        for subject in chosen:
            row = _exact(subject) if isinstance(subject, ListedSubject) else _measured(subject, size, level)
            rows.append(row)
            current.step(row.name)
            if told is not None:
                told(row)
    return SelfAudit(size=size, level=_LEVEL, rows=tuple(rows), seconds=time.perf_counter() - begun)


def count_audits(size: Literal["small", "full"], subjects: Iterable[Subject]) -> int:
    """Return how many rows an audit of `subjects` has."""
    return sum(1 for _ in _chosen(subjects, size))


def _chosen(subjects: Iterable[Subject], size: str) -> Iterator[Subject]:
    for subject in subjects:
        if size == "full" or not subject.large:
            yield subject
        if size == "full" and isinstance(subject, ListedSubject):
            yield _run(subject)


def _run(subject: ListedSubject) -> BlackBox:
    """Take a listed mechanism for a black box."""
    world, relation = subject.worlds, subject.mechanism.relation
    pairs = [pair for pair in neighbours(world, relation) if pair[0] < pair[1]]
    some = pairs[:: max(1, len(pairs) // _PAIRS)]
    return BlackBox(
        part=subject.part,
        name=subject.name,
        run=lambda data: subject.mechanism.release(subject.given(data)),
        claim=subject.mechanism.event,
        relation=relation,
        pairs=tuple((world.data_sets[one], world.data_sets[other]) for one, other in some),
        runs=_RUNS // _FULL,
    )


def _exact(subject: ListedSubject) -> Row:
    begun = time.perf_counter()
    found = verify.check(subject.mechanism, subject.worlds, query=subject.given)
    worst = found.worst
    return _row(
        subject,
        relation=found.relation.name,
        how="exact",
        measure=str(worst.claim),
        claimed=float(worst.claim.value),
        shown=float(worst.lower),
        worst_pair=worst.worst_pair,
        runs=0,
        begun=begun,
        holds=found.holds,
    )


def _measured(subject: BlackBox, size: str, level: float) -> Row:
    begun = time.perf_counter()
    runs = max(100, subject.runs * (_FULL if size == "full" else 1))
    found = audit(subject.run, subject.pairs, claim=subject.claim, relation=subject.relation, runs=runs, level=level)
    epsilon, delta = found.stated
    return _row(
        subject,
        relation=subject.relation.name,
        how="measured",
        measure="epsilon" if delta == 0 else f"epsilon at delta {delta:g}",
        claimed=epsilon,
        shown=found.epsilon_at_least,
        worst_pair=found.worst.pair,
        runs=found.worst.runs,
        begun=begun,
        holds=not found.refuted,
    )


def _row(subject: Subject, *, worst_pair: tuple[Any, Any], begun: float, **fields: Any) -> Row:
    one, other = worst_pair
    pair = (repr(one), repr(other))
    return Row(part=subject.part, name=subject.name, worst_pair=pair, seconds=time.perf_counter() - begun, **fields)


# --- report ---
# The report of a self-audit: one row for each thing that was audited, for people, programs and browsers.


_HEAD = ("what", "relation", "how", "measure", "claimed", "shown", "margin", "worst pair", "runs", "seconds", "")
_NUMBERS, _PLACES = frozenset({4, 5, 6, 8, 9}), range(1, len(_HEAD))  # places in it
_WHAT = (
    "Every mechanism claims how much can be learnt about one person. Here each is tried on data sets that differ in "
    "one made-up person, and what could be told apart is set beside the claim. This can prove a claim wrong, never "
    "right."
)
_STYLE = (
    f"{PAGE_STYLE}main,header,footer{{max-width:76rem}}.bad{{color:var(--warn)}}\n"
    "table.plain,table.plain td.number{font-size:.85rem}.scroll{overflow-wrap:normal}\n"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was claimed about one mechanism, and what was found."""

    part: str
    name: str
    relation: str
    how: str  # "exact": all neighbours of a small world by proven intervals; "measured": from outputs
    measure: str  # what was compared, such as epsilon
    claimed: float
    shown: float  # what the worst pair reaches for sure; if measured, but for a chance
    worst_pair: tuple[str, str]
    runs: int  # that tested, if measured
    seconds: float
    holds: bool

    @property
    def margin(self) -> float:
        """How far what was shown stays below the claim."""
        return self.claimed - self.shown

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as words."""
        numbers = (f"{self.claimed:.4g}", f"{self.shown:.4g}", f"{self.margin:.2g}")
        pair = " · ".join(shortened(data, 24) for data in self.worst_pair)
        runs = f"{self.runs:,}" if self.runs else "–"
        verdict = "holds" if self.holds else "BROKEN"
        what = f"{self.part}: {self.name}"
        return what, self.relation, self.how, self.measure, *numbers, pair, runs, f"{self.seconds:.1f}", verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfAudit:
    """Everything that was audited. It is evidence, never a proof of privacy."""

    size: str
    level: float  # the probability of calling a sound library broken, over all measurements together
    rows: Sequence[Row]
    seconds: float

    @property
    def broken(self) -> list[Row]:
        """The rows that contradict a claim."""
        return [row for row in self.rows if not row.holds]

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        exact = sum(row.how == "exact" for row in self.rows)
        said = f"{len(self.rows)} audits, {exact} exact and {len(self.rows) - exact} measured, in {self.seconds:.0f} s"
        names = ", ".join(row.name for row in self.broken)
        return f"{len(self.broken)} claims BROKEN ({names}); {said}" if self.broken else f"no claim is broken; {said}"

    @property
    def notes(self) -> tuple[str, str]:
        """What the words mean."""
        return (
            "exact: all pairs of neighbours of a small world, by proven intervals; shown is what the worst reaches.",
            "measured: an event is chosen on half of the runs and tested on the other; shown is a lower limit. All "
            f"measurements together call a sound library broken with probability {self.level:.0e} at most.",
        )

    def __str__(self) -> str:
        rows = [_HEAD, *(row.cells for row in self.rows)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.headline, "", *lines, "", *self.notes])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        document = {"size": self.size, "level": self.level, "broken": len(self.broken), "seconds": self.seconds}
        rows = [asdict(row) | {"margin": row.margin} for row in self.rows]
        return json.dumps(document | {"rows": rows}, ensure_ascii=False, indent=2)

    def to_html(self) -> str:
        """Write one page that loads nothing and runs nothing."""
        said = f"{self.headline[0].upper()}{self.headline[1:]}."
        listed = table(_HEAD, map(_table_row, self.rows), kind=["number" if p in _NUMBERS else "" for p in _PLACES])
        main = [*map(paragraph, self.notes), f'<div class="scroll">{listed}</div>']
        return document("Self-audit", opening(said, "Self-audit", [paragraph(_WHAT)]), main, style=_STYLE)


def _table_row(row: Row) -> list[str]:
    return [words(cell) if row.holds else f'<b class="bad">{words(cell)}</b>' for cell in row.cells]
