"""Factors that bring contributions below the clip: from norms that are never too low, rounded down."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import torch
from torch import Tensor

from discreet.exact import down
from discreet.learn.torch.clipping import bounds
from discreet.learn.training.clips import AdaptiveClip, Automatic, Clip, PerLayer

__all__ = ["factors_down", "share_down"]


def share_down(clip: Clip, layers: int) -> float:
    """Return the norm that each group of layers is clipped to: clip / sqrt(layers) per layer, else the whole."""
    if not isinstance(clip, PerLayer):
        return down(clip.bound)
    # floor(2^40 / ceil-ish root): the root of layers 2^80, one added, is above the true one.
    return down(clip.bound * Fraction(1 << 40, isqrt(layers << 80) + 1))


def factors_down(clip: Clip, threshold: float, share: float, squares: Tensor, sizes: Tensor) -> Tensor:
    """Return a float32 factor for each row so that factor times norm is at most `share`; 0 if a norm is not finite.

    squares   upper bounds of squared norms, float64
    sizes     upper bounds of the squared sums of the norms of all terms, where terms may cancel; 0 elsewhere
    """
    norms = squares.sqrt()
    wished = _wished(clip, threshold, share, norms)
    # Float64 and the rounding to float32 err by less than SHRINK takes off. A factor that stays below one is not
    # touched by `minimum`, and 1 itself is exact.
    limited = torch.minimum(wished, sizes.sqrt().reciprocal_().mul_(share * bounds.RATIO))
    return torch.where(torch.isfinite(norms), limited.mul_(bounds.SHRINK), 0.0).float()


def _wished(clip: Clip, threshold: float, share: float, norms: Tensor) -> Tensor:
    if isinstance(clip, Automatic):
        return share / (norms + float(clip.gamma))
    if isinstance(clip, AdaptiveClip):
        return share / norms.clamp(min=threshold)
    return (share / norms).clamp_(max=1.0)
