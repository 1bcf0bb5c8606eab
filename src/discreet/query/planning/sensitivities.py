"""Pass: how much one unit changes each number in one group, in grid steps. One rule for each way of adding up.

A unit is in at most L groups of an answer, with at most M rows in each. A number that one unit changes by at most s in
a group has the l1 sensitivity L s and the squared l2 sensitivity L s^2 over all groups; so s is all that is kept here.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.query.planning.draft import Number, PlanDraft, TallySpec
from discreet.query.planning.grids import reach_of

__all__ = ["bound_changes", "change"]


def bound_changes(draft: PlanDraft) -> PlanDraft:
    """Bound what one unit changes."""
    return replace(draft, changes=tuple(change(draft, number) for number in draft.numbers))


def change(draft: PlanDraft, number: Number) -> int:
    """Return the most that one unit's rows of one group add to a number, up or down; bounding picks them beforehand.

    Theorem     What is kept of a unit depends on its own rows and fresh randomness only, so with one unit less the
                others' rows stay as they are, and the difference is a sum over at most M rows. Each adds at most 1 to
                a count, |x - c| to a total about c, and |(x - c)^2 - f| to a sum of squares less f each. Distinct
                values lose at most one for each row that goes; units lose one. [DMNS06, WZLDSG20]
    """
    match number.tallying:
        case TallySpec.UNITS:
            return 1
        case TallySpec.ROWS | TallySpec.COUNT | TallySpec.NULLS | TallySpec.DISTINCT:
            return draft.max_rows
        case TallySpec.TOTAL:
            return draft.max_rows * _reach(draft, number)
        case TallySpec.SQUARES:
            # Squares lie between 0 and the square of the reach.
            return draft.max_rows * max(number.fold, _reach(draft, number) ** 2 - number.fold)


def _reach(draft: PlanDraft, number: Number) -> int:
    assert number.column is not None
    column = draft.columns[number.column]
    assert column.grid is not None
    return reach_of(column.grid, column.centre)
