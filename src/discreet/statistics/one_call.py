"""One-call statistics that need no choice of method: counts, sums, histograms, modes, shares."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.bounded_memberships import unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, down, exact, positive_integer
from discreet.formatting import plain
from discreet.frames.column import Column, reader_for
from discreet.mechanisms.count import Count
from discreet.mechanisms.exponential import Scores
from discreet.mechanisms.grid import exact_number
from discreet.mechanisms.histogram import Histogram, bin_counts, canonical, read_bins
from discreet.mechanisms.local_protocol import estimate
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.mechanisms.parameters import declared_rows, rows_if_public, small_delta
from discreet.mechanisms.proportion import HALVES, Proportion, truths
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.release import Release
from discreet.mechanisms.sum import Sum
from discreet.mechanisms.top_k import TopK
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation
from discreet.schema.columns import Bounds, pair_of
from discreet.statistics.budget_and_payment import (
    answer,
    grid_from,
    noise_from,
    refuse_delta,
    row_epsilon,
)
from discreet.statistics.method_choice import AUTO
from discreet.statistics.mode_choice import TestedMode, mode_facts, mode_method
from discreet.statistics.population_means import PopulationMean, of_population

__all__ = [
    "count",
    "histogram",
    "mode",
    "proportion",
    "randomized_response",
    "select",
    "sum",
    "top_k",
]

# --- counts: How many, and what share. ---


def count(
    column: Any,
    *,
    relation: Relation | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[int]:
    """Release the noisy count of the entries of a column that are neither missing nor False.

    So `count(ages)` counts rows and `count(ages > 65)` counts people over 65.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The noisy count, with an interval.

    Raises:
        InvalidParameter: If the budget is not said in exactly one way, or out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.count([31, 44, None, 59], relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> release.cost, abs(release.value - 3) < 60
        ('ε = 1', True)
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, public_rows=public_rows, allow_large_delta=allow_large_delta, whom=whom
    )
    mechanism = Count(relation=relation, noise=noise)
    return answer(mechanism, column, session=session, purpose="count", noise=noise, whom=whom)


