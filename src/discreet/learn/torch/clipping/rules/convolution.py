"""Convolutions: unfolded, they are linear layers with one position for each place of the kernel."""

from __future__ import annotations

from math import prod
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd

from discreet.learn.torch.clipping.forms import RowGradients
from discreet.learn.torch.clipping.parts import Part, Positions
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["convolution"]


def convolution(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Unfold the input into patches, (rows, groups, patch, places), and pair them with the output's gradient."""
    module = cast(_ConvNd, call.module)
    groups = module.groups
    left = gradient.float().reshape(len(gradient), groups, module.out_channels // groups, -1)
    parts: dict[str, Part] = {}
    if "weight" in call.trained:
        right = _unfolded(module, call.input.float()).reshape(len(gradient), groups, -1, left.shape[3])
        parts["weight"] = _weight(left, right)
    if "bias" in call.trained:
        parts["bias"] = RowGradients(left.sum(3).flatten(1))
    return parts


def _weight(left: Tensor, right: Tensor) -> Part:
    if left.shape[1] == 1:
        return Positions(left[:, 0].transpose(1, 2), right[:, 0].transpose(1, 2))
    # One group's outputs never meet another group's inputs, so groups are rows of their own while products form.
    formed = torch.bmm(left.flatten(0, 1), right.flatten(0, 1).transpose(1, 2))
    return RowGradients(formed.reshape(len(left), -1))


def _unfolded(module: _ConvNd, values: Tensor) -> Tensor:
    """Return all patches, (rows, channels x kernel, places): a strided view, copied once."""
    kernel, stride, dilation = (_numbers(each) for each in (module.kernel_size, module.stride, module.dilation))
    values = _padded(module, values)
    for axis, (size, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True), start=2):
        values = values.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
    axes = len(kernel)
    order = (0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    places = prod(values.shape[2 : 2 + axes])
    return values.permute(order).reshape(len(values), -1, places)


def _padded(module: _ConvNd, values: Tensor) -> Tensor:
    if module.padding == "valid" or not any(module._reversed_padding_repeated_twice):
        return values
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    return functional.pad(values, module._reversed_padding_repeated_twice, mode)


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(cast("tuple[int, ...]", value))
