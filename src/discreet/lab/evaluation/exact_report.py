"""The custodian's evaluation: everything exact, so all of it is `NotPrivate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import InvalidParameter
from discreet.lab.evaluation.closest_records import closeness
from discreet.lab.evaluation.evaluation import Attacked, Evaluation, Likeness
from discreet.lab.evaluation.likeness import associations, correlations, fidelity, overlays
from discreet.lab.evaluation.membership_search import (
    Refit,
    check_refits,
    guess_halves,
    guess_secrets,
    halves,
    search,
    search_halves,
)
from discreet.lab.evaluation.table_rows import (
    CELLS,
    FITTED,
    GUESSED,
    PAIRS,
    PEOPLE,
    SETS,
    TWINS,
    ColumnLayout,
    EvaluatedRows,
    EvaluatedTable,
    exact_cells,
    read_rows,
    subject_of,
)
from discreet.lab.evaluation.usefulness import Downstream, downstream
from discreet.lab.evaluation.usefulness import workload as ask
from discreet.pages.progress import working
from discreet.privacy import Relation
from discreet.privacy.not_private import NotPrivate
from discreet.synth.domain.domain import Domain
from discreet.synth.promise import Promise

__all__ = ["custodian_notes", "evaluate", "likeness", "picture_notes", "priced_notes", "public_notes"]

_TESTED = 10  # Without rows that were held out, three in so many real rows are kept for the test of models.


@working("evaluating", terminal=False)
def evaluate(
    synthetic: Any,
    real: Any,
    *,
    domain: Domain | None = None,
    label: str | None = None,
    secret: str | None = None,
    holdout: Any | None = None,
    refit: Refit | None = None,
    refits: int = 4,
    workload: Sequence[Sequence[str]] | None = None,
    promise: Promise | None = None,
    title: str = "Synthetic table",
    error: float = 1e-3,
    say: Callable[[str], None] | None = None,
) -> NotPrivate[Evaluation]:
    """Compare a synthetic table with the real one, and attack it, for the custodian's eyes only.

    `synthetic` is a model, which is sampled, or a table. `holdout` are rows of the same kind that were drawn at random
    from the same people and not synthesised: attackers must not find those. `refit` makes a synthetic table from a
    table, as the one at hand was made, and is called `refits` times on random halves: that shows more than any attack
    on one table. `label` is what models are to tell, and `secret` (or else the label) what attackers guess. A verdict
    about privacy wrongly accuses with a chance of at most `error`, each.

    Args:
        synthetic: The model or the table.
        real: The private table.
        domain: The public columns, as declared for the synthesis; a model has its own.
        label: The column that models are trained to tell, which needs scikit-learn.
        secret: The column that attackers guess.
        holdout: Private rows that were not synthesised.
        refit: Makes a synthetic table from a table.
        refits: How often it is called.
        workload: The sets of columns whose counts matter; others are chosen if not said.
        promise: What the synthesis spent; a model has its own.
        title: The title of the report.
        error: The chance at most with which a verdict wrongly accuses.
        say: Is told what is being done, a line at a time.

    Returns:
        The report, marked as not private: `tell()` has the verdicts, `html()` the page, `document()` all figures.

    Raises:
        InvalidParameter: If nobody says what the columns are, or a number is out of range.

    Examples:
        >>> rows = {"age": [20, 40, 60, 80] * 25, "ill": ["yes", "no"] * 50}
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=5), "ill": dp.synth.Category(["yes", "no"])})
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> report = dp.evaluation.evaluate(model, rows)
        >>> report.value.standing
        'custodian'
    """
    if not 0 < error < 1:
        raise InvalidParameter("error must be a chance between 0 and 1: how often a verdict may wrongly accuse")
    if refit is not None:
        check_refits(refits)  # Now, before minutes of work.
    told = say or _silent
    told("reading the tables")
    subject = subject_of(synthetic, domain, promise)
    rows = read_rows(subject.layout, real)
    outside = None if holdout is None else read_rows(subject.layout, holdout)
    found = Evaluation(
        title=title,
        standing="custodian",
        compared="the real table",
        columns=subject.layout.names,
        rows=len(subject.rows),
        promise=subject.promise,
        likeness=likeness(subject, rows, outside, label=label, workload=workload, say=told),
        attacked=_attacked(
            subject, real, rows, outside, secret=secret or label, refit=refit, refits=refits, error=error, say=told
        ),
        error=error,
        notes=custodian_notes(len(rows), None if outside is None else len(outside)),
    )
    return NotPrivate(found)


def likeness(
    subject: EvaluatedTable,
    rows: EvaluatedRows,
    holdout: EvaluatedRows | None,
    *,
    label: str | None,
    workload: Sequence[Sequence[str]] | None,
    say: Callable[[str], None],
) -> Likeness:
    """Compare a synthetic table with rows in every way."""
    layout, made = subject.layout, subject.rows
    say("comparing tables of one, two and three columns")
    cells = exact_cells(layout, made, rows)
    near, columns = fidelity(cells), overlays(layout, made, rows, cells)
    links, numbers = associations(layout, made, rows), correlations(layout, made, rows)
    say("asking both tables the same questions")
    asked = ask(layout, made, rows, promise=subject.promise, label=label, questions=workload)
    trained = None
    if label is not None:
        say("training models on synthetic and on real rows")
        trained = _trained(layout, made, rows, holdout, label)
    return Likeness(
        fidelity=near,
        associations=links,
        correlations=numbers,
        overlays=columns,
        downstream=trained,
        workload=asked,
    )


def _trained(
    layout: ColumnLayout, made: EvaluatedRows, rows: EvaluatedRows, holdout: EvaluatedRows | None, label: str
) -> Downstream:
    if holdout is not None:
        return downstream(layout, made, rows, holdout, label=label, seen=False)
    test, train = rows.split(max(1, 3 * len(rows) // _TESTED))
    return downstream(layout, made, train, test, label=label, seen=True)


def _attacked(
    subject: EvaluatedTable,
    real: Any,
    rows: EvaluatedRows,
    holdout: EvaluatedRows | None,
    *,
    secret: str | None,
    refit: Refit | None,
    refits: int,
    error: float,
    say: Callable[[str], None],
) -> Attacked:
    layout, made = subject.layout, subject.rows
    limit = _about_rows(subject.promise)
    say("looking for the closest rows")
    near = closeness(layout, made, rows, holdout)
    searches, guessed = [], []
    if holdout is not None and len(holdout) > 1:
        say("looking for people of the real table")
        searches.append(search(layout, made, rows, holdout, limit))
        if secret is not None:
            guessed.append(guess_secrets(layout, made, rows, holdout, secret=secret, promise=limit))
    if refit is not None:
        coins = limit is None or limit.relation is Relation.ADD_REMOVE
        made_anew = halves(layout, real, refit, refits=refits, coins=coins, say=say)
        say("looking for people in the tables of halves")
        searches.append(search_halves(layout, made_anew, limit, error=error))
        if secret is not None:
            guessed.append(guess_halves(layout, made_anew, secret=secret, promise=limit))
    return Attacked(closeness=near, searches=tuple(searches), guessed=tuple(guessed))


def _about_rows(promise: Promise | None) -> Promise | None:
    """Take a promise about single rows: one about people with many rows says nothing sharp about a row."""
    return promise if promise is not None and promise.unit == "row" else None


def _silent(_: str) -> None:
    """Say nothing."""


# --- notes: How it was measured, for those who want to know: all caps, in words. ---


def custodian_notes(rows: int, held_out: int | None) -> tuple[str, ...]:
    """Say how the custodian's figures were made."""
    sizes = f"The real table has {rows:,} rows"
    sizes += "." if held_out is None else f", and {held_out:,} rows were held out."
    return (
        sizes,
        *public_notes(),
        f"Attackers ask about at most {PEOPLE:,} people on each side, and guess the secret of at most {GUESSED:,}; the "
        f"closest row is looked for among at most {TWINS:,}.",
        "Rows that were held out must be drawn at random from the same people. If they are of another year or another "
        "ward, attackers tell those apart, not who is in the data.",
    )


