"""Which layers have a rule of their own, and which go through `torch.func`."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.conv import _ConvNd

__all__ = ["has_rule"]

_RULES: tuple[type[nn.Module], ...] = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.Embedding,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
)


def has_rule(module: nn.Module) -> bool:
    """Whether the layer computes what torch's own does: a subclass with a forward of its own may do anything."""
    kind = next((kind for kind in _RULES if isinstance(module, kind)), None)
    if kind is None or type(module).forward is not kind.forward:
        return False
    return not isinstance(module, _ConvNd) or type(module)._conv_forward is kind._conv_forward  # type: ignore[attr-defined]
