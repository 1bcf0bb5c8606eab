"""Local and smooth sensitivity: noise for a private bound on them, and exact values for the custodian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from discreet import noise
from discreet.adaptive.order_queries import (
    OrderQuery,
    median_query,
    quantile_query,
    trimmed_mean_query,
    winsorised_mean_query,
)
from discreet.adaptive.smooth_query import SmoothQuery
from discreet.adaptive.stability import least_excess
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, integer, positive, positive_integer
from discreet.formatting import record
from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.grid import Grid, exact_sum
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import read_share, settle, small_delta
from discreet.mechanisms.release import NoiseAccuracy, Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.noise.limits import check_noise_scale
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation
from discreet.schema.columns import Bounds, pair_of

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "BoundedLocalSensitivity",
    "BoundedSmoothSensitivity",
    "LocalQuery",
    "Statistic",
    "global_variance",
    "local_sensitivity",
    "local_variance",
    "smooth_sensitivity",
]

# --- bounded_local: Noise for a private bound on the local sensitivity: the bound is paid for, and so may be known. ---
#
# Both mechanisms first release a noisy number that is below the local sensitivity with probability delta at most, and
# then add Laplace noise for that number. As it is public, the answer has an interval. [Vad17]


_BITS = 192
_FINENESS = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQuery:
    """A whole number with its local sensitivity, and how far one unit moves the latter; all in grid steps.

    `verify.sensitivity` looks for a counterexample to `change` in small worlds.

    Args:
        value: The function from private data to a whole number, in grid steps.
        local_sensitivity: The function from private data to how far one unit moves the value there.
        change: How far one unit moves the local sensitivity.
        grid: The public grid; the exact value lies between its bounds.
        relation: The neighbouring relation.

    Examples:
        >>> query = dp.adaptive.LocalQuery(
        ...     value=len, local_sensitivity=lambda rows: 1, change=1,
        ...     grid=dp.mechanisms.Grid.between(0, 1000, step=1), relation=dp.Relation.ADD_REMOVE,
        ... )
        >>> query.change
        1
    """

    value: Callable[[Any], int]
    local_sensitivity: Callable[[Any], int]
    change: int  # of the local sensitivity, for one unit
    grid: Grid  # the exact value lies between its bounds
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, change=positive_integer(self.change, name="change"))
        settle(self, relation=read_relation(self.relation))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLocalSensitivity:
    """Bound the local sensitivity by adding to it, then add noise for the bound.

    Guarantee   (epsilon, delta).
    Theorem     B = L + X + t with noise X for the change g of L, and the least t with P[X < -t] <= delta. B is
                private, and not below L but with probability delta; then noise of scale B covers what one unit
                changes. For real Laplace noise t = (g / epsilon_1) ln(1 / (2 delta)). [Vad17]
    Utility     B exceeds L by about t, and never the whole range; good where L itself is stable.

    Args:
        query: The query, with its local sensitivity and how far one unit moves that.
        epsilon: What a release spends.
        delta: The delta that goes with it.
        bound_share: The part of epsilon that the bound spends.

    Examples:
        >>> query = dp.adaptive.LocalQuery(
        ...     value=len, local_sensitivity=lambda rows: 1, change=1,
        ...     grid=dp.mechanisms.Grid.between(0, 1000, step=1), relation=dp.Relation.ADD_REMOVE,
        ... )
        >>> mechanism = dp.adaptive.BoundedLocalSensitivity(query=query, epsilon=1, delta=1e-6)
        >>> mechanism.event.epsilon
        Fraction(1, 1)
    """

    query: LocalQuery
    epsilon: Fraction
    delta: Fraction
    bound_share: Fraction = Fraction(1, 2)  # of epsilon

    __repr__ = record

    def __post_init__(self) -> None:
        _settle(self)
        _check_scales(self)

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the local sensitivity."""
        return DiscreteLaplaceLaw(self.query.change / (self.epsilon * self.bound_share))

    @property
    def margin(self) -> int:
        """What is added to the noisy local sensitivity, in grid steps."""
        return least_excess(self.law, self.delta)

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Fraction]:
        """Bound, then answer."""
        with paid(session, self, purpose="an answer with a private bound on its sensitivity"):
            bound = self._bound(self.query.local_sensitivity(data), noise.discrete_laplace(self.law.scale))
            return _answer(self, bound, self.query.value(data), self.query.grid)

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the bound and the answer, in grid steps."""
        local = self.query.local_sensitivity(data)
        bound = outcomes.map(outcomes.from_law(self.law), lambda extra: self._bound(local, extra))
        return _both(self, bound, self.query.value(data))

    def _bound(self, local: int, extra: int) -> int:
        return min(max(local + extra + self.margin, 1), self.query.grid.width)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSmoothSensitivity:
    """Bound a smooth bound on the local sensitivity by multiplying it, then add noise for the product.

    Guarantee   (epsilon, delta).
    Theorem     The logarithm of a beta-smooth bound S moves by at most beta. It is rounded up to a multiple of
                beta / k, so it moves by at most k + 1 of these; noise for that and a margin are added, as for a
                local sensitivity. For real noise S grows by exp((beta / epsilon_1) (X + ln(1 / (2 delta)))). [Vad17]
    Utility     the typical factor is `inflation`, whatever the data; a small beta makes it small but S large.

    Args:
        query: The query, with a smooth bound on its local sensitivity.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        epsilon: What a release spends.
        delta: The delta that goes with it.
        bound_share: The part of epsilon that the bound spends.
        fineness: Parts of beta to which the logarithm of the bound is rounded.

    Raises:
        InvalidParameter: If beta is too small for how exactly the bound is known.

    Examples:
        >>> query = dp.adaptive.median_query(
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1), relation=dp.Relation.REPLACE_ONE, public_rows=101
        ... )
        >>> mechanism = dp.adaptive.BoundedSmoothSensitivity(query=query, beta=0.1, epsilon=1, delta=1e-6)
        >>> mechanism.inflation > 1
        True
    """

    query: SmoothQuery
    beta: Fraction
    epsilon: Fraction
    delta: Fraction
    bound_share: Fraction = Fraction(1, 2)  # of epsilon
    fineness: int = _FINENESS  # parts of beta to which the logarithm is rounded

    __repr__ = record

    def __post_init__(self) -> None:
        _settle(self)
        settle(
            self,
            beta=positive(self.beta, name="beta"),
            fineness=positive_integer(self.fineness, name="fineness"),
        )
        if 2 * self.query.relative_error >= self.beta:
            raise InvalidParameter("beta must be above twice the relative error of the query's bound")
        _check_scales(self)

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the logarithm, in parts of beta."""
        return DiscreteLaplaceLaw((self.fineness + 1) / (self.epsilon * self.bound_share))

    @property
    def margin(self) -> int:
        """What is added to the noisy logarithm, in parts of beta."""
        return least_excess(self.law, self.delta)

    @property
    def inflation(self) -> float:
        """The factor by which the bound is typically enlarged, for display. It is public."""
        with precision(_BITS):
            return float(ball(self._part * self.margin).exp())

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Fraction]:
        """Bound, then answer."""
        with paid(session, self, purpose="an answer with a private bound on its sensitivity"):
            bound = self._bound(self._logarithm(data), noise.discrete_laplace(self.law.scale))
            return _answer(self, bound, _whole(self.query.value(data)), self.query.grid)

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the bound and the answer, in grid steps."""
        logarithm = self._logarithm(data)
        bound = outcomes.map(outcomes.from_law(self.law), lambda extra: self._bound(logarithm, extra))
        return _both(self, bound, _whole(self.query.value(data)))

    def _logarithm(self, data: Any) -> int:
        """Return the logarithm of the smooth bound in parts of beta, rounded up; at least one step counts.

        The upper end of the ball may push it to the next whole number, which is why one unit moves it by up to
        fineness + 1, and not by fineness.
        """
        # A bound that is off by a factor 1 + h is raised by it, and is still smooth if h is taken off beta twice.
        error = self.query.relative_error
        beta = self.beta - 2 * error
        bound = self.query.smooth_bound(data, beta)
        with precision(_BITS):
            return ceil(bounds(self._log(bound.enclose(beta) * ball(1 + error)) / ball(self._part))[1])

    @staticmethod
    def _log(bound: arb) -> arb:
        return bound.max(ball(1)).log()

    @property
    def _part(self) -> Fraction:
        return self.beta / self.fineness

    def _bound(self, logarithm: int, extra: int) -> int:
        """Return the bound that the released logarithm stands for: whole steps, at most the range of the grid."""
        parts = max(0, logarithm + extra + self.margin)
        width = self.query.grid.width
        with precision(_BITS):
            if ball(self._part * parts) > ball(width).log():
                return width
            steps = bounds(ball(self._part * parts).exp())[1] + 2 * self.query.value_error
        # Rounding two values to whole steps moves them apart by less than one: up to the next whole number.
        return min(ceil(steps), width)


_Mechanism = BoundedLocalSensitivity | BoundedSmoothSensitivity


def _settle(mechanism: _Mechanism) -> None:
    settle(
        mechanism,
        epsilon=positive(mechanism.epsilon, name="epsilon"),
        delta=small_delta(mechanism.delta, public_rows=None),
        bound_share=read_share(mechanism.bound_share, name="bound_share"),
    )


def _check_scales(mechanism: _Mechanism) -> None:
    """Refuse noise that no sampler takes, while nothing is spent yet."""
    for scale in (mechanism.law.scale, *(_noise(mechanism, bound).scale for bound in (1, mechanism.query.grid.width))):
        check_noise_scale(scale)


def _whole(value: Fraction) -> int:
    # Half a step is rounded up, always: half to even would move two values farther apart.
    return (2 * value + 1).__floor__() // 2


def _noise(mechanism: _Mechanism, bound: int) -> DiscreteLaplaceLaw:
    return DiscreteLaplaceLaw(bound / (mechanism.epsilon * (1 - mechanism.bound_share)))


def _answer(mechanism: _Mechanism, bound: int, value: int, grid: Grid) -> Release[Fraction]:
    law = _noise(mechanism, bound)
    return Release(
        value=(value + noise.discrete_laplace(law.scale)) * grid.step,
        event=mechanism.event,
        relation=mechanism.relation,
        accuracy=NoiseAccuracy(noise=law, step=grid.step),
        limits=(grid.low, grid.high),
        delta=mechanism.delta,
    )


def _both(mechanism: _Mechanism, bound: Outcomes, value: int) -> Outcomes:
    """List the bound together with the answer whose noise it sets."""

    def answers(known: int) -> Outcomes:
        return outcomes.map(outcomes.from_law(_noise(mechanism, known), value), lambda noisy: (known, noisy))

    parts = ((mass, answers(known)) for known, mass in bound.masses.items())
    return outcomes.mixture(parts, rest=bound.tail)


# --- sensitivity ---
# What one unit can change, at the data at hand: local and smooth sensitivity, for the custodian's own eyes.


Statistic: TypeAlias = Literal["order", "median", "trimmed_mean", "winsorised_mean", "variance"]

_SENSITIVITY_BITS = 96


def smooth_sensitivity(
    values: Data,
    *,
    bounds: Bounds,
    beta: Number,
    relation: Relation | str,
    rank: int | None = None,
    q: Number | None = None,
    statistic: Statistic = "order",
    ends: int | None = None,
    step: Number | None = None,
) -> NotPrivate[float]:
    """Return the beta-smooth sensitivity of a statistic of values clamped to the bounds, in units of the data.

    "order" is the value of a rank, counted from 1, or of the rank max(1, ceil(q n)); "median" the middle value or the
    mean of the two (under add-remove the lower of them); "trimmed_mean" and "winsorised_mean" leave out or move inward
    `ends` values on each side; "variance" has the divisor n. For the Winsorised mean, and for quantiles other than the
    median under add-remove, it is a smooth upper bound; for the variance, the global sensitivity. [NRS07, BS19]

    Args:
        values: The private values.
        bounds: The public bounds that they are clamped to.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.
        relation: The neighbouring relation.
        rank: The rank of an order statistic, from 1; say this or `q`.
        q: The share of rows below it.
        statistic: "order", "median", "trimmed_mean", "winsorised_mean" or "variance".
        ends: How many values are left out or moved inward on each side.
        step: The grid of the values.

    Returns:
        The smooth sensitivity, marked as not private.

    Examples:
        >>> found = dp.adaptive.smooth_sensitivity(
        ...     [1, 2, 3], bounds=(0, 4), beta=1, q=0.5, step=1, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> found.value > 0
        True
    """
    relation = read_relation(relation)
    decay, column = positive(beta, name="beta"), column_of(values)
    if statistic == "variance":
        sample, unit = _variance(column, bounds, relation, step, rank=rank, q=q, ends=ends)
        return NotPrivate(float(unit * global_variance(Fraction(sample.spread), sample.size)))
    query = _query(column, bounds, relation, rank, q, statistic, ends, step)
    peak = query.smooth_sensitivity(column, decay)
    with precision(_SENSITIVITY_BITS):
        return NotPrivate(float(query.grid.step * Fraction(float(peak.enclose(decay)))))


def local_sensitivity(
    values: Data,
    *,
    bounds: Bounds,
    relation: Relation | str,
    rank: int | None = None,
    q: Number | None = None,
    statistic: Statistic = "order",
    ends: int | None = None,
    step: Number | None = None,
    distance: int = 0,
) -> NotPrivate[float]:
    """Return how far one unit can move the same statistics, once `distance` others have changed at their worst.

    Noise of this size is not private: it tells how the data lie.

    Args:
        values: The private values.
        bounds: The public bounds that they are clamped to.
        relation: The neighbouring relation.
        rank: The rank of an order statistic, from 1; say this or `q`.
        q: The share of rows below it.
        statistic: "order", "median", "trimmed_mean", "winsorised_mean" or "variance", as in `smooth_sensitivity`.
        ends: How many values are left out or moved inward on each side.
        step: The grid of the values.
        distance: How many units have changed before; for a variance, none.

    Returns:
        The local sensitivity in units of the data, marked as not private.

    Raises:
        InvalidParameter: If the statistic is not known under this relation, or something is said that it does not need.

    Examples:
        >>> near = dp.adaptive.local_sensitivity(
        ...     [1, 2, 4], bounds=(0, 10), statistic="median", step=1, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> near.value  # The 1, replaced by a 10, would make the 4 the median.
        2.0
    """
    relation = read_relation(relation)
    if integer(distance, name="distance") < 0:
        raise InvalidParameter("distance must not be negative")
    column = column_of(values)
    if statistic == "variance":
        if distance:
            raise InvalidParameter("the sensitivity of a variance is computed at the data only: leave distance out")
        sample, unit = _variance(column, bounds, relation, step, rank=rank, q=q, ends=ends)
        return NotPrivate(float(unit * local_variance(sample)))
    query = _query(column, bounds, relation, rank, q, statistic, ends, step)
    return NotPrivate(float(query.grid.step * query.local_sensitivity(column, distance)))


def _query(
    column: Column,
    bounds: Bounds,
    relation: Relation,
    rank: int | None,
    q: Number | None,
    statistic: Statistic,
    ends: int | None,
    step: Number | None,
) -> OrderQuery:
    grid = Grid.between(*pair_of(bounds), step=step)
    size = len(column) if read_relation(relation) is Relation.REPLACE_ONE else None
    if statistic == "order":
        _refuse(ends=ends)
        return quantile_query(grid=grid, relation=relation, rank=rank, q=q, public_rows=size)
    _refuse(rank=rank, q=q)
    if statistic == "median":
        _refuse(ends=ends)
        return median_query(grid=grid, relation=relation, public_rows=size)
    return _without_ends(grid, statistic, ends, size)


def _without_ends(grid: Grid, statistic: Statistic, ends: int | None, size: int | None) -> OrderQuery:
    if size is None:
        raise InvalidParameter("trimmed and Winsorised means have a sensitivity bound under REPLACE_ONE only")
    if ends is None:
        raise InvalidParameter("`ends`, the number of values trimmed or moved on each side, is required")
    if statistic == "trimmed_mean":
        return trimmed_mean_query(grid=grid, public_rows=size, trimmed=ends)
    if statistic == "winsorised_mean":
        return winsorised_mean_query(grid=grid, public_rows=size, moved=ends)
    raise InvalidParameter('statistic must be "order", "median", "trimmed_mean", "winsorised_mean" or "variance"')


def _variance(
    column: Column, bounds: Bounds, relation: Relation, step: Number | None, **unused: object
) -> tuple[Ranked, Fraction]:
    """Return the values on their grid, and its squared step."""
    _refuse(**unused)
    if read_relation(relation) is not Relation.REPLACE_ONE:
        raise InvalidParameter("the sensitivity of a variance is known under REPLACE_ONE only")
    if not len(column):
        raise InvalidParameter("a variance needs at least one value")
    grid = Grid.between(*pair_of(bounds), step=step)
    return Ranked.of(column, grid), grid.step**2


def _refuse(**unused: object) -> None:
    for name, value in unused.items():
        if value is not None:
            raise InvalidParameter(f"{name} has no meaning for this statistic: leave it out")


# --- variance_sensitivity: How far one unit moves a variance: at the data, and anywhere. ---


def global_variance(spread: Fraction, size: int) -> Fraction:
    """Return the sensitivity of the variance, with divisor n, under replace-one, over all data within the bounds.

    Theorem     It is spread^2 (n - 1) / n^2. With the mean c of the others, some bound b has (b - c)^2 >= spread^2 / 4;
                so either (v - c)^2 or what replacing v by b gains is at least spread^2 / 8. The local sensitivity is
                never below an eighth of this constant: no smooth bound is worth its noise, and the constant is used.
    """
    return spread**2 * Fraction(size - 1, size**2)


def local_variance(sample: Ranked) -> Fraction:
    """Return the local sensitivity of the same variance under replace-one, in squared grid steps. It is private.

    Theorem     With the mean c of the others, a value v adds (n - 1) (v - c)^2 / n^2. Replacing it moves that to
                anything between zero, at c, and the larger one at the two bounds.
    """
    n, total = sample.size, exact_sum(sample.values)
    if n < 2:
        return Fraction(0)
    return max(_change(sample, total, value) for value in _candidates(sample, total)) / n**2 / (n - 1)


def _candidates(sample: Ranked, total: int) -> set[int]:
    """Return the values whose replacement can change most.

    Replaced by c, these are the extremes. Replaced by a bound b, the gain (b - c)^2 - (v - c)^2 with (n - 1) c =
    total - v is a concave function of v with its top at (b + total) / (n + 1).
    """
    ordered, found = sample.between(1, sample.size), {0, sample.size - 1}
    for bound in (sample.low, sample.high):
        after = int(ordered.searchsorted(-(-(bound + total) // (sample.size + 1))))
        found |= {max(after - 1, 0), min(after, sample.size - 1)}
    return {int(ordered[index]) for index in found}


def _change(sample: Ranked, total: int, value: int) -> Fraction:
    """Return the largest change for one value, times n^2 (n - 1)."""
    others = sample.size - 1
    rest = total - value  # others * c
    now = (others * value - rest) ** 2
    most = max((others * bound - rest) ** 2 for bound in (sample.low, sample.high))
    return Fraction(max(most - now, now))
