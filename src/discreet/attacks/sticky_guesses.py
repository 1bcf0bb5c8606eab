"""Ways to guess from answers whether one person was counted: four that use sums, and two that use the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from discreet import noise
from discreet.attacks.sticky_questions import SECRET, CodedPeople, Condition, ExpectedDifferences, Question, System
from discreet.attacks.sticky_targets import TargetPair

__all__ = ["METHODS", "Answered", "GuessMethod", "guess"]

Asked: TypeAlias = list[tuple[TargetPair, tuple[Question, ...]]]
_NOBODY = -1  # A code that nobody has: to exclude it excludes nobody.


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """A pair whose questions were all answered."""

    pair: TargetPair
    answers: Sequence[float]

    @property
    def difference(self) -> float:
        """The first answer less the second."""
        return self.answers[0] - self.answers[1]


@final
@dataclass(frozen=True, slots=True, eq=False)
class GuessMethod:
    """Some questions in pairs, and how sure their answers make an attacker; above 0 the person was counted."""

    name: str
    ask: Callable[[CodedPeople, int, Sequence[TargetPair], int], Asked]
    weigh: Callable[[System, Sequence[Answered]], float]


def guess(
    method: GuessMethod, system: System, rows: CodedPeople, person: int, pairs: Sequence[TargetPair], clones: int
) -> tuple[bool, int, int]:
    """Attack one person. Return the guess, the number of questions and the number of those that were refused."""
    asked = method.ask(rows, person, pairs, clones)
    told = iter(system.answers([question for _, questions in asked for question in questions]))
    groups = [(pair, [next(told) for _ in questions]) for pair, questions in asked]
    silent = sum(answer is None for _, answers in groups for answer in answers)
    whole = [Answered(pair, [a for a in answers if a is not None]) for pair, answers in groups if None not in answers]
    counted = method.weigh(system, whole) > 0 if whole else bool(noise.bernoulli("1/2"))
    return counted, sum(len(answers) for _, answers in groups), silent


def _widest(pairs: Sequence[TargetPair]) -> TargetPair:
    return max(pairs, key=lambda pair: pair.crowd)


def _conditions(rows: CodedPeople, person: int, pair: TargetPair) -> Question:
    same = tuple(Condition(name, int(rows.columns[name][person])) for name in pair.rest)
    return (*same, Condition(SECRET, 1))


def _apart(rows: CodedPeople, person: int, pair: TargetPair, *more: Condition) -> tuple[Question, Question]:
    """Ask for those who fit the rest and have the secret, with the person if they have it, and surely without."""
    rest = (*_conditions(rows, person, pair), *more)
    return rest, (*rest, Condition(pair.telling, int(rows.columns[pair.telling][person]), equal=False))


def _direct(rows: CodedPeople, person: int, pairs: Sequence[TargetPair], clones: int) -> Asked:
    pair = _widest(pairs)
    telling = Condition(pair.telling, int(rows.columns[pair.telling][person]))
    return [(pair, ((*_conditions(rows, person, pair), telling),))]


def _one(rows: CodedPeople, person: int, pairs: Sequence[TargetPair], clones: int) -> Asked:
    return [(_widest(pairs), _apart(rows, person, _widest(pairs)))]


def _again(rows: CodedPeople, person: int, pairs: Sequence[TargetPair], clones: int) -> Asked:
    return [(_widest(pairs), _apart(rows, person, _widest(pairs)))] * clones


def _each(rows: CodedPeople, person: int, pairs: Sequence[TargetPair], clones: int) -> Asked:
    return [(pair, _apart(rows, person, pair)) for pair in pairs]


def _cloned(rows: CodedPeople, person: int, pairs: Sequence[TargetPair], clones: int) -> Asked:
    """Add conditions that exclude nobody: a column is not a value that nobody has, another one each time."""
    pair = _widest(pairs)
    dummies = [Condition(pair.rest[0], _NOBODY - number, equal=False) for number in range(clones)]
    return [(pair, _apart(rows, person, pair, dummy)) for dummy in dummies]


def _count(system: System, told: Sequence[Answered]) -> float:
    return told[0].answers[0] - 0.5


def _mean(system: System, told: Sequence[Answered]) -> float:
    return sum(one.difference for one in told) / len(told) - 0.5


def _noise(system: System, told: Sequence[Answered]) -> float:
    """Add up the log-likelihood ratios of single differences."""
    return sum(_ratio(system, one.pair, [one.difference], 2 * len(told), cloned=False) for one in told)


def _clones(system: System, told: Sequence[Answered]) -> float:
    """Weigh all clones at once: what they share is not fresh evidence, how they vary is."""
    return _ratio(system, told[0].pair, [one.difference for one in told], 2 * len(told), cloned=True)


def _ratio(system: System, pair: TargetPair, differences: Sequence[float], asked: int, *, cloned: bool) -> float:
    conditions = len(pair.rest) + 1
    inside, outside = (
        system.law(inside=which, conditions=conditions, cloned=cloned, asked=asked) for which in (True, False)
    )
    return _log_density(inside, differences) - _log_density(outside, differences)


def _log_density(law: ExpectedDifferences, values: Sequence[float]) -> float:
    """Return the log density, up to a constant, of normal values with one shared and one own part each.

    The mean of n values has variance own / n + common, and their n - 1 contrasts have variance own.
    """
    size = len(values)
    middle = sum(values) / size
    spread = sum((value - middle) ** 2 for value in values)
    shared = law.own + size * law.common
    return -0.5 * (
        size * (middle - law.mean) ** 2 / shared + spread / law.own + math.log(shared) + (size - 1) * math.log(law.own)
    )


METHODS = (
    GuessMethod("asking directly", _direct, _count),
    GuessMethod("one difference", _one, _mean),
    GuessMethod("the same again, averaged", _again, _mean),
    GuessMethod("clones, averaged", _cloned, _mean),
    GuessMethod("noise of differences", _each, _noise),
    GuessMethod("noise of clones", _cloned, _clones),
)
