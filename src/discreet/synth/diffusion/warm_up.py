"""Noisy averages and axes of pictures, bought once, so that a denoiser knows where a class lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.mechanisms.parameters import settle
from discreet.noise.limits import check_noise_variance
from discreet.privacy.events import Gaussian
from discreet.synth.domain.images import BRIGHTEST

__all__ = [
    "CentralRelease",
    "FrameRelease",
    "NoisyPictureSums",
    "PictureCoordinates",
    "edge",
    "noisy_products",
    "products_variance",
    "shortened",
]

# --- central ---
# Noisy averages of all pictures, paid for once, so that a denoiser knows where a class lies before it learns.
#
# The private central images of DP-FETA are averages of each class, and a denoiser learns from them first [LGLZHW25].
# Here
# they are its centre, so there is nothing to learn about them; and products of pixels, if they are bought, turn the
# axes
# of pixels into those along which pictures of one class differ, with how much they do.


AT_ONCE = 1 << 12  # Pictures that are added up at once.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentralRelease:
    """Pixels and pictures added up by class, and products of pixels over all of them, as whole numbers with noise.

    Guarantee   Gaussian(noise_multiplier), for adding or removing one picture.
    Theorem     A picture x of whole numbers, brought to norm at most r, adds x to the sum of its class, 1 to its count
                and x_i x_j to sums of products. Sums are exact, and each part has its own exact rounding of normal
                noise. In units of the noise the parts are one vector, and their squared shifts add up to
                1 / noise_multiplier^2; `noisy_products` has that of products. [BW18]
    Utility     Part p, with the share w_p of the squared shift, has noise of noise_multiplier * Delta_p / sqrt(w_p).
    """

    pixels: int
    classes: int
    noise_multiplier: Fraction
    products: bool

    def __post_init__(self) -> None:
        settle(
            self,
            pixels=positive_integer(self.pixels, name="pixels"),
            classes=positive_integer(self.classes, name="classes"),
            noise_multiplier=positive(self.noise_multiplier, name="noise_multiplier"),
        )
        pixels, counts, products = self.variances
        for variance in (pixels, counts, *((products, 2 * products) if self.products else ())):
            check_noise_variance(variance)

    @property
    def longest(self) -> int:
        """The norm to which brighter pictures are brought down: pixels at 3/8 of the full brightness on average."""
        return max(1, isqrt(self.pixels * (3 * BRIGHTEST) ** 2 // 64))

    @property
    def variances(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of the noise on sums of pixels, on counts, and on sums of products where they are bought."""
        squared, large = self.noise_multiplier**2, Fraction(3, 10) if self.products else Fraction(9, 10)
        pixels, counts = squared * self.longest**2 / large, squared * 10
        return pixels, counts, products_variance(self.longest, squared * Fraction(10, 6))

    @property
    def event(self) -> Gaussian:
        """What the release spends, from the noise as it is drawn."""
        pixels, counts, products = self.variances
        shift = self.longest**2 / pixels + 1 / counts
        shift += self.longest**4 / (2 * products) if self.products else 0
        return Gaussian(variance=1, squared_sensitivity=shift)

    def release(self, pictures: NDArray[np.uint8], labels: NDArray[np.int32]) -> NoisyPictureSums:
        """Add up and add noise."""
        sums, counts, products = self.exact(pictures, labels)
        pixel, count, product = self.variances
        return NoisyPictureSums(
            pixels=sums + noise.rounded_gaussian(variance=pixel, size=sums.shape),
            counts=counts + noise.rounded_gaussian(variance=count, size=counts.shape),
            products=noisy_products(products, product) if self.products else None,
            variance=product,
        )

    def exact(
        self, pictures: NDArray[np.uint8], labels: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return sums of pixels by class, counts by class, and products of pixels, without noise. Private.

        Whole numbers below 2^53 are exact in float64 in whatever order they are added: so for fewer than 2^37 pictures.
        """
        sums, products = np.zeros((self.classes, self.pixels)), np.zeros((self.pixels, self.pixels))
        for start in range(0, len(pictures), AT_ONCE):
            rows = shortened(pictures[start : start + AT_ONCE].astype(np.int64), self.longest).astype(np.float64)
            member = labels[start : start + AT_ONCE, None] == np.arange(self.classes)
            sums += member.T.astype(np.float64) @ rows
            if self.products:
                products += rows.T @ rows
        return sums.astype(np.int64), np.bincount(labels, minlength=self.classes), products.astype(np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisyPictureSums:
    """What was released about all pictures. All of it is public."""

    pixels: NDArray[np.int64]  # (classes, pixels)
    counts: NDArray[np.int64]  # (classes,)
    products: NDArray[np.int64] | None  # (pixels, pixels), symmetric
    variance: Fraction  # of noise on products


# --- frames ---
# How pictures of each class by itself differ from its centre, along axes that are public by now; paid for as well.


_FINE = 1 << 10  # Axes are whole numbers of this part.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRelease:
    """Products of coordinates, added up by class as whole numbers, with noise.

    Guarantee   Gaussian(noise_multiplier), for adding or removing one picture, whatever the axes and centres are.
    Theorem     Axes and centres are public and rounded to whole numbers, so coordinates are exact whole numbers that
                depend on the picture alone. Brought to norm at most r, a picture adds its products to one class;
                `noisy_products` has the rest. [BW18]
    """

    pixels: int
    noise_multiplier: Fraction

    def __post_init__(self) -> None:
        settle(self, noise_multiplier=positive(self.noise_multiplier, name="noise_multiplier"))
        check_noise_variance(2 * self.variance)

    @property
    def longest(self) -> int:
        """The norm to which a picture's distance from its centre is brought down: a fifth of full brightness."""
        return max(1, isqrt(self.pixels * BRIGHTEST**2 // 25))

    @property
    def variance(self) -> Fraction:
        return products_variance(self.longest, self.noise_multiplier**2)

    @property
    def event(self) -> Gaussian:
        return Gaussian(variance=1, squared_sensitivity=self.longest**4 / (2 * self.variance))

    def release(
        self,
        pictures: NDArray[np.uint8],
        labels: NDArray[np.int32],
        *,
        axes: NDArray[np.float32],
        centres: NDArray[np.float32],
    ) -> NDArray[np.int64]:
        """Return noisy products, (classes, places, places); axes (pixels, places), centres from -1 to 1 by class."""
        return noisy_products(self.exact(pictures, labels, axes=axes, centres=centres), self.variance)

    def exact(
        self,
        pictures: NDArray[np.uint8],
        labels: NDArray[np.int32],
        *,
        axes: NDArray[np.float32],
        centres: NDArray[np.float32],
    ) -> NDArray[np.int64]:
        """Return the sums of products without noise. Private."""
        turned = np.rint(axes.astype(np.float64) * _FINE)
        middles = np.rint((centres.astype(np.float64) + 1) * (BRIGHTEST / 2))
        found = np.zeros((len(centres), axes.shape[1], axes.shape[1]))
        for start in range(0, len(pictures), AT_ONCE):
            chosen = labels[start : start + AT_ONCE]
            # Whole numbers far below 2^53, and a power of two: each coordinate is exact before it is cut.
            away = np.trunc((pictures[start : start + AT_ONCE] - middles[chosen]) @ turned / _FINE).astype(np.int64)
            rows = shortened(away, self.longest).astype(np.float64)
            for label in range(len(centres)):
                own = rows[chosen == label]
                found[label] += own.T @ own
        return found.astype(np.int64)


# --- coordinates ---
# Where pictures lie before anything is learnt: centres of classes, axes, and how far pictures are from there.


_LEAST = 1e-2  # The smallest spread of a coordinate, for pixels from -1 to 1.
Numbers = NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PictureCoordinates:
    """A public change of axes. Pixels go from -1 to 1; the last class means that none is told.

    The denoiser learns the first `places` coordinates. Whatever is at right angles to them is drawn as normal noise
    around the centre of the class, with a small deviation for each pixel.
    """

    axes: Numbers  # (pixels, places), at right angles to each other, of length 1
    centres: Numbers  # (classes + 1, pixels)
    scale: Numbers  # (places,), the deviation of pictures from the centre of their class, all classes together
    frames: Numbers  # (classes + 1, places, places), the axes of each class among the places; or (0, 0, 0) for none
    spreads: Numbers  # (classes + 1, places), the deviation along the axes of each class
    rest: Numbers  # (pixels,), the deviation of pixels that the axes do not explain

    @property
    def places(self) -> int:
        return int(self.axes.shape[1])

    @classmethod
    def guessed(cls, pixels: int, classes: int, spread: float, *, places: int | None = None) -> Self:
        """Pixels as they are, around middle grey: where nothing was bought."""
        kept = pixels if places is None else min(places, pixels)
        return cls(
            axes=np.eye(pixels, kept, dtype=np.float32),
            centres=np.zeros((classes + 1, pixels), np.float32),
            scale=np.full(kept, spread, np.float32),
            frames=np.zeros((0, 0, 0), np.float32),
            spreads=np.full((classes + 1, kept), spread, np.float32),
            rest=np.zeros(pixels, np.float32),
        )

    @classmethod
    def found(cls, sums: NoisyPictureSums, *, spread: float, places: int | None) -> Self:
        """Make averages, and axes if products of pixels were bought, of noisy sums. This is post-processing."""
        counts = np.maximum(sums.counts, 1).astype(np.float64)
        means = np.clip(sums.pixels / (BRIGHTEST * counts[:, None]), 0.0, 1.0)
        weights = counts / counts.sum()
        centres = (2 * np.concatenate([means, weights[None] @ means]) - 1).astype(np.float32)
        if places is None or sums.products is None:
            return replace(cls.guessed(means.shape[1], len(means), spread), centres=centres)
        axes, variances, rest = _axes(sums, means, counts, places)
        apart = (weights[:, None] * ((means - weights @ means) @ axes) ** 2).sum(0)
        spreads = np.sqrt(np.stack([*[variances] * len(means), variances + apart]))
        return cls(
            axes=axes.astype(np.float32),
            centres=centres,
            scale=_floored(np.sqrt(variances)),
            frames=np.zeros((0, 0, 0), np.float32),
            spreads=_floored(spreads),
            rest=2 * np.sqrt(rest).astype(np.float32),
        )

    def turned(self, products: NDArray[np.int64], counts: NDArray[np.int64], variance: Fraction) -> PictureCoordinates:
        """Give each class axes and deviations of its own, from noisy products of coordinates. Post-processing.

        What does not stand out of the noise is taken to be as it is for all classes together.
        """
        frames, spreads = [], []
        for own, count in zip(products, np.maximum(counts, 1), strict=True):
            common, size = np.diag((self.scale.astype(np.float64) / 2) ** 2), BRIGHTEST**2 * float(count)
            values, vectors = np.linalg.eigh(own / size)
            clear = vectors[:, values > edge(self.places, variance) / size]
            beside = np.eye(self.places) - clear @ clear.T
            joined = clear @ np.diag(values[values > edge(self.places, variance) / size]) @ clear.T
            found, turned = np.linalg.eigh(joined + beside @ common @ beside)
            frames.append(turned)
            spreads.append(np.sqrt(np.maximum(found, 0.0)))
        own_spreads = np.concatenate([_floored(np.array(spreads)), self.spreads[-1:]])
        own_frames = np.array([*frames, np.eye(self.places)]).astype(np.float32)
        return replace(self, frames=own_frames, spreads=own_spreads)


def _floored(deviations: NDArray[np.float64]) -> Numbers:
    """From pixels of 0 to 1 to pixels of -1 to 1, and not so small that nothing could be learnt."""
    return np.maximum(2 * deviations, _LEAST).astype(np.float32)


def _axes(
    sums: NoisyPictureSums, means: NDArray[np.float64], counts: NDArray[np.float64], places: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the axes along which pictures of one class differ most, their variances, and what is left of each pixel.

    What is not above the largest eigenvalue of noise cannot be told from it: along such axes, pixels vary by themselves
    as much as is left of them, if that is more than two deviations of its noise. Pixels go from 0 to 1 here.
    """
    assert sums.products is not None
    pixels, size = means.shape[1], BRIGHTEST**2 * counts.sum()
    within = sums.products / size - (means.T * (counts / counts.sum())) @ means
    values, vectors = np.linalg.eigh(within)
    values, vectors = values[::-1], vectors[:, ::-1]
    clear = int((values > edge(pixels, sums.variance) / size).sum())
    rest = np.diag(within) - vectors[:, :clear] ** 2 @ values[:clear]
    rest = np.where(rest > 2 * np.sqrt(2 * float(sums.variance)) / size, rest, 0.0)
    variances = np.where(np.arange(pixels) < clear, values, rest @ vectors**2)
    return vectors[:, :places], variances[:places], rest


# --- products ---
# Sums of products of whole numbers, with noise: how coordinates of a row go together, whatever rows there are.
#
# Theorem     A row x of norm at most r adds x_i x_j to the symmetric matrix of sums. With noise of variance v beside
# the
#             diagonal, each number drawn once, and 2 v on it, the squared shift in units of the noise is
#             sum_{i<j} x_i^2 x_j^2 / v + sum_i x_i^4 / (2 v) = |x|^4 / (2 v) <= r^4 / (2 v). So it is a Gaussian
#             release
#             with noise multiplier z for v = z^2 r^4 / 2. [BW18]
# Utility     The matrix of noise has eigenvalues up to about 2 sqrt(v p) for p coordinates.


def shortened(rows: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Bring rows to norm at most `longest`: towards zero to whole numbers, by a length that is rounded up."""
    squared = (rows**2).sum(1)
    long = squared > longest**2
    length = np.sqrt(squared[long]).astype(np.int64) + 1
    short = rows.copy()
    short[long] = np.sign(rows[long]) * (np.abs(rows[long]) * longest // length[:, None])
    return short


def products_variance(longest: int, noise_multiplier_squared: Fraction) -> Fraction:
    """Return the variance of noise beside the diagonal for rows of norm at most `longest`."""
    return noise_multiplier_squared * longest**4 / 2


def noisy_products(exact: NDArray[np.int64], variance: Fraction) -> NDArray[np.int64]:
    """Add noise to symmetric matrices of sums, (…, p, p), and keep them symmetric."""
    size = exact.shape[-1]
    beside = np.triu(noise.rounded_gaussian(variance=variance, size=exact.shape), 1)
    on = np.eye(size, dtype=np.int64) * noise.rounded_gaussian(variance=2 * variance, size=(*exact.shape[:-1], 1))
    noisy: NDArray[np.int64] = exact + beside + np.swapaxes(beside, -1, -2) + on
    return noisy


def edge(size: int, variance: Fraction) -> float:
    """The largest eigenvalue that a matrix of such noise has, about."""
    return 2 * float(np.sqrt(size * float(variance)))
