"""From noisy numbers to answers with intervals, by the column. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.facts import Kind
from discreet.query.planning.combined import reach_of_sum
from discreet.query.planning.draft import Added, Averaged, CountTerm, Picked, PlanDraft, SpreadTerm
from discreet.query.planning.grids import reach_of
from discreet.query.planning.measurements import plain_value
from discreet.query.planning.noises import NumberNoise
from discreet.query.planning.picking import counted_beside, reason
from discreet.query.planning.quotients import ceiling, clipped, quotient_ends
from discreet.query.question import Measure, Statistic
from discreet.query.results.columns import AnswerColumn, Values
from discreet.query.results.numbers import ExactNumbers, compact, wide

__all__ = ["ReleasedNumbers", "answer", "counted_terms", "noise_of"]

Array: TypeAlias = NDArray[Any]
Limits: TypeAlias = tuple[Fraction | None, Fraction | None]
_ZERO = Fraction(0)
_ROOT = 10**6  # Roots are rounded to a millionth of a step.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReleasedNumbers:
    """What came out of noise: everything else is computed from it."""

    numbers: tuple[Array, ...]  # in grid steps
    picks: tuple[Values, ...]
    keys: tuple[tuple[Hashable, ...], ...]  # by key, then by row
    rows: int


def answer(draft: PlanDraft, measure: int, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
    """Compute one measure for all groups."""
    recipe, asked = draft.recipes[measure], draft.question.measures[measure]
    match recipe:
        case CountTerm():
            return _counted(draft, recipe, asked, released, confidence)
        case Added():
            return _added(draft, recipe, asked, released, confidence)
        case Averaged():
            return _averaged(draft, recipe, released, confidence)
        case SpreadTerm():
            return _spread(draft, recipe, released, confidence)
        case Picked():
            return _picked(draft, recipe, asked, released)


def noise_of(draft: PlanDraft, number: int) -> NumberNoise:
    """Return the noise of a number."""
    assert draft.noising is not None
    return draft.noising.numbers[number]


def _counted(
    draft: PlanDraft, recipe: CountTerm, asked: Measure, released: ReleasedNumbers, confidence: Fraction
) -> AnswerColumn:
    over, terms = released.numbers[recipe.number], counted_terms(draft, recipe)
    if recipe.also is not None:
        over = over + released.numbers[recipe.also]
    limits = _ZERO, _most_distinct(asked)
    return _about(ExactNumbers(over), reach_of_sum(terms, confidence), limits, Fraction(1))


def _most_distinct(asked: Measure) -> Fraction | None:
    """Return how many distinct values there can be, where that is public."""
    if asked.statistic is not Statistic.DISTINCT or asked.argument is None:
        return None
    facts = asked.argument.facts
    if facts.kind in (Kind.INTEGER, Kind.DATE) and facts.low is not None and facts.high is not None:
        return Fraction(floor(facts.high) - ceil(facts.low) + 1)
    return Fraction(2) if facts.kind is Kind.BOOLEAN else None


def counted_terms(draft: PlanDraft, recipe: CountTerm) -> list[tuple[Fraction, NumberNoise]]:
    """Return the noises of a count, with their weights."""
    places = (recipe.number,) if recipe.also is None else (recipe.number, recipe.also)
    return [(Fraction(1), noise_of(draft, place)) for place in places]


def _about(values: ExactNumbers, reach: Fraction, limits: Limits, grain: Fraction) -> AnswerColumn:
    """Return numbers that are all off by the same at most."""
    kind = Kind.INTEGER if values.is_whole else Kind.REAL
    low, high = values.plus(-reach), values.plus(reach)
    return AnswerColumn(name="", kind=kind, values=values, low=low, high=high, limits=limits, grain=grain)


def _added(
    draft: PlanDraft, recipe: Added, asked: Measure, released: ReleasedNumbers, confidence: Fraction
) -> AnswerColumn:
    step, over = recipe.grid.step, released.numbers[recipe.total]
    terms = [(Fraction(1), noise_of(draft, recipe.total))]
    if recipe.count is not None:
        over = compact(wide(over) + recipe.centre * wide(released.numbers[recipe.count]))
        terms.append((Fraction(recipe.centre), noise_of(draft, recipe.count)))
    least = _ZERO if recipe.grid.low >= 0 else None
    most = _ZERO if recipe.grid.high <= 0 else None
    whole = asked.argument is not None and asked.argument.facts.kind in (Kind.INTEGER, Kind.BOOLEAN)
    grain = Fraction(1) if whole and step.denominator != 1 else step
    return _about(ExactNumbers(over, step=step), step * reach_of_sum(terms, confidence), (least, most), grain)


def _averaged(draft: PlanDraft, recipe: Averaged, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
    """The centre plus a quotient of two noisy numbers, which is biased anyway and so kept within the bounds."""
    grid, centre = recipe.grid, recipe.centre
    total, count = released.numbers[recipe.total], released.numbers[recipe.count]
    noises = noise_of(draft, recipe.total), noise_of(draft, recipe.count)
    ends = quotient_ends(total, count, noises, reach_of(grid, centre), confidence)
    first, last = Fraction(grid.first - centre), Fraction(grid.last - centre)
    pairs = (clipped(pair, first, last) for pair in ((total, np.maximum(count, 1)), *ends))
    value, low, high = (ExactNumbers(*pair, grid.step, centre * grid.step) for pair in pairs)
    return AnswerColumn(name="", kind=Kind.REAL, values=value, low=low, high=high, limits=(grid.low, grid.high))


def _spread(draft: PlanDraft, recipe: SpreadTerm, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
    """(sum of squares) / n - (sum / n)^2, times n / (n - 1) for a sample; the interval is a box of three noises.

    Both are kept between zero and the largest variance that the bounds allow.
    """
    squares, total, count = (wide(released.numbers[place]) for place in (recipe.squares, recipe.total, recipe.count))
    many = np.maximum(count, 2 if recipe.sample else 1)
    value = (squares + recipe.fold * many) * many - total**2, many * _divisor(many, recipe.sample)
    low, high = _spread_ends(draft, recipe, (squares, total, count), confidence)
    step, largest = recipe.grid.step, _largest_spread(recipe)
    pairs = [clipped(pair, _ZERO, largest) for pair in (value, low, high)]
    if recipe.root:
        roots = [_roots(*pair, up=up) for pair, up in zip(pairs, (False, False, True), strict=True)]
        parts = [ExactNumbers(over, None, step / _ROOT) for over in roots]
    else:
        parts = [ExactNumbers(over, under, step**2) for over, under in pairs]
    return AnswerColumn(name="", kind=Kind.REAL, values=parts[0], low=parts[1], high=parts[2])


def _divisor(many: Array, sample: bool) -> Array:
    return many - 1 if sample else many


def _largest_spread(recipe: SpreadTerm) -> Fraction:
    """The variance of values half at each bound, in squared steps; that of a sample of two is twice as large."""
    return Fraction(recipe.grid.width**2, 2 if recipe.sample else 4)


def _spread_ends(
    draft: PlanDraft, recipe: SpreadTerm, noisy: tuple[Array, Array, Array], confidence: Fraction
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    each = 1 - (1 - confidence) / 3
    places = recipe.squares, recipe.total, recipe.count
    reaches = [ceiling(noise_of(draft, place).reach(each)) for place in places]
    squares, total, count = noisy
    least = 2 if recipe.sample else 1
    fewest, most = np.maximum(count - reaches[2], least), np.maximum(count + reaches[2], least)
    far = np.maximum(abs(total - reaches[1]), abs(total + reaches[1]))
    near = np.maximum(abs(total) - reaches[1], 0)
    low_squares, high_squares = squares - reaches[0], squares + reaches[0]
    # Both quotients fall with n in size; a sample's factor n / (n - 1) falls with n as well.
    low = _difference(low_squares, np.where(low_squares >= 0, most, fewest), recipe.fold, far, fewest)
    high = _difference(high_squares, np.where(high_squares >= 0, fewest, most), recipe.fold, near, most)
    if not recipe.sample:
        return low, high
    return _inflated(low, np.where(low[0] >= 0, most, fewest)), _inflated(high, np.where(high[0] >= 0, fewest, most))


def _difference(squares: Array, some: Array, fold: int, total: Array, others: Array) -> tuple[Array, Array]:
    """Return fold + squares / some - (total / others)^2 as one quotient."""
    return (fold * some + squares) * others**2 - total**2 * some, some * others**2


def _inflated(pair: tuple[Array, Array], many: Array) -> tuple[Array, Array]:
    return pair[0] * many, pair[1] * (many - 1)


def _roots(over: Array, under: Array, *, up: bool) -> Array:
    """Return roots of quotients, in parts of a step, rounded down or up; of what is negative, zero."""
    listed = [_root(int(a), int(b)) + (1 if up else 0) for a, b in zip(over.tolist(), under.tolist(), strict=True)]
    return compact(np.array(listed, dtype=object))


def _root(over: int, under: int) -> int:
    return isqrt(max(0, over) * _ROOT**2 // under)


def _picked(draft: PlanDraft, recipe: Picked, asked: Measure, released: ReleasedNumbers) -> AnswerColumn:
    values = released.picks[recipe.pick]
    kind = asked.argument.facts.kind if asked.argument is not None else Kind.REAL
    if isinstance(values, ExactNumbers) and kind.is_time:
        values = tuple(plain_value(values[row], kind) for row in range(len(values)))
    elif isinstance(values, ExactNumbers):
        kind = Kind.INTEGER if values.is_whole else Kind.REAL
    empty = _may_be_empty(draft, recipe, released)
    if empty is not None and empty.any():
        values = tuple(None if empty[row] else values[row] for row in range(len(values)))
    return AnswerColumn(name="", kind=kind, values=values, no_interval=reason(draft, recipe.pick))


def _may_be_empty(draft: PlanDraft, recipe: Picked, released: ReleasedNumbers) -> NDArray[np.bool_] | None:
    """Tell groups whose released count does not rule out that they are empty; None where nothing was counted.

    What is picked of no values is any value, and would look like an answer.
    """
    place = counted_beside(draft, recipe.pick)
    if place is None:
        return None
    reach = ceiling(noise_of(draft, place).reach(draft.spend.confidence))
    return np.asarray(released.numbers[place] <= reach, np.bool_)
