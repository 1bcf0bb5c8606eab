"""Audit this library: exactly where a law is listed, by outputs where it is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from discreet import verify
from discreet.audit.auditing import audit
from discreet.audit.own.catalogue import catalogue
from discreet.audit.own.report import Row, SelfAudit
from discreet.audit.own.subject import BlackBox, ListedSubject, Subject
from discreet.verify.small_worlds import neighbours

__all__ = ["self_audit"]

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

    The small size takes about a minute. The full one takes ten times as many runs, and measures what is listed as well:
    whether a release really follows the law that was verified.
    """
    begun = time.perf_counter()
    chosen = list(_chosen(catalogue() if subjects is None else subjects, size))
    level = _LEVEL / max(1, sum(isinstance(subject, BlackBox) for subject in chosen))
    rows = []
    for subject in chosen:
        row = _exact(subject) if isinstance(subject, ListedSubject) else _measured(subject, size, level)
        rows.append(row)
        if told is not None:
            told(row)
    return SelfAudit(size=size, level=_LEVEL, rows=tuple(rows), seconds=time.perf_counter() - begun)


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
