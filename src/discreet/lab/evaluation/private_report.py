"""The evaluation that may be published because it is noisy and paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.lab.evaluation.evaluation import Evaluation
from discreet.lab.evaluation.exact_report import likeness, priced_notes, public_notes
from discreet.lab.evaluation.noisy_distances import NoisyComparison, mechanism_for, noisy_distances
from discreet.lab.evaluation.promised_limits import together
from discreet.lab.evaluation.table_rows import SETS, EvaluatedTable, chosen_cliques, read_rows, subject_of
from discreet.mechanisms.gaussian import VectorGaussian
from discreet.mechanisms.parameters import small_delta
from discreet.pages.progress import working
from discreet.privacy import Relation
from discreet.privacy.payer import Payer
from discreet.privacy.relation import read_relation
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.source_tables import UnreadTable
from discreet.synth.promise import Promise
from discreet.synth.synthesis import asked_table, read_unit
from discreet.synth.synthesis_plan import paid
from discreet.synth.tables.table_shape import Clique

__all__ = ["evaluate_for_a_price", "evaluate_publicly"]

_WAYS = (1, 2)


@working("evaluating", terminal=False)
def evaluate_for_a_price(
    synthetic: Any,
    real: Any,
    *,
    session: Payer,
    epsilon: Number,
    delta: Number,
    relation: Relation | str = Relation.ADD_REMOVE,
    unit: str = "row",
    rows_per_unit: int | None = None,
    domain: Domain | None = None,
    promise: Promise | None = None,
    title: str = "Synthetic table",
) -> Evaluation:
    """Compare a synthetic table with the real one by noisy distances, charged to a session before anything is read.

    Guarantee   (epsilon, delta) for one row, or for one unit of whose rows at most `rows_per_unit` are used, by one
                Gaussian release.

    The report's promise is that of the table and of the report together, since whoever reads it has both.
    The synthetic table should have about as many rows as the real one: distances are of counts, not of shares.

    Args:
        synthetic: The model or the table, which is public.
        real: The private table.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read.
        epsilon: What to spend.
        delta: The delta that goes with it.
        relation: The neighbouring relation.
        unit: Who is protected: "row", or the column that tells units apart.
        rows_per_unit: How many rows of a unit are used at most.
        domain: The public columns, as declared for the synthesis; a model has its own.
        promise: What the synthesis spent; a model has its own.
        title: The title of the report.

    Returns:
        The report, which may be published.

    Raises:
        InvalidParameter: If nobody pays, or nobody says what the columns are.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> rows = {"age": [20, 40, 60, 80] * 25, "ill": ["yes", "no"] * 50}
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=5), "ill": dp.synth.Category(["yes", "no"])})
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(1, "1e-5"))
        >>> with dp.ledger.Ledger.open("memory", account) as ledger:
        ...     dp.evaluation.evaluate_for_a_price(model, rows, session=ledger, epsilon=0.5, delta=1e-6).standing
        'charged'
    """
    relation = read_relation(relation)
    if session is None:
        raise InvalidParameter("say who pays: session=… A report that nobody paid for must not be published")
    subject = subject_of(synthetic, domain, promise)
    layout = subject.layout
    most = read_unit(unit, rows_per_unit, layout.domain)
    table = asked_table(real, session, layout.names if unit == "row" else (*layout.names, unit))
    cliques = tuple(one for ways in _WAYS for one in chosen_cliques(layout.sizes, ways, most=SETS))
    mechanism = mechanism_for(len(cliques), epsilon=epsilon, delta=delta, relation=relation, rows_per_unit=most)
    spent = Promise.of(
        mechanism.event,
        method="evaluation",
        relation=relation,
        delta=small_delta(delta, public_rows=None),
        unit=unit,
        rows_per_unit=most,
    )
    both = together(subject.promise, spent)
    told = replace(subject, promise=both)
    return paid(
        session,
        spent,
        lambda: _read(told, table, spent, mechanism, cliques, title),
        of_session=table.of_session,
    )


def _read(
    subject: EvaluatedTable,
    table: UnreadTable,
    spent: Promise,
    mechanism: VectorGaussian,
    cliques: tuple[Clique, ...],
    title: str,
) -> Evaluation:
    layout = subject.layout
    rows = TableRows(Coder(layout.domain), table, None if spent.unit == "row" else spent.unit, spent.rows_per_unit)
    ways = noisy_distances(mechanism, subject.rows.codes, rows.codes(), layout.sizes, cliques)
    return Evaluation(
        title=title,
        standing="charged",
        compared="the real table",
        columns=layout.names,
        rows=len(subject.rows),
        promise=subject.promise,
        priced=NoisyComparison(ways=ways, spent=spent),
        notes=priced_notes(),
    )


# --- public_report: The evaluation that may be published because the private table is not read for it. ---


@working("evaluating", terminal=False)
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

    Args:
        synthetic: The model or the table.
        public: The public rows.
        domain: The public columns, as declared for the synthesis; a model has its own.
        label: The column that models are trained to tell, which needs scikit-learn.
        workload: The sets of columns whose counts matter; others are chosen if not said.
        promise: What the synthesis spent; a model has its own.
        title: The title of the report.
        say: Is told what is being done, a line at a time.

    Returns:
        The report.

    Raises:
        InvalidParameter: If nobody says what the columns are.

    Examples:
        >>> rows = {"age": [20, 40, 60, 80] * 25, "ill": ["yes", "no"] * 50}
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=5), "ill": dp.synth.Category(["yes", "no"])})
        >>> dp.evaluation.evaluate_publicly(rows, rows, domain=domain).standing
        'public'
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