def public_notes() -> tuple[str, ...]:
    """Say how comparisons were made."""
    return (
        f"At most {PAIRS:,} tables of two columns and {SETS:,} of three are compared, drawn at random if there are "
        f"more, and none of more than {CELLS:,} cells. Numbers are compared by the bins that were declared, cut "
        "once more at sixteen quantiles of the rows compared; values that nobody declared are told apart, and meet "
        "only equal ones. Numbers outside their bounds are moved to them first.",
        f"Models see at most {FITTED:,} rows, and are tested on as many. They are a logistic or linear regression and "
        "boosted trees as they come with scikit-learn, without any tuning.",
    )


def priced_notes() -> tuple[str, ...]:
    """Say how noisy figures were made."""
    return (
        f"At most {SETS:,} tables of each size are compared, drawn at random if there are more, and none of more than "
        f"{CELLS:,} cells. The choice looks at no data.",
        "A distance is half the sum over all cells of how far the counts differ, divided by the rows of the synthetic "
        "table. So it also tells if one table has more rows than the other. Noise was added to every sum; the charge "
        "was made before the table was read.",
        "The promise is that of the synthetic table and of this page together: whoever reads the page has both.",
    )


def picture_notes(many: int) -> tuple[str, ...]:
    """Say how pictures were compared."""
    return (
        f"At most {many:,} synthetic pictures are looked at. Two pictures are as far apart as the root of the mean "
        "square of their pixels' differences, from 0 to 1.",
        "Models see at most 5,000 pictures and are tested on at most 2,000: a logistic regression on pixels, and the "
        "class of the closest picture. They are simple on purpose; a large network would score higher on both sides.",
    )
