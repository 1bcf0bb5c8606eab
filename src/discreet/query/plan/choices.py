"""Selection of one value in every group: quantiles and modes of what was kept of each unit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.formatting import plain
from discreet.mechanisms.exponential import worst_case_shortfall
from discreet.mechanisms.joint_quantiles import QuantileInterval
from discreet.mechanisms.order_statistics import Ranked, SortedRun
from discreet.mechanisms.quantile import Quantile
from discreet.privacy.relation import Relation
from discreet.query.answer_columns import ExactNumbers, Values
from discreet.query.bounding.aggregation import Values as Kept
from discreet.query.plan.draft import BundledDraft, Chooser, FinalDraft, ModePick, Number, Pick, QuantilePick, TallySpec

__all__ = [
    "counted_beside",
    "counts_its_values",
    "error_words",
    "interval_of",
    "interval_part",
    "mode_factor",
    "mode_scores",
    "pick",
    "quantile_of",
    "reason",
    "single_part",
]

_INTERVAL = Fraction(3, 5)  # With this part an interval is narrowest, see `QuantileInterval`.


def quantile_of(draft: FinalDraft, pick: QuantilePick, chooser: Chooser) -> Quantile:
    """Return the mechanism for one row: a unit's M rows of a group move a score M times as far, so epsilon is divided.

    The rank error of every point moves by at most M max(q, 1 - q), and by M where up to M rows are exchanged for up to
    M others; then the scaled scores of neighbours differ by amounts that span at most the chooser's epsilon. [MT07,
    Smi11]
    """
    return Quantile(
        quantile=pick.quantile,
        epsilon=chooser.shares[0] * chooser.epsilon / (draft.factor * draft.max_rows),
        grid=pick.grid,
        relation=draft.relation,
        flips=chooser.flips,
    )


def interval_of(draft: FinalDraft, pick: QuantilePick, chooser: Chooser) -> QuantileInterval:
    """Return the mechanism that chooses a point and then a width, for one row, as `quantile_of` does.

    The depth of an interval moves with M rows as far as that of a point, and so does the score of a width: see
    `QuantileInterval`. It holds for the confidence of the answer.
    """
    return QuantileInterval(
        quantile=pick.quantile,
        epsilon=chooser.epsilon / (draft.factor * draft.max_rows),
        grid=pick.grid,
        relation=draft.relation,
        flips=chooser.flips,
        confidence=draft.spend.confidence,
        share=chooser.interval,
    )


def pick(draft: FinalDraft, place: int, kept: Kept, groups: NDArray[np.int64]) -> tuple[Values, ...]:
    """Choose in every shown group: values, and where an interval is paid for, its lower and upper ends."""
    asked, chooser = draft.picks[place], draft.choosers[place]
    if isinstance(asked, ModePick):
        chosen = [_mode(draft, asked, chooser, kept.of(group)) for group in groups.tolist()]
        return (tuple(asked.candidates[one] for one in chosen),)
    mechanism = interval_of(draft, asked, chooser) if chooser.interval else quantile_of(draft, asked, chooser)
    points = [_quantile(mechanism, kept.of(group)) for group in groups.tolist()]
    columns = np.array(points, dtype=np.int64).reshape(len(points), 3 if chooser.interval else 1).T
    return tuple(ExactNumbers(column.copy(), step=asked.grid.step) for column in columns)


def _quantile(mechanism: Quantile | QuantileInterval, indices: NDArray[np.int64]) -> tuple[int, ...]:
    """Choose a grid point, and the ends of its interval; the values are sorted and on the grid already."""
    ranked = Ranked(indices, mechanism.grid.first, mechanism.grid.last, _sorted=[SortedRun(1, indices)])
    chooses = mechanism.point if isinstance(mechanism, QuantileInterval) else mechanism
    point = int(chooses.release(cast(Any, ranked)).value / mechanism.grid.step)
    return (point, *mechanism.around(ranked, point)) if isinstance(mechanism, QuantileInterval) else (point,)


def mode_scores(asked: ModePick, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count each candidate; what is none of them is not counted. This is private."""
    places = np.array(asked.places, dtype=np.int64)
    left, right = np.searchsorted(indices, places, "left"), np.searchsorted(indices, places, "right")
    return np.asarray(right - left, np.int64)


