"""Where pictures lie before anything is learnt: centres of classes, axes, and how far pictures are from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.diffusion.central import NoisyPictureSums
from discreet.synth.diffusion.products import edge
from discreet.synth.domain.images import BRIGHTEST

__all__ = ["PictureCoordinates"]

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
