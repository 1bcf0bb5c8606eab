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
    limit = sizes.sqrt().reciprocal_().mul_(share * bounds.SHRINK * bounds.RATIO)
    factors = torch.minimum(_wished(clip, threshold, share * bounds.SHRINK, norms), limit)
    # Below SMALLEST float32 would no longer round by a relative error.
    return torch.where(torch.isfinite(norms) & (factors >= bounds.SMALLEST), factors, 0.0).float()


def _wished(clip: Clip, threshold: float, shrunk: float, norms: Tensor) -> Tensor:
    """Return the factor of the rule; what float64 and the rounding to float32 add is less than SHRINK takes off."""
    if isinstance(clip, Automatic):
        return shrunk / (norms + float(clip.gamma))
    if isinstance(clip, AdaptiveClip):
        return shrunk / norms.clamp(min=threshold)
    return torch.where(norms <= shrunk, 1.0, shrunk / norms)
