"""One rule for each kind of layer: from what a call saw and its output's gradient to the parts of its parameters."""

from __future__ import annotations

from discreet.learn.torch.clipping.rules.choosing import has_rule, parts_of

__all__ = ["has_rule", "parts_of"]
