"""Samplers of exact noise: the public functions, and one cached sampler for each law and parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer, nonnegative, positive, positive_integer, probability
from discreet.noise import inversion, selection
from discreet.noise import selection as uniform_
from discreet.noise.block_sampling import BlockSampler, ExponentialShape, GaussianShape, RoundedGaussianShape
from discreet.noise.inversion import Inversion, Ladder
from discreet.noise.lazy_bits import exponential_coin, rational_coin
from discreet.noise.limits import check_noise_scale, check_noise_variance

__all__ = [
    "Sampler",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_gaussian_sampler",
    "discrete_laplace",
    "geometric",
    "geometric_sampler",
    "heads",
    "laplace_sampler",
    "long_rounded_gaussian",
    "permutation",
    "permute_and_flip",
    "rounded_gaussian",
    "rounded_gaussian_sampler",
    "rounded_laplace",
    "uniform",
]

# --- samplers: One exact sampler for each law and parameter, kept as long as it is used. ---


_KEPT = 128  # Samplers; each holds up to half a MiB of tables once it has drawn an array.
_WHOLE_LAPLACE = 128  # Up to this scale a table of single values is the fastest, beyond it one of blocks:
_LAPLACE_BLOCKS = 64  # at most so many to one scale. Fewer reject more, more fill the table.
_WHOLE_GAUSSIAN = 512  # The same for sigma.
_GAUSSIAN_BLOCKS = 128
_REACH = Fraction(9, 2)  # Sigmas that the table of blocks decides; the rest, one in 10^5, is looked at singly.


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
    shift = _shift(check_noise_scale(scale), _WHOLE_LAPLACE, _LAPLACE_BLOCKS)
    ladder = inversion.laplace(scale, shift) if signed else inversion.geometric(scale, shift)
    if shift == 0:
        return Inversion(ladder)
    return BlockSampler(Inversion(ladder), shift, ExponentialShape(scale), Fraction(1 << shift) / scale)


@lru_cache(_KEPT)
def discrete_gaussian_sampler(variance: Fraction) -> Sampler:
    """Sample P[k] ~ exp(-k^2 / (2 variance))."""
    shift = _gaussian_shift(variance)
    ladder = inversion.discrete_gaussian(variance, shift)
    if shift == 0:
        return Inversion(ladder)
    return _gaussian(ladder, variance, shift, GaussianShape(variance, 1 << shift))


@lru_cache(_KEPT)
def rounded_gaussian_sampler(variance: Fraction) -> Sampler:
    """Sample the rounding of N(0, variance) to the nearest integer."""
    shift = _gaussian_shift(variance)
    if shift == 0:
        return Inversion(inversion.rounded_gaussian(variance))
    ladder = inversion.rounded_gaussian_blocks(variance, shift)
    return _gaussian(ladder, variance, shift, RoundedGaussianShape(variance, 1 << shift))


def long_rounded_gaussian(variance: Fraction, count: int) -> NDArray[np.int32] | Integers:
    """Draw what `rounded_gaussian` draws, in 32 bits each if all fit: a long vector takes its time in memory."""
    sampler = rounded_gaussian_sampler(variance)
    return sampler.narrow(count) if isinstance(sampler, BlockSampler) else sampler.array(count)


def heads(p: Fraction, count: int) -> NDArray[np.bool_]:
    """Flip the coins of `bernoulli`, in a byte each: one for every record of a data set is many."""
    return rational_coin(p).flags(count)


def _sigma(variance: Fraction) -> Fraction:
    """Return a number just above the root; it decides about speed only."""
    return Fraction(math.isqrt(math.ceil(variance * (1 << 40))) + 1, 1 << 20)


def _gaussian_shift(variance: Fraction) -> int:
    sigma = _sigma(check_noise_variance(variance))
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


# --- sample: The public samplers. A whole number for `size=None`, otherwise an array of 64-bit integers. ---
#
# Parameters are exact: a float is read by its shortest decimal. None of them takes a seed or a source.


Integers: TypeAlias = NDArray[np.int64]
Size: TypeAlias = int | tuple[int, ...]
_MOST = 1 << 32  # Samples in one call; more is a mistake. Among so many random keys there are mostly no equal ones.
_DIMENSIONS = 32
_CANDIDATES = 1 << 26  # To choose among.
_LISTED = 32  # Candidates up to which balls alone are quicker than arrays.


@overload
def discrete_laplace(scale: Number, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Number, size: Size) -> Integers: ...
def discrete_laplace(scale: Number, size: Size | None = None) -> int | Integers:
    """Draw P[k] ~ exp(-|k| / scale), for a scale from 2^-20 to 2^50. [GRS12]

    Args:
        scale: The scale of the noise, from 2^-20 to 2^50, read exactly.
        size: How many, or the shape of an array; one number if not said.

    Returns:
        A whole number; an array of them if `size` is said.

    Raises:
        InvalidParameter: If the scale or the size is out of range.
        NoiseOverflow: If a number of an array does not fit 64 bits.

    Examples:
        >>> isinstance(dp.noise.discrete_laplace(2.5), int)
        True
    """
    return _draw(_kept(_laplace, scale), size)


@overload
def geometric(scale: Number, size: None = None) -> int: ...
@overload
def geometric(scale: Number, size: Size) -> Integers: ...
def geometric(scale: Number, size: Size | None = None) -> int | Integers:
    """Draw P[k] ~ exp(-k / scale) for k >= 0, for a scale from 2^-20 to 2^50.

    Args:
        scale: The scale of the noise, from 2^-20 to 2^50, read exactly.
        size: How many, or the shape of an array; one number if not said.

    Returns:
        A whole number of at least 0; an array of them if `size` is said.

    Raises:
        InvalidParameter: If the scale or the size is out of range.
        NoiseOverflow: If a number of an array does not fit 64 bits.

    Examples:
        >>> bool((dp.noise.geometric(2, size=10) >= 0).all())
        True
    """
    return _draw(_kept(_geometric, scale), size)


@overload
def discrete_gaussian(sigma: Number | None = None, size: None = None, *, variance: Number | None = None) -> int: ...
@overload
def discrete_gaussian(sigma: Number | None = None, *, size: Size, variance: Number | None = None) -> Integers: ...
@overload
def discrete_gaussian(sigma: Number | None, size: Size, *, variance: Number | None = None) -> Integers: ...
def discrete_gaussian(
    sigma: Number | None = None, size: Size | None = None, *, variance: Number | None = None
) -> int | Integers:
    """Draw P[k] ~ exp(-k^2 / (2 sigma^2)), for a sigma^2 from 2^-20 to 2^80. [CKS20]

    Args:
        sigma: The parameter sigma; say this or `variance`.
        size: How many, or the shape of an array; one number if not said.
        variance: The parameter sigma^2, for which sigma need not be rational.

    Returns:
        A whole number; an array of them if `size` is said.

    Raises:
        InvalidParameter: If both or neither of `sigma` and `variance` are said, or out of range.
        NoiseOverflow: If a number of an array does not fit 64 bits.

    Examples:
        >>> dp.noise.discrete_gaussian(10, size=(2, 3)).shape
        (2, 3)
    """
    return _draw(_kept(_discrete_gaussian, sigma, variance), size)


@overload
def rounded_gaussian(sigma: Number | None = None, size: None = None, *, variance: Number | None = None) -> int: ...
@overload
def rounded_gaussian(sigma: Number | None = None, *, size: Size, variance: Number | None = None) -> Integers: ...
@overload
def rounded_gaussian(sigma: Number | None, size: Size, *, variance: Number | None = None) -> Integers: ...
def rounded_gaussian(
    sigma: Number | None = None, size: Size | None = None, *, variance: Number | None = None
) -> int | Integers:
    """Draw the exact rounding of N(0, sigma^2) to the nearest integer, for a sigma^2 from 2^-20 to 2^80.

    Args:
        sigma: The standard deviation before rounding; say this or `variance`.
        size: How many, or the shape of an array; one number if not said.
        variance: The variance before rounding, of which the root need not be rational.

    Returns:
        A whole number; an array of them if `size` is said.

    Raises:
        InvalidParameter: If both or neither of `sigma` and `variance` are said, or out of range.
        NoiseOverflow: If a number of an array does not fit 64 bits.

    Examples:
        >>> isinstance(dp.noise.rounded_gaussian(variance=2), int)
        True
    """
    return _draw(_kept(_rounded_gaussian, sigma, variance), size)


@overload
def rounded_laplace(scale: Number, size: None = None) -> int: ...
@overload
def rounded_laplace(scale: Number, size: Size) -> Integers: ...
def rounded_laplace(scale: Number, size: Size | None = None) -> int | Integers:
    """Draw the exact rounding of continuous Laplace noise to the nearest integer.

    Args:
        scale: The scale before rounding, above 0, read exactly.
        size: How many, or the shape of an array; one number if not said.

    Returns:
        A whole number; an array of them if `size` is said.

    Raises:
        InvalidParameter: If the scale or the size is out of range.
        NoiseOverflow: If a number of an array does not fit 64 bits.

    Examples:
        >>> dp.noise.rounded_laplace(2, size=4).shape
        (4,)
    """
    width = positive(scale, name="scale")
    # It is zero with probability 1 - exp(-1 / (2 scale)); otherwise its size minus one is geometric.
    coin = exponential_coin(1 / (2 * width))
    if size is None:
        return coin.one() * (1 + geometric(width)) * (1 - 2 * rational_coin(Fraction(1, 2)).one())
    shape = _shape(size)
    sizes = coin.array(math.prod(shape)) * (1 + geometric(width, math.prod(shape)))
    return (sizes * (1 - 2 * rational_coin(Fraction(1, 2)).array(sizes.size))).reshape(shape)


@overload
def bernoulli(p: Number, size: None = None) -> int: ...
@overload
def bernoulli(p: Number, size: Size) -> Integers: ...
def bernoulli(p: Number, size: Size | None = None) -> int | Integers:
    """Draw 1 with probability p, a rational number, and 0 otherwise.

    Args:
        p: The probability, read exactly, from 0 to 1.
        size: How many, or the shape of an array; one number if not said.

    Returns:
        0 or 1; an array of them if `size` is said.

    Raises:
        InvalidParameter: If p is no probability.

    Examples:
        >>> dp.noise.bernoulli(0.5) in (0, 1)
        True
        >>> dp.noise.bernoulli(1, size=3).tolist()
        [1, 1, 1]
    """
    return _draw(_kept(_rational, p), size)


@overload
def bernoulli_exp(x: Number, size: None = None) -> int: ...
@overload
def bernoulli_exp(x: Number, size: Size) -> Integers: ...
def bernoulli_exp(x: Number, size: Size | None = None) -> int | Integers:
    """Draw 1 with probability exp(-x), for x >= 0, and 0 otherwise.

    Args:
        x: The exponent, at least 0, read exactly.
        size: How many, or the shape of an array; one number if not said.

    Returns:
        0 or 1; an array of them if `size` is said.

    Raises:
        InvalidParameter: If x is below 0.

    Examples:
        >>> dp.noise.bernoulli_exp(0)
        1
    """
    return _draw(_kept(_sample_exponential, x), size)


@overload
def uniform(limit: int, size: None = None) -> int: ...
@overload
def uniform(limit: int, size: Size) -> Integers: ...
def uniform(limit: int, size: Size | None = None) -> int | Integers:
    """Draw one of 0, …, limit - 1, each alike.

    Args:
        limit: How many numbers there are to choose from.
        size: How many, or the shape of an array; one number if not said.

    Returns:
        A whole number; an array of them if `size` is said.

    Raises:
        InvalidParameter: If the limit is no positive whole number, or above 2^63 for an array.

    Examples:
        >>> 0 <= dp.noise.uniform(6) < 6
        True
    """
    count = positive_integer(limit, name="limit")
    if size is None:
        return uniform_.integer_below(count)
    if count > 1 << 63:
        raise InvalidParameter("limit must be at most 2^63 for an array; draw single numbers instead")
    shape = _shape(size)
    return uniform_.integers_below(count, math.prod(shape)).reshape(shape)


def permutation(count: int) -> Integers:
    """Draw an order of 0, …, count - 1, each alike.

    Args:
        count: How many.

    Returns:
        An array of the numbers in random order.

    Examples:
        >>> sorted(dp.noise.permutation(3).tolist())
        [0, 1, 2]
    """
    return uniform_.permutation_of(_count(count, "count"))


def categorical(
    scores: Sequence[Number] | Integers,
    *,
    factor: Number,
    multiplicities: Sequence[int] | Integers | None = None,
) -> int:
    """Draw an index i with P[i] ~ multiplicities[i] * exp(factor * scores[i]).

    Args:
        scores: One score a candidate. They may be private.
        factor: What scores are multiplied by, at least 0; of the exponential mechanism, epsilon / (2 sensitivity).
        multiplicities: How many candidates each score stands for; one each unless said.

    Returns:
        The chosen index.

    Raises:
        InvalidParameter: If there are no scores, too many, or no candidate that can be chosen.

    Examples:
        >>> dp.noise.categorical([0, 1000], factor=1)
        1
    """
    rate, listed = nonnegative(factor, name="factor"), _scores(scores)
    counts = np.ones(len(listed), np.int64) if multiplicities is None else _multiplicities(multiplicities, len(listed))
    possible = np.flatnonzero(counts)
    if isinstance(listed, np.ndarray) and possible.size > _LISTED:
        many = counts[possible].astype(np.float64)
        return int(possible[selection.choose(_gaps(listed[possible]), many, rate)])
    chosen = [Fraction(int(listed[i])) if isinstance(listed, np.ndarray) else listed[i] for i in possible]
    gaps = [max(chosen) - score for score in chosen]
    return int(possible[selection.choose_listed(gaps, [int(counts[i]) for i in possible], rate)])


def permute_and_flip(scores: Sequence[Number] | Integers, *, factor: Number) -> int:
    """Draw an index: in random order, take the first whose coin of exp(factor * (score - best)) is heads. [MS20]

    Args:
        scores: One score a candidate. They may be private.
        factor: What distances from the best score are multiplied by, at least 0.

    Returns:
        The chosen index.

    Raises:
        InvalidParameter: If there are no scores, or too many.

    Examples:
        >>> dp.noise.permute_and_flip([0, 1000], factor=1)
        1
    """
    rate, listed = nonnegative(factor, name="factor"), _scores(scores)
    if isinstance(listed, np.ndarray):
        return selection.permute_and_flip(_gaps(listed), rate)
    return selection.permute_and_flip_listed([max(listed) - score for score in listed], rate)


def _laplace(scale: Number) -> Sampler:
    return laplace_sampler(positive(scale, name="scale"))


def _geometric(scale: Number) -> Sampler:
    return geometric_sampler(positive(scale, name="scale"))


def _discrete_gaussian(sigma: Number | None, variance: Number | None) -> Sampler:
    return discrete_gaussian_sampler(_variance(sigma, variance))


def _rounded_gaussian(sigma: Number | None, variance: Number | None) -> Sampler:
    return rounded_gaussian_sampler(_variance(sigma, variance))


def _rational(p: Number) -> Sampler:
    return rational_coin(probability(p, name="p"))


def _sample_exponential(x: Number) -> Sampler:
    return exponential_coin(nonnegative(x, name="x"))


def _variance(sigma: Number | None, variance: Number | None) -> Fraction:
    if (sigma is None) == (variance is None):
        raise InvalidParameter("say either sigma or variance")
    if sigma is not None:
        return positive(sigma, name="sigma") ** 2
    assert variance is not None
    return positive(variance, name="variance")


@lru_cache(1024, typed=True)
def _remembered(make: Callable[..., Sampler], *parameters: Any) -> Sampler:
    """Skip reading the parameters when they were read before; `typed` keeps True apart from 1."""
    return make(*parameters)


def _kept(make: Callable[..., Sampler], *parameters: Any) -> Sampler:
    try:
        return _remembered(make, *parameters)
    except TypeError:  # An unhashable parameter: let its own check say what is wrong with it.
        return make(*parameters)


def _draw(sampler: Sampler, size: Size | None) -> int | Integers:
    if size is None:
        return sampler.one()
    shape = _shape(size)
    return sampler.array(math.prod(shape)).reshape(shape)


def _count(value: int, name: str) -> int:
    count = integer(value, name=name)
    if not 0 <= count <= _MOST:
        raise InvalidParameter(f"{name} must lie between 0 and 2^32")
    return count


def _shape(size: Size) -> tuple[int, ...]:
    shape = tuple(_count(part, "size") for part in (size if isinstance(size, tuple) else (size,)))
    if len(shape) > _DIMENSIONS:
        raise InvalidParameter("size must not have more than 32 dimensions")
    _count(math.prod(shape), "size")
    return shape


def _scores(scores: Sequence[Number] | NDArray[Any]) -> Integers | list[Fraction]:
    """Return 64-bit scores as an array and all others as exact numbers."""
    values = _listed(scores, "scores")
    if not 1 <= len(values) <= _CANDIDATES:
        raise InvalidParameter("scores must name at least one candidate and at most 2^26")
    if not isinstance(values, np.ndarray):
        return [exact(value, name="score") for value in values]
    if not np.issubdtype(values.dtype, np.signedinteger):
        raise InvalidParameter("scores in an array must be signed integers; give others as a list")
    return values.astype(np.int64)


def _multiplicities(values: Sequence[int] | NDArray[Any], count: int) -> Integers:
    listed = _listed(values, "multiplicities")
    if not isinstance(listed, np.ndarray) or not np.issubdtype(listed.dtype, np.integer):
        listed = np.array([integer(value, name="multiplicity") for value in listed], object)
    if len(listed) != count or not count or not 0 <= listed.min() <= listed.max() < 1 << 53 or not listed.any():
        raise InvalidParameter("multiplicities must be one for each score, from 0 to below 2^53, and not all 0")
    return listed.astype(np.int64)


def _listed(values: Any, name: str) -> Sequence[Any] | NDArray[Any]:
    """Return a list as one, long lists of 64-bit integers as an array, which is quicker."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values.tolist() if values.dtype == object else values
    if isinstance(values, np.ndarray | str | bytes) or not isinstance(values, Sequence):
        raise InvalidParameter(f"{name} must be a list or a one-dimensional array, not {type(values).__name__}")
    whole = len(values) > _LISTED and all(type(value) is int and abs(value) < 1 << 63 for value in values)
    return np.array(values, np.int64) if whole else values


def _gaps(scores: Integers) -> NDArray[np.uint64]:
    # The difference of two 64-bit integers fits 64 bits without a sign; the wrapped subtraction is exact.
    words = scores.view(np.uint64)
    return np.uint64(int(scores.max()) % (1 << 64)) - words
