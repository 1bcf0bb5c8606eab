"""Attributes: what a synthetic table tells about somebody's secret, with and without their row in the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks import Success
from discreet.evaluation.caps import GUESSED
from discreet.evaluation.nearest import secrets_of_closest
from discreet.evaluation.promised import ceiling
from discreet.evaluation.refitting import Halves
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows
from discreet.synth.promise import Promise

__all__ = ["SecretGuesses", "guess_halves", "guess_secrets"]

Codes: TypeAlias = NDArray[np.int32]
_ENDS = 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecretGuesses:
    """How often a secret is guessed right of people in the data, and of people who are not."""

    secret: str
    inside: Success
    outside: Success
    commonest: Success  # of those outside, whoever names what is most common in the synthetic table
    promise: Promise | None
    refitted: bool

    def ceiling(self, error: float = _ENDS) -> float | None:
        """Return the share of right guesses about people in the data that no attacker exceeds.

        To guess right is a test of "in the data"; its rate of false alarms is that of right guesses about others.
        """
        rate = self.outside.interval(error)[1]
        return None if self.promise is None else ceiling(self.promise, rate, swapped=not self.refitted)

    def refutes(self, error: float) -> bool:
        """Whether more was guessed right than the promise allows, but for a chance of `error`."""
        ceiling = self.ceiling(error / 2)
        return ceiling is not None and self.inside.interval(error / 2)[0] > ceiling

    def gains(self, error: float) -> bool:
        """Whether to be in the data makes a secret easier to guess, but for a chance of `error`."""
        return self.inside.interval(error / 2)[0] > self.outside.interval(error / 2)[1]


def guess_secrets(
    layout: ColumnLayout,
    synthetic: EvaluatedRows,
    real: EvaluatedRows,
    holdout: EvaluatedRows,
    *,
    secret: str,
    promise: Promise | None,
) -> SecretGuesses:
    """Guess the secret of people of the real table and of people who were held out, from all their other columns."""
    place = layout.place(secret, what="secret")
    inside, outside = (_right(layout, rows.some(GUESSED), synthetic, place) for rows in (real, holdout))
    named = holdout.codes[:, place] == np.bincount(synthetic.codes[:, place]).argmax()
    return SecretGuesses(
        secret=secret,
        inside=_success(inside),
        outside=_success(outside),
        commonest=_success(named),
        promise=promise,
        refitted=False,
    )


def guess_halves(layout: ColumnLayout, made: Halves, *, secret: str, promise: Promise | None) -> SecretGuesses:
    """Guess the secret of the same people from tables of random halves, some with them and some without."""
    place = layout.place(secret, what="secret")
    people = made.people.take(slice(GUESSED))
    right = np.stack([_right(layout, people, table, place) for table in made.tables])
    inside = made.inside[:, : len(people)]
    common = np.stack([people.codes[:, place] == np.bincount(t.codes[:, place]).argmax() for t in made.tables])
    return SecretGuesses(
        secret=secret,
        inside=_success(right[inside]),
        outside=_success(right[~inside]),
        commonest=_success(common[~inside]),
        promise=promise,
        refitted=True,
    )


def _right(layout: ColumnLayout, people: EvaluatedRows, synthetic: EvaluatedRows, secret: int) -> NDArray[np.bool_]:
    right: NDArray[np.bool_] = secrets_of_closest(layout, people, synthetic, secret) == people.codes[:, secret]
    return right


def _success(right: NDArray[np.bool_]) -> Success:
    return Success(int(right.sum()), right.size)