def mode_factor(draft: FinalDraft, chooser: Chooser) -> Fraction:
    """Return what scores are multiplied by: one unit adds up to M to the counts, all the same way, so epsilon / M.

    Where its rows are exchanged, M can leave one count and come to another: half of it.
    """
    ways = 1 if draft.relation is Relation.ADD_REMOVE else 2
    return chooser.epsilon / (ways * draft.factor * draft.max_rows)


def single_part(draft: BundledDraft, asked: Pick) -> Fraction:
    """Return the part of its epsilon that a choice spends where a unit comes or goes, and no rows are exchanged."""
    if draft.relation is Relation.ADD_REMOVE:
        return Fraction(1)
    return Fraction(1, 2) if isinstance(asked, ModePick) else max(asked.quantile, 1 - asked.quantile)


def interval_part(draft: BundledDraft, asked: Pick) -> Fraction:
    """Return the part of its epsilon that a choice spends on an interval: none, unless it was asked for."""
    return _INTERVAL if draft.spend.quantile_intervals and isinstance(asked, QuantilePick) else Fraction(0)


def _mode(draft: FinalDraft, asked: ModePick, chooser: Chooser, indices: NDArray[np.int64]) -> int:
    """Choose a candidate."""
    scores: Any = mode_scores(asked, indices)
    factor = mode_factor(draft, chooser)
    if chooser.flips:
        return noise.permute_and_flip(scores, factor=factor)
    return noise.categorical(scores, factor=factor)


def reason(draft: FinalDraft, place: int) -> str:
    """Say why a choice has no ±, what is known of its error from public facts, and what it is of an empty group."""
    return f"{error_words(draft, place)}; {_of_nothing(draft, place)}{_offered(draft, place)}"


def _offered(draft: FinalDraft, place: int) -> str:
    """Say how a ± is asked for, where there is none and could be one."""
    pick = draft.picks[place]
    if draft.choosers[place].interval or not isinstance(pick, QuantilePick):
        return ""
    is_time = draft.columns[pick.column].expression.facts.kind.is_time
    return "" if is_time else "; quantile_intervals pays for a ±"


def counted_beside(draft: FinalDraft, place: int) -> int | None:
    """Find a number that counts the values of a choice, or else the rows or units of its group."""
    column = draft.columns[draft.picks[place].column].expression

    def rank(number: Number) -> int | None:
        if number.tallying is TallySpec.COUNT and number.column is not None:
            return 0 if draft.columns[number.column].expression == column else None
        return {TallySpec.ROWS: 1, TallySpec.UNITS: 2}.get(number.tallying)

    ranked = [(rank(number), at) for at, number in enumerate(draft.numbers)]
    return min(((found, at) for found, at in ranked if found is not None), default=(0, None))[1]


def counts_its_values(draft: FinalDraft, place: int) -> bool:
    """Tell whether the count beside a choice counts its values, and not rows whose value may be NULL."""
    at = counted_beside(draft, place)
    values = draft.columns[draft.picks[place].column].expression
    return at is not None and (draft.numbers[at].tallying is TallySpec.COUNT or not values.facts.nullable)


def _of_nothing(draft: FinalDraft, place: int) -> str:
    if counted_beside(draft, place) is None:
        return (
            "of a group without values it is arbitrary, which nothing here tells: ask for a COUNT beside it, and it is "
            "NULL where the group may be empty"
        )
    said = "it is NULL where the count beside it does not tell that the group has rows"
    return said if counts_its_values(draft, place) else f"{said}; where all values of its rows are NULL it is arbitrary"


def error_words(draft: FinalDraft, place: int) -> str:
    """Say how far off a choice is, in whole rows, and how surely."""
    asked, chooser = draft.picks[place], draft.choosers[place]
    confidence = draft.spend.confidence
    sure = f"with {plain(100 * confidence)} % confidence"
    if isinstance(asked, QuantilePick):
        off = math.ceil(quantile_of(draft, asked, chooser).rank_error(confidence))
        return f"how far the value is off depends on the data; its rank is off by at most {off:,} rows, {sure}"
    factor = mode_factor(draft, chooser)
    off = math.ceil(worst_case_shortfall(factor=factor, candidates=len(asked.candidates), confidence=confidence))
    return f"a choice has none; the most frequent value has at most {off:,} rows more than the chosen one, {sure}"
