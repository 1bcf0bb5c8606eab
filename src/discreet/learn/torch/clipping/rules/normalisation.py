"""Layers that normalise within a row: gradients of scale and shift are short, and formed row by row."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import Refused
from discreet.learn.torch.clipping.forms import RowGradients
from discreet.learn.torch.clipping.parts import Part
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["group_norm", "instance_norm", "layer_norm", "rms_norm"]


def layer_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale and shift, and sum over all but the normalised dimensions."""
    module = cast(nn.LayerNorm, call.module)
    shape = list(module.normalized_shape)
    return _trailing(call, functional.layer_norm(call.input, shape, eps=module.eps), gradient, len(shape))


def rms_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale, and sum over all but the normalised dimensions."""
    module = cast(nn.RMSNorm, call.module)
    shape = list(module.normalized_shape)
    return _trailing(call, functional.rms_norm(call.input, shape, eps=module.eps), gradient, len(shape))


def group_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale and shift, and sum over the places of each channel."""
    module = cast(nn.GroupNorm, call.module)
    return _channels(call, functional.group_norm(call.input, module.num_groups, eps=module.eps), gradient)


def instance_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale and shift, and sum over the places of each channel."""
    module = cast(nn.InstanceNorm2d, call.module)
    if module.track_running_stats:
        raise Refused(
            f"the layer {call.name!r} keeps running statistics",
            reason="they are averages over records that leave the model without noise",
            way_out="use track_running_stats=False, or GroupNorm",
        )
    return _channels(call, functional.instance_norm(call.input, eps=module.eps), gradient)


def _trailing(call: LayerCall, normal: Tensor, gradient: Tensor, axes: int) -> dict[str, Part]:
    """Sum over positions: (rows, positions, size) -> (rows, size)."""
    size = gradient.shape[gradient.dim() - axes :].numel()
    return _parts(call, *(each.float().reshape(len(gradient), -1, size) for each in (normal, gradient)), axis=1)


def _channels(call: LayerCall, normal: Tensor, gradient: Tensor) -> dict[str, Part]:
    """Sum over places: (rows, channels, places) -> (rows, channels)."""
    channels = gradient.shape[1]
    return _parts(call, *(each.float().reshape(len(gradient), channels, -1) for each in (normal, gradient)), axis=2)


def _parts(call: LayerCall, normal: Tensor, gradient: Tensor, *, axis: int) -> dict[str, Part]:
    sums = {"weight": lambda: torch.mul(normal, gradient).sum(axis), "bias": lambda: gradient.sum(axis)}
    return {name: RowGradients(sums[name]()) for name in call.trained}
