"""What robust mechanisms keep: frozen fields, nonsense refused, a law that is sampled, events that are stored."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from contracts.mechanism_contract import NONSENSE, listed, telling_apart
from robust_worlds import ADD_REMOVE, BOTH, GRID, LAPLACE, REPLACE_ONE, descent, gaussian, newton
from statistical import fits, rejects

from discreet.balls import precision
from discreet.errors import DiscreetError
from discreet.mechanisms.grid import Grid
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation
from discreet.robust import GradientDescent, Huber, RegressionNewton
from discreet.robust.huber_query import HuberQuery
from discreet.robust.locations import PrivateLocation
from discreet.robust.regressions import PrivateRegression

DRAWS = 500


def regression() -> PrivateRegression:
    return PrivateRegression(
        psi=Huber(),
        x_grids=(Grid.between(-1, 1),),
        y_grid=Grid.between(-2, 2),
        relation=REPLACE_ONE,
        noise=gaussian(1),
        schedule=RegressionNewton(),
        leverage=Fraction(3, 2),
        units=(Fraction(1),),
        scale=Fraction(1),
    )


SUBJECTS = [
    descent(ADD_REMOVE, LAPLACE),
    newton(REPLACE_ONE, gaussian(2)),
    regression(),
    GradientDescent(iterations=3, divisor=10),
    HuberQuery(grid=GRID, reach=2, relation=REPLACE_ONE),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: type(subject).__name__)
def test_fields_are_frozen_and_nonsense_is_refused(subject: Any) -> None:
    for field in dataclasses.fields(subject):
        held = getattr(subject, field.name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(subject, field.name, held)
        if type(held) in (int, Fraction):
            for value in NONSENSE:
                if value is not None or field.default is not None:
                    with pytest.raises(DiscreetError):
                        dataclasses.replace(subject, **{field.name: value})


@pytest.mark.parametrize(
    "subject", [subject for subject in SUBJECTS if hasattr(subject, "event")], ids=lambda it: type(it).__name__
)
def test_events_are_stored_and_read_back_equal(subject: Any) -> None:
    assert events.from_json(subject.event.to_json()) == subject.event
    for value in ("neighbours", None, 0, True):
        with pytest.raises(DiscreetError):
            dataclasses.replace(subject, relation=value)


def centres(mechanism: PrivateLocation, data: list[int]) -> Outcomes:
    """List the law of the estimate, which follows from the answers."""
    dialogue = mechanism.dialogue
    sizes = [question.sensitivity(mechanism.relation).dimension for question in dialogue.questions]
    assert set(sizes) == {1}

    def centre(answers: tuple[int, ...]) -> float:
        state = dialogue.start
        for question, answer in zip(dialogue.questions, answers, strict=True):
            state = question.learn(state, (answer,), dialogue.deviation(question))
        return state.centre

    with precision(128):
        return outcomes.map(mechanism.distribution(data), centre)


@pytest.mark.statistical
@pytest.mark.parametrize("make", [descent, newton])
@pytest.mark.parametrize("relation", BOTH)
def test_releases_follow_the_law_that_is_listed(make: Any, relation: Relation) -> None:
    """The wrong neighbour is the law of the opposite data set."""
    mechanism: PrivateLocation = make(relation, gaussian(3))
    data, other = [0, 0, 1, 2], [5, 5, 4, 4]
    law, wrong = centres(mechanism, data), centres(mechanism, other)
    places = {outcome: place for place, outcome in enumerate(telling_apart(law, wrong))}
    sample = [places[float(mechanism.release(data).value)] for _ in range(DRAWS)]
    assert fits(sample, listed(law, places))
    assert rejects(sample, listed(wrong, places))


def test_numpy_integers_are_made_plain() -> None:
    """They would wrap around where sensitivities are squared."""
    mechanism = dataclasses.replace(regression(), resolution=np.int32(1 << 20))
    for question in mechanism.dialogue.questions:
        assert type(question.sensitivity(REPLACE_ONE).squared_l2) is int
    assert mechanism.event == regression().event
