"""How pictures of each class by itself differ from its centre, along axes that are public by now; paid for as well."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.exact import positive
from discreet.mechanisms.fields import check_noise_variance, settle
from discreet.privacy.events import Gaussian
from discreet.synth.diffusion.central import AT_ONCE
from discreet.synth.diffusion.products import noisy_products, products_variance, shortened
from discreet.synth.domain.images import BRIGHTEST

__all__ = ["FrameRelease"]

_FINE = 1 << 10  # Axes are whole numbers of this part.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRelease:
    """Products of coordinates, added up by class as whole numbers, with noise.

    Guarantee   Gaussian(noise_multiplier), for adding or removing one picture, whatever the axes and centres are.
    Theorem     Axes and centres are public and rounded to whole numbers, so coordinates are exact whole numbers that
                depend on the picture alone. Brought to norm at most r, a picture adds its products to one class;
                `products.py` has the rest. [BW18]
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
