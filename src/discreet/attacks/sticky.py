"""Noise exploitation: noise that sticks to who is counted tells who is counted. [GHRLM19]

Two questions that differ by one person are subtracted. If that person is in neither, the noise of the two is nearly
the same and cancels; if in one, it does not: so the noise itself is the signal. The same attacker against a private
session, whose noise is fresh and paid for, gets no further than its epsilon allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet import noise
from discreet.attacks.results import Success
from discreet.attacks.sticky_guesses import METHODS, guess
from discreet.attacks.sticky_model import StickyModel
from discreet.attacks.sticky_ours import PrivateCounts, SessionCounts
from discreet.attacks.sticky_questions import CodedPeople, System
from discreet.attacks.sticky_targets import TargetPair, pairs_of, read_rows, singled_out
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.privacy import PureDP, best_guess
from discreet.privacy.meaning_words import percent_up
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Sticky", "StickyResult", "sticky"]

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
            lines.append(f"  no attacker exceeds {percent_up(self.ceiling)}")
        return "\n".join(lines)

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
    """
    _check(known, secret, victims, clones)
    table, asked = read_rows(rows, known, secret, value)
    alone = singled_out(table)
    chosen, looked = _exposed(table, alone, victims, crowd)
    if not chosen:
        raise InvalidParameter("nobody is singled out with such a crowd around: name other columns, or a smaller crowd")
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
