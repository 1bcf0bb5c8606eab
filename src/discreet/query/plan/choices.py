"""Selection of one value in every group: quantiles and modes of what was kept of each unit."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.formatting import plain
from discreet.mechanisms.exponential import worst_case_shortfall
from discreet.mechanisms.joint_quantiles import QuantileInterval, Quantiles
from discreet.mechanisms.order_statistics import Ranked, SortedRun
from discreet.mechanisms.quantile import Quantile
from discreet.privacy.relation import Relation
from discreet.query.answer_columns import ExactNumbers, Values
from discreet.query.bounding.aggregation import Values as Kept
from discreet.query.plan.draft import (
    BundledDraft,
    Chooser,
    FinalDraft,
    ModePick,
    Number,
    Pick,
    QuantilePick,
    QuantilesPick,
    SensitivityDraft,
    TallySpec,
)

__all__ = [
    "check_choices",
    "chooser_of",
    "counted_beside",
    "counts_its_values",
    "error_words",
    "interval_of",
    "intervals_of",
    "mode_factor",
    "mode_scores",
    "pick",
    "quantile_of",
    "quantiles_of",
    "reason",
    "values_epsilon",
]

_INTERVAL = Fraction(3, 5)  # With this part an interval is narrowest, see `QuantileInterval`.
_DIGITS = 10**6  # Of a root, rounded down.
_WORK = 10**4  # Groups times squared points that are chosen at once: about so many milliseconds.


def quantile_of(draft: FinalDraft, pick: QuantilePick, chooser: Chooser) -> Quantile:
    """Return the mechanism for one row: a unit's M rows of a group move a score M times as far, so epsilon is divided.

    The rank error of every point moves by at most M max(q, 1 - q), and by M where up to M rows are exchanged for up to
    M others; then the scaled scores of neighbours differ by amounts that span at most the chooser's epsilon. [MT07,
    Smi11]
    """
    return Quantile(
        quantile=pick.quantile,
        epsilon=chooser.shares[0] * _row_epsilon(draft, pick, chooser),
        grid=pick.grid,
        relation=_row_relation(draft, pick),
        flips=chooser.flips,
    )


def _row_relation(draft: SensitivityDraft, asked: Pick) -> Relation:
    """Return the neighbours of the mechanism for one row.

    Where a unit's rows are exchanged, groups still gain and lose rows. A quantile's scores move by no more then; those
    of several quantiles, and the room for a population, were bounded for rows that come or go.
    """
    one = isinstance(asked, QuantilePick) and not draft.spend.population
    return draft.relation if one else Relation.ADD_REMOVE


def _row_epsilon(draft: SensitivityDraft, asked: Pick, chooser: Chooser) -> Fraction:
    """Return what one row may spend of a choice: M of them are in a group, and M more if they are exchanged."""
    ways = 1 if _row_relation(draft, asked) is draft.relation else 2
    return chooser.epsilon / (ways * draft.factor * draft.max_rows)


def quantiles_of(draft: FinalDraft, asked: QuantilesPick, chooser: Chooser) -> Quantiles:
    """Return the mechanism that chooses several points together, for one row, as `quantile_of` does for one.

    Theorem     Each of its steps is, given those before it, of bounded range epsilon or pure with one row that comes or
                goes. From one data set to the other there are M steps of one row, of all groups together in a family,
                and 2 M where rows are exchanged: losses add up along the way, and so do their ranges. [DR19, DMNS06]
                All at once is one step of that kind. A unit's rows in a group are spread over the gaps between the
                points: if r_i of them come to gap i, |n_i - d_i N| moves by at most r_i, for N is an outcome and does
                not move with the group's rows; so the score moves by at most r_1 + r_2 + … <= M, up or down, whatever
                points and N are. Multiplied by epsilon / (2 M) it spans epsilon. If M rows go and M others come, 2 M.
                Not even the group's number of rows is read: it may change where rows are exchanged. [GJK21, MT07]
    """
    each = values_epsilon(draft, asked, chooser)
    return Quantiles(
        quantiles=asked.quantiles,
        epsilons=tuple(each * step for step in chooser.steps),
        grid=asked.grid,
        relation=Relation.ADD_REMOVE,
        flips=chooser.flips and not chooser.at_once,
    )


def _jointly(draft: BundledDraft, asked: QuantilesPick, epsilon: Fraction, *, flips: bool) -> Quantiles:
    """Return the mechanism for an epsilon in all, or its square over 8 as rho: how it is split is its own matter.

    All points at once take a time that grows with the square of their number, in every group. So levels are for tables
    of many groups, and of groups that nobody can count before they are paid for.
    """
    work = None if draft.groups is None else draft.groups * len(asked.quantiles) ** 2
    wanted: dict[str, Any] = {"quantiles": asked.quantiles, "grid": asked.grid, "relation": Relation.ADD_REMOVE}
    wanted["at_once"] = work is not None and work <= _WORK
    return Quantiles.for_epsilon(epsilon, **wanted) if flips else Quantiles.for_rho(epsilon**2 / 8, **wanted)


def check_choices(draft: FinalDraft) -> None:
    """Make all mechanisms once, before anything is charged: what they refuse, such as no epsilon, they refuse here."""
    for asked, chooser in zip(draft.picks, draft.choosers, strict=True):
        if isinstance(asked, QuantilesPick):
            quantiles_of(draft, asked, chooser)
            _ = intervals_of(draft, asked, chooser) if chooser.interval else ()
        elif isinstance(asked, QuantilePick):
            _ = interval_of(draft, asked, chooser) if chooser.interval else quantile_of(draft, asked, chooser)


def interval_of(draft: FinalDraft, pick: QuantilePick, chooser: Chooser) -> QuantileInterval:
    """Return the mechanism that chooses a point and then a width, for one row, as `quantile_of` does.

    The depth of an interval moves with M rows as far as that of a point, and so does the score of a width: see
    `QuantileInterval`. It holds for the confidence of the answer.
    """
    return QuantileInterval(
        quantile=pick.quantile,
        epsilon=_row_epsilon(draft, pick, chooser),
        grid=pick.grid,
        relation=_row_relation(draft, pick),
        flips=chooser.flips,
        confidence=draft.spend.confidence,
        share=chooser.interval,
        population=draft.spend.population,
    )


def intervals_of(draft: FinalDraft, asked: QuantilesPick, chooser: Chooser) -> tuple[QuantileInterval, ...]:
    """Return what chooses a width around each of several points: of each the half that is for the width is used."""
    each = chooser.interval * _row_epsilon(draft, asked, chooser)
    return tuple(
        QuantileInterval(
            quantile=quantile,
            epsilon=2 * each * width,
            grid=asked.grid,
            relation=_row_relation(draft, asked),
            flips=chooser.flips,
            confidence=draft.spend.confidence,
            share=Fraction(1, 2),
            population=draft.spend.population,
        )
        for quantile, width in zip(asked.quantiles, chooser.widths, strict=True)
    )


def pick(draft: FinalDraft, place: int, kept: Kept, groups: NDArray[np.int64]) -> tuple[tuple[Values, ...], ...]:
    """Choose in every shown group: values, and where an interval is paid for, the lower and upper ends of each."""
    asked, chooser = draft.picks[place], draft.choosers[place]
    if isinstance(asked, ModePick):
        chosen = [_mode(draft, asked, chooser, kept.of(group)) for group in groups.tolist()]
        return ((tuple(asked.candidates[one] for one in chosen),),)
    if isinstance(asked, QuantilesPick):
        many = quantiles_of(draft, asked, chooser)
        widths = intervals_of(draft, asked, chooser) if chooser.interval else ()
        found = [_quantiles(many, widths, kept.of(group)) for group in groups.tolist()]
    else:
        one = interval_of(draft, asked, chooser) if chooser.interval else quantile_of(draft, asked, chooser)
        found = [(_quantile(one, kept.of(group)),) for group in groups.tolist()]
    values = len(asked.quantiles) if isinstance(asked, QuantilesPick) else 1
    columns = np.array(found, dtype=np.int64).reshape(len(found), values, 3 if chooser.interval else 1)
    return tuple(
        tuple(ExactNumbers(column.copy(), step=asked.grid.step) for column in columns[:, value].T)
        for value in range(values)
    )


def _quantile(mechanism: Quantile | QuantileInterval, indices: NDArray[np.int64]) -> tuple[int, ...]:
    """Choose a grid point, and the ends of its interval; the values are sorted and on the grid already."""
    ranked = _ranked(mechanism, indices)
    chooses = mechanism.point if isinstance(mechanism, QuantileInterval) else mechanism
    point = int(chooses.release(cast(Any, ranked)).value / mechanism.grid.step)
    return (point, *mechanism.around(ranked, point)) if isinstance(mechanism, QuantileInterval) else (point,)


def _quantiles(
    mechanism: Quantiles, widths: tuple[QuantileInterval, ...], indices: NDArray[np.int64]
) -> tuple[tuple[int, ...], ...]:
    """Choose grid points together, and then the ends of an interval around each."""
    points = mechanism.choose(indices)
    if not widths:
        return tuple((point,) for point in points)
    ranked = _ranked(mechanism, indices)
    return tuple((point, *width.around(ranked, point)) for point, width in zip(points, widths, strict=True))


def _ranked(mechanism: Quantile | QuantileInterval | Quantiles, indices: NDArray[np.int64]) -> Ranked:
    return Ranked(indices, mechanism.grid.first, mechanism.grid.last, _sorted=[SortedRun(1, indices)])


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


def chooser_of(draft: BundledDraft, asked: Pick, *, flips: bool, near: Fraction = Fraction(1)) -> Chooser:
    """Return how an epsilon of 1 is split among the steps of a choice, and what it spends of it for other neighbours.

    An interval takes a part only where it is asked for. Those of several quantiles are chosen one after the other. In
    how many steps these are chosen may depend on the epsilon of one row, which is `near` what is said.
    """
    part = _INTERVAL if draft.spend.quantile_intervals and not isinstance(asked, ModePick) else Fraction(0)
    whole = Chooser(epsilon=Fraction(1), flips=flips, single=_single_part(draft, asked), interval=part)
    if not isinstance(asked, QuantilesPick):
        return whole
    many = len(asked.quantiles)
    # Parts of epsilon add up, and squares of parts of rho.
    width = Fraction(1, many) if flips else Fraction(math.isqrt(_DIGITS**2 // many), _DIGITS)
    steps = tuple(one / near for one in _jointly(draft, asked, near, flips=flips).epsilons)
    return replace(whole, steps=steps, widths=(width,) * many)


def values_epsilon(draft: SensitivityDraft, asked: Pick, chooser: Chooser) -> Fraction:
    """Return what one row may spend on the values of a choice."""
    return (1 - chooser.interval) * _row_epsilon(draft, asked, chooser)


def _single_part(draft: SensitivityDraft, asked: Pick) -> Fraction:
    """Return the part of its epsilon that a choice spends where a unit comes or goes, and no rows are exchanged."""
    if draft.relation is Relation.ADD_REMOVE:
        return Fraction(1)
    if isinstance(asked, QuantilePick) and _row_relation(draft, asked) is draft.relation:
        return max(asked.quantile, 1 - asked.quantile)
    return Fraction(1, 2)


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
    if draft.choosers[place].interval or isinstance(pick, ModePick):
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
    if isinstance(asked, QuantilesPick):
        return f"how far the {len(asked.quantiles)} values, chosen together, are off depends on the data"
    factor = mode_factor(draft, chooser)
    off = math.ceil(worst_case_shortfall(factor=factor, candidates=len(asked.candidates), confidence=confidence))
    return f"a choice has none; the most frequent value has at most {off:,} rows more than the chosen one, {sure}"
