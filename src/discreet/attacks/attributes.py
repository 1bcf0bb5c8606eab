"""Attribute inference: what a model or a synthetic table tells about one person, beyond what it tells about all.

An attacker who knows some columns of a person guesses a secret one. To be right proves nothing: smokers are guessed to
cough, whoever they are. So the same attacker also guesses from a release that was made without that person's row, and
only the difference was learnt from the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from discreet import noise
from discreet.attacks.encoding import Columns, taken
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Attributes", "Guesser", "attributes"]

Guesser: TypeAlias = Callable[[Mapping[str, Any]], Any]  # of what is known about a person, the guess


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """How often a secret is guessed right from releases with the person's row, and from such without it."""

    secret: str
    right: Success  # with the person's row in the release
    without: Success  # the same attacker on a release made without it
    commonest: Success  # whoever names what is most common among the others
    gained: int  # people guessed right only with their row
    lost: int  # people guessed right only without it
    ceiling: float | None  # the share of right guesses that no attacker exceeds, by the proven guarantee

    @property
    def advantage(self) -> float:
        """By how much more often the guess is right with the row."""
        return (self.gained - self.lost) / self.right.of

    def advantage_limits(self, error: float = 0.05) -> tuple[float, float]:
        """Enclose the advantage: the chances of a gain and of a loss by [CP34], each with half of the error."""
        gain, loss = Success(self.gained, self.right.of), Success(self.lost, self.right.of)
        (gain_low, gain_high), (loss_low, loss_high) = gain.interval(error / 2), loss.interval(error / 2)
        return gain_low - loss_high, gain_high - loss_low

    @property
    def p_value(self) -> float:
        """The chance of so many gains among all changes, or more, if a row told nothing. The exact sign test."""
        from scipy.stats import binom

        return float(binom.sf(self.gained - 1, self.gained + self.lost, 0.5))

    def refutes(self, event: Event, *, error: float = 0.05) -> bool:
        """Whether more was guessed right than a release of this event allows, but for a chance of `error`."""
        return self.right.interval(error)[0] > _ceiling(event, self.without, error)

    def __str__(self) -> str:
        low, high = (100 * end for end in self.advantage_limits())
        told: list[tuple[str, object]] = [
            (f"{self.secret} guessed right", self.right),
            ("… without the person's row", self.without),
            ("… by what is most common", self.commonest),
            ("learnt from the row", f"{100 * self.advantage:.1f} % ({low:.1f} to {high:.1f} %)"),
        ]
        if self.ceiling is not None:
            told.append(("no attacker exceeds", f"{100 * self.ceiling:.0f} %"))
        width = max(len(label) for label, _ in told)
        lines = [f"{self.right.of:,} people attacked, each in a release with their row and in one without"]
        return "\n".join(lines + [f"  {label:<{width}}  {value}" for label, value in told])

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        shares = {name: getattr(self, name) for name in ("right", "without", "commonest")}
        document = {
            "secret": self.secret,
            **{name: [share.hits, share.of, *share.interval()] for name, share in shares.items()},
            "advantage": self.advantage,
            "advantage_limits": list(self.advantage_limits()),
            "p_value": self.p_value,
            "ceiling": self.ceiling,
        }
        return json.dumps(document, ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw how often each attacker is right, with limits at 95 %."""
        from discreet.plots import error_bars

        labels, shares = ("with the row", "without it", "most common"), (self.right, self.without, self.commonest)
        lows, highs = zip(*(share.interval() for share in shares), strict=True)
        across = f"{self.secret} guessed right (share)"
        return error_bars(labels, [share.share for share in shares], lows, highs, across=across, title=title)


def attributes(
    release: Callable[[Columns], Guesser],
    table: Columns,
    *,
    secret: str,
    people: int = 100,
    event: Event | None = None,
) -> NotPrivate[Attributes]:
    """Guess a secret of some people from releases of a table, with and without their row.

    `release(table)` makes the release, a model or a synthetic table, and returns the attacker who has seen it: a
    function from what is known about a person to a guess. `through_model` and `through_table` make one. It is called
    anew for every guess, so guesses are independent if the release is random. `event` is what it claims to spend on one
    person more or less: it gives the ceiling.
    """
    count = _check(table, secret)
    if people < 1:
        raise InvalidParameter("people must be 1 or more: so many are attacked")
    chosen = noise.permutation(count)[: min(people, count)]
    pairs = np.array([_both(release, table, secret, int(one)) for one in chosen], bool).reshape(-1, 3)
    right, without, common = (Success(int(column.sum()), len(pairs)) for column in pairs.T)
    found = Attributes(
        secret=secret,
        right=right,
        without=without,
        commonest=common,
        gained=int((pairs[:, 0] & ~pairs[:, 1]).sum()),
        lost=int((~pairs[:, 0] & pairs[:, 1]).sum()),
        ceiling=None if event is None else _ceiling(event, without, 0.05),
    )
    return NotPrivate(found)


def _both(release: Callable[[Columns], Guesser], table: Columns, secret: str, one: int) -> tuple[bool, bool, bool]:
    """Attack one person: with the row, without it, and by what is most common among the others."""
    others = taken(table, np.arange(len(table[secret])) != one)
    known = {name: column[one] for name, column in table.items() if name != secret}
    truth = table[secret][one]
    values, counts = np.unique(others[secret].astype(str), return_counts=True)
    common = values[np.argmax(counts)] == str(truth)
    return str(release(table)(known)) == str(truth), str(release(others)(known)) == str(truth), bool(common)


def _check(table: Columns, secret: str) -> int:
    lengths = {len(column) for column in table.values()}
    if secret not in table or len(table) < 2 or len(lengths) != 1:
        raise InvalidParameter("a table must map names to columns of one length, the secret among them, and one more")
    (count,) = lengths
    if count < 3:
        raise InvalidParameter("there must be at least three people")
    return count


def _ceiling(event: Event, without: Success, error: float) -> float:
    """To guess right is a test of "with the row": its rate of false alarms is that of guessing right without it.

    The trade-off curve is concave in that rate, so what holds for one person holds for the mean over people.
    """
    return best_tpr(event, Fraction(without.interval(error)[1]), relation=Relation.ADD_REMOVE)
