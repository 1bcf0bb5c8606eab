"""One exact sampler for each law and parameter, kept as long as it is used."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.noise import ladders
from discreet.noise.blocks import BlockSampler
from discreet.noise.ladder import Inversion, Ladder
from discreet.noise.shapes import ExponentialShape, GaussianShape, RoundedGaussianShape

__all__ = [
    "Sampler",
    "discrete_gaussian_sampler",
    "geometric_sampler",
    "laplace_sampler",
    "rounded_gaussian_sampler",
]

_KEPT = 128  # Samplers; each holds up to half a MiB of tables once it has drawn an array.
_SCALES = (Fraction(1, 1 << 20), Fraction(1 << 50))
_VARIANCES = (Fraction(1, 1 << 20), Fraction(1 << 80))
_WHOLE_LAPLACE = 128  # Up to this scale a table of single values is the fastest, beyond it one of blocks:
_LAPLACE_BLOCKS = 64  # at most so many to one scale. Fewer reject more, more fill the table.
_WHOLE_GAUSSIAN = 512  # The same for sigma.
_GAUSSIAN_BLOCKS = 128
_REACH = Fraction(9, 2)  # Sigmas that the table of blocks decides; the rest, one in 10^5, is looked at singly.


def _in_range(value: Fraction, limits: tuple[Fraction, Fraction], name: str) -> Fraction:
    if not limits[0] <= value <= limits[1]:
        exponents = [limit.numerator.bit_length() - limit.denominator.bit_length() for limit in limits]
        raise InvalidParameter(f"{name} must lie between 2^{exponents[0]} and 2^{exponents[1]} grid steps")
    return value


def _shift(size: Fraction, whole: int, blocks: int) -> int:
    """Return the smallest shift with at most `blocks` blocks to one `size`, or 0 if no blocks are needed."""
    return 0 if size <= whole else int(size / blocks).bit_length()


class Sampler(Protocol):
    """Draws integers."""

    def one(self) -> int:
        """Draw one value."""

    def array(self, count: int) -> NDArray[np.int64]:
        """Draw `count` values."""


@lru_cache(_KEPT)
def laplace_sampler(scale: Fraction) -> Sampler:
    """Sample P[k] ~ exp(-|k| / scale)."""
    return _exponential(scale, signed=True)


@lru_cache(_KEPT)
def geometric_sampler(scale: Fraction) -> Sampler:
    """Sample P[k] ~ exp(-k / scale), k >= 0."""
    return _exponential(scale, signed=False)


def _exponential(scale: Fraction, *, signed: bool) -> Sampler:
    shift = _shift(_in_range(scale, _SCALES, "scale"), _WHOLE_LAPLACE, _LAPLACE_BLOCKS)
    ladder = ladders.laplace(scale, shift) if signed else ladders.geometric(scale, shift)
    if shift == 0:
        return Inversion(ladder)
    return BlockSampler(Inversion(ladder), shift, ExponentialShape(scale), Fraction(1 << shift) / scale)


@lru_cache(_KEPT)
def discrete_gaussian_sampler(variance: Fraction) -> Sampler:
    """Sample P[k] ~ exp(-k^2 / (2 variance))."""
    shift = _gaussian_shift(variance)
    ladder = ladders.discrete_gaussian(variance, shift)
    if shift == 0:
        return Inversion(ladder)
    return _gaussian(ladder, variance, shift, GaussianShape(variance, 1 << shift))


@lru_cache(_KEPT)
def rounded_gaussian_sampler(variance: Fraction) -> Sampler:
    """Sample the rounding of N(0, variance) to the nearest integer."""
    shift = _gaussian_shift(variance)
    if shift == 0:
        return Inversion(ladders.rounded_gaussian(variance))
    ladder = ladders.rounded_gaussian_blocks(variance, shift)
    return _gaussian(ladder, variance, shift, RoundedGaussianShape(variance, 1 << shift))


def _sigma(variance: Fraction) -> Fraction:
    """Return a number just above the root; it decides about speed only."""
    return Fraction(math.isqrt(math.ceil(variance * (1 << 40))) + 1, 1 << 20)


def _gaussian_shift(variance: Fraction) -> int:
    sigma = _sigma(_in_range(variance, _VARIANCES, "variance"))
    return _shift(sigma, _WHOLE_GAUSSIAN, _GAUSSIAN_BLOCKS)


def _gaussian(
    ladder: Ladder, variance: Fraction, shift: int, shape: GaussianShape | RoundedGaussianShape
) -> BlockSampler:
    width = 1 << shift
    last = int(_REACH * _sigma(variance) / width)
    # The exponent is largest at the far end of the last block that the table decides.
    far, near = Fraction((last + 1) * width + 1), Fraction(last * width)
    inversion = Inversion(ladder, unsure=lambda block: (block if block >= 0 else ~block) > last)
    return BlockSampler(inversion, shift, shape, (far**2 - near**2) / (2 * variance))
