"""Noise exploitation: sticky noise, which depends on who is counted, tells who is counted. [GHRLM19]

Two questions that differ by one person are subtracted. If that person is in neither, the noise of the two is nearly
the same and cancels; if in one, it does not: so the noise itself is the signal. The same attacker against a private
session, whose noise is fresh and paid for, gets no further than its epsilon allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.formatting import chance_up
from discreet.lab.attacks.lab_tables import laboratory, text_of
from discreet.lab.attacks.sticky_systems import (
    SECRET,
    CodedPeople,
    Codes,
    Condition,
    ExpectedDifferences,
    PrivateCounts,
    Question,
    SessionCounts,
    StickyModel,
    System,
)
from discreet.lab.attacks.success_rates import Success
from discreet.pages.progress import working
from discreet.privacy import PureDP, best_guess
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "METHODS",
    "Answered",
    "GuessMethod",
    "Sticky",
    "StickyResult",
    "TargetPair",
    "guess",
    "pairs_of",
    "read_rows",
    "singled_out",
    "sticky",
]

_MOST_KNOWN = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StickyResult:
    """How often one way of attacking was right; where all its questions were refused, a coin was tossed."""

    method: str
    right: Success
    questions: float  # asked for each victim, on average
    refused: float  # the share of them that was not answered


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sticky:
    """How often an attacker tells whether one person has a secret, which was tossed: a coin is right in half."""

    system: str
    known: tuple[str, ...]  # what the attacker knows about everybody
    secret: str
    unique: Success  # people whom what is known singles out
    exposed: Success  # of the unique who were looked at: those with a crowd around them in which questions can hide
    guessed: tuple[StickyResult, ...]
    ceiling: float | None  # the share of right guesses that nobody exceeds; None if nothing is promised

    @property
    def baseline(self) -> float:
        """What an attacker gets right who asks nothing."""
        return 0.5

    def __str__(self) -> str:
        lines = [
            f"noise exploitation of {self.system}",
            f"  singled out by {', '.join(self.known)}: {self.unique}",
            f"  of these, with a crowd around: {self.exposed}",
            f"  right about {self.secret}, where a coin gets 50 %:",
        ]
        width = max(len(one.method) for one in self.guessed)
        lines += [f"    {one.method:<{width}}  {_limits(one.right)}  {_asked(one)}" for one in self.guessed]
        if self.ceiling is not None:
            lines.append(f"  no attacker exceeds {chance_up(self.ceiling)}")
        return "\n".join(lines)

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers and texts."""
        return {
            "system": self.system,
            "known": list(self.known),
            "secret": self.secret,
            "unique": _share(self.unique),
            "exposed": _share(self.exposed),
            "baseline": self.baseline,
            "ceiling": self.ceiling,
            "guessed": [_plain(one) for one in self.guessed],
        }

    def plot(self) -> alt.LayerChart:
        """Draw the share of right guesses with its limits, by way of attacking."""
        from discreet import plots

        ends = [one.right.interval() for one in self.guessed]
        rows = [("a coin", 0.5, (0.5, 0.5))]
        rows += [(one.method, one.right.share, end) for one, end in zip(self.guessed, ends, strict=True)]
        if self.ceiling is not None:
            rows.append(("no attacker exceeds", self.ceiling, (self.ceiling, self.ceiling)))
        labels, shares, limits = zip(*rows, strict=True)
        lows, highs = zip(*limits, strict=True)
        return plots.error_bars(labels, shares, lows, highs, across="share of right guesses", title=self.system)


