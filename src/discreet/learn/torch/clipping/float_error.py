"""Floating-point error of clipped sums: what it adds to the sensitivity, and factors that are rounded down. [Hig02]"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.exact import down
from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, PerLayer

__all__ = [
    "BLOCK",
    "CHAIN",
    "CHUNK",
    "DOUBLE",
    "LARGEST_BATCH",
    "LARGEST_SIZE",
    "MOST_POSITIONS",
    "RATIO",
    "SHRINK",
    "SINGLE",
    "SMALLEST",
    "TINY",
    "block_error",
    "chain_error",
    "factors_down",
    "gamma",
    "rows_exactly",
    "share_down",
    "slack_of",
]

# --- float_bounds: What floats may do to a clipped sum, bounded from public shapes. [Hig02] ---
#
# Let u be the unit roundoff and gamma(n) = n u / (1 - n u). A sum of products in floats, formed in any order, with or
# without fused operations, is the exact sum of terms that are each multiplied by some 1 + t with |t| <= gamma(n), where
# n counts the roundings that a term can pass. Nothing more is assumed of the kernels of torch.
#
# What one record changes. The records of a step stand in random order. Couple the orders with and without record x:
# x takes some slot, the record that stood there moves to the end, nobody else moves. What a record contributes is the
# same in every slot (`clipped_sums.py` sees to it for the arithmetic of this folder), so the exact sum changes by the
# contribution of x, whose norm is at most C, and the float sum by that and by the errors of the two blocks of slots
# that were touched, before and after, and of the two chains of float32 sums that these blocks are added up in:
# C + 4 E with E = `block_error` + `chain_error`.


SINGLE, DOUBLE = Fraction(1, 1 << 24), Fraction(1, 1 << 53)  # unit roundoffs
BLOCK = 43  # Slots that one float32 product adds up.
CHAIN = 6  # Blocks that float32 adds one to the other before float64 takes over.
CHUNK = 1024  # Squares that float32 adds up before float64 takes over.
RATIO = 2.0**10  # How far the terms of a row may cancel (size / norm) before its factor is lowered; see `slack_of`.
LARGEST_BATCH = 1 << 14  # slots
LARGEST_SIZE = 2.0**40  # A row whose layer inputs have a larger norm contributes nothing: c g would underflow.
SHRINK = 1 - 2.0**-22  # More than float64 arithmetic and the rounding of a factor to float32 can add to it.
SMALLEST = 2.0**-100  # A row whose factor is smaller contributes nothing.
TINY = 2.0**-125  # More than one square below the range of float32 is worth.
MOST_POSITIONS = 1 << 24  # of one record
_WORK = MOST_POSITIONS  # rows^2 positions that one float64 sum may have


def gamma(terms: int, unit: Fraction = SINGLE) -> Fraction:
    """Bound the relative error of a term that passes so many roundings. [Hig02]"""
    return terms * unit / (1 - terms * unit)


def rows_exactly(positions: int) -> int:
    """Return how many rows of so many positions one float64 sum may hold: rows^2 positions <= 2^24."""
    return max(1, int((_WORK // max(1, positions)) ** 0.5))


def slack_of(physical_batch: int) -> Fraction:
    """Bound by how much, as a multiple of C, one record can change the sum beyond C; the rounding to the grid apart.

    float32 blocks   `block_error`, and `chain_error` where blocks are added to each other in float32.
    float64 sums     A term passes at most rows positions + 2 roundings; RATIO keeps the terms of a row below RATIO C
                     together: E <= rows (rows positions + 2) RATIO 2^-53 C, and rows^2 positions <= 2^24.
    adding blocks    At most LARGEST_BATCH sums, which are together below LARGEST_BATCH C (1 + E): 2^14 2^14 2^-53.
    underflow        A product below the range loses at most 2^-126, and c g before it meets an input of norm 2^40 as
                     much: BLOCK 2^-126 (1 + 2^40) sqrt(P) is below 2^-20 C for C >= 2^-40 and P <= 2^40, and so it
                     is with the CHAIN sums that are flushed to zero where torch is told to.
    """
    doubles = Fraction(RATIO) * (_WORK + 2 * LARGEST_BATCH) * DOUBLE * Fraction(5, 4)
    adding = 2 * Fraction(physical_batch * LARGEST_BATCH) * DOUBLE
    single = block_error(BLOCK) + chain_error(BLOCK, CHAIN)
    return 4 * (single + doubles + adding + Fraction(1, 1 << 20))


def block_error(rows: int) -> Fraction:
    """Bound the error of a float32 sum of the contributions of so many rows, as a multiple of C.

    A contribution passes one rounding for c g, one for the product, and as many additions as its leaf is deep in the
    tree of the sum, which may be another tree in every coordinate. Over all trees with k leaves the squares of depths
    add up to at most 1 + 4 + ... + (k-1)^2 + (k-1)^2, and depths to k (k + 1) / 2 - 1: a tree that is a chain is the
    worst, by induction over the two sides of the root, because both are convex in k. So the squares of the roundings
    n_i that the k terms of one coordinate pass add up to at most Q below, and by Cauchy and Schwarz

        |error|^2 <= sum over coordinates (sum_i gamma(n_i) |v_i|)^2 <= gamma(1)^2 (1 + small) Q sum_i |v_i|^2,

    with |v_i| <= C for each of k rows. gamma(n) <= n gamma(k + 1) / (k + 1) for n <= k + 1 has the small part inside.
    """
    depths = rows * (rows + 1) // 2 - 1
    squares = (rows - 1) * rows * (2 * rows - 1) // 6 + (rows - 1) ** 2
    worst = rows * (squares + 4 * depths + 4 * rows)
    return (isqrt(worst) + 1) * gamma(rows + 1) / (rows + 1)


def chain_error(rows: int, blocks: int) -> Fraction:
    """Bound what adding the sums of blocks of so many rows one to the other in float32 rounds off, as a multiple of C.

    The first block is T_1 as it is, and T_j = T_(j-1) + block_j is rounded once: by at most u |T_(j-1) + block_j| in
    every coordinate, and the norm of that is below u j rows C (1 + 1/1000), since block errors are far smaller than a
    thousandth. This needs sums to which a *finished* block is added. A product that goes on from T_(j-1) rounds as
    often as it has rows; `adds_finished` in `gradient_forms.py` tries which of both a kernel does.
    """
    return sum(range(2, blocks + 1)) * rows * SINGLE * Fraction(1001, 1000)


# --- factors: Factors that bring contributions below the clip: from norms that are never too low, rounded down. ---


def share_down(clip: Clip, layers: int) -> float:
    """Return the norm that each group of layers is clipped to: clip / sqrt(layers) per layer, else the whole."""
    if not isinstance(clip, PerLayer):
        return down(clip.bound)
    # isqrt(layers 2^80) + 1 is above sqrt(layers) 2^40, so that the share is rounded down.
    return down(clip.bound * Fraction(1 << 40, isqrt(layers << 80) + 1))


def factors_down(clip: Clip, threshold: float, share: float, squares: Tensor, sizes: Tensor | None) -> Tensor:
    """Return a float32 factor for each row so that factor times norm is at most `share`; 0 if a norm is not finite.

    squares   upper bounds of squared norms, float64
    sizes     upper bounds of the squared sums of the norms of all terms, where terms may cancel; None if none can
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # A norm may be zero, infinite or no number.
        norms = np.sqrt(squares.numpy())
        factors = _wished(clip, threshold, share * SHRINK, norms)
        if sizes is not None:
            # Where all terms are 0 this limit is infinite.
            factors = np.minimum(factors, np.reciprocal(np.sqrt(sizes.numpy())) * (share * SHRINK * RATIO))
    # Below SMALLEST float32 would no longer round by a relative error.
    factors[~(np.isfinite(norms) & (factors >= SMALLEST))] = 0.0
    return torch.from_numpy(factors.astype(np.float32))


def _wished(clip: Clip, threshold: float, shrunk: float, norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factor of the rule; what float64 and the rounding to float32 add is less than SHRINK takes off."""
    if isinstance(clip, Automatic):
        return shrunk / (norms + float(clip.gamma))
    if isinstance(clip, AdaptiveClip):
        return shrunk / np.maximum(norms, threshold)
    return np.where(norms <= shrunk, 1.0, shrunk / norms)
