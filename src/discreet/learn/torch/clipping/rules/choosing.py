"""Which rule a layer gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from discreet.learn.torch.clipping.parts import Part
from discreet.learn.torch.clipping.rules.convolution import convolution
from discreet.learn.torch.clipping.rules.embedding import embedding
from discreet.learn.torch.clipping.rules.fallback import fallback
from discreet.learn.torch.clipping.rules.linear import linear
from discreet.learn.torch.clipping.rules.normalisation import group_norm, instance_norm, layer_norm, rms_norm
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["has_rule", "parts_of"]

Rule: TypeAlias = Callable[[LayerCall, Tensor], dict[str, Part]]

_RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.Conv3d: convolution,
    nn.Embedding: embedding,
    nn.LayerNorm: layer_norm,
    nn.GroupNorm: group_norm,
    nn.RMSNorm: rms_norm,
    nn.InstanceNorm1d: instance_norm,
    nn.InstanceNorm2d: instance_norm,
    nn.InstanceNorm3d: instance_norm,
}


def has_rule(module: nn.Module) -> bool:
    """Whether a layer has a rule of its own; all others go through `torch.func`."""
    return _rule(module) is not None


def parts_of(call: LayerCall, gradients: tuple[Tensor | None, ...]) -> dict[str, Part]:
    """Return what a call contributes to each parameter of its layer, given the gradients of its outputs."""
    rule = _rule(call.module)
    only = gradients[0] if len(gradients) == 1 else None
    return fallback(call, gradients) if rule is None or only is None else rule(call, only)


def _rule(module: nn.Module) -> Rule | None:
    """A subclass whose forward is its own may compute anything, and a parametrised layer is such a subclass."""
    kind = next((kind for kind in _RULES if isinstance(module, kind)), None)
    if kind is None or type(module).forward is not kind.forward or "forward" in vars(module):
        return None
    own = isinstance(module, _ConvNd) and type(module)._conv_forward is not kind._conv_forward  # type: ignore[attr-defined]
    return None if own or not _plain(module) else _RULES[kind]


def _plain(module: nn.Module) -> bool:
    """Whether weight and bias are the layer's own parameters, not computed by a parametrisation or a hook."""
    names = [name for name in ("weight", "bias") if getattr(module, name, None) is not None]
    return all(name in dict(module.named_parameters(recurse=False)) for name in names)
