"""From noisy counts of many subsets back to everybody's secret: by least squares, or by linear programming."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.vectors import Floats
from discreet.errors import InvalidParameter

__all__ = ["Decoder", "Subsets", "chosen", "decoded", "subset_counts"]

Subsets: TypeAlias = NDArray[np.uint8]  # one row for each question, one column for each person: 1 if asked about

_LARGEST = 60_000  # Entries of a linear program that takes seconds.
_BLOCK = 2_000  # Questions at a time: sums of so many are exact in single precision.


@final
class Decoder(Enum):
    """How secrets are computed from the answers."""

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
