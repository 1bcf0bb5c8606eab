"""Randomized response (local DP): each person randomises their own answer, and nobody sees the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import final

from discreet import noise
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.grid import exact_number
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = ["RandomizedResponse"]

_BITS = 128  # Relative accuracy of the chance of a lie.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Keep an answer among `categories` with chance `keep`, otherwise give one of the others at random.

    Make it with `for_epsilon`, or `warner` for two coins. It tells that somebody answered, so it exists under
    replace-one only.

    Guarantee   epsilon for one answer of one person, whoever collects it; k answers cost k epsilon.
    Theorem     Each output has chance keep or (1 - keep) / (categories - 1), whatever the truth; their ratio is at
                most e^epsilon, which is checked here in exact arithmetic. [War65, KOV16]
    Utility     for two categories and n people the estimated share has variance e^eps / (n (e^eps - 1)^2).

    Args:
        epsilon: What one answer spends.
        keep: The chance that the true answer is given, above 1 / categories.
        categories: How many answers are possible, at least 2.

    Raises:
        InvalidParameter: If `keep` is too large for epsilon.

    Examples:
        >>> mechanism = dp.mechanisms.RandomizedResponse.warner()
        >>> mechanism.keep, mechanism.respond(1) in (0, 1)
        (Fraction(3, 4), True)
    """

    epsilon: Fraction
    keep: Fraction
    categories: int = 2

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            keep=exact(self.keep, name="keep"),
            categories=positive_integer(self.categories, name="categories"),
        )
        if self.categories < 2:
            raise InvalidParameter("categories must be at least 2")
        if not self.lie < self.keep < 1:
            raise InvalidParameter("keep must be above 1 / categories and below 1")
        if not _odds_at_most(self.keep / self.lie, self.epsilon):
            raise InvalidParameter("keep is too large for epsilon: its odds against a lie exceed e^epsilon")

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, categories: int = 2) -> RandomizedResponse:
        """Keep with the largest chance that epsilon allows, rounded towards a pure guess."""
        spent = positive(epsilon, name="epsilon")
        if spent > 1000:
            raise InvalidParameter("epsilon must not exceed 1000: such an answer hides nothing")
        if positive_integer(categories, name="categories") < 2:
            raise InvalidParameter("categories must be at least 2")
        count = int(categories)
        lie = _lie_up(spent, count)
        return cls(epsilon=spent, keep=1 - (count - 1) * lie, categories=count)

    @classmethod
    def warner(cls) -> RandomizedResponse:
        """Two fair coins: the truth with chance 3/4, so epsilon is ln 3, here rounded up."""
        with precision(_BITS):
            upper = bounds(ball(3).log())[1]
        return cls(epsilon=Fraction(-((-upper * 10**18) // 1), 10**18), keep=Fraction(3, 4))

    @property
    def lie(self) -> Fraction:
        """The chance of each single other answer."""
        return (1 - self.keep) / (self.categories - 1)

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    @property
    def event(self) -> events.RandomizedResponse:
        return events.RandomizedResponse(self.epsilon, self.categories)

    def respond(self, answer: int) -> int:
        """Randomise one answer, a whole number from 0 to categories - 1; anything else is taken for 0."""
        truth = self._read(answer)
        # Both are drawn in any case: how long it takes must not tell whether the answer is true.
        keeps, other = noise.bernoulli(self.keep), noise.uniform(self.categories - 1)
        return truth if keeps else other + (other >= truth)

    def respond_all(self, answers: Sequence[int]) -> list[int]:
        """Randomise one answer of each of many people."""
        kept = noise.bernoulli(self.keep, len(answers)).tolist()
        others = noise.uniform(self.categories - 1, len(answers)).tolist()
        truths = [self._read(answer) for answer in answers]
        return [
            truth if keeps else other + (other >= truth)
            for truth, keeps, other in zip(truths, kept, others, strict=True)
        ]

    def release(self, answers: Sequence[int]) -> Release[tuple[int, ...]]:
        """Randomise one answer of each of many people; `estimate` turns the answers into shares."""
        return Release(
            value=tuple(self.respond_all(answers)),
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(
                reason="a randomised answer has no confidence interval; `estimate` gives one for the shares"
            ),
        )

    def distribution(self, answers: Sequence[int]) -> Outcomes:
        """List the law of the answers of several people, one tuple an outcome."""
        return outcomes.product(*(self._law(self._read(answer)) for answer in answers))

    def _law(self, truth: int) -> Outcomes:
        return Outcomes({answer: ball(self.keep if answer == truth else self.lie) for answer in range(self.categories)})

    def _read(self, answer: object) -> int:
        # A total rule: an error would tell something about the answer.
        number = exact_number(answer) if isinstance(answer, Integral) else None
        whole = 0 if number is None else int(number)
        return whole if 0 <= whole < self.categories else 0


def _odds_at_most(odds: Fraction, epsilon: Fraction) -> bool:
    """Decide odds <= e^epsilon; e^epsilon is irrational, so more bits always decide."""
    bits = _BITS
    while True:
        with precision(bits):
            limit = ball(epsilon).exp()
            if ball(odds) < limit:
                return True
            if ball(odds) > limit:
                return False
        bits *= 2


def _lie_up(epsilon: Fraction, categories: int) -> Fraction:
    """Return a fraction just above 1 / (e^epsilon + categories - 1): lying more is the private side."""
    # Small epsilons need bits to tell keep from lie, large ones to tell the lie from zero.
    small = max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    bits = _BITS + small + 2 * int(epsilon) + 2 * categories.bit_length()
    with precision(2 * bits):
        upper = bounds(1 / (ball(epsilon).exp() + (categories - 1)))[1]
    return Fraction(-((-upper * 2**bits) // 1), 2**bits)
