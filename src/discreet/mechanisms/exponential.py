"""The exponential mechanism: select among public candidates, the better ones exponentially more often."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.grid import exact_number
from discreet.mechanisms.parameters import read_confidence, read_flag, settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.privacy import events
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "Exponential",
    "Scores",
    "check_selection",
    "read_scores",
    "read_whole_scores",
    "sampled_scores",
    "selection_factor",
]

# --- scores: Scores of candidates: exact numbers, by a total rule, so that no score can break a release. ---


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
    settle(mechanism, relation=read_relation(mechanism.relation))
    if read_flag(mechanism.monotone, name="monotone") and mechanism.relation is Relation.REPLACE_ONE:
        raise InvalidParameter(
            "no score is monotone under REPLACE_ONE, where removing one row and adding another moves scores both "
            "ways: leave monotone out"
        )


def selection_factor(*, epsilon: Fraction, sensitivity: Fraction | int, monotone: bool) -> Fraction:
    """Return what scores are multiplied by: epsilon / (2 sensitivity), without the 2 for monotone scores.

    Between neighbours the differences of scaled scores span at most epsilon: scores move by up to the sensitivity
    both ways, or one way only.
    """
    return epsilon / ((1 if monotone else 2) * sensitivity)


NO_INTERVAL = (
    "a choice has no interval: how far it is from the best depends on the data; `shortfall(confidence)` of the "
    "mechanism bounds its loss of score from public facts"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Choose candidate i with probability proportional to exp(epsilon * score_i / (2 sensitivity)).

    For scores that one unit moves all the same way, as counts under add-remove, say `monotone`: the 2 goes.

    Guarantee   epsilon, of bounded range; the only selection billed epsilon^2 / 8.
    Theorem     Between neighbours the scaled scores differ by amounts that span at most epsilon; normalising shifts
                them all by the same. [MT07, DR19]
    Utility     the loss of score exceeds (2 sensitivity / epsilon) (ln candidates + t) with probability e^-t at most.

    Args:
        epsilon: What a release spends.
        sensitivity: How far one unit moves any score.
        candidates: How many candidates there are, a public number.
        relation: The neighbouring relation.
        monotone: Whether one unit moves all scores the same way, as counts under add-remove.

    Raises:
        InvalidParameter: If a field is out of range, or `monotone` is said under replace-one.

    Examples:
        >>> mechanism = dp.mechanisms.Exponential(
        ...     epsilon=1, sensitivity=1, candidates=3, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mechanism.release([0, 1000, 0]).value
        1
    """

    epsilon: Fraction
    sensitivity: Fraction  # of every score, for one unit
    candidates: int  # how many; public
    relation: Relation
    monotone: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        check_selection(self)
        settle(self, sensitivity=positive(self.sensitivity, name="sensitivity"))

    @property
    def factor(self) -> Fraction:
        """What scores are multiplied by."""
        return selection_factor(epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone)

    @property
    def event(self) -> events.BoundedRange:
        return events.BoundedRange(self.epsilon)

    def shortfall(self, confidence: Number = Fraction(95, 100)) -> Fraction:
        """Return a loss of score that is not exceeded with at least this probability. It is public."""
        return worst_case_shortfall(factor=self.factor, candidates=self.candidates, confidence=confidence)

    def release(self, scores: Scores) -> Release[int]:
        """Choose, and return the position of the chosen candidate."""
        chosen = noise.categorical(sampled_scores(scores, self.candidates), factor=self.factor)
        return Release(
            value=chosen,
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason=NO_INTERVAL),
        )

    def distribution(self, scores: Scores) -> Outcomes:
        read = read_scores(scores, self.candidates)
        return exponential_outcomes(dict(enumerate(read)), factor=self.factor)


def exponential_outcomes(scores: Mapping[Hashable, Fraction | int], *, factor: Fraction) -> Outcomes:
    """List probabilities proportional to exp(factor * score), scores counted from the best one."""
    best = max(scores.values())
    weights = {key: ball(factor * (score - best)).exp() for key, score in scores.items()}
    total = sum(weights.values(), ball(0))
    return Outcomes({key: weight / total for key, weight in weights.items()})


def worst_case_shortfall(*, factor: Fraction, candidates: Fraction | int, confidence: Number) -> Fraction:
    """Bound the loss of score by ln(candidates / (1 - confidence)) / factor, rounded up. [MT07]

    At most all candidates but one lie that low, and each of them weighs at most that little next to the best.
    """
    level = read_confidence(confidence)
    with precision(128):
        return bounds(ball(candidates / (1 - level)).log() / ball(factor))[1]
