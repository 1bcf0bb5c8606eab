"""What floats may do to a clipped sum, bounded from public shapes. [Hig02]

Let u be the unit roundoff and gamma(n) = n u / (1 - n u). A sum of products in floats, formed in any order, with or
without fused operations, is the exact sum of terms that are each multiplied by some 1 + t with |t| <= gamma(n), where
n counts the roundings that a term can pass. Nothing more is assumed of the kernels of torch.

What one record changes. The records of a step stand in random order. Couple the orders with and without record x:
x takes some slot, the record that stood there moves to the end, nobody else moves. What a record contributes is the
same in every slot (`slots.py` sees to it for the arithmetic of this folder), so the exact sum changes by the
contribution of x, whose norm is at most C, and the float sum by that and by the errors of the two blocks of slots
that were touched, before and after:  C + 4 E.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = [
    "BLOCK",
    "CHUNK",
    "LARGEST_BATCH",
    "LARGEST_SIZE",
    "RATIO",
    "SHRINK",
    "SMALLEST",
    "TINY",
    "gamma",
    "rows_exactly",
    "slack_of",
]

SINGLE, DOUBLE = Fraction(1, 1 << 24), Fraction(1, 1 << 53)  # unit roundoffs
BLOCK = 32  # Slots that float32 adds up before float64 takes over.
CHUNK = 64  # Squares that float32 adds up before float64 takes over.
RATIO = 2.0**10  # How far the terms of a row may cancel (size / norm) before its factor is lowered; see `slack_of`.
LARGEST_BATCH = 1 << 14  # slots
LARGEST_SIZE = 2.0**40  # A row whose layer inputs have a larger norm contributes nothing: c g would underflow.
SHRINK = 1 - 2.0**-22  # More than float64 arithmetic and the rounding of a factor to float32 can add to it.
SMALLEST = 2.0**-100  # A row whose factor is smaller contributes nothing.
TINY = 2.0**-125  # More than one square below the range of float32 is worth.
_WORK = 1 << 26  # rows^2 positions that one float64 sum may have


def gamma(terms: int, unit: Fraction = SINGLE) -> Fraction:
    """Bound the relative error of a term that passes so many roundings. [Hig02]"""
    return terms * unit / (1 - terms * unit)


def rows_exactly(positions: int) -> int:
    """Return how many rows of so many positions one float64 sum may hold: rows^2 positions <= 2^26."""
    return max(1, int((_WORK // max(1, positions)) ** 0.5))


def slack_of(physical_batch: int) -> Fraction:
    """Bound by how much, as a multiple of C, one record can change the sum beyond C; the rounding to the grid apart.

    float32 blocks   A term passes one rounding for c g, one for the product and BLOCK - 1 for the sum, and the
                     contributions of BLOCK slots have norms of at most C each: E = BLOCK gamma(BLOCK + 1) C.
    float64 sums     A term passes at most rows positions + 2 roundings; RATIO keeps the terms of a row below RATIO C
                     together: E <= rows (rows positions + 2) RATIO 2^-53 C, and rows^2 positions <= 2^26.
    adding blocks    At most LARGEST_BATCH sums, which are together below LARGEST_BATCH C (1 + E): 2^14 2^14 2^-53.
    underflow        A product below the range loses at most 2^-126, and c g before it meets an input of norm 2^40 as
                     much: BLOCK 2^-126 (1 + 2^40) sqrt(P) is below 2^-20 C for C >= 2^-40 and P <= 2^60.
    """
    singles = BLOCK * gamma(BLOCK + 1)
    doubles = Fraction(RATIO) * (_WORK + 2 * LARGEST_BATCH) * DOUBLE * Fraction(5, 4)
    adding = 2 * Fraction(physical_batch * LARGEST_BATCH) * DOUBLE
    return 4 * (singles + doubles + adding + Fraction(1, 1 << 20))
