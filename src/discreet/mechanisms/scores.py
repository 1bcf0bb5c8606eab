"""Scores of candidates: exact numbers, by a total rule, so that no score can break a release."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.fields import read_flag, read_relation, settle
from discreet.mechanisms.grid import exact_number
from discreet.privacy.relation import Relation

__all__ = ["Scores", "check_selection", "read_scores", "read_whole_scores", "sampled_scores", "selection_factor"]

Scores: TypeAlias = Sequence[Any] | NDArray[Any]

_LARGEST = Fraction(1 << 1024)  # Above every float. What is no number scores lowest, infinity highest.


def read_scores(scores: Scores, candidates: int) -> list[Fraction]:
    """Read one score a candidate, higher being better; NaN, None and text that is no number score lowest."""
    _check_length(scores, candidates)
    values = scores.tolist() if isinstance(scores, np.ndarray) else scores
    return [_score(value) for value in values]


def sampled_scores(scores: Scores, candidates: int) -> Sequence[Fraction] | NDArray[np.int64]:
    """The same, left as an array where it is one of whole numbers: samplers are quicker on it."""
    if isinstance(scores, np.ndarray) and scores.dtype.kind == "i":
        _check_length(scores, candidates)
        return scores.astype(np.int64)
    return read_scores(scores, candidates)


def read_whole_scores(scores: Scores, candidates: int) -> list[int]:
    """Read one whole number a candidate, higher being better."""
    _check_length(scores, candidates)
    values = scores.tolist() if isinstance(scores, np.ndarray) else scores
    if not all(isinstance(value, (int, np.integer)) for value in values):
        raise InvalidParameter("scores must be whole numbers, in steps of a public grid")
    return [int(value) for value in values]


def _check_length(scores: Scores, candidates: int) -> None:
    if len(scores) != candidates:
        raise InvalidParameter("there must be one score for each of the public candidates")


def _score(value: object) -> Fraction:
    number = exact_number(value)
    return -_LARGEST if number is None else min(max(number, -_LARGEST), _LARGEST)


def check_selection(mechanism: Any) -> None:
    """Read the fields that all selections share."""
    settle(
        mechanism,
        epsilon=positive(mechanism.epsilon, name="epsilon"),
        candidates=positive_integer(mechanism.candidates, name="candidates"),
    )
    read_relation(mechanism.relation)
    if read_flag(mechanism.monotone, name="monotone") and mechanism.relation is Relation.REPLACE_ONE:
        raise InvalidParameter(
            "no score is monotone under REPLACE_ONE, where one person's going and another's coming move scores both "
            "ways: leave monotone out"
        )


def selection_factor(*, epsilon: Fraction, sensitivity: Fraction | int, monotone: bool) -> Fraction:
    """Return what scores are multiplied by: epsilon / (2 sensitivity), without the 2 for monotone scores.

    Between neighbours the differences of scaled scores span at most epsilon: scores move by up to the sensitivity
    both ways, or one way only.
    """
    return epsilon / ((1 if monotone else 2) * sensitivity)
