"""The evaluation that may be published because the private table is not read for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.evaluation.evaluation import Evaluation
from discreet.evaluation.exact_report import likeness, public_notes
from discreet.evaluation.table_rows import read_rows, subject_of
from discreet.synth.domain import Domain
from discreet.synth.promise import Promise

__all__ = ["evaluate_publicly"]


def evaluate_publicly(
    synthetic: Any,
    public: Any,
    *,
    domain: Domain | None = None,
    label: str | None = None,
    workload: Sequence[Sequence[str]] | None = None,
    promise: Promise | None = None,
    title: str = "Synthetic table",
    say: Callable[[str], None] | None = None,
) -> Evaluation:
    """Compare a synthetic table with rows that are public: an open file of the same kind.

    They must be no part of the private table. That is not read, so the report may be published; attacks, which would
    tell about people, are not in it.
    """
    subject = subject_of(synthetic, domain, promise)
    rows = read_rows(subject.layout, public)
    return Evaluation(
        title=title,
        standing="public",
        compared="the public rows",
        columns=subject.layout.names,
        rows=len(subject.rows),
        promise=subject.promise,
        likeness=likeness(subject, rows, None, label=label, workload=workload, say=say or (lambda _: None)),
        notes=(f"There are {len(rows):,} public rows.", *public_notes()),
    )