@working("attacking", terminal=False)
def sticky(
    rows: Any,
    *,
    known: Sequence[str],
    secret: str,
    value: Any = None,
    victims: int = 100,
    clones: int = 10,
    crowd: int = 8,
    epsilon: Number | None = None,
    by_session: bool = True,
) -> NotPrivate[Sticky]:
    """Attack people of a table behind a model of sticky noise; or, with `epsilon`, behind a private session.

    `known` are columns of which the attacker knows everybody's values; `value` of `secret` is what is asked about, the
    commonest unless it is said. A victim is chosen whom these single out, with a `crowd` of others around; their secret
    is tossed, so that nothing else gives it away. `clones` is how often the cloning attack asks. A session has a
    budget of `epsilon` for all questions of one attack; `by_session=False` draws the same noise without its engine.

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        known: The columns whose values the attacker knows of everybody.
        secret: The column that is asked about.
        value: The value of it that is asked about.
        victims: How many people are attacked.
        clones: How often the cloning attack asks.
        crowd: How many others must be around a victim.
        epsilon: The budget of a private session, for all questions of one attack; None attacks sticky noise.
        by_session: Whether a real session answers.

    Returns:
        How many secrets each attack guessed, marked as not private.

    Raises:
        InvalidParameter: If nobody is singled out with such a crowd around, or a number is out of range.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> found = dp.attacks.sticky(
        ...     "stays.parquet", known=["zip", "sex", "age_group", "nights"], secret="diagnosis", victims=10
        ... )
        >>> found.value.guessed[-1].method
        'noise of clones'
    """
    _check(known, secret, victims, clones)
    table, asked = read_rows(rows, known, secret, value)
    alone = singled_out(table)
    chosen, looked = _exposed(table, alone, victims, crowd)
    if not chosen:
        raise InvalidParameter(
            "nobody is unique with `crowd` others around them: name other columns, or a smaller crowd"
        )
    system, promised = _system(table, epsilon, by_session)
    return NotPrivate(
        Sticky(
            system="a model of sticky noise" if epsilon is None else f"a private session, ε = {float(promised):g}",
            known=tuple(known),
            secret=f"{secret} = {asked}",
            unique=Success(len(alone), table.size),
            exposed=Success(len(chosen), looked),
            guessed=_attacked(table, system, chosen, clones),
            ceiling=None if epsilon is None else best_guess(PureDP(promised)),
        )
    )


def _exposed(
    table: CodedPeople, alone: Sequence[int], victims: int, crowd: int
) -> tuple[list[tuple[int, Sequence[TargetPair]]], int]:
    """Look at people in an order of chance until enough can be attacked; tell how many were looked at."""
    chosen: list[tuple[int, Sequence[TargetPair]]] = []
    order = noise.permutation(len(alone)).tolist() if alone else []
    for looked, place in enumerate(order, start=1):
        pairs = pairs_of(table, alone[place], crowd)
        if pairs:
            chosen.append((alone[place], pairs))
        if len(chosen) == victims:
            return chosen, looked
    return chosen, len(order)


def _check(known: Sequence[str], secret: str, victims: int, clones: int) -> None:
    if not 2 <= len(set(known)) <= _MOST_KNOWN or secret in known:
        raise InvalidParameter(f"known must name 2 to {_MOST_KNOWN} columns, and the secret is none of them")
    if victims < 1 or clones < 2:
        raise InvalidParameter("attack at least one victim, with at least two clones")


def _system(table: CodedPeople, epsilon: Number | None, by_session: bool) -> tuple[System, Fraction]:
    if epsilon is None:
        return StickyModel.over(table), Fraction(0)
    promised = positive(epsilon, name="epsilon")
    kind: Callable[[CodedPeople, Fraction], System] = SessionCounts if by_session else PrivateCounts
    return kind(table, promised), promised


def _attacked(
    table: CodedPeople, system: System, victims: Sequence[tuple[int, Sequence[TargetPair]]], clones: int
) -> tuple[StickyResult, ...]:
    secrets = noise.bernoulli("1/2", len(victims)).astype(np.int64).tolist()
    tallies = []
    for method in METHODS:
        right, asked, refused = 0, 0, 0
        for (person, pairs), truth in zip(victims, secrets, strict=True):
            world = system.renewed(table.with_secret(person, truth))
            inside, questions, silent = guess(method, world, table, person, pairs, clones)
            right, asked, refused = right + (inside == bool(truth)), asked + questions, refused + silent
        tallies.append(
            StickyResult(
                method=method.name,
                right=Success(right, len(victims)),
                questions=asked / len(victims),
                refused=refused / asked,
            )
        )
    return tuple(tallies)


def _limits(success: Success) -> str:
    low, high = success.interval()
    return f"{100 * success.share:5.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _asked(one: StickyResult) -> str:
    told = f"{one.questions:.0f} questions" if one.questions > 1 else "1 question"
    return f"{told}, {100 * one.refused:.0f} % refused" if one.refused else told


