"""Small worlds and mechanisms for the tests of robust statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise, Sensitivity
from discreet.mechanisms.grid import Grid
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation
from discreet.robust import GradientDescent, Huber, Newton
from discreet.robust.adaptive_queries import AdaptiveQueries
from discreet.robust.locations import PrivateLocation
from discreet.robust.loss_functions import Psi
from discreet.robust.regressions import PrivateRegression

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = [ADD_REMOVE, REPLACE_ONE]
GRID = Grid.between(0, 5, step=1)


def gaussian(mu: float) -> GaussianNoise:
    return GaussianNoise(squared_multiplier=1 / Fraction(str(mu)) ** 2)


def descent(relation: Relation, noise: Noise, *, psi: Psi | None = None, **changes: Any) -> PrivateLocation:
    """Two steps of gradient descent with a psi of very few steps."""
    given = {"iterations": 2, "divisor": 2, "rate": 1, "start": 2, "inference": False} | changes
    return PrivateLocation(
        psi=psi or Huber(1),
        grid=GRID,
        relation=relation,
        noise=noise,
        schedule=GradientDescent(**given),
        scale=Fraction(1),
        resolution=1,
    )


def newton(relation: Relation, noise: Noise, *, psi: Psi | None = None, **changes: Any) -> PrivateLocation:
    given = {"halvings": 0, "steps": 1, "inference": False} | changes
    return PrivateLocation(
        psi=psi or Huber(1),
        grid=GRID,
        relation=relation,
        noise=noise,
        schedule=Newton(**given),
        scale=Fraction(1),
        resolution=1,
    )


@dataclass(frozen=True)
class Claiming:
    """A question that claims another sensitivity than it has, as its wrong author does."""

    question: Any
    claimed: Callable[[Sensitivity], Sensitivity]

    @property
    def share(self) -> Fraction:
        return self.question.share

    def sensitivity(self, relation: Relation) -> Sensitivity:
        return self.claimed(self.question.sensitivity(relation))

    def evaluate(self, state: Any, data: Any) -> tuple[int, ...]:
        return self.question.evaluate(state, data)

    def learn(self, state: Any, answer: tuple[int, ...], deviation: float) -> Any:
        return self.question.learn(state, answer, deviation)


@dataclass(frozen=True)
class Mutant:
    """A mechanism all of whose questions claim a wrong sensitivity."""

    mechanism: PrivateLocation | PrivateRegression
    claimed: Callable[[Sensitivity], Sensitivity]

    @property
    def relation(self) -> Relation:
        return self.mechanism.relation

    @property
    def dialogue(self) -> AdaptiveQueries[Any]:
        right: AdaptiveQueries[Any] = self.mechanism.dialogue
        questions = tuple(Claiming(question, self.claimed) for question in right.questions)
        return AdaptiveQueries(questions=questions, start=right.start, relation=right.relation, noise=right.noise)

    @property
    def event(self) -> Any:
        return self.dialogue.event

    def distribution(self, data: Any) -> Outcomes:
        if isinstance(self.mechanism, PrivateLocation):
            return self.dialogue.distribution(self.mechanism.values(data))
        return self.dialogue.distribution(self.mechanism.table(data))


def halved(right: Sensitivity) -> Sensitivity:
    """Forget that a replaced row moves a sum by two radii."""
    return Sensitivity(l1=right.l1 // 2, squared_l2=right.squared_l2 // 4, dimension=right.dimension)


def l2_for_l1(right: Sensitivity) -> Sensitivity:
    """Take the l2 norm where Laplace noise needs the l1 norm."""
    size = round(right.squared_l2**0.5)
    return Sensitivity(l1=size, squared_l2=right.squared_l2, dimension=right.dimension)


LAPLACE = LaplaceNoise(epsilon=Fraction(20))  # Narrow noise, so that two steps of it are a short list.
