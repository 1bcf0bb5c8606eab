"""Sums of clipped gradients, one forward and one backward pass."""

from __future__ import annotations

from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.clipping.layer_rules import has_rule

__all__ = ["ClippedSums", "has_rule"]