def _plain(one: StickyResult) -> dict[str, Any]:
    return {
        "method": one.method,
        "right": _share(one.right),
        "questions": one.questions,
        "refused": one.refused,
    }


def _share(success: Success) -> dict[str, Any]:
    low, high = success.interval()
    return {"hits": success.hits, "of": success.of, "share": success.share, "low": low, "high": high}


# --- sticky_targets ---
# Who can be attacked by two questions that differ by one person: whom known columns single out, in a crowd.


@final
@dataclass(frozen=True, slots=True)
class TargetPair:
    """Columns that single a person out, and the one of them that tells the person from all others who fit the rest."""

    rest: tuple[str, ...]
    telling: str
    crowd: int  # how many others fit the rest, and have the secret


def read_rows(rows: Any, known: Sequence[str], secret: str, value: Any) -> tuple[CodedPeople, str]:
    """Read a table of this machine as codes: known columns as they are, the secret as the value asked about or not."""
    with laboratory({"table": rows}) as lab:
        texts = [text_of(lab.column("table", column)) for column in (*known, secret)]
        listed = ", ".join(f"coalesce({text}, '') AS c{i}" for i, text in enumerate(texts))
        found = lab.select(f"SELECT {listed} FROM {lab.relations['table']}")
    columns = {f"c{i}": _codes(found.column(f"c{i}")) for i in range(len(known))}
    secrets = np.array(found.column(f"c{len(known)}").to_pylist(), dtype=object)
    asked = str(value) if value is not None else _commonest(secrets)
    has = secrets == asked
    if not has.any():
        raise InvalidParameter(f"nobody has this value of {secret}: say one that occurs")
    return CodedPeople({**columns, SECRET: has.astype(np.int64)}), asked


def singled_out(rows: CodedPeople) -> list[int]:
    """Return the people who share the values of all known columns with nobody."""
    known = np.column_stack([codes for name, codes in rows.columns.items() if name != SECRET])
    _, first, counts = np.unique(known, axis=0, return_index=True, return_counts=True)
    return [int(person) for person in first[counts == 1]]


def pairs_of(rows: CodedPeople, person: int, crowd: int) -> list[TargetPair]:
    """For each known column, find the pair of questions whose crowd is largest; the person's secret decides nothing.

    Bits of a mask say which columns of a row are the person's; a subset of columns singles the person out if no other
    mask has all of its bits.
    """
    names = [name for name in rows.columns if name != SECRET]
    masks = np.zeros(rows.size, dtype=np.int64)
    for bit, name in enumerate(names):
        masks |= (rows.columns[name] == rows.columns[name][person]).astype(np.int64) << bit
    others = np.ones(rows.size, dtype=np.bool_)
    others[person] = False
    alike = _supersets(masks[others], len(names))
    fitting = _supersets(masks[others & (rows.columns[SECRET] == 1)], len(names))
    found = [_largest(bit, names, alike, fitting) for bit in range(len(names))]
    return [pair for pair in found if pair is not None and pair.crowd >= crowd]


def _supersets(masks: Codes, bits: int) -> Codes:
    """Count, for every set of columns, the rows that agree in all of them."""
    counts = np.bincount(masks, minlength=2**bits)
    for bit in range(bits):
        shaped = counts.reshape(-1, 2, 2**bit)
        shaped[:, 0] += shaped[:, 1]
    return counts


def _largest(bit: int, names: Sequence[str], alike: Codes, fitting: Codes) -> TargetPair | None:
    own = 1 << bit
    # Subsets that hold the column, agree with nobody else, and leave a question with at least one condition.
    usable = [subset for subset in range(len(alike)) if subset & own and subset != own and alike[subset] == 0]
    if not usable:
        return None
    best = max(usable, key=lambda subset: (int(fitting[subset ^ own]), -subset))
    rest = tuple(name for other, name in enumerate(names) if other != bit and best >> other & 1)
    return TargetPair(rest, names[bit], int(fitting[best ^ own]))


def _codes(column: Any) -> Codes:
    return np.unique(np.array(column.to_pylist(), dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)


def _commonest(values: Any) -> str:
    texts, counts = np.unique(values.astype(str), return_counts=True)
    return str(texts[np.argmax(counts)])


# --- sticky_guesses ---
# Ways to guess from answers whether one person was counted: four that use sums, and two that use the noise.


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
