"""Sums of clipped gradients, one forward and one backward pass."""

from __future__ import annotations

from discreet.learn.torch.clipping.rules import has_rule
from discreet.learn.torch.clipping.sums import ClippedSums

__all__ = ["ClippedSums", "has_rule"]
