"""Mechanisms as their wrong authors wrote them, each beside the version that is right.

Each bug was found in a paper, in lecture notes or in a library. A mechanism here has the exact law of its
output and the event that its author charges; verification must refute the wrong ones and pass the right ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any

from discreet.balls import ball
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy import outcomes
from discreet.privacy.events import Event
from discreet.privacy.outcomes import IntegerLaw, Outcomes
from discreet.privacy.relation import Relation

World = tuple[Any, ...]


@dataclass(frozen=True)
class Noisy:
    """A vector of whole numbers, each with noise of its own law."""

    query: Callable[[World], Sequence[int]]
    laws: Sequence[IntegerLaw]
    event: Event
    relation: Relation
    symmetric: bool = True

    def distribution(self, data: World) -> Outcomes:
        exact = self.query(data)
        return outcomes.product(*(outcomes.from_law(law, value) for law, value in zip(self.laws, exact, strict=True)))


def counts(*cells: Hashable) -> Callable[[World], Sequence[int]]:
    """Count the records in each cell."""
    return lambda data: [data.count(cell) for cell in cells]


def analytic_variance(epsilon: float, delta: float) -> Fraction:
    """Return the least variance of (epsilon, delta) for a sensitivity of one, a billionth above it. [BW18]"""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(mu: float) -> float:
        far = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        return float(norm.cdf(mu / 2 - epsilon / mu) - far - delta)

    mu = brentq(excess, 1e-3, 100, xtol=1e-14, rtol=1e-14)
    return Fraction((1 + 1e-9) / mu**2)


def steps(length: int) -> Callable[[World], Sequence[int]]:
    """Sum zeros and ones on a grid of `length` steps to the unit."""
    return lambda data: [length * sum(data)]


@dataclass(frozen=True)
class Exponential:
    """Choose a value with probability proportional to exp(factor * how often it occurs)."""

    candidates: Sequence[Hashable]
    factor: Fraction
    event: Event
    relation: Relation
    symmetric: bool = True

    def distribution(self, data: World) -> Outcomes:
        weights = [ball(self.factor * data.count(candidate)).exp() for candidate in self.candidates]
        total = sum(weights[1:], weights[0])
        return Outcomes({name: weight / total for name, weight in zip(self.candidates, weights, strict=True)})


@dataclass(frozen=True)
class NoisyMax:
    """Name the value that occurs most often after discrete Laplace noise; the first of equals wins."""

    candidates: Sequence[Hashable]
    scale: Fraction
    event: Event
    relation: Relation
    symmetric: bool = True

    def distribution(self, data: World) -> Outcomes:
        scores = [data.count(candidate) for candidate in self.candidates]
        return Outcomes({name: self._wins(i, scores) for i, name in enumerate(self.candidates)})

    def _wins(self, winner: int, scores: Sequence[int]) -> Any:
        """Sum over the noisy score of the winner: those before it stay below, those after it not above."""
        law = DiscreteLaplaceLaw(self.scale)
        own = outcomes.from_law(law, scores[winner])
        total = ball(0)
        for top, mass in own.masses.items():
            for other, score in enumerate(scores):
                if other != winner:
                    mass = mass * law.cdf(top - score - (other < winner))
            total += mass
        return total.union(total + ball(own.tail))


@dataclass(frozen=True)
class PermuteAndFlip:
    """Look at the values in random order; take one with probability exp(factor * (score - best))."""

    candidates: Sequence[Hashable]
    factor: Fraction
    event: Event
    relation: Relation
    symmetric: bool = True

    def distribution(self, data: World) -> Outcomes:
        scores = [data.count(candidate) for candidate in self.candidates]
        heads = [ball(self.factor * (score - max(scores))).exp() for score in scores]
        masses = [ball(0) for _ in scores]
        orders = list(permutations(range(len(scores))))
        for order in orders:
            left = ball(Fraction(1, len(orders)))
            for i in order:
                masses[i] += left * heads[i]
                left = left * (1 - heads[i])
        return Outcomes(dict(zip(self.candidates, masses, strict=True)))


@dataclass(frozen=True)
class ForcedResponse:
    """Each answers truthfully with probability tanh(epsilon / 2), else a fair coin answers.

    The wrong author takes the two probabilities the other way round.
    """

    epsilon: Fraction
    event: Event
    swapped: bool = False
    relation: Relation = Relation.REPLACE_ONE
    symmetric: bool = False

    @property
    def keep(self) -> Any:
        """The probability that the answer given is the true one."""
        half = ball(self.epsilon / 2)
        truth = half.sinh() / half.cosh()
        return (1 + (1 - truth if self.swapped else truth)) / 2

    def distribution(self, data: World) -> Outcomes:
        return outcomes.product(*(Outcomes({bit: self.keep, 1 - bit: 1 - self.keep}) for bit in data))


@dataclass(frozen=True)
class KeptResponse:
    """Each keeps a bit with odds e^epsilon; `lies` gives the answer its wrong author gives: the other one."""

    epsilon: Fraction
    lies: bool = False

    def mean_estimate(self, bit: int) -> Any:
        """The expectation of the debiased answer of one who holds `bit`."""
        odds = ball(self.epsilon).exp()
        keep = odds / (1 + odds)
        says_one = keep if (bit == 1) != self.lies else 1 - keep
        return (says_one - (1 - keep)) / (2 * keep - 1)


@dataclass(frozen=True)
class RepeatedResponse:
    """One person answers `times` times with fresh coins; the number of ones says it all."""

    epsilon: Fraction
    times: int
    event: Event
    relation: Relation = Relation.REPLACE_ONE
    symmetric: bool = True

    def distribution(self, data: World) -> Outcomes:
        odds = ball(self.epsilon).exp()
        (bit,) = data
        one = odds / (1 + odds) if bit else 1 / (1 + odds)
        return Outcomes(
            {k: math.comb(self.times, k) * one**k * (1 - one) ** (self.times - k) for k in range(self.times + 1)}
        )


@dataclass(frozen=True)
class SparseVector:
    """Say for each query of a stream whether it lies above a threshold of 0, with noise on both. [LSL17]

    Of the ways to get it wrong in that paper: `tells_value` releases the noisy answer that was compared,
    `query_scale` None compares without noise, and `positives` None never stops.
    """

    queries: Callable[[World], Sequence[int]]
    threshold_scale: Fraction
    query_scale: Fraction | None
    positives: int | None
    event: Event
    relation: Relation
    tells_value: bool = False
    symmetric: bool = field(default=True, kw_only=True)

    def distribution(self, data: World) -> Outcomes:
        threshold = outcomes.from_law(DiscreteLaplaceLaw(self.threshold_scale))
        answers = tuple(self.queries(data))
        parts = [(mass, self._stream(answers, at)) for at, mass in threshold.masses.items()]
        return outcomes.mixture(parts, rest=threshold.tail)

    def _stream(self, answers: tuple[int, ...], threshold: int) -> Outcomes:
        """List the answers to a stream, given the noisy threshold."""
        rows: dict[tuple[Hashable, ...], Any] = {(): ball(1)}
        tail = Fraction(0)
        for answer in answers:
            step = self._answer(answer, threshold)
            tail += step.tail
            grown: dict[tuple[Hashable, ...], Any] = {}
            for row, mass in rows.items():
                if self._stopped(row):
                    grown[row] = mass
                    continue
                for value, more in step.masses.items():
                    grown[*row, value] = mass * more
            rows = grown
        return Outcomes(rows, min(Fraction(1), tail))

    def _stopped(self, row: tuple[Hashable, ...]) -> bool:
        return self.positives is not None and sum(value != "below" for value in row) >= self.positives

    def _answer(self, answer: int, threshold: int) -> Outcomes:
        if self.query_scale is None:
            return outcomes.point("above" if answer >= threshold else "below")
        law = DiscreteLaplaceLaw(self.query_scale)
        below = law.cdf(threshold - answer - 1)
        if not self.tells_value:
            return Outcomes({"below": below, "above": law.survival(threshold - answer - 1)})
        noisy = outcomes.from_law(law, answer)
        told = {value: mass for value, mass in noisy.masses.items() if value >= threshold}
        return Outcomes({"below": below, **told}, noisy.tail)
