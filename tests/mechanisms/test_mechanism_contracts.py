"""Every mechanism keeps the contract of mechanisms, under every relation it exists for."""

from __future__ import annotations

from typing import ClassVar

import subjects as given
from contracts.mechanism_contract import MechanismContract

from discreet import mechanisms

NOT_MECHANISMS = {
    "Asking",
    "BoundedQuery",
    "Column",
    "GaussianNoise",
    "Grid",
    "LaplaceNoise",
    "Measurement",
    "Noise",
    "Release",
    "Respondent",
    "Sensitivity",
    "estimate",
}


class TestAdditiveNoise(MechanismContract):
    subjects: ClassVar = [subject for relation in given.BOTH for subject in given.additive(relation)]


class TestSelections(MechanismContract):
    subjects: ClassVar = [subject for relation in given.BOTH for subject in given.choosing(relation)]


class TestStatistics(MechanismContract):
    subjects: ClassVar = [*(each for relation in given.BOTH for each in given.aggregates(relation)), *given.LISTED]


class TestSurveys(MechanismContract):
    subjects: ClassVar = given.SURVEYS
    hard_to_tell: ClassVar = given.SURVEYS[1:2]


def test_no_mechanism_is_left_out() -> None:
    kept = {type(subject.mechanism).__name__ for subject in given.SUBJECTS}
    assert kept == set(mechanisms.__all__) - NOT_MECHANISMS | {"PopulationMean"}  # It is of `statistics`.
