"""Reconstruction: counts of many random subsets, each a little off, give nearly everybody's secret away. [DN03]

Whoever answers too many questions too accurately answers all of them. It takes about as many questions as there are
people, and an error of less than the square root of their number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import up
from discreet.lab.attacks.populations import Floats, Integers, VectorRelease, deviation_of, released
from discreet.lab.attacks.success_rates import Success, success_bars
from discreet.pages.progress import working
from discreet.privacy import Event, Relation, delta
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.relation import read_relation

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "Decoder",
    "Reconstruction",
    "Subsets",
    "chosen",
    "decoded",
    "guessing_ceiling",
    "reconstruction",
    "subset_counts",
]

# --- subset_decoding ---
# From noisy counts of many subsets back to everybody's secret: by least squares, or by linear programming.


Subsets: TypeAlias = NDArray[np.uint8]  # one row for each question, one column for each person: 1 if asked about

_LARGEST = 60_000  # Entries of a linear program that takes seconds.
_BLOCK = 2_000  # Questions at a time: sums of so many are exact in single precision.


@final
class Decoder(Enum):
    """How secrets are computed from the answers.

    `reconstruction` takes the linear program for small systems and least squares for others, unless one is named.

    Examples:
        >>> secrets = dp.attacks.coins(30).draw(1)[0]
        >>> found = dp.attacks.reconstruction(secrets, queries=200, decoder=dp.attacks.Decoder.LEAST_SQUARES)
        >>> print(found.value.right)
        30 of 30 (100 %)
    """

    LEAST_SQUARES = "least-squares"  # quick, and best against normal noise
    LINEAR_PROGRAM = "linear-program"  # some answers may be wrong altogether [DMT07]


def chosen(decoder: Decoder | None, people: int, queries: int) -> Decoder:
    """Return the decoder that was asked for, or the one that fits the size."""
    small = people * queries <= _LARGEST
    if decoder is Decoder.LINEAR_PROGRAM and not small:
        raise InvalidParameter(f"a linear program takes at most {_LARGEST:,} people times queries: use least squares")
    return decoder or (Decoder.LINEAR_PROGRAM if small else Decoder.LEAST_SQUARES)


def subset_counts(subsets: Subsets, values: Floats) -> Floats:
    """Add up values over each subset, exactly if they are whole and few."""
    parts = [_single(part) @ values.astype(np.float32) for part in _blocks(subsets)]
    return np.concatenate(parts).astype(np.float64)


def decoded(decoder: Decoder, subsets: Subsets, answers: Floats, deviation: float) -> Floats:
    """Estimate every secret, a number near 0 or 1."""
    if decoder is Decoder.LINEAR_PROGRAM:
        return _by_linear_program(subsets, answers)
    return _by_least_squares(subsets, answers, deviation)


def _by_least_squares(subsets: Subsets, answers: Floats, deviation: float) -> Floats:
    """Minimise |A z - a|^2 / s^2 + |z - 1/2|^2 / (1/4): a secret is a coin, of mean 1/2 and variance 1/4."""
    from scipy.linalg import solve

    people = subsets.shape[1]
    gram, moments = np.zeros((people, people)), np.zeros(people)
    centred = answers - subsets.sum(axis=1) / 2
    for number, part in enumerate(_blocks(subsets)):
        block = _single(part)
        gram += block.T @ block
        moments += block.T.astype(np.float64) @ centred[number * _BLOCK : number * _BLOCK + len(block)]
    # A hair of a ridge where there is no noise: fewer questions than people leave some directions open.
    ridge = max(4 * deviation**2, 1e-6)
    found: Floats = 0.5 + solve(gram + ridge * np.eye(people), moments, assume_a="pos")
    return found


def _by_linear_program(subsets: Subsets, answers: Floats) -> Floats:
    """Minimise the sum of |A z - a| over 0 <= z <= 1: with e >= A z - a and e >= a - A z, a linear program. [DMT07]"""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    queries, people = subsets.shape
    matrix, errors = csr_array(subsets.astype(np.float64)), eye_array(queries)
    above: Any = vstack([hstack([matrix, -errors]), hstack([-matrix, -errors])])
    result = linprog(
        np.concatenate([np.zeros(people), np.ones(queries)]),
        A_ub=above,
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0, 1)] * people + [(0, None)] * queries,
        method="highs",
    )
    assert result.x is not None  # Any z is feasible, with large enough errors.
    return np.asarray(result.x[:people], dtype=np.float64)


def _blocks(subsets: Subsets) -> list[Subsets]:
    return [subsets[start : start + _BLOCK] for start in range(0, len(subsets), _BLOCK)]


def _single(part: Subsets) -> NDArray[np.float32]:
    return part.astype(np.float32)


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

    __repr__ = __str__


@working("attacking", terminal=False)
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

    Args:
        secrets: The private secrets, each 0 or 1.
        queries: How many subsets are counted.
        mechanism: What publishes all counts together; None publishes them exactly.
        decoder: How secrets are computed; by size if not said.

    Returns:
        How many secrets were right, marked as not private.

    Raises:
        InvalidParameter: If there are too many people times queries, or none.

    Examples:
        >>> secrets = dp.attacks.coins(30).draw(1)[0]
        >>> print(dp.attacks.reconstruction(secrets, queries=200).value.right)
        30 of 30 (100 %)
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


def guessing_ceiling(event: Event, share: Fraction, *, relation: Relation | str) -> float:
    """Bound the chance to guess a secret right that is a yes with chance `share`, independently of others.

    Theorem     Say the commoner answer unless a test alarms, and let r be the chance of the rarer one: right with
                chance 1 - r + r TPR - (1 - r) FPR, where TPR - e^epsilon FPR <= delta(epsilon); take the epsilon with
                e^epsilon = (1 - r) / r. [KOV15]
    """
    relation = read_relation(relation)
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
