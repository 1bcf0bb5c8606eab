"""Gradients of single rows by `torch.func` in float64, and what clipping makes of them: the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from discreet.learn.torch.clipping import clipped_sums
from discreet.learn.torch.clipping.clipped_sums import ClippedSums, grouped
from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, PerLayer

GRID = Fraction(1, 1 << 30)
Loss = Callable[[Any, Tensor], Tensor]


def row_gradients(model: nn.Module, inputs: Tensor, targets: Tensor, loss: Loss) -> dict[str, Tensor]:
    """Return each row's gradient by parameter name: (rows, size), float64."""
    exact = deepcopy(model).double()
    for module in exact.modules():
        module._forward_hooks.clear()
    own = {name: value.detach() for name, value in exact.named_parameters() if value.requires_grad}

    def of_row(values: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
        return loss(functional_call(exact, values, (row[None],)), target[None])[0]

    wide = inputs.double() if inputs.is_floating_point() else inputs
    formed = vmap(grad(of_row), (None, 0, 0))(own, wide, targets)
    return {name: value.reshape(len(inputs), -1) for name, value in formed.items()}


def clipped(model: nn.Module, rows: dict[str, Tensor], clip: Clip) -> tuple[Tensor, Tensor]:
    """Return the norms of rows (rows, groups), and the sum of clipped rows, flat."""
    names = {value: name for name, value in model.named_parameters()}
    groups = [[names[parameter] for parameter in group] for group in grouped(model, clip)]
    norms = {name: torch.cat([rows[each] for each in group], 1).norm(dim=1) for group in groups for name in group}
    scale = {name: factor(clip, norm, len(groups)) for name, norm in norms.items()}
    total = torch.cat([(rows[name] * scale[name][:, None]).sum(0) for name in rows])
    return torch.stack([norms[group[0]] for group in groups], 1), total


def factor(clip: Clip, norm: Tensor, groups: int) -> Tensor:
    """The factor of each rule as its docstring says it, in float64."""
    bound = float(clip.bound)
    if isinstance(clip, Automatic):
        return bound / (norm + float(clip.gamma))
    if isinstance(clip, AdaptiveClip):
        return 1 / norm.clamp(min=float(clip.initial))
    share = bound / groups**0.5 if isinstance(clip, PerLayer) else bound
    return (share / norm).clamp(max=1.0)


@contextmanager
def norms_seen() -> Iterator[list[Tensor]]:
    """Collect the norms that clipping uses."""
    seen: list[Tensor] = []
    real = clipped_sums.factors_down

    def watched(clip: Clip, threshold: float, share: float, squares: Tensor, sizes: Tensor) -> Tensor:
        seen.append(squares.sqrt())
        return real(clip, threshold, share, squares, sizes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clipped_sums, "factors_down", watched)
        yield seen


def our_sum(
    model: nn.Module, inputs: Tensor, targets: Tensor, loss: Loss, clip: Clip, physical: int
) -> tuple[Tensor, Tensor]:
    """Return norms (rows, groups) and the clipped sum of ours, over micro-batches of `physical` rows, padded."""
    ours = ClippedSums(model, clip=clip, grid=GRID, physical_batch=physical)
    found = []
    with norms_seen() as seen:
        for start in range(0, len(inputs), physical):
            row, target, inside = padded(inputs[start : start + physical], targets[start : start + physical], physical)
            seen.clear()
            ours.add(loss(model(row), target), inside)
            found.append(torch.stack(seen, 1)[inside])
    ours.close()
    return torch.cat(found), torch.from_numpy(ours.take().whole()) * float(GRID)


def padded(inputs: Tensor, targets: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Fill up with zeros, as the loader does."""
    more = rows - len(inputs)
    inside = torch.arange(rows) < len(inputs)
    if more:
        inputs = torch.cat([inputs, torch.zeros_like(inputs[:1]).expand(more, *inputs.shape[1:])])
        targets = torch.cat([targets, torch.zeros_like(targets[:1]).expand(more, *targets.shape[1:])])
    return inputs, targets, inside
