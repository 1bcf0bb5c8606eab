"""Where pictures lie before anything is learnt: centres of classes, axes, and how far pictures are from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.diffusion.central import NoisySums
from discreet.synth.domain.images import BRIGHTEST

__all__ = ["Coordinates"]

_LEAST = 1e-2  # The smallest spread of a coordinate, for pixels from -1 to 1.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """A public change of axes. Pixels go from -1 to 1; the last class means that none is told.

    The denoiser learns the first `axes.shape[1]` coordinates. Whatever is at right angles to them is drawn as normal
    noise of one small deviation around the centre of the class.
    """

    axes: NDArray[np.float32]  # (pixels, places), at right angles to each other, of length 1
    centres: NDArray[np.float32]  # (classes + 1, pixels)
    spreads: NDArray[np.float32]  # (classes + 1, places)
    rest: float  # the deviation of each direction that is not among the axes

    @classmethod
    def guessed(cls, pixels: int, classes: int, spread: float) -> Self:
        """Pixels as they are, around middle grey: where nothing was bought."""
        return cls(
            axes=np.eye(pixels, dtype=np.float32),
            centres=np.zeros((classes + 1, pixels), np.float32),
            spreads=np.full((classes + 1, pixels), spread, np.float32),
            rest=0.0,
        )

    def first(self, places: int) -> Coordinates:
        """The same with the first axes only."""
        return replace(self, axes=self.axes[:, :places], spreads=self.spreads[:, :places])

    @classmethod
    def found(cls, sums: NoisySums, *, spread: float, places: int | None) -> Self:
        """Make averages, and axes if products of pixels were bought, of noisy sums. This is post-processing."""
        counts = np.maximum(sums.counts, 1).astype(np.float64)
        means = np.clip(sums.pixels / (BRIGHTEST * counts[:, None]), 0.0, 1.0)
        weights = counts / counts.sum()
        centres = 2 * np.concatenate([means, weights[None] @ means]) - 1
        if places is None or not sums.products.size:
            plain = cls.guessed(means.shape[1], len(means), spread)
            return cls(axes=plain.axes, centres=centres.astype(np.float32), spreads=plain.spreads, rest=0.0)
        axes, variances, rest = _axes(sums, means, counts, places)
        apart = (weights[:, None] * ((means - weights @ means) @ axes) ** 2).sum(0)
        within = np.tile(variances, (len(means), 1))
        spreads = 2 * np.sqrt(np.concatenate([within, (variances + apart)[None]]))
        return cls(
            axes=axes.astype(np.float32),
            centres=centres.astype(np.float32),
            spreads=np.maximum(spreads, _LEAST).astype(np.float32),
            rest=max(2 * float(np.sqrt(rest)), _LEAST),
        )


def _axes(
    sums: NoisySums, means: NDArray[np.float64], counts: NDArray[np.float64], places: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the axes along which pictures of one class differ most, their variances, and that of all the others.

    A symmetric matrix of nothing but noise of deviation s has eigenvalues up to about 2 s sqrt(pixels); what is not
    above that cannot be told from noise, and shares what is left of the whole variance. Pixels go from 0 to 1 here.
    """
    pixels, total = means.shape[1], counts.sum()
    upper = np.zeros((pixels, pixels))
    upper[np.triu_indices(pixels)] = sums.products / (BRIGHTEST**2 * total)
    second = upper + np.triu(upper, 1).T
    within = second - (means.T * (counts / total)) @ means
    values, vectors = np.linalg.eigh(within)
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = 2 * np.sqrt(pixels * float(sums.variances[2])) / (BRIGHTEST**2 * total)
    clear = int((values > edge).sum())
    rest = max(0.0, float(values.sum() - values[:clear].sum())) / max(1, pixels - clear)
    variances = np.where(np.arange(pixels) < clear, values, rest)
    return vectors[:, :places], variances[:places], rest
