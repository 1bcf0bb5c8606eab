"""How it was measured, for those who want to know: all caps, in words."""

from __future__ import annotations

from discreet.evaluation.caps import CELLS, FITTED, GUESSED, PAIRS, PEOPLE, SETS, TWINS

__all__ = ["custodian_notes", "picture_notes", "priced_notes", "public_notes"]


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
