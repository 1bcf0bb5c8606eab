"""A model, for the lab only, of a query system whose noise sticks: it is made from the question and from who fits it.

Such systems answer any number of questions without a budget. Every condition adds two layers of noise, which are always
the same for the same condition, and for the same condition and the same people; so asking again teaches nothing.
Answers about few people are refused. The layers are as [GHRLM19] describes them; a noisy threshold of about four people
stands for the refusal. It is no mechanism of this library, and it protects nobody: `sticky` shows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.attacks.sticky_questions import CodedPeople, Condition, ExpectedDifferences, Question

__all__ = ["StickyModel"]

_ROUNDED = 1 / 6  # The variance of the difference of two roundings to whole numbers.
_FEWEST = 2  # Fewer people are never told, whatever the threshold.
_THRESHOLD, _SPREAD = 4.0, 0.5  # A bucket is hidden below a normal threshold of this mean and deviation.


@final
@dataclass(frozen=True, slots=True, eq=False)
class StickyModel:
    """Counts with sticky noise of unit variance in each layer, rounded; few people are not told."""

    rows: CodedPeople
    salt: bytes  # secret: without it noise could be computed and taken off
    tags: NDArray[np.uint64]  # the hash of each person

    @classmethod
    def over(cls, rows: CodedPeople) -> StickyModel:
        """Set a system up over some rows, with a fresh salt."""
        tags = noise.uniform(2**62, rows.size).astype(np.uint64)
        return cls(rows, _salt(), tags)

    def renewed(self, rows: CodedPeople) -> StickyModel:
        """Return the system over other rows of the same people, with a fresh salt."""
        return StickyModel(rows, _salt(), self.tags)

    def answers(self, questions: Sequence[Question]) -> list[float | None]:
        """Answer each question, or refuse it with None."""
        return [self._answer(question) for question in questions]

    def law(self, *, inside: bool, conditions: int, cloned: bool, asked: int) -> ExpectedDifferences:
        """Return the law of the difference of two answers: with `conditions`, and with one more that leaves one out.

        Same people: all layers of shared conditions cancel, and the two of the one that is new are left. One person
        apart: the layers that are made from people are all fresh, two for each shared condition. Clones have a
        condition more, of no effect; only its layers differ from clone to clone. [GHRLM19]
        """
        if not inside:
            return ExpectedDifferences(mean=0.0, common=2.0, own=_ROUNDED)
        fresh = 2.0 * conditions + 2.0
        return ExpectedDifferences(mean=1.0, common=fresh, own=(2.0 if cloned else 0.0) + _ROUNDED)

    def _answer(self, question: Question) -> float | None:
        fits = self.rows.fitting(question)
        count = int(np.count_nonzero(fits))
        who = int(np.bitwise_xor.reduce(self.tags[fits])) if count else 0
        if count < _FEWEST or count < _THRESHOLD + _SPREAD * self._layer("hidden?", who):
            return None
        layers = sum(self._layer(_text(one), 0) + self._layer(_text(one), who) for one in question)
        return float(round(count + layers))

    def _layer(self, text: str, who: int) -> float:
        """Return a standard normal number that is always the same for the same text and people."""
        from scipy.special import ndtri

        digest = blake2b(f"{text}/{who}".encode(), key=self.salt, digest_size=8).digest()
        return float(ndtri((int.from_bytes(digest) + 0.5) / 2**64))


def _salt() -> bytes:
    return noise.uniform(256, 32).astype(np.uint8).tobytes()


def _text(condition: Condition) -> str:
    return f"{condition.column}{'=' if condition.equal else '<>'}{condition.value}"
