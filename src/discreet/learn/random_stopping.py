"""Random stopping: the best of a secret number of runs costs about two or three of them, however many there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, TypeVar, final

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.formatting import record
from discreet.mechanisms.parameters import settle
from discreet.privacy.events import Event, RandomlyStopped

__all__ = ["RandomStopping"]

Outcome = TypeVar("Outcome")

_FEWEST, _MOST = 2, 10**6  # Runs on average.
_DIGITS = (
    10**9
)  # The denominator of a stopping chance that is found by floats: any chance is right, if it is the one used.


@final
@dataclass(frozen=True, slots=True)
class RandomStopping:
    """A number of runs that is drawn in secret: k >= 1 by (1 - stopping)^k shape (shape + 1) … (shape + k - 1) / k!.

    Guarantee   `event(…)`, if nothing is told but the outcome of the best run: not how many there were, and no other
                outcome. The time that the runs take together is not covered: it tells about how many there were.
    Theorem     Whoever sees the best of K runs sees what 2 + shape of them spend, where these are purely private; where
                divergences are known, about that and the logarithm of the mean of K. [LT19, PS22]

    Args:
        shape: Above -1 and at most 1: 1 for a geometric number, 0 for a logarithmic one (cheaper, small more often).
        stopping: Between 0 and 1; the smaller, the more runs.

    Examples:
        >>> from discreet.learn.random_stopping import RandomStopping
        >>> rule = RandomStopping.for_mean(50)
        >>> rule.stopping
        Fraction(1, 50)
        >>> dp.privacy.epsilon(rule.event([dp.privacy.PureDP(0.25)]), 0)
        0.75
    """

    shape: Fraction
    stopping: Fraction

    __repr__ = record

    def __post_init__(self) -> None:
        given, chance = exact(self.shape, name="shape"), exact(self.stopping, name="stopping")
        if not (-1 < given <= 1 and 0 < chance < 1):
            raise InvalidParameter("shape must be above -1 and at most 1, and stopping between 0 and 1")
        settle(self, shape=given, stopping=chance)

    @classmethod
    def for_mean(cls, runs: Number, shape: Number = 1) -> Self:
        """Return the rule that makes so many runs on average."""
        mean, given = exact(runs, name="runs"), exact(shape, name="shape")
        if not _FEWEST <= mean <= _MOST:
            raise InvalidParameter(f"runs, how many to make on average, must be from {_FEWEST} to {_MOST}")
        if not -1 < given <= 1:
            raise InvalidParameter("shape must be above -1 and at most 1, such as 1 for a geometric number of runs")
        stopping = 1 / mean if given == 1 else _stopping(float(mean), float(given))
        if stopping == 0:
            raise InvalidParameter("so many runs on average need a larger shape, such as 0 or 1")
        return cls(given, stopping)

    @property
    def mean(self) -> float:
        """How many runs there are on average."""
        return _mean(float(self.stopping), float(self.shape))

    def event(self, runs: Iterable[Event]) -> RandomlyStopped:
        """Return what the best run costs, where each run spends one of some events on a unit."""
        return RandomlyStopped(dict.fromkeys(runs), self.shape, self.stopping)

    def best(self, run: Callable[[], Outcome], score: Callable[[Outcome], int]) -> Outcome:
        """Make the runs and return the best; of equal ones the first, which is each of them with the same chance."""
        kept = run()
        for _ in range(self.draw() - 1):
            kept = max(kept, run(), key=score)
        return kept

    def draw(self) -> int:
        """Draw a number of runs, exactly. It is secret: whoever knows it knows more than the event says.

        A round stops after k runs with chance stopping (1 - stopping)^(k-1), and is thrown away before that unless
        it survives coins of (l + shape) / (l + 1) for l = 1 … k - 1.
        """
        while True:
            runs = 1
            while not noise.bernoulli(self.stopping):
                if self.shape != 1 and not noise.bernoulli((runs + self.shape) / (runs + 1)):
                    break
                runs += 1
            else:
                return runs


def _mean(stopping: float, shape: float) -> float:
    odds = (1 - stopping) / stopping
    if shape == 0:
        return -odds / math.log(stopping)
    return shape * odds / -math.expm1(shape * math.log(stopping))


def _stopping(mean: float, shape: float) -> Fraction:
    """Find the chance by halving: the smaller it is, the more runs there are."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle, shape) > mean else (low, middle)
    return Fraction(round(high * _DIGITS), _DIGITS)
