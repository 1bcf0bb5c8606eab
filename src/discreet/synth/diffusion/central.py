"""Noisy averages of all pictures, paid for once, so that a denoiser knows where a class lies before it learns.

The private central images of DP-FETA are averages of each class, and a denoiser learns from them first [LGGW25]. Here
they are its centre, so there is nothing to learn about them; and second moments, if they are bought, turn the axes of
pixels into those along which pictures of one class differ, with how much they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.exact import positive, positive_integer
from discreet.mechanisms.fields import settle
from discreet.privacy.events import Gaussian
from discreet.synth.domain.images import BRIGHTEST

__all__ = ["CentralRelease", "NoisySums"]

_AT_ONCE = 1 << 12  # Pictures that are added up at once.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentralRelease:
    """Pictures, pixels and products of pixels added up as whole numbers, the first two by class, with noise.

    Guarantee   Gaussian(noise_multiplier), for adding or removing one picture.
    Theorem     A picture x of whole numbers 0 … b, brought to norm at most r, adds x to the sum of its class, 1 to its
                count, and x_i x_j for i <= j to sums of products: squared norms of at most r^2, 1 and
                (r^4 + b^2 r^2) / 2, because sum_{i<=j} x_i^2 x_j^2 = (|x|^4 + sum x_i^4) / 2. The sums are exact, and
                each part has its own exact rounding of normal noise. Scaled by their noise the parts are one vector
                whose squared shifts add up to 1 / noise_multiplier^2. [BW18]
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

    @property
    def longest(self) -> int:
        """The norm to which brighter pictures are brought down: pixels at 3/8 of the full brightness on average."""
        return max(1, isqrt(self.pixels * (3 * BRIGHTEST) ** 2 // 64))

    @property
    def squared_sensitivities(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of sums of pixels, counts and sums of products."""
        squared = Fraction(self.longest) ** 2
        return squared, Fraction(1), (squared**2 + BRIGHTEST**2 * squared) / 2

    @property
    def variances(self) -> tuple[Fraction, Fraction, Fraction]:
        """Of the noise on sums of pixels, counts and sums of products; the last is drawn only if they are wanted."""
        shares = (Fraction(3, 10), Fraction(1, 10), Fraction(6, 10))
        if not self.products:
            shares = (Fraction(9, 10), Fraction(1, 10), Fraction(1))
        pairs = zip(self.squared_sensitivities, shares, strict=True)
        pixels, counts, products = (self.noise_multiplier**2 * squared / share for squared, share in pairs)
        return pixels, counts, products

    @property
    def event(self) -> Gaussian:
        """What the release spends, from the noise as it is drawn."""
        parts = list(zip(self.squared_sensitivities, self.variances, strict=True))
        drawn = parts if self.products else parts[:2]
        return Gaussian(variance=1, squared_sensitivity=sum(squared / variance for squared, variance in drawn))

    def release(self, pictures: NDArray[np.uint8], labels: NDArray[np.int32]) -> NoisySums:
        """Add up and add noise."""
        exact = self.exact(pictures, labels)
        drawn = [
            part + noise.rounded_gaussian(variance=variance, size=part.shape)
            for part, variance in zip(exact, self.variances, strict=True)
        ]
        return NoisySums(*drawn, variances=self.variances)

    def exact(
        self, pictures: NDArray[np.uint8], labels: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return sums of pixels by class, counts by class, and products of pixels, without noise. Private."""
        sums = np.zeros((self.classes, self.pixels))
        products = np.zeros((self.pixels, self.pixels) if self.products else (0, 0))
        for start in range(0, len(pictures), _AT_ONCE):
            rows = self.shortened(pictures[start : start + _AT_ONCE])
            member = labels[start : start + _AT_ONCE, None] == np.arange(self.classes)
            sums += member.T.astype(np.float64) @ rows
            if self.products:
                products += rows.T @ rows
        counts = np.bincount(labels, minlength=self.classes)
        return sums.astype(np.int64), counts, products[np.triu_indices(len(products))].astype(np.int64)

    def shortened(self, pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Bring rows to norm at most `longest`: rounded down to whole numbers, by a length that is rounded up.

        Whole numbers below 2^53 are exact in float64, and so are their sums of fewer than 2^37 pictures.
        """
        rows = pictures.astype(np.int64)
        squared = (rows**2).sum(1)
        long = squared > self.longest**2
        length = np.sqrt(squared[long]).astype(np.int64) + 1
        rows[long] = rows[long] * self.longest // length[:, None]
        return rows.astype(np.float64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """What was released about all pictures. All of it is public."""

    pixels: NDArray[np.int64]  # (classes, pixels)
    counts: NDArray[np.int64]  # (classes,)
    products: NDArray[np.int64]  # the upper triangle of (pixels, pixels), or nothing
    variances: tuple[Fraction, Fraction, Fraction]
