"""From noisy numbers to answers with confidence intervals, and how wide these will be. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.exact import up
from discreet.mechanisms.grid import compact, wide
from discreet.mechanisms.quotient_intervals import (
    FULLY,
    NoiseLaw,
    ceiling,
    clipped,
    clipped_ends,
    comoment_ends,
    correlation_ends,
    correlations,
    quotient_ends,
    reach_of_sum,
)
from discreet.noise.laws import RoundedGaussianLaw
from discreet.query.answer_columns import AnswerColumn, ExactNumbers, Values
from discreet.query.ast import Measure, OutputColumn, ReleasedMeasure, Statistic
from discreet.query.plan.choices import counted_beside, reason
from discreet.query.plan.draft import (
    Added,
    Averaged,
    CountTerm,
    FinalDraft,
    ModePick,
    NumberNoise,
    PairTerm,
    Picked,
    SpreadTerm,
)
from discreet.query.plan.measurements import plain_value, reach_of
from discreet.schema.columns import Kind

__all__ = [
    "ReleasedNumbers",
    "answer",
    "counted_terms",
    "deviations",
    "needs_rows",
    "noise_of",
    "predicted",
    "typical_correlation",
    "variances",
    "widest",
]

# --- deviations ---
# How much noise is on the columns of an answer, where that is public: on plain counts and sums, in every row alike.


_PLAIN = 4  # A variance of the Gaussian from which on rounding adds 1/12, up to 1e-30.


def variances(draft: FinalDraft) -> dict[str, Fraction]:
    """Return the variance of every column that is a plain count or sum, by its name."""
    return dict(_each(draft))


def deviations(draft: FinalDraft) -> dict[str, Fraction]:
    """Return their standard deviations, rounded up."""
    return {name: root_up(variance) for name, variance in _each(draft)}


def _each(draft: FinalDraft) -> Iterator[tuple[str, Fraction]]:
    for output in draft.question.outputs:
        if isinstance(output.value, ReleasedMeasure):
            variance = _variance(draft, output.value.measure)
            if variance is not None:
                yield output.name, variance


def _variance(draft: FinalDraft, measure: int) -> Fraction | None:
    match draft.recipes[measure]:
        case CountTerm() as recipe:
            return _of_sum(counted_terms(draft, recipe))
        case Added() as recipe:
            terms = [(recipe.grid.step, noise_of(draft, recipe.total))]
            if recipe.count is not None:
                terms.append((recipe.grid.step * recipe.centre, noise_of(draft, recipe.count)))
            return _of_sum(terms)
        case _:
            return None


def _of_sum(terms: list[tuple[Fraction, NumberNoise]]) -> Fraction:
    """Add up variances: noises are independent, and so is what rounding to a unit moves, which has no variance."""
    return sum((weight**2 * one.unit**2 * _of_law(one.law) for weight, one in terms), Fraction(0))


def _of_law(law: NoiseLaw) -> Fraction:
    if isinstance(law, RoundedGaussianLaw) and law.variance > _PLAIN:
        return law.variance + Fraction(1, 12)
    return Fraction(law.standard_deviation) ** 2


def root_up(square: Fraction) -> Fraction:
    """Return a root that is not below the exact one, to the precision of a float."""
    return Fraction(math.nextafter(math.sqrt(up(square)), math.inf)) if square else Fraction(0)


# --- answers: From noisy numbers to answers with intervals, by the column. All of it is post-processing. ---


Array: TypeAlias = NDArray[Any]
Pair: TypeAlias = tuple[Array, Array]
Limits: TypeAlias = tuple[Fraction | None, Fraction | None]
_ZERO = Fraction(0)
_DRAWN = 1 << 20  # Ends of intervals for populations are rounded outward to such parts of a step.
_ROOT = 10**6  # Roots are rounded to a millionth of a step.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReleasedNumbers:
    """What came out of noise: everything else is computed from it."""

    numbers: tuple[Array, ...]  # in grid steps
    picks: tuple[tuple[tuple[Values, ...], ...], ...]  # of each the values, with the ends of those that have any
    keys: tuple[tuple[Hashable, ...], ...]  # by key, then by row
    rows: int


def answer(draft: FinalDraft, measure: int, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
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
        case PairTerm():
            return _paired(draft, recipe, released, confidence)
        case Picked():
            return _picked(draft, recipe, asked, released, confidence)


def noise_of(draft: FinalDraft, number: int) -> NumberNoise:
    """Return the noise of a number."""
    return draft.noising.on(number)


def _counted(
    draft: FinalDraft, recipe: CountTerm, asked: Measure, released: ReleasedNumbers, confidence: Fraction
) -> AnswerColumn:
    over, terms = released.numbers[recipe.number], counted_terms(draft, recipe)
    if recipe.also is not None:
        over = over + released.numbers[recipe.also]
    limits = _ZERO, _most_units(draft) if asked.statistic is Statistic.UNITS else _most_distinct(asked)
    return _about(ExactNumbers(over), reach_of_sum(terms, confidence), limits, Fraction(1))


def _most_units(draft: FinalDraft) -> Fraction | None:
    """Return how many units there are, where that is declared."""
    known = draft.catalogue.unit.units
    return None if known is None else Fraction(known)


def _most_distinct(asked: Measure) -> Fraction | None:
    """Return how many distinct values there can be, where that is public."""
    if asked.statistic is not Statistic.DISTINCT or asked.argument is None:
        return None
    facts = asked.argument.facts
    if facts.kind in (Kind.INTEGER, Kind.DATE) and facts.low is not None and facts.high is not None:
        return Fraction(floor(facts.high) - ceil(facts.low) + 1)
    return Fraction(2) if facts.kind is Kind.BOOLEAN else None


def counted_terms(draft: FinalDraft, recipe: CountTerm) -> list[tuple[Fraction, NumberNoise]]:
    """Return the noises of a count, with their weights."""
    places = (recipe.number,) if recipe.also is None else (recipe.number, recipe.also)
    return [(Fraction(1), noise_of(draft, place)) for place in places]


def _about(values: ExactNumbers, reach: Fraction, limits: Limits, grain: Fraction) -> AnswerColumn:
    """Return numbers that are all off by the same at most."""
    kind = Kind.INTEGER if values.is_whole else Kind.REAL
    low, high = values.plus(-reach), values.plus(reach)
    return AnswerColumn(name="", kind=kind, values=values, low=low, high=high, limits=limits, grain=grain)


def _added(
    draft: FinalDraft, recipe: Added, asked: Measure, released: ReleasedNumbers, confidence: Fraction
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


def _averaged(draft: FinalDraft, recipe: Averaged, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
    """The centre plus a quotient of two noisy numbers, which is biased anyway and so kept within the bounds."""
    grid, centre = recipe.grid, recipe.centre
    total, count = released.numbers[recipe.total], released.numbers[recipe.count]
    noises = noise_of(draft, recipe.total), noise_of(draft, recipe.count)
    if draft.spend.population:
        ends = _drawn_ends(draft, recipe, released, confidence)
    else:
        ends = quotient_ends(total, count, noises, reach_of(grid, centre), confidence)
    first, last = Fraction(grid.first - centre), Fraction(grid.last - centre)
    pairs = [clipped((total, np.maximum(count, 1)), first, last), *clipped_ends(ends, first, last)]
    value, low, high = (ExactNumbers(*pair, grid.step, centre * grid.step) for pair in pairs)
    told = _where_told(value, _is_all(pairs[1], pairs[2], (first, last)))
    return AnswerColumn(name="", kind=Kind.REAL, values=told, low=low, high=high, limits=(grid.low, grid.high))


def _drawn_ends(
    draft: FinalDraft, recipe: Averaged, released: ReleasedNumbers, confidence: Fraction
) -> tuple[Pair, Pair]:
    """Enclose the mean of what the rows of each group were drawn from, about the centre."""
    from discreet.statistics.population_intervals import SampledMean  # Only where it is asked for: it loads much.

    asked = (recipe.total, recipe.count, recipe.squares)
    noises = tuple(None if place is None else noise_of(draft, place) for place in asked)
    columns = [[None] * released.rows if place is None else released.numbers[place].tolist() for place in asked]
    found = [
        SampledMean(
            low=recipe.grid.first - recipe.centre,
            high=recipe.grid.last - recipe.centre,
            total=total,
            count=count,
            squares=squares,
            fold=recipe.fold,
            noises=noises,  # type: ignore[arg-type]
            binary=recipe.squares is None,
        ).ends(confidence)
        for total, count, squares in zip(*columns, strict=True)
    ]
    under = np.full(len(found), _DRAWN, dtype=object)
    low = np.array([floor(a * _DRAWN) - 1 for a, _ in found], dtype=object)
    high = np.array([ceil(b * _DRAWN) + 1 for _, b in found], dtype=object)
    return (low, under), (high, under)


def _where_told(values: ExactNumbers, nothing: NDArray[np.bool_]) -> Values:
    """Return NULL where nothing is told: a value there would look like an answer, and be first or last in an order."""
    if not nothing.any():
        return values
    return tuple(None if nothing[row] else values[row] for row in range(len(values)))


def _is_all(low: Pair, high: Pair, limits: tuple[Fraction, Fraction]) -> NDArray[np.bool_]:
    """Tell where an interval is all that the bounds allow: the group may be empty. Equal bounds tell the value."""
    at_ends = [
        wide(over) * limit.denominator == limit.numerator * wide(under)
        for (over, under), limit in zip((low, high), limits, strict=True)
    ]
    return np.asarray(at_ends[0] & at_ends[1], np.bool_) & (limits[0] != limits[1])


def _spread(draft: FinalDraft, recipe: SpreadTerm, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
    """(sum of squares) / n - (sum / n)^2, times n / (n - 1) for a sample; the interval is a box of three noises.

    Both are kept between zero and the largest variance that the bounds allow.
    """
    squares, total, count = (wide(released.numbers[place]) for place in (recipe.squares, recipe.total, recipe.count))
    many = np.maximum(count, 2 if recipe.sample else 1)
    value = (squares + recipe.fold * many) * many - total**2, many * _divisor(many, recipe.sample)
    ends = _spread_ends(draft, recipe, (squares, total, count), confidence)
    step, largest = recipe.grid.step, _largest_spread(recipe)
    pairs = [clipped(value, _ZERO, largest), *clipped_ends(ends, _ZERO, largest)]
    if recipe.root:
        roots = [_roots(*pair, up=up) for pair, up in zip(pairs, (False, False, True), strict=True)]
        parts = [ExactNumbers(over, None, step / _ROOT) for over in roots]
    else:
        parts = [ExactNumbers(over, under, step**2) for over, under in pairs]
    few = count - ceiling(noise_of(draft, recipe.count).reach(confidence)) < (2 if recipe.sample else 1)
    told = _where_told(parts[0], np.asarray(few, np.bool_) | _is_all(pairs[1], pairs[2], (_ZERO, largest)))
    return AnswerColumn(name="", kind=Kind.REAL, values=told, low=parts[1], high=parts[2])


def _divisor(many: Array, sample: bool) -> Array:
    return many - 1 if sample else many


def _largest_spread(recipe: SpreadTerm) -> Fraction:
    """The variance of values half at each bound, in squared steps; that of a sample of two is twice as large."""
    return Fraction(recipe.grid.width**2, 2 if recipe.sample else 4)


def _spread_ends(
    draft: FinalDraft, recipe: SpreadTerm, noisy: tuple[Array, Array, Array], confidence: Fraction
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


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """The noisy numbers behind a pair of columns, each with how far its noise reaches; 0 for the numbers alone."""

    recipe: PairTerm
    numbers: dict[int, Array]
    reaches: dict[int, int]

    def of(self, place: int, times: int = 1) -> Pair:
        reach = self.reaches[place]
        return times * (self.numbers[place] - reach), times * (self.numbers[place] + reach)

    @property
    def count(self) -> Pair:
        fewest, most = self.of(self.recipe.count)
        least = 2 if self.recipe.sample and not self.recipe.correlates else 1
        return np.maximum(fewest, least), np.maximum(most, least)

    def covariance(self) -> tuple[Pair, Pair]:
        """Enclose the covariance in products of steps: those of the products and of the columns need not be alike."""
        recipe, over, under = self.recipe, self.recipe.scale.numerator, self.recipe.scale.denominator
        first, second = self.of(recipe.totals[0], under), self.of(recipe.totals[1])
        ends = comoment_ends(self.of(recipe.products, over), first, second, self.count)
        low, high = ((part + over * recipe.centre * of, of * under) for part, of in ends)
        if recipe.correlates or not recipe.sample:
            return low, high
        fewest, most = self.count  # The factor n / (n - 1) falls with n.
        return (
            _inflated(low, np.where(low[0] >= 0, most, fewest)),
            _inflated(high, np.where(high[0] >= 0, fewest, most)),
        )

    def spread(self, side: int) -> tuple[Pair, Pair]:
        """Enclose a variance in squared steps, between zero and the largest that the bounds allow."""
        recipe = self.recipe
        assert recipe.squares is not None
        ends = comoment_ends(self.of(recipe.squares[side]), self.of(recipe.totals[side]), None, self.count)
        largest, fold = Fraction(recipe.grids[side].width ** 2, 4), recipe.folds[side]
        low, high = (clipped((part + fold * of, of), _ZERO, largest) for part, of in ends)
        return low, high


def _paired(draft: FinalDraft, recipe: PairTerm, released: ReleasedNumbers, confidence: Fraction) -> AnswerColumn:
    """A covariance or a correlation; the interval is a box of four noises, or of six.

    Both are kept where they can be. They are NULL where the interval says nothing, or there may be no pair.
    """
    each = 1 - (1 - confidence) / len(recipe.places)
    numbers = {place: wide(released.numbers[place]) for place in recipe.places}
    told = _Boxes(recipe, numbers, dict.fromkeys(recipe.places, 0))
    boxes = _Boxes(recipe, numbers, {place: ceiling(noise_of(draft, place).reach(each)) for place in recipe.places})
    fewest = numbers[recipe.count] - ceiling(noise_of(draft, recipe.count).reach(confidence))
    few = np.asarray(fewest < (2 if recipe.sample else 1), np.bool_)
    if recipe.correlates:
        value = correlations(told.covariance()[0], told.spread(0)[0], told.spread(1)[0])
        low, high = correlation_ends(boxes.covariance(), boxes.spread(0), boxes.spread(1))
        # Where a released spread is not above zero the value is zero, which the covariance may leave out.
        low, high = np.minimum(low, value), np.maximum(high, value)
        parts = [ExactNumbers(part, None, Fraction(1, FULLY)) for part in (value, low, high)]
        nothing = np.asarray((low == -FULLY) & (high == FULLY), np.bool_)
        limits = Fraction(-1), Fraction(1)
    else:
        largest = _largest_covariance(recipe)
        middle = clipped(told.covariance()[0], -largest, largest)
        pairs = [middle, *clipped_ends(boxes.covariance(), -largest, largest)]
        step = recipe.grids[0].step * recipe.grids[1].step
        parts = [ExactNumbers(*pair, step) for pair in pairs]
        nothing, limits = _is_all(pairs[1], pairs[2], (-largest, largest)), (-step * largest, step * largest)
    shown = _where_told(parts[0], few | nothing)
    return AnswerColumn(name="", kind=Kind.REAL, values=shown, low=parts[1], high=parts[2], limits=limits)


def _largest_covariance(recipe: PairTerm) -> Fraction:
    """That of values half at each bound, in products of steps; of a sample of two it is twice as large."""
    return Fraction(recipe.grids[0].width * recipe.grids[1].width, 2 if recipe.sample else 4)


def _picked(
    draft: FinalDraft, recipe: Picked, asked: Measure, released: ReleasedNumbers, confidence: Fraction
) -> AnswerColumn:
    values, *ends = released.picks[recipe.pick][recipe.place]
    kind = asked.argument.facts.kind if asked.argument is not None else Kind.REAL
    if isinstance(values, ExactNumbers) and kind.is_time:
        values = tuple(plain_value(values[row], kind) for row in range(len(values)))
    elif isinstance(values, ExactNumbers):
        kind = Kind.INTEGER if values.is_whole else Kind.REAL
    empty = _may_be_empty(draft, recipe, released)
    if empty is not None and empty.any():
        values = tuple(None if empty[row] else values[row] for row in range(len(values)))
    if not ends:
        return AnswerColumn(name="", kind=kind, values=values, no_interval=reason(draft, recipe.pick))
    if confidence > draft.spend.confidence:
        return AnswerColumn(
            name="", kind=kind, values=values, no_interval="its interval was paid for a lower confidence"
        )
    low, high = ends
    asked_of = draft.picks[recipe.pick]
    assert not isinstance(asked_of, ModePick)
    limits = asked_of.grid.low, asked_of.grid.high
    return AnswerColumn(name="", kind=kind, values=values, low=low, high=high, limits=limits)


def _may_be_empty(draft: FinalDraft, recipe: Picked, released: ReleasedNumbers) -> NDArray[np.bool_] | None:
    """Tell groups whose released count does not rule out that they are empty; None where nothing was counted.

    What is picked of no values is any value, and would look like an answer.
    """
    place = counted_beside(draft, recipe.pick)
    if place is None:
        return None
    reach = ceiling(noise_of(draft, place).reach(draft.spend.confidence))
    return np.asarray(released.numbers[place] <= reach, np.bool_)


# --- predicted: How far off an answer will be, before anything is read. ---


def needs_rows(draft: FinalDraft, output: OutputColumn) -> bool:
    """Whether the error of a column depends on how many rows a group has."""
    if not isinstance(output.value, ReleasedMeasure):
        return False
    recipe = draft.recipes[output.value.measure]
    return isinstance(recipe, (Averaged, SpreadTerm)) or (isinstance(recipe, PairTerm) and not recipe.correlates)


def predicted(draft: FinalDraft, output: OutputColumn, rows: int | None) -> Fraction | None:
    """Return the ± of a column, exactly for counts and sums; for means an upper bound in a group of so many rows."""
    if not isinstance(output.value, ReleasedMeasure):
        return None
    recipe, confidence = draft.recipes[output.value.measure], draft.spend.confidence
    match recipe:
        case CountTerm():
            return reach_of_sum(counted_terms(draft, recipe), confidence)
        case Added():
            return _predicted_added(draft, recipe, confidence)
        case Averaged():
            return None if rows is None else _predicted_averaged(draft, recipe, output.name, rows)
        case SpreadTerm():
            return None if rows is None else _predicted_spread(draft, recipe, output.name, rows)
        case PairTerm():
            return None if rows is None or recipe.correlates else _predicted_covariance(draft, recipe, rows)
        case Picked():
            return None


def widest(draft: FinalDraft, output: OutputColumn) -> Fraction | None:
    """Return how far off a mean or a spread can be at most, by the declared bounds; None for others."""
    recipe = draft.recipes[output.value.measure] if isinstance(output.value, ReleasedMeasure) else None
    match recipe:
        case Averaged():
            return recipe.grid.high - recipe.grid.low
        case SpreadTerm():
            largest = recipe.grid.step**2 * _largest_spread(recipe)
            return root_up(largest) if recipe.root else largest
        case PairTerm():
            steps = recipe.grids[0].step * recipe.grids[1].step
            return Fraction(2) if recipe.correlates else 2 * steps * _largest_covariance(recipe)
        case _:
            return None


def _predicted_added(draft: FinalDraft, recipe: Added, confidence: Fraction) -> Fraction:
    terms = [(Fraction(1), noise_of(draft, recipe.total))]
    if recipe.count is not None:
        terms.append((Fraction(recipe.centre), noise_of(draft, recipe.count)))
    return recipe.grid.step * reach_of_sum(terms, confidence)


def _predicted_averaged(draft: FinalDraft, recipe: Averaged, name: str, rows: int) -> Fraction:
    """The noise of (sum - mean * count) over n; the mean is at most the reach away from the centre."""
    away: Fraction = Fraction(reach_of(recipe.grid, recipe.centre))
    if name in draft.spend.sizes:
        away = min(away, abs(draft.spend.sizes[name] / recipe.grid.step - recipe.centre))
    terms = [(Fraction(1), noise_of(draft, recipe.total)), (away, noise_of(draft, recipe.count))]
    return recipe.grid.step * reach_of_sum(terms, draft.spend.confidence) / rows


def _predicted_spread(draft: FinalDraft, recipe: SpreadTerm, name: str, rows: int) -> Fraction:
    """To first order in the noise, at the largest mean of squares and the largest mean."""
    away = Fraction(reach_of(recipe.grid, recipe.centre))
    terms = [
        (Fraction(1), noise_of(draft, recipe.squares)),
        (2 * away, noise_of(draft, recipe.total)),
        (away**2, noise_of(draft, recipe.count)),
    ]
    reach = reach_of_sum(terms, draft.spend.confidence) / rows
    variance = recipe.grid.step**2 * reach
    if not recipe.root:
        return variance
    # If v moves by e, its root moves by at most the root of |e|, and by at most |e| over the root of v.
    moved = Fraction(up(variance) ** 0.5)
    return min(moved, variance / draft.spend.sizes[name]) if name in draft.spend.sizes else moved


def _predicted_covariance(draft: FinalDraft, recipe: PairTerm, rows: int) -> Fraction:
    """To first order in the noise, at the largest means: a mean product and two means move it, and the count.

    With distances from the centres of at most one, |mean mean - covariance| is at most one as well.
    """
    away, across = (reach_of(grid, grid.middle) for grid in recipe.grids)
    terms = [
        (recipe.scale, noise_of(draft, recipe.products)),
        (Fraction(across), noise_of(draft, recipe.totals[0])),
        (Fraction(away), noise_of(draft, recipe.totals[1])),
        (Fraction(away * across), noise_of(draft, recipe.count)),
    ]
    return recipe.grids[0].step * recipe.grids[1].step * reach_of_sum(terms, draft.spend.confidence) / rows


def typical_correlation(draft: FinalDraft, recipe: PairTerm, rows: int) -> Fraction:
    """Return about how far off a correlation is in a group of so many rows that fill the bounds evenly.

    There a variance is a third of the squared half width, and means are in the centre.
    """
    assert recipe.squares is not None
    away, across = (reach_of(grid, grid.middle) for grid in recipe.grids)
    terms = [
        (3 * recipe.scale / (away * across), noise_of(draft, recipe.products)),
        (Fraction(3, 2 * away**2), noise_of(draft, recipe.squares[0])),
        (Fraction(3, 2 * across**2), noise_of(draft, recipe.squares[1])),
        (Fraction(1), noise_of(draft, recipe.count)),
    ]
    return reach_of_sum(terms, draft.spend.confidence) / rows
