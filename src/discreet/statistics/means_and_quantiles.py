"""One-call means, variances, medians and quantiles of a bounded column, and means of bounded vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adaptive.bounded_memberships import UnitRows, unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, positive, probability
from discreet.frames.tables import is_table
from discreet.mechanisms.grid import number_rows
from discreet.mechanisms.joint_quantiles import QuantileInterval, Quantiles
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.parameters import declared_rows, read_confidence, rows_if_public, small_delta
from discreet.mechanisms.release import Release
from discreet.mechanisms.variance import Variance, root_of
from discreet.mechanisms.vector_mean import VectorMean
from discreet.privacy.calibration import calibrate
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation, read_relation
from discreet.schema.columns import Bounds
from discreet.statistics.budget_and_payment import (
    answer,
    composes,
    grid_from,
    noise_from,
    paid_for,
    quoted,
    refuse_delta,
    row_epsilon,
)
from discreet.statistics.chooser_inputs import ChooserInputs
from discreet.statistics.expected import Expected
from discreet.statistics.mean_methods import ClampedMean
from discreet.statistics.method_choice import AUTO, SHARE, answer_by, best, mean_methods, rank_methods
from discreet.statistics.population_means import PopulationMean, of_population
from discreet.statistics.rank_methods import ExponentialQuantile

__all__ = ["mean", "median", "quantile", "quantiles", "std", "variance", "vector_mean"]

_CONFIDENCE = Fraction(95, 100)

# --- means: Averages and spreads of a bounded column. ---


def mean(
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
    count_share: Number = Fraction(1, 2),
    method: str = AUTO,
    expected: Expected | None = None,
    choice_share: Number = SHARE,
    population: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[Fraction]:
    """Release the noisy mean of a column, each value clamped to `bounds` and rounded to a multiple of `step`.

    Under replace-one the number of rows is public. Under add-remove it is private, and the part `count_share` of the
    budget pays for it. What is missing counts as `missing`, or as the middle of the bounds. `method` is one of

    - "clamped": noise scaled to the width of the bounds;
    - "clipped": noise for narrower bounds, which a part of epsilon finds; what lies outside pulls the answer inward;
    - "checked": the same for half of what is left, beside a "clamped" one, which is released if the two do not agree;
    - "trimmed": the mean without some rows on each side, with noise that follows its smooth sensitivity (replace-one);
    - "auto": the first, or "checked" where it is predicted to be 2.5 times more accurate if the data are as `expected`,
      and rows are many enough to notice that they are not. The others, which may lose tails unnoticed, by name only;
    - "paid": chosen by a private look at the data, which costs the part `choice_share` of epsilon.

    The choice never depends on the data, but for "paid", which charges for it. `dp.compare` shows the predictions.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        bounds: The public pair (low, high) that values are clamped to, or a declaration such as `dp.between(0, 120)`.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        missing: What a missing value counts as, within the bounds.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, or a guess of it: delta is checked against it, and predictions use it.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        count_share: The part of the budget that pays for the number of rows, under add-remove.
        method: How to answer, see above.
        expected: What the data may look like, from public knowledge; it guides the choice of a method.
        choice_share: The part of epsilon that "paid" spends on the choice of a method.
        population: Whether the interval is for the mean of what the rows were drawn from, independently; a fifth of the
            budget then pays for a sum of squares, which tells how far they are spread.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The noisy mean, with an interval for the mean of the clamped values, or with `population` of their law.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.mean([40] * 10_000, bounds=(0, 120), relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> abs(release.value - 40) < 5
        True
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    grid, size = grid_from(bounds, step=step, missing=missing), rows_if_public(column, relation)
    share = exact(count_share, name="count_share")
    people = declared_rows(public_rows, size)
    facts = ChooserInputs(
        grid=grid,
        relation=relation,
        epsilon=Fraction(1) if epsilon is None else exact(epsilon, name="epsilon"),
        delta=None if delta is None else exact(delta, name="delta"),
        size=size,
        expected_size=people,
        expected=expected,
    )
    if method == AUTO and (rho is not None or epsilon is None or population or whom is not None):
        method = ClampedMean.name
    method = best(mean_methods(share), facts).name if method == AUTO else method
    if rho is not None or epsilon is None or method == ClampedMean.name:
        noise = noise_from(
            epsilon=epsilon, delta=delta, rho=rho, public_rows=people, allow_large_delta=allow_large_delta, whom=whom
        )
        _check_method(method, rho)
        kind = PopulationMean if of_population(population, whom) else Mean
        mechanism = kind(grid=grid, relation=relation, noise=noise, public_rows=size, count_share=share)
        found = answer(mechanism, column, session=session, purpose="mean", noise=noise, whom=whom)
        return replace(found, method=ClampedMean.name)
    if of_population(population, whom):
        raise InvalidParameter(f'population=True goes with method="{ClampedMean.name}" only')
    if whom is not None:
        raise Refused(
            f'with unit=… a mean is "{ClampedMean.name}"',
            reason="the other methods are proven for rows",
            way_out="leave method out, and choose bounds that most values are within",
        )
    if delta is not None:
        small_delta(delta, public_rows=people, allow_large_delta=allow_large_delta)
    return answer_by(
        method, mean_methods(share), facts, column, session=session, purpose="mean", choice_share=choice_share
    )


def _check_method(method: str, rho: Number | None) -> None:
    if rho is not None and method not in (AUTO, ClampedMean.name):
        raise InvalidParameter(f'method="{method}" spends epsilon, not rho')


def variance(
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
    """Release the variance of a column with divisor n, each value clamped to `bounds`.

    Under add-remove the budget is split evenly over a sum of squares, a sum and a count.

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
        The noisy variance, with an interval for that of the clamped values.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.variance([0, 2] * 5000, bounds=(0, 2), relation=dp.Relation.REPLACE_ONE, epsilon=1)
        >>> abs(release.value - 1) < 0.1
        True
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    grid = grid_from(bounds, step=step, missing=missing)
    size = rows_if_public(column, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        public_rows=declared_rows(public_rows, size),
        allow_large_delta=allow_large_delta,
        whom=whom,
    )
    mechanism = Variance(grid=grid, relation=relation, noise=noise, public_rows=size)
    return answer(mechanism, column, session=session, purpose="variance", noise=noise, whom=whom)


def std(
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
    """Release the standard deviation of a column with divisor n: the root of `variance`, by post-processing.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        bounds: The lower and the upper bound that values are clamped to, public.
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
        The noisy standard deviation, with an interval for that of the clamped values.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.std([0, 2] * 5000, bounds=(0, 2), relation=dp.Relation.REPLACE_ONE, epsilon=1)
        >>> abs(release.value - 1) < 0.1
        True
    """
    squared = variance(
        column,
        relation=relation,
        bounds=bounds,
        step=step,
        missing=missing,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        public_rows=public_rows,
        allow_large_delta=allow_large_delta,
        session=session,
        unit=unit,
        max_rows=max_rows,
    )
    return root_of(squared)


# --- vectors: Averages of bounded vectors. ---


_STEPS = 1 << 20  # To the bound, unless the caller says otherwise.


def vector_mean(
    rows: Any,
    *,
    relation: Relation | str,
    bound: Number,
    dimension: int,
    step: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    count_share: Number = Fraction(1, 2),
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release the noisy mean of rows of `dimension` numbers, each clipped to Euclidean length `bound`.

    `rows` is a two-dimensional array, a table of pandas, polars or Arrow, or a list of rows.

    Args:
        rows: The private rows, one vector each.
        relation: The neighbouring relation.
        bound: The largest Euclidean length of a row; longer ones are clipped.
        dimension: How many numbers a row has.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        count_share: The part of the budget that pays for the number of rows, under add-remove.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        The noisy mean of each coordinate.

    Raises:
        InvalidParameter: If `rows` are no rows, or bound or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.vector_mean(
        ...     [[0.6, 0.8]] * 1000, bound=1, dimension=2, relation=dp.Relation.REPLACE_ONE, rho=0.5
        ... )
        >>> [abs(a - b) < 0.1 for a, b in zip(release.value, (0.6, 0.8))]
        [True, True]
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    radius = positive(bound, name="bound")
    size = rows_if_public(rows, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        public_rows=declared_rows(public_rows, size),
        allow_large_delta=allow_large_delta,
        whom=whom,
    )
    mechanism = VectorMean(
        bound=radius,
        step=radius / _STEPS if step is None else exact(step, name="step"),
        dimension=dimension,
        relation=relation,
        noise=noise,
        public_rows=size,
        count_share=exact(count_share, name="count_share"),
    )
    if not isinstance(rows, (np.ndarray, list, tuple)) and not is_table(rows):
        raise InvalidParameter("rows must be a two-dimensional array, a table, or a list of rows")
    with paid_for(whom, session, mechanism, purpose="vector mean"):
        vectors = number_rows(rows) if is_table(rows) else rows
        return quoted(mechanism.release(_counted(vectors, whom)), noise, whom, session)


def _counted(vectors: Any, whom: UnitRows | None) -> Any:
    """Return the rows that count. This is private."""
    if whom is None:
        return vectors
    kept = whom.kept(len(vectors))
    return vectors[kept] if isinstance(vectors, np.ndarray) else [vectors[place] for place in kept]


# --- ranks: Quantiles of a bounded column. ---


def quantile(
    column: Any,
    q: Number,
    *,
    relation: Relation | str,
    epsilon: Number,
    delta: Number | None = None,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    method: str = AUTO,
    expected: Expected | None = None,
    choice_share: Number = SHARE,
    confidence: Number | None = None,
    population: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[Any]:
    """Release a value below which about the share `q` of a column lies.

    It is a multiple of `step` near to `bounds`. `method` is one of

    - "exponential": a point within the bounds, chosen by its rank: by permute-and-flip, or by the exponential
      mechanism where the budget of `session` has a delta or a rho, to which its bounded range is cheaper;
    - "candidates": the same among fewer points, most of them where values are expected;
    - "smooth": the exact quantile with noise that follows its smooth sensitivity;
    - "propose-test-release": the exact quantile with little noise, or no answer (needs a delta);
    - "auto": the one that is predicted to be most accurate if the data are as `expected`; without that the first;
    - "paid": chosen by a private look at the data, which costs the part `choice_share` of epsilon.

    The choice never depends on the data, but for "paid", which charges for it. `dp.compare` shows the predictions.

    An interval is released if `confidence` is said; three fifths of epsilon pay for it, so that the value itself is two
    to three times as far off. It holds the quantile of the column, clamped to the bounds; with `population` that of
    the law its rows were drawn from. With `unit` it is that of the kept rows.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        q: The share of the column below the wanted value, from 0 to 1.
        relation: The neighbouring relation.
        epsilon: What to spend.
        delta: The delta that goes with it; some methods need one.
        bounds: The public pair (low, high) that values are clamped to, or a declaration such as `dp.between(0, 120)`.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        missing: What a missing value counts as, within the bounds.
        public_rows: The public number of rows, or a guess of it: delta is checked against it, and predictions use it.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        method: How to answer, see above.
        expected: What the data may look like, from public knowledge; it guides the choice of a method.
        choice_share: The part of epsilon that "paid" spends on the choice of a method.
        confidence: How surely an interval is to hold the quantile, such as 0.95; there is none if not said.
        population: Whether the interval is for what the rows were drawn from, independently; 0.95 if nothing is said.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        A value near the quantile, or `adaptive.NO_ANSWER` where "propose-test-release" declines.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds or budget are out of range, or the method is not known.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.quantile(
        ...     [40] * 1000, 0.9, bounds=(0, 120), step=1, relation=dp.Relation.REPLACE_ONE, epsilon=1
        ... )
        >>> release.value, release.method
        (Fraction(40, 1), 'candidates')
        >>> release = dp.quantile(
        ...     [40] * 1000, 0.9, bounds=(0, 120), step=1, relation=dp.Relation.REPLACE_ONE, epsilon=1, confidence=0.95
        ... )
        >>> release.interval()
        (Fraction(40, 1), Fraction(40, 1))
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    size = rows_if_public(column, relation)
    people = declared_rows(public_rows, size)
    refuse_delta(whom, delta)
    if delta is not None:
        small_delta(delta, public_rows=people, allow_large_delta=allow_large_delta)
    facts = ChooserInputs(
        grid=grid_from(bounds, step=step, missing=missing),
        relation=relation,
        epsilon=row_epsilon(epsilon, whom),
        delta=None if delta is None else exact(delta, name="delta"),
        size=size,
        expected_size=people,
        expected=expected,
        composes=composes(session),
    )
    if confidence is not None or population:
        return _with_interval(facts, q, method, confidence, population, column, session, whom)
    methods = rank_methods(probability(q, name="q"))
    return answer_by(
        method, methods, facts, column, session=session, purpose="quantile", choice_share=choice_share, whom=whom
    )


def _with_interval(
    facts: ChooserInputs,
    q: Number,
    method: str,
    confidence: Number | None,
    population: bool,
    column: Any,
    session: Payer | None,
    whom: UnitRows | None,
) -> Release[Any]:
    """Release a quantile with an interval, which goes with one method only."""
    of_population(population, whom)
    if method not in (AUTO, ExponentialQuantile.name):
        raise InvalidParameter(
            f'confidence=… and population=… go with method="{ExponentialQuantile.name}" only: the others have no '
            "interval that holds for all data"
        )
    mechanism = QuantileInterval(
        quantile=probability(q, name="q"),
        epsilon=facts.epsilon,
        grid=facts.grid,
        relation=facts.relation,
        flips=not facts.composes,
        confidence=read_confidence(_CONFIDENCE if confidence is None else confidence),
        population=population,
    )
    found = answer(mechanism, column, session=session, purpose="quantile", whom=whom)
    return replace(found, method=ExponentialQuantile.name)


def quantiles(
    column: Any,
    qs: Sequence[Number],
    *,
    relation: Relation | str,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Release several quantiles of a column at once, such as [0, 0.25, 0.5, 0.75, 1] for a box plot.

    All are chosen together, by how many rows lie between them: nine have about twice the error of one at the whole
    budget, see `mechanisms.Quantiles`. None is below the one before it.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        qs: The shares of the column below the wanted values, from 0 to 1, in order.
        relation: The neighbouring relation.
        epsilon: What to spend in all.
        delta: The delta that goes with it: it buys a little, and for more than 32 quantiles composition.
        rho: What to spend of zero-concentrated privacy, instead of epsilon.
        bounds: The public pair (low, high) that values are clamped to, or a declaration such as `dp.between(0, 120)`.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        missing: What a missing value counts as, within the bounds.
        public_rows: The public number of rows, against which delta is checked.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Errors grow with it.

    Returns:
        One value for each share, in order; `as_dict()` names them by the shares.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds, shares or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.quantiles(
        ...     [40] * 1000, [0.25, 0.5, 0.75], bounds=(0, 120), step=1, relation=dp.Relation.ADD_REMOVE, epsilon=1
        ... )
        >>> release.value
        (Fraction(40, 1), Fraction(40, 1), Fraction(40, 1))
    """
    relation = read_relation(relation)
    whom = unit_rows(unit, max_rows, relation)
    grid, people = grid_from(bounds, step=step, missing=missing), rows_if_public(column, relation)
    refuse_delta(whom, delta)
    if delta is not None:
        small_delta(delta, public_rows=declared_rows(public_rows, people), allow_large_delta=allow_large_delta)
    wanted: dict[str, Any] = {"quantiles": tuple(qs), "grid": grid, "relation": relation}
    if rho is not None and epsilon is None and delta is None:
        # Ranges of losses grow with the rows of a unit, and rho with the square of a range.
        squared = 1 if whom is None else whom.max_rows**2
        mechanism = Quantiles.for_rho(exact(rho, name="rho") / squared, **wanted)
    elif epsilon is None or rho is not None:
        raise InvalidParameter("say what to spend: epsilon=…, epsilon=… and delta=…, or rho=…")
    elif delta is None:
        mechanism = Quantiles.for_epsilon(row_epsilon(epsilon, whom), flips=not composes(session), **wanted)
    else:
        mechanism = _composed(exact(epsilon, name="epsilon"), exact(delta, name="delta"), wanted)
    found = answer(mechanism, column, session=session, purpose="quantiles", whom=whom)
    return replace(found, delta=None if delta is None else exact(delta, name="delta"))


def _composed(epsilon: Fraction, delta: Fraction, wanted: dict[str, Any]) -> Quantiles:
    """Return the better of what epsilon alone buys and of what composition at delta does."""
    alone = Quantiles.for_epsilon(epsilon, flips=False, **wanted)
    rho = calibrate(
        lambda rho: Quantiles.for_rho(rho, **wanted).event,
        epsilon=epsilon,
        delta=delta,
        relation=wanted["relation"],
        increasing=True,
    )
    composed = Quantiles.for_rho(rho, **wanted)
    return min(alone, composed, key=lambda one: one.predicted_error)


def median(
    column: Any,
    *,
    relation: Relation | str,
    epsilon: Number,
    delta: Number | None = None,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
    method: str = AUTO,
    expected: Expected | None = None,
    choice_share: Number = SHARE,
    confidence: Number | None = None,
    population: bool = False,
    session: Payer | None = None,
    unit: Any = None,
    max_rows: int | None = None,
) -> Release[Any]:
    """Release a value that about half of a column lies below; see `quantile` for the methods.

    Args:
        column: The private data: a list, an array, or a column of pandas, polars or Arrow.
        relation: The neighbouring relation.
        epsilon: What to spend.
        delta: The delta that goes with it; some methods need one.
        bounds: The public pair (low, high) that values are clamped to, or a declaration such as `dp.between(0, 120)`.
        step: The grid that values are rounded to; a power of ten, about a millionth of the width, if not said.
        missing: What a missing value counts as, within the bounds.
        public_rows: The public number of rows, or a guess of it: delta is checked against it, and predictions use it.
        allow_large_delta: Whether a delta of 1 / (number of people) or more is accepted.
        method: How to answer, see above.
        expected: What the data may look like, from public knowledge; it guides the choice of a method.
        choice_share: The part of epsilon that "paid" spends on the choice of a method.
        confidence: How surely an interval is to hold the median, such as 0.95; three fifths of epsilon pay for it.
        population: Whether the interval is for what the rows were drawn from, independently; 0.95 if nothing is said.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the data is read. Nobody if not said.
        unit: The private id of each row's unit, as in `unit=table["patient"]`: all rows of one are protected together.
        max_rows: How many rows of a unit count at most, drawn in secret; 1 if not said. Noise grows with it.

    Returns:
        A value near the median; `method` tells how it was found.

    Raises:
        Refused: If there are no bounds: they must not be read from the data.
        InvalidParameter: If bounds or budget are out of range.
        BudgetExceeded: If `session` cannot pay; nothing is read.

    Examples:
        >>> release = dp.median([40] * 1000, bounds=(0, 120), step=1, relation=dp.Relation.REPLACE_ONE, epsilon=1)
        >>> release.value
        Fraction(40, 1)
    """
    return quantile(
        column,
        Fraction(1, 2),
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        step=step,
        missing=missing,
        public_rows=public_rows,
        allow_large_delta=allow_large_delta,
        method=method,
        expected=expected,
        choice_share=choice_share,
        confidence=confidence,
        population=population,
        session=session,
        unit=unit,
        max_rows=max_rows,
    )
