"""Every aggregate's sensitivity is right and no larger than needed, by all neighbours of a tiny domain."""

from __future__ import annotations

from typing import Any

import pytest
from mechanisms.subjects import SUBJECTS, Subject

from discreet.lab.verify import l1, sensitivity, squared_l2, worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms import VectorMean
from discreet.mechanisms.measurement import Measurement
from discreet.privacy.relation import Relation

CASES = [
    pytest.param(subject, measurement, id=f"{subject.name}-{number}")
    for subject in SUBJECTS
    for number, measurement in enumerate(getattr(subject.mechanism, "measurements", ()))
]


def widest(subject: Subject) -> Worlds:
    """The world of the subject; vectors are furthest apart when they are opposite."""
    if isinstance(subject.mechanism, VectorMean) and subject.mechanism.relation is Relation.REPLACE_ONE:
        return worlds(((1, 0), (0, 0), (-1, 0)), (2,))
    return subject.worlds


@pytest.mark.parametrize(("subject", "measurement"), CASES)
def test_the_largest_change_is_the_sensitivity(subject: Subject, measurement: Measurement) -> None:
    query = measurement.query

    def answer(data: Any) -> tuple[int, ...]:
        return query.evaluate(subject.given(data))

    small = widest(subject)
    for distance, claimed in ((l1, query.sensitivity.l1), (squared_l2, query.sensitivity.squared_l2)):
        assert sensitivity(answer, small, relation=query.relation, distance=distance).value == claimed


def test_there_are_aggregates_to_try() -> None:
    assert len({type(case.values[0].mechanism) for case in CASES}) >= 7
