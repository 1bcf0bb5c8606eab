"""Which parameters are clipped together."""

from __future__ import annotations

from torch import nn

from discreet.learn.torch.clipping.tape import owned
from discreet.learn.training.clips import Clip, PerLayer

__all__ = ["grouped"]


def grouped(model: nn.Module, clip: Clip) -> tuple[tuple[nn.Parameter, ...], ...]:
    """Return one group of all trainable parameters, or one for each layer; layers that share a parameter are one."""
    if not isinstance(clip, PerLayer):
        return (tuple(each for each in model.parameters() if each.requires_grad),)
    groups: list[dict[nn.Parameter, None]] = []
    for module in model.modules():
        mine = dict.fromkeys(owned(module).values())
        shared = [group for group in groups if not group.keys().isdisjoint(mine)]
        for group in shared:
            mine = group | mine
            groups.remove(group)
        if mine:
            groups.append(mine)
    return tuple(tuple(group) for group in groups)
