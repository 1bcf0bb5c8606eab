"""Reconstruction: counts of many random subsets, each a little off, give nearly everybody's secret away. [DN03]

Whoever answers too many questions too accurately answers all of them. It takes about as many questions as there are
people, and an error of less than the square root of their number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet import noise
from discreet.attacks.drawing import success_bars
from discreet.attacks.results import Success
from discreet.attacks.subset_decoding import Decoder, Subsets, chosen, decoded, subset_counts
from discreet.attacks.vectors import Integers, VectorRelease, deviation_of, released
from discreet.errors import InvalidParameter
from discreet.exact import up
from discreet.privacy import Event, Relation, delta
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Reconstruction", "guessing_ceiling", "reconstruction"]

_MOST = 200_000_000  # People times questions; a byte each.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """How many secrets, each a yes or no, were rebuilt from counts of subsets."""

    people: int
    queries: int
    deviation: float  # of the declared noise on each count
    decoder: Decoder
    right: Success
    commonest: Success  # of whoever says the commoner answer about everybody: the baseline
    ceiling: float | None  # the share that no attacker exceeds, if secrets are independent; None if nothing is claimed
    guesses: tuple[int, ...]

    @property
    def expected(self) -> float | None:
        """The share that least squares rebuilds, nearly; None where there are no more questions than people.

        Each estimate is off by a deviation of 2 s / sqrt(q - n), and is right if it is off by less than one half.
        """
        if self.queries <= self.people:
            return None
        if self.deviation == 0:
            return 1.0
        reach = math.sqrt(self.queries - self.people) / (4 * self.deviation)
        return 0.5 * math.erfc(-reach / math.sqrt(2))

    def plot(self) -> alt.LayerChart:
        """Draw the share that was rebuilt beside the baseline, each with its limits."""
        return success_bars(
            {"rebuilt": self.right, "by the commoner answer": self.commonest},
            ceiling=self.ceiling,
            across="share of secrets that are right",
            title=f"{self.people:,} secrets from {self.queries:,} counts ± {self.deviation:.3g}",
        )

    def to_json(self) -> str:
        """Write the figures, without anybody's."""
        return json.dumps(
            {
                "attack": "reconstruction",
                "people": self.people,
                "queries": self.queries,
                "deviation": self.deviation,
                "decoder": self.decoder.value,
                "right": [self.right.hits, self.right.of],
                "commonest": [self.commonest.hits, self.commonest.of],
                "expected": self.expected,
                "ceiling": self.ceiling,
            }
        )

    def __str__(self) -> str:
        low, high = self.right.interval()
        noisy = f"noise ± {self.deviation:.3g} on each" if self.deviation else "exact"
        told = [
            f"{self.queries:,} counts of random subsets of {self.people:,} people, {noisy} ({self.decoder.value})",
            f"  secrets rebuilt          {self.right}, between {100 * low:.1f} and {100 * high:.1f} %",
            f"  by the commoner answer   {self.commonest}",
        ]
        if self.ceiling is not None:
            told.append(f"  no attacker exceeds      {100 * self.ceiling:.1f} %")
        return "\n".join(told)


def reconstruction(
    secrets: Sequence[int] | Integers,
    *,
    queries: int,
    mechanism: VectorRelease | None = None,
    decoder: Decoder | None = None,
) -> NotPrivate[Reconstruction]:
    """Ask how many people of each of many random subsets have a yes as their secret, and rebuild everybody's.

    Everybody is in half of the subsets, at random. All answers are one release of the `mechanism`, which one secret
    changes by one in each: `gaussian_counts(queries, squared_sensitivity=queries, …)`. Without one they are exact.
    """
    truth = _bits(secrets)
    if queries < 1 or queries * len(truth) > _MOST:
        raise InvalidParameter(f"there must be at least one query, and at most {_MOST:,} people times queries")
    how = chosen(decoder, len(truth), queries)
    subsets: Subsets = noise.bernoulli("1/2", (queries, len(truth))).astype(np.uint8)
    answers = released(mechanism, subset_counts(subsets, truth.astype(np.float64)).astype(np.int64))
    deviation = deviation_of(mechanism, queries)
    guesses = (decoded(how, subsets, answers, deviation) > 0.5).astype(np.int64)
    ones = int(truth.sum())
    return NotPrivate(
        Reconstruction(
            people=len(truth),
            queries=queries,
            deviation=deviation,
            decoder=how,
            right=Success(int((guesses == truth).sum()), len(truth)),
            commonest=Success(max(ones, len(truth) - ones), len(truth)),
            ceiling=_ceiling(mechanism, Fraction(ones, len(truth))),
            guesses=tuple(guesses.tolist()),
        )
    )


def guessing_ceiling(event: Event, share: Fraction, *, relation: Relation) -> float:
    """Bound the chance to guess a secret right that is a yes with chance `share`, independently of others.

    Theorem     Say the commoner answer unless a test alarms, and let r be the chance of the rarer one: right with
                chance 1 - r + r TPR - (1 - r) FPR, where TPR - e^epsilon FPR <= delta(epsilon); take the epsilon with
                e^epsilon = (1 - r) / r. [KOV15]
    """
    rare = min(share, 1 - share)
    if rare == 0:
        return 1.0
    # A little less than the logarithm: delta only grows.
    level = Fraction(max(0.0, math.log((1 - rare) / rare) * (1 - 1e-12)))
    return up(min(Fraction(1), 1 - rare + rare * Fraction(delta(event, level, relation=relation))))


def _ceiling(mechanism: VectorRelease | None, share: Fraction) -> float | None:
    if mechanism is None:
        return None
    return guessing_ceiling(mechanism.event, share, relation=mechanism.relation)


def _bits(secrets: Any) -> Integers:
    found = np.asarray(secrets)
    if found.ndim != 1 or len(found) < 2 or found.dtype.kind not in "biu" or not np.isin(found, (0, 1)).all():
        raise InvalidParameter("secrets must be at least two of 0 and 1, one for each person")
    return found.astype(np.int64)