def proportion(
    column: Any,
    *,
    relation: Relation | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    count_share: Number = Fraction(1, 2),
    population: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[Fraction]:
    """Release the share of rows that are true: True, or a number other than zero.

    Under add-remove the part `count_share` of the budget pays for the number of rows, which is private there.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        count_share: The part of the budget that pays for the number of rows, under add-remove.
        population: Whether the interval is for the share in what the rows were drawn from, independently; it costs
            nothing more.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The noisy share, with an interval; `tidy` moves it between 0 and 1.

    Raises:
        InvalidParameter: If the budget is not said in exactly one way, or out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.proportion([True, False] * 5000, relation=dp.Relation.REPLACE_ONE, epsilon=1)
        >>> abs(release.value - 0.5) < 0.01
        True
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    size = rows_if_public(column, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        public_rows=declared_rows(public_rows, size),
        allow_large_delta=allow_large_delta,
        whom=whom,
    )
    share = exact(count_share, name="count_share")
    if of_population(population, whom):
        drawn = PopulationMean(
            grid=HALVES, relation=relation, noise=noise, public_rows=size, count_share=share, binary=True
        )
        return answer(drawn, column, session=session, purpose="proportion", noise=noise, prepare=truths, whom=whom)
    mechanism = Proportion(relation=relation, noise=noise, public_rows=size, count_share=share)
    return answer(mechanism, column, session=session, purpose="proportion", noise=noise, whom=whom)


# --- sums: The total of a bounded column. ---


def sum(
    column: Any,
    *,
    relation: Relation | str,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[Fraction]:
    """Release the noisy sum of a column, each value clamped to `bounds` and rounded to a multiple of `step`.

    The step is a power of ten, about a millionth of the width of the bounds, unless you say another one. What is
    missing counts as `missing`, or as the number nearest to zero within the bounds.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        bounds: The public pair (low, high) that values are clamped to, or a declaration such as `dp.between(0, 120)`.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        missing: What a missing value counts as, within the bounds.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The noisy sum, with an interval for the sum of the clamped values.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.sum([40] * 1000, bounds=(0, 120), relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> abs(release.value - 40_000) < 10_000
        True
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    grid = grid_from(bounds, step=step, missing=missing, toward_zero=True)
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, public_rows=public_rows, allow_large_delta=allow_large_delta, whom=whom
    )
    mechanism = Sum(grid=grid, relation=relation, noise=noise)
    return answer(mechanism, column, session=session, purpose="sum", noise=noise, whom=whom)


# --- surveys: Shares from randomised answers. ---


def randomized_response(
    column: Any,
    *,
    relation: Relation | str,
    categories: Iterable[Hashable],
    epsilon: Number,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Randomise the answer of every row and estimate the share of each public category.

    What is in no category is taken for the first one. The randomised answers could be published as well; if they
    are collected from people directly, use `mechanisms.Respondent` and `mechanisms.estimate`.

    Args:
        column: The private answers, one a person.
        relation: `Relation.REPLACE_ONE`: randomised answers tell how many people answered.
        categories: The public answers that are possible.
        epsilon: What each person's answer spends.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The estimated share of each category.

    Raises:
        Refused: If the relation is add-remove.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.randomized_response(
        ...     ["yes"] * 10_000, categories=["no", "yes"], relation=dp.Relation.REPLACE_ONE, epsilon=2
        ... )
        >>> abs(release.as_dict()["yes"] - 1) < 0.2
        True
    """
    relation = read_relation(relation)
    if relation is Relation.ADD_REMOVE:
        raise Refused(
            "randomised answers tell how many people answered, which is private under ADD_REMOVE: use REPLACE_ONE, "
            "or `histogram`"
        )
    names = read_bins(categories)
    mechanism = RandomizedResponse.for_epsilon(epsilon, categories=len(names))
    reader = reader_for(column)
    with paid(session, mechanism, purpose="randomised answers"):
        answers = mechanism.respond_all(_coded(reader(column), names))
        return replace(estimate(answers, mechanism), labels=tuple(map(str, names)))


def _coded(column: Column, names: tuple[Hashable, ...]) -> list[int]:
    codes = {name: code for code, name in enumerate(names)}
    return [codes.get(canonical(value), 0) for value in column.objects()]


# --- tables: Counts of public bins. ---


_NOWHERE = -1
_MOST_RANGES = 100_000
_LARGEST_EDGE = 10**300  # Every edge is a float, too.


def histogram(
    column: Any,
    *,
    relation: Relation | str,
    bins: int | Iterable[Hashable] | None = None,
    bounds: Bounds | None = None,
    edges: Sequence[Number] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[int, ...]]:
    """Release a noisy histogram over public bins: the values in `bins`, or the ranges between `edges`.

    A range holds its lower edge, and the last one its upper edge too. Rows in no bin are not counted.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        bins: The public values to count, a list or `dp.categories([…])`; or how many ranges of equal width there are
            between `bounds`. Say these or `edges`.
        bounds: The lower and the upper end of all ranges, public, where `bins` is a number.
        edges: The public ends of ranges, in order.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        One noisy count for each bin; `as_dict` names them.

    Raises:
        InvalidParameter: If not exactly one of `bins` and `edges` is said.
        Refused: If `bins` is a number and there are no bounds: they must not be read from the data.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> ages = dp.histogram([34, 61, 29], bins=3, bounds=(0, 90), relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> ages.labels
        ('[0, 30)', '[30, 60)', '[60, 90]')
        >>> release = dp.histogram(["f", "m", "f"], bins=["f", "m"], relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> sorted(release.as_dict())
        ['f', 'm']
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    if (bins is None) == (edges is None):
        raise InvalidParameter("say either bins=…, the public values, or edges=…, the public ends of ranges")
    if isinstance(bins, (int, np.integer)):
        edges, bins = _equal_ranges(int(bins) if isinstance(bins, np.integer) else bins, bounds), None
    elif bounds is not None:
        raise InvalidParameter("bounds go with a number of bins: bins=10, bounds=(0, 100)")
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, public_rows=public_rows, allow_large_delta=allow_large_delta, whom=whom
    )
    if edges is None:
        mechanism = Histogram(bins=read_bins(bins or ()), relation=relation, noise=noise)
        return answer(mechanism, column, session=session, purpose="histogram", noise=noise, whom=whom)
    ends = _read_edges(edges)
    mechanism = Histogram(bins=tuple(range(len(ends) - 1)), relation=relation, noise=noise)
    release = answer(
        mechanism,
        column,
        session=session,
        purpose="histogram",
        noise=noise,
        prepare=partial(_placed, ends=ends),
        whom=whom,
    )
    return replace(release, labels=_range_labels(ends))


def _equal_ranges(number: int, bounds: Bounds | None) -> tuple[Fraction, ...]:
    """Return the ends of so many ranges of equal width."""
    grid = grid_from(None if bounds is None else pair_of(bounds), step=None, missing=None)
    count = positive_integer(number, name="bins")
    if count > _MOST_RANGES:
        raise InvalidParameter(f"bins must be at most {_MOST_RANGES:,}")
    return tuple(grid.low + (grid.high - grid.low) * at / count for at in range(count + 1))


def _read_edges(edges: Sequence[Number]) -> tuple[Fraction, ...]:
    ends = tuple(exact(edge, name="edge") for edge in edges)
    if len(ends) < 2 or any(low >= high for low, high in pairwise(ends)):
        raise InvalidParameter("edges must be at least two numbers, each above the one before")
    if max(abs(ends[0]), abs(ends[-1])) > _LARGEST_EDGE:
        raise InvalidParameter("edges must lie between -1e300 and 1e300")
    return ends


def _range_labels(ends: tuple[Fraction, ...]) -> tuple[str, ...]:
    closing = [")"] * (len(ends) - 2) + ["]"]
    pairs = zip(pairwise(ends), closing, strict=True)
    return tuple(f"[{plain(low)}, {plain(high)}{close}" for (low, high), close in pairs)


def _placed(column: Column, *, ends: tuple[Fraction, ...]) -> Column:
    """Replace each value by the number of its range; a float edge is compared as the float that was meant."""
    values = _floats(column)
    limits = np.array([float(end) for end in ends])
    places = np.searchsorted(limits, values, side="right") - 1
    places[values == limits[-1]] = len(ends) - 2
    outside = np.isnan(values) | (values < limits[0]) | (values > limits[-1])
    places[outside] = _NOWHERE
    return Column(places)


def _floats(column: Column) -> NDArray[np.float64]:
    values = column.values
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind in "iu":
        floats = _floats_down(np.asarray(values))
    elif kind in "bf":
        with np.errstate(over="ignore"):  # A warning would tell that a value is huge.
            floats = np.asarray(values).astype(np.float64)
    else:
        floats = np.array([_float(value) for value in column.objects()], dtype=np.float64)
    return floats if column.missing is None else np.where(column.missing, np.nan, floats)


def _floats_down(whole: NDArray[Any]) -> NDArray[np.float64]:
    """Round whole numbers down to floats, as `_float` does one by one.

    How a row is rounded must not depend on what the other rows are: a single None makes a list of objects.
    """
    signed = whole.dtype.kind == "i"
    wide = whole.astype(np.int64 if signed else np.uint64)
    floats = wide.astype(np.float64)
    beyond = floats >= (2.0**63 if signed else 2.0**64)  # Rounded up to what the type does not hold.
    too_high = beyond | (np.where(beyond, 0, floats).astype(wide.dtype) > wide)
    return np.where(too_high, np.nextafter(floats, -np.inf), floats)


def _float(value: object) -> float:
    number = exact_number(value)
    return float("nan") if number is None else down(number)


# --- choices: The most frequent of public candidates. ---


C = TypeVar("C")


def mode(
    column: Any,
    *,
    relation: Relation | str,
    candidates: Iterable[Hashable] | None = None,
    epsilon: Number,
    delta: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    method: str = AUTO,
    expected: Mapping[Any, Number] | Sequence[Number] | None = None,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[Any]:
    """Name the most frequent value of a column, or one that is about as frequent. `method` is one of

    - "permute-and-flip": one of the public candidates;
    - "stable": the most frequent value itself, of the candidates or of all, if it leads clearly; otherwise no answer
      (needs a delta);
    - "auto": the one that is predicted to fail least often if the most frequent values have the `expected` shares;
      without these the first, or the second if there are no candidates.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        candidates: The public values to choose from.
        epsilon: What to spend.
        delta: The delta that goes with it; "stable" needs one.
        public_rows: The public number of rows, or a guess of it: delta is checked against it, and predictions use it.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        method: How to answer, see above.
        expected: The public guess of the shares of the most frequent values.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The value, or `adaptive.NO_ANSWER` where "stable" declines.

    Raises:
        InvalidParameter: If candidates and delta are both missing, or the method is not known.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.mode(
        ...     ["flu"] * 1000, candidates=["flu", "measles"], relation=dp.Relation.ADD_REMOVE, epsilon=1
        ... )
        >>> release.value
        'flu'
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    size = rows_if_public(column, relation)
    people = declared_rows(public_rows, size)
    if delta is not None:
        small_delta(delta, public_rows=people, allow_large_delta=allow_large_delta)
    refuse_delta(whom, delta)
    spent = row_epsilon(epsilon, whom)
    facts = mode_facts(candidates, relation, spent, delta, people if size is None else size, expected)
    chosen = mode_method(method, facts)
    if isinstance(chosen, TestedMode):
        found: Release[Any] = answer(chosen.make(facts), column, session=session, purpose="mode", whom=whom)
        return replace(found, method=chosen.name)
    names = facts.candidates or ()
    prepare = partial(bin_counts, bins=names)
    found = answer(chosen.make(facts), column, session=session, purpose="mode", prepare=prepare, whom=whom)
    return replace(_named(found, names[found.value]), method=chosen.name)


def top_k(
    column: Any,
    k: int,
    *,
    relation: Relation | str,
    candidates: Iterable[Hashable],
    epsilon: Number,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[Any, ...]]:
    """Select the k public candidates that are about the most frequent in the column, best first.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        k: How many to name.
        relation: The neighbouring relation.
        candidates: The public values to choose from.
        epsilon: What all choices together spend.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The chosen values, best first.

    Raises:
        InvalidParameter: If there are fewer than k candidates.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> ill = ["flu"] * 5000 + ["cold"] * 2000
        >>> release = dp.top_k(
        ...     ill, 2, candidates=["flu", "cold", "measles"], relation=dp.Relation.ADD_REMOVE, epsilon=1
        ... )
        >>> release.value
        ('flu', 'cold')
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    names = read_bins(candidates)
    mechanism = TopK(
        epsilon=row_epsilon(epsilon, whom),
        sensitivity=exact(1),
        candidates=len(names),
        count=k,
        relation=relation,
        monotone=relation is Relation.ADD_REMOVE,
    )
    prepare = partial(bin_counts, bins=names)
    chosen = answer(mechanism, column, session=session, purpose="top k", prepare=prepare, whom=whom)
    return _named(chosen, tuple(names[place] for place in chosen.value))


def select(
    candidates: Iterable[C],
    scores: Scores,
    *,
    sensitivity: Number,
    relation: Relation | str,
    epsilon: Number,
    monotone: bool = False,
    session: Payer | None = None,
) -> Release[C]:
    """Select a public candidate whose private score is about the best.

    `sensitivity` is how far one unit can move any score. Scores are monotone if one unit moves them all the same way.

    Args:
        candidates: The public candidates.
        scores: The private score of each candidate.
        sensitivity: How far one unit can move any score.
        relation: The neighbouring relation.
        epsilon: What to spend.
        monotone: Whether one unit moves all scores the same way, as counts under add-remove.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.

    Returns:
        The chosen candidate.

    Raises:
        InvalidParameter: If there is not one score for each candidate.
        BudgetExceeded: If `session` cannot pay.

    Examples:
        >>> dp.select(["a", "b"], [0, 1000], sensitivity=1, relation=dp.Relation.REPLACE_ONE, epsilon=1).value
        'b'
    """
    relation = read_relation(relation)
    names = tuple(candidates)
    mechanism = PermuteAndFlip(
        epsilon=exact(epsilon, name="epsilon"),
        sensitivity=exact(sensitivity, name="sensitivity"),
        candidates=len(names),
        relation=relation,
        monotone=monotone,
    )
    if len(scores) != len(names):
        raise InvalidParameter("there must be one score for each of the public candidates")
    with paid(session, mechanism, purpose="select"):
        chosen = mechanism.release(scores)
        return _named(chosen, names[chosen.value])


def _named(chosen: Release[Any], value: Any) -> Release[Any]:
    return replace(chosen, value=value)
