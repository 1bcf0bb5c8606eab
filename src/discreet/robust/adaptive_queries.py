"""Adaptive composition of noisy queries: each depends on the noisy answers so far, and on no other data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, final

from discreet.errors import InvalidParameter
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement
from discreet.mechanisms.parameters import settle
from discreet.privacy import outcomes
from discreet.privacy.events import Composed, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["AdaptiveQueries", "AdaptiveQuery"]

S = TypeVar("S")


class AdaptiveQuery(Protocol[S]):
    """A sum over rows of whole numbers: a frozen value. Everything is public but for what `evaluate` returns."""

    def __hash__(self) -> int: ...

    @property
    def share(self) -> Fraction:
        """The part of the budget that pays for it."""

    def sensitivity(self, relation: Relation, /) -> Sensitivity:
        """What one row changes, whatever has been learned before."""

    def evaluate(self, state: S, data: Any, /) -> tuple[int, ...]:
        """Ask the data. This is private."""

    def learn(self, state: S, answer: tuple[int, ...], deviation: float, /) -> S:
        """Return what is known after the noisy answer, whose noise has this deviation."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveQueries(Generic[S]):
    """Ask questions in a public order, with noise for each; what is learned is public.

    Guarantee   what the noise spends, in parts: the shares add up to one.
    Theorem     Each question is bounded whatever the answers before it were, so budgets add up: epsilons of Laplace
                noise, squares of mu of Gaussian noise, also for questions that depend on earlier answers. [DRS22]
    Utility     that of the questions.
    """

    questions: tuple[AdaptiveQuery[S], ...]
    start: S
    relation: Relation
    noise: Noise

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        if not self.questions or sum((question.share for question in self.questions), Fraction(0)) != 1:
            raise InvalidParameter("the shares of all questions must add up to one")
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def event(self) -> Event:
        events = [self._price(question).event for question in self.questions]
        return events[0] if len(events) == 1 else Composed(events)

    def run(self, data: Any) -> S:
        """Ask everything, and return what was learned, which is public."""
        state = self.start
        for question in self.questions:
            answer = self._asked(question, state).measure(data)
            state = question.learn(state, answer, self.deviation(question))
        return state

    def distribution(self, data: Any) -> Outcomes:
        """List the law of all answers."""
        return self._rest(0, self.start, (), data)

    def deviation(self, question: AdaptiveQuery[S]) -> float:
        """Return the standard deviation of the noise on an answer, in steps."""
        return self._price(question).deviation

    def _rest(self, asked: int, state: S, answers: tuple[int, ...], data: Any) -> Outcomes:
        question = self.questions[asked]
        heard = self._asked(question, state).distribution(data)
        if asked + 1 == len(self.questions):
            return outcomes.map(heard, lambda one: (*answers, *one))
        deviation = self.deviation(question)
        parts = [
            (mass, self._rest(asked + 1, question.learn(state, one, deviation), (*answers, *one), data))
            for one, mass in heard.masses.items()
        ]
        return outcomes.mixture(parts, rest=heard.tail)

    def _asked(self, question: AdaptiveQuery[S], state: S) -> Measurement:
        price = self._price(question)
        query = BoundedQuery(
            evaluate=lambda data: question.evaluate(state, data),
            sensitivity=price.sensitivity,
            relation=self.relation,
        )
        return Measurement(query=query, noise=price.noise)

    def _price(self, question: AdaptiveQuery[S]) -> _QueryPrice:
        return _price_of(question, self.relation, self.noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _QueryPrice:
    """What is public about a question before it is asked."""

    noise: Noise
    sensitivity: Sensitivity
    event: Event
    deviation: float


@lru_cache(4096)
def _price_of(question: AdaptiveQuery[Any], relation: Relation, noise: Noise) -> _QueryPrice:
    """Remember prices: most questions of a dialogue are alike, and a dialogue is held often."""
    part = noise.part(question.share) if question.share < 1 else noise
    sensitivity = question.sensitivity(relation)
    never = BoundedQuery(evaluate=lambda data: (), sensitivity=sensitivity, relation=relation)
    measurement = Measurement(query=never, noise=part)
    law = part.law(measurement.sensitivity)
    return _QueryPrice(
        noise=part,
        sensitivity=sensitivity,
        event=measurement.event,
        deviation=measurement.unit * law.standard_deviation,
    )
