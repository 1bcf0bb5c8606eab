"""Any other layer: run it again row by row under `torch.func`, and differentiate by its own parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils._pytree import tree_flatten, tree_unflatten

from discreet.errors import Refused
from discreet.learn.torch.clipping.forms import RowGradients
from discreet.learn.torch.clipping.parts import Part
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["fallback"]

_ROOM = 1 << 25  # numbers that the gradients of one chunk of rows may take


def fallback(call: LayerCall, gradients: tuple[Tensor | None, ...]) -> dict[str, Part]:
    """Form each row's gradient: that of the sum of outputs times their gradients, for one row at a time.

    The whole layer runs again, its children included; children are constants here, since the tape has them too.
    """
    rows = next(len(gradient) for gradient in gradients if gradient is not None)
    own = {name: value.detach() for name, value in call.trained.items()}
    leaves, tree = tree_flatten((call.args, dict(call.kwargs)))
    moving = [_moves(call, leaf, rows) for leaf in leaves]

    def of_row(values: dict[str, Tensor], row: list[Tensor], outer: list[Tensor]) -> Tensor:
        several = iter(row)
        again = [next(several)[None] if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)]
        return _matched(call, values, tree_unflatten(again, tree), outer)

    row_leaves = [leaf for leaf, moves in zip(leaves, moving, strict=True) if moves]
    known = [_or_zero(gradient, output) for gradient, output in zip(gradients, call.outputs, strict=True)]
    try:
        formed = _for_all_rows(of_row, own, row_leaves, known, rows)
    except RuntimeError:  # torch.func met chance, a write in place or control flow that looks at data.
        raise _unusable(call) from None
    return {name: RowGradients(value.float().reshape(rows, -1)) for name, value in formed.items()}


def _for_all_rows(of_row: Any, own: dict[str, Tensor], inputs: Any, outer: Any, rows: int) -> dict[str, Tensor]:
    """Take rows in equal chunks: a chunk of another length could round in another way."""
    most = max(1, _ROOM // sum(value.numel() for value in own.values()))
    chunk = rows if most >= rows else max(size for size in range(1, most + 1) if rows % size == 0)
    formed: dict[str, Tensor] = vmap(grad(of_row), (None, 0, 0), chunk_size=chunk)(own, inputs, outer)
    return formed


def _matched(call: LayerCall, values: dict[str, Tensor], inputs: Any, outer: list[Tensor]) -> Tensor:
    args, kwargs = inputs
    named = {f"layer.{name}": value for name, value in values.items()}
    # Not tied: where a child owns the same parameter, the child's calls are on the tape themselves.
    said, _ = tree_flatten(functional_call(_Forward(call.module), named, args, kwargs, tie_weights=False))
    return torch.stack([(said[at][0] * other).sum() for at, other in zip(call.places, outer, strict=True)]).sum()


class _Forward(nn.Module):
    """Runs a layer without its hooks: what the tape has went through them already."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer.forward(*args, **kwargs)


def _moves(call: LayerCall, leaf: Any, rows: int) -> bool:
    """Whether an input has a row for each record; what has none must not hold several records at once."""
    if not isinstance(leaf, Tensor) or not leaf.dim():
        return False
    if leaf.shape[0] == rows:
        return True
    if rows in leaf.shape:
        raise _unusable(call)
    return False


def _or_zero(gradient: Tensor | None, output: Tensor) -> Tensor:
    return torch.zeros_like(output) if gradient is None else gradient


def _unusable(call: LayerCall) -> Refused:
    return Refused(
        f"the layer {call.name!r} ({type(call.module).__name__}) cannot be run row by row",
        reason="it has no rule of its own, so `torch.func` must be able to run it for one record: batch first in all "
        "inputs and outputs, no random numbers, nothing written in place, no branch on data",
        way_out="build it from Linear, Conv, Embedding and normalisation layers, or move the parameters that it owns "
        "directly into a small layer of their own",
    )
