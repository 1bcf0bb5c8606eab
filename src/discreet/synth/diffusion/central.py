"""Noisy averages of all pictures, paid for once, so that a denoiser knows where a class lies before it learns.

The private central images of DP-FETA are averages of each class, and a denoiser learns from them first [LGLZHW25]. Here
they are its centre, so there is nothing to learn about them; and products of pixels, if they are bought, turn the axes
of pixels into those along which pictures of one class differ, with how much they do.
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
from discreet.mechanisms.fields import check_noise_variance, settle
from discreet.privacy.events import Gaussian
from discreet.synth.diffusion.products import noisy_products, products_variance, shortened
from discreet.synth.domain.images import BRIGHTEST

__all__ = ["CentralRelease", "NoisyPictureSums"]

AT_ONCE = 1 << 12  # Pictures that are added up at once.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CentralRelease:
    """Pixels and pictures added up by class, and products of pixels over all of them, as whole numbers with noise.

    Guarantee   Gaussian(noise_multiplier), for adding or removing one picture.
    Theorem     A picture x of whole numbers, brought to norm at most r, adds x to the sum of its class, 1 to its count
                and x_i x_j to sums of products. Sums are exact, and each part has its own exact rounding of normal
                noise. In units of the noise the parts are one vector, and their squared shifts add up to
                1 / noise_multiplier^2; `products.py` has that of products. [BW18]
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
