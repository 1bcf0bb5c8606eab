"""The mechanisms for a quantile: how each is made from public facts, and what it is predicted to be worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.approximate_recipes import laplace
from discreet.adaptive.noise_recipes import Recipe, best_recipe, polynomial
from discreet.adaptive.order_queries import OrderQuery, median_query, quantile_query
from discreet.adaptive.propose_test_release import ProposeTestRelease, propose_median, propose_quantile
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.adaptive.stability import DistanceTest
from discreet.balls import precision
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.quantile import Quantile, QuantileAmong
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy.relation import Relation
from discreet.statistics.chooser_inputs import TYPICAL, WIDE, ChooserInputs, Predicted, noise_errors, of_weights
from discreet.statistics.expected import Floats

__all__ = [
    "CandidateQuantile",
    "ExponentialQuantile",
    "ProposedQuantile",
    "SmoothQuantile",
    "permute_and_flip_chances",
]

_HALF = Fraction(1, 2)
_TO_THE_NOISE = 1.5  # Candidates to the rank noise: with more of them each is harder to tell from the next.
_FEWEST, _MOST = 64, 1 << 13
_ROUND = (1, 2, 5)  # Steps that people use, times a power of ten.
_APART = 0.6  # Of the noise: how far apart they are at most. A guess is rather too wide, and then they are too far.
_WORTH = 5  # Fewer grid steps are not worth it: the answer is nearly exact.
_LUCK = (-0.375, -0.125, 0.125, 0.375)
_DEARER = 2  # Of one rho, permute-and-flip gets half the epsilon: epsilon^2 / 2 and not epsilon^2 / 8.
_NODES = 96  # Of an integral.
_MARGIN = 3  # The chance to miss is then about e^-3.
_PARTS = 16  # Points that stand for a long run of grid points.
_EVEN = 1.5  # An expected column is more even than rows are: a smooth bound of theirs is about so much larger.
_ROOM = 2  # A proposal is so many times what the expected data need.
_SURE = Fraction(99, 100)  # How surely the expected data pass a test.


@dataclass(frozen=True)
class _OfRank:
    """What most methods for a quantile have in common."""

    declines: ClassVar[bool] = False

    q: Fraction

    def refusal(self, facts: ChooserInputs) -> str | None:
        return None if facts.rows else "it is tuned by the number of rows: say public_rows=…"

    def is_doubtful(self, facts: ChooserInputs) -> bool:
        return False

    def margin(self, facts: ChooserInputs) -> float:
        return 1


@dataclass(frozen=True)
class ExponentialQuantile(_OfRank):
    """A grid point of about the wanted rank; by permute-and-flip and with a guess, a round one: see `_coarser`."""

    name: ClassVar[str] = "exponential"

    def refusal(self, facts: ChooserInputs) -> str | None:
        return None

    def is_doubtful(self, facts: ChooserInputs) -> bool:
        """Tell whether all the points beyond the rows on one side may outweigh the wanted rank.

        On a small grid it is never better than permute-and-flip among all points. [MS20]
        """
        if _is_small(facts.grid) or not facts.rows:
            return _is_small(facts.grid) and not facts.composes
        decay = float(self.make(facts).factor * self.q.denominator)
        return decay * facts.rows * float(min(self.q, 1 - self.q)) < math.log(facts.grid.width + 1) + _MARGIN

    def make(self, facts: ChooserInputs) -> Quantile:
        return Quantile(
            quantile=self.q,
            epsilon=facts.epsilon,
            grid=facts.grid if facts.composes else _coarser(facts, self.q),
            relation=facts.relation,
            flips=not facts.composes,
        )

    def predict(self, facts: ChooserInputs) -> Predicted:
        mechanism = self.make(facts)
        sample = replace(facts, grid=mechanism.grid).sample
        starts, lengths, scores = mechanism.pieces_near(sample)
        coins = np.exp(float(mechanism.factor) * (scores - scores.max()).astype(float))
        weights = permute_and_flip_chances(coins, lengths) if mechanism.flips else lengths * coins
        points = np.floor(starts[:, None] + lengths[:, None] * (np.arange(_PARTS) + 0.5) / _PARTS)
        truth = _truth(facts.sample, self.q) * float(facts.grid.step)
        errors = np.abs(points * float(mechanism.grid.step) - truth)
        return of_weights(errors.ravel(), np.repeat(weights, _PARTS)).shrunk(facts.shortened)


@dataclass(frozen=True)
class CandidateQuantile(_OfRank):
    """The best of public candidates, as many in each range as rows are expected there; of a small grid, all points."""

    name: ClassVar[str] = "candidates"

    def refusal(self, facts: ChooserInputs) -> str | None:
        return None if _is_small(facts.grid) else super().refusal(facts)

    def margin(self, facts: ChooserInputs) -> float:
        """Few of many grid points miss a value that many rows share: taken where all are there, or the other fails.

        Where round points are enough, all are too many.
        """
        by_rank = ExponentialQuantile(self.q)
        if by_rank.make(facts).grid != facts.grid if _is_small(facts.grid) else not by_rank.is_doubtful(facts):
            return math.inf
        return _DEARER if facts.composes else 1

    def make(self, facts: ChooserInputs) -> QuantileAmong:
        return QuantileAmong(
            candidates=_candidates(facts, self.q),
            quantile=self.q,
            epsilon=facts.epsilon,
            grid=facts.grid,
            relation=facts.relation,
        )

    def predict(self, facts: ChooserInputs) -> Predicted:
        mechanism = self.make(facts)
        # Where the truth lies between two candidates is luck: all of them are moved a little.
        found = [_chances(replace(mechanism, candidates=_moved(mechanism, part)), facts) for part in _LUCK]
        return of_weights(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


@dataclass(frozen=True)
class SmoothQuantile(_OfRank):
    """The quantile with noise that follows a smooth bound of its sensitivity: of polynomial tails, or Laplace."""

    name: ClassVar[str] = "smooth"

    def margin(self, facts: ChooserInputs) -> float:
        return _EVEN

    def make(self, facts: ChooserInputs) -> SmoothSensitivityMechanism:
        return SmoothSensitivityMechanism(query=_query(facts, self.q, facts.size), recipe=_recipe(facts, self.q))

    def predict(self, facts: ChooserInputs) -> Predicted:
        recipe = _recipe(facts, self.q)
        bound = _bound(facts, self.q, recipe.beta) * float(facts.grid.step)
        return _errors(recipe, bound).shrunk(facts.shortened)


@dataclass(frozen=True)
class ProposedQuantile(_OfRank):
    """The quantile with noise for a proposed bound, if no few units can move it by more; otherwise no answer."""

    name: ClassVar[str] = "propose-test-release"
    declines: ClassVar[bool] = True

    def refusal(self, facts: ChooserInputs) -> str | None:
        if facts.delta is None:
            return "its test needs a delta"
        if facts.relation is Relation.ADD_REMOVE and self.q != _HALF:
            return "under add-remove it is known for the median only"
        if facts.grid.width < 3:
            return "the grid has too few points for a bound to say anything"
        return super().refusal(facts)

    def make(self, facts: ChooserInputs) -> ProposeTestRelease:
        return self._proposed(facts, facts.size)

    def predict(self, facts: ChooserInputs) -> Predicted:
        sample = facts.sample
        mechanism = self._proposed(facts, sample.size if facts.relation is Relation.REPLACE_ONE else None)
        error = noise_errors(DiscreteLaplaceLaw(2 * self._bound(facts) / facts.epsilon), float(facts.grid.step))
        with precision(64):
            passed = float(mechanism.test.chance(mechanism.distance(facts.column)))
        return replace(error, declines=1 - passed).shrunk(facts.shortened)

    def _proposed(self, facts: ChooserInputs, size: int | None) -> ProposeTestRelease:
        delta = facts.delta or Fraction(0)
        bound = self._bound(facts) * facts.grid.step
        if self.q == _HALF:
            return propose_median(
                grid=facts.grid,
                bound=bound,
                epsilon=facts.epsilon,
                delta=delta,
                relation=facts.relation,
                public_rows=size,
            )
        return propose_quantile(
            self.q, grid=facts.grid, bound=bound, epsilon=facts.epsilon, delta=delta, public_rows=size or 0
        )

    def _bound(self, facts: ChooserInputs) -> Fraction:
        """Return a bound that the expected data are far enough from, in grid steps."""
        test = DistanceTest(epsilon=facts.epsilon / 2, delta=facts.delta or Fraction(0))
        size = facts.sample.size if facts.relation is Relation.REPLACE_ONE else None
        near = _query(facts, self.q, size).local_sensitivity(facts.column, test.reliable_distance(_SURE))
        # A median of an even number of rows averages two values: one row never moves it by more than half the range.
        return max(min(Fraction(_ROOM * math.ceil(near)), Fraction(facts.grid.width - 1, 2)), Fraction(1))


@lru_cache(64)
def _candidates(facts: ChooserInputs, q: Fraction) -> tuple[int, ...]:
    """Return all points of a small grid, or about as many at even shares of what is expected as noise can tell apart.

    Some more are spread evenly, to be safe, and each is the roundest point near it: people like round numbers.
    """
    grid = facts.grid
    if _is_small(grid):
        return tuple(range(grid.first, grid.last + 1))
    mechanism = Quantile(quantile=q, epsilon=facts.epsilon, grid=grid, relation=facts.relation)
    told_apart = _TO_THE_NOISE * (facts.rows or 0) * float(mechanism.factor * q.denominator)
    wanted = min(max(round(told_apart), _FEWEST), _MOST)
    likely = grid.indices(facts.law.column(wanted, grid))
    spread = np.linspace(grid.first, grid.last, wanted // 8).astype(np.int64)
    edges = np.unique(np.concatenate([likely, spread])).tolist()
    return tuple(sorted({_roundest(low, high) for low, high in pairwise(edges)} | {grid.first, grid.last}))


@lru_cache(64)
def _coarser(facts: ChooserInputs, q: Fraction) -> Grid:
    """Return the points to choose from: round ones, and not farther apart than the noise reaches.

    Permute-and-flip is as good as the exponential mechanism among many points that are alike, and better among few:
    with points as far apart as the noise, in ranks, the median error is 0.56 of it, and 0.69 on a fine grid. [MS20]
    Many rows share round numbers, so that these are rather hit than missed. The points are public: a guess decides.
    """
    grid = facts.grid
    if facts.rough or not facts.can_predict or not 0 < q < 1:
        return grid
    whole = Quantile(quantile=q, epsilon=facts.epsilon, grid=grid, relation=facts.relation)
    noise = 1 / float(whole.factor * q.denominator)  # in ranks
    if noise < _shared(facts.sample, q) * facts.shortened:
        return grid  # What is expected has a value that stands out by itself.
    apart = _APART * _reach(facts, q, noise / (facts.rows or 1)) / float(grid.step)
    times = _round_below(min(apart, grid.width / _FEWEST))
    return grid if times < _WORTH else _among(grid, grid.step * times)


def _among(grid: Grid, step: Fraction) -> Grid:
    """Return the multiples of a step between the bounds; what is missing counts as the nearest of them."""
    low, high = math.ceil(grid.low / step) * step, math.floor(grid.high / step) * step
    default = min(max(round(grid.default / step) * step, low), high)
    return Grid.between(low, high, step=step, default=default)


def _reach(facts: ChooserInputs, q: Fraction, share: float) -> float:
    """Return how far apart values are expected to be around a quantile, for a share of the rows."""
    near = min(share, float(min(q, 1 - q)) / 2)
    low, high = facts.law.quantiles(np.array([float(q) - near, float(q) + near]))
    return float(high - low) / 2 * (share / near)


def _shared(sample: Ranked, q: Fraction) -> int:
    """Return how many rows have the value of the wanted rank."""
    below, at_most = sample.counts_around(_truth(sample, q))
    return at_most - below


def _round_below(most: float) -> int:
    """Return the largest of 1, 2, 5, 10, 20, … that is not above a number, at least 1."""
    if most < _ROUND[1]:
        return 1
    power: int = 10 ** math.floor(math.log10(most))
    return max(digit * power for digit in _ROUND if digit * power <= most)


def _is_small(grid: Grid) -> bool:
    return grid.width < _MOST


def _roundest(low: int, high: int) -> int:
    """Return the number above `low`, up to `high`, that most zeros end; of several the one nearest to the middle."""
    power: int = 10 ** len(str(max(abs(low), abs(high), 1)))
    while high // power * power <= low:
        power //= 10
    return min(max((low + high) // 2 // power, low // power + 1), high // power) * power


def _moved(mechanism: QuantileAmong, part: float) -> tuple[int, ...]:
    """Return the candidates moved by a part of the way to the next one; all points of a grid stay."""
    places = np.array(mechanism.candidates)
    if places.size > mechanism.grid.width:
        return mechanism.candidates
    order = np.arange(places.size)
    return tuple(np.unique(np.rint(np.interp(order + part, order, places)).astype(np.int64)).tolist())


def _chances(mechanism: QuantileAmong, facts: ChooserInputs) -> tuple[Floats, Floats]:
    """Return the error of each candidate, and how often it is chosen."""
    sample = facts.sample
    # A column that stands for more rows has scores that count for as many.
    factor = float(mechanism.chooser.factor) * facts.shortened
    scores = mechanism.scores(sample).astype(float)
    errors = np.abs(np.array(mechanism.candidates) - _truth(sample, mechanism.quantile)) * float(facts.grid.step)
    return errors, permute_and_flip_chances(np.exp(factor * (scores - scores.max())), np.ones(scores.size))


def permute_and_flip_chances(coins: Floats, times: NDArray[Any], nodes: int = _NODES) -> Floats:
    """Return how often each is chosen: p_i times the integral over s of the product of 1 - s p_j, j not i. [MS20]

    Each stands for as many as `times` says, and is told how often one of them is chosen.
    """
    edges = np.concatenate([[0], np.geomspace(1e-9 / float(times.max()), 1, nodes)])
    found = np.zeros_like(coins)
    for low, high in pairwise(edges.tolist()):
        left = np.log1p(-(low + high) / 2 * coins)
        found += (high - low) * coins * np.exp(float(left @ times) - left)
    return np.asarray(found * times)


def _truth(sample: Ranked, q: Fraction) -> int:
    rank = min(max(1, math.ceil(q * sample.size)), sample.size)
    return int(sample.between(rank, rank)[0])


@lru_cache(64)
def _recipe(facts: ChooserInputs, q: Fraction) -> Recipe:
    """Return the noise that is predicted to be narrowest."""

    def guess(beta: Fraction) -> float:
        return _bound(facts, q, beta)

    found = [best_recipe(lambda beta: polynomial(facts.epsilon, beta=beta), guess=guess, confidence=TYPICAL)]
    if facts.delta is not None:
        delta = facts.delta
        found.append(
            best_recipe(lambda beta: laplace(facts.epsilon, delta, beta=beta), guess=guess, confidence=TYPICAL)
        )
    return min(found, key=lambda recipe: _errors(recipe, guess(recipe.beta)).typical)


def _errors(recipe: Recipe, bound: float) -> Predicted:
    scale = bound * float(recipe.ratio)
    typical, wide = (scale * recipe.law.guess(float(1 - level)) for level in (TYPICAL, WIDE))
    return Predicted(typical=typical, wide=wide)


def _bound(facts: ChooserInputs, q: Fraction, beta: Fraction) -> float:
    """Return the smooth bound of the expected column, in grid steps."""
    size = facts.sample.size if facts.relation is Relation.REPLACE_ONE else None
    return _query(facts, q, size).smooth_bound(facts.sample, beta).approximate(float(beta))


def _query(facts: ChooserInputs, q: Fraction, size: int | None) -> OrderQuery:
    if q == _HALF:
        return median_query(grid=facts.grid, relation=facts.relation, public_rows=size)
    return quantile_query(grid=facts.grid, relation=facts.relation, q=q, public_rows=size)
