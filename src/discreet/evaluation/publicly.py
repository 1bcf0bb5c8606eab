"""Evaluations that may be published: against rows that are public anyway, or noisy and paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.evaluation.cliques import chosen_cliques
from discreet.evaluation.custodian import likeness
from discreet.evaluation.evaluation import Evaluation
from discreet.evaluation.notes import priced_notes, public_notes
from discreet.evaluation.priced import Priced, mechanism_for, noisy_distances
from discreet.evaluation.reading import subject_of
from discreet.evaluation.rows import read_rows
from discreet.exact import Number, exact
from discreet.privacy import Relation
from discreet.privacy.payer import Payer
from discreet.synth.domain import Coder, Domain
from discreet.synth.domain.tables import table_of
from discreet.synth.promise import Promise

__all__ = ["evaluate_for_a_price", "evaluate_publicly"]

_WAYS = (1, 2)


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


def evaluate_for_a_price(
    synthetic: Any,
    real: Any,
    *,
    session: Payer,
    epsilon: Number,
    delta: Number,
    relation: Relation = Relation.ADD_REMOVE,
    rows_per_unit: int = 1,
    domain: Domain | None = None,
    promise: Promise | None = None,
    title: str = "Synthetic table",
) -> Evaluation:
    """Compare a synthetic table with the real one by noisy distances, charged to a session before anything is read.

    Guarantee   (epsilon, delta) for one unit of at most `rows_per_unit` rows, by one Gaussian release.

    The synthetic table should have about as many rows as the real one has: distances are of counts, not of shares.
    """
    subject = subject_of(synthetic, domain, promise)
    table = table_of(real)
    table.check_has(subject.layout.names)
    sizes = subject.layout.sizes
    cliques = tuple(one for ways in _WAYS for one in chosen_cliques(sizes, ways))
    mechanism = mechanism_for(
        len(cliques), epsilon=epsilon, delta=delta, relation=relation, rows_per_unit=rows_per_unit
    )
    session.charge(mechanism.event, relation=relation, purpose="evaluation of a synthetic table")
    codes = Coder(subject.layout.domain).codes(table)
    ways = noisy_distances(mechanism, subject.rows.codes, codes, sizes, cliques)
    return Evaluation(
        title=title,
        standing="charged",
        compared="the real table",
        columns=subject.layout.names,
        rows=len(subject.rows),
        promise=subject.promise,
        priced=Priced(
            ways=ways,
            event=mechanism.event,
            relation=relation,
            epsilon=exact(epsilon, name="epsilon"),
            delta=exact(delta, name="delta"),
        ),
        notes=priced_notes(),
    )
