"""Check that no row's numbers depend on the slot it stands in.

A kernel may treat the last rows of a batch in another way than the first. Which way is chosen by shapes, alignment and
the number of threads, never by values: so the same row is put into all slots, once for each set of shapes, and every
bit of what clipping computes from it must agree. What the model itself computes is the probe's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from discreet.errors import Refused
from discreet.learn.torch.clipping.forms import Form, RowGradients
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["alike", "check_slots"]


def alike(calls: list[LayerCall], gradients: list[tuple[Tensor | None, ...]]) -> tuple[list[LayerCall], Any]:
    """Return calls and gradients of the same shapes whose rows are all the same."""
    same = [
        replace(call, args=_same_rows(call.args, call), kwargs=_same_rows(dict(call.kwargs), call)) for call in calls
    ]
    return same, tree_map_only(Tensor, _pattern, gradients)


def _same_rows(tree: Any, call: LayerCall) -> Any:
    rows = len(call.outputs[0])
    return tree_map_only(Tensor, lambda leaf: _pattern(leaf) if leaf.dim() and len(leaf) == rows else leaf, tree)


def _pattern(like: Tensor) -> Tensor:
    """Fill every row with the same uneven numbers; whole numbers, which pick rows of tables, with zeros."""
    if not like.is_floating_point():
        return torch.zeros_like(like)
    row = torch.arange(1, like[0].numel() + 1, dtype=torch.float64)
    values = torch.sin(row * 12.9898).mul_(3.7).to(like.dtype).reshape(like[0].shape)
    filled = torch.empty_like(like)
    filled.copy_(values.expand_as(like))
    return filled


def check_slots(forms: Iterable[Form]) -> None:
    """Refuse a physical batch in which rows that are all the same get different gradients or norms."""
    for form in forms:
        formed = [form.values] if isinstance(form, RowGradients) else []
        for values in (*formed, form.squares_up(), form.sizes()):
            if values is not None and not _rows_agree(values):
                raise _uneven(len(values))


def _rows_agree(values: Tensor) -> bool:
    bits = values.view(torch.int32 if values.dtype == torch.float32 else torch.int64)
    return bool((bits == bits[:1]).all())


def _uneven(rows: int) -> Refused:
    return Refused(
        f"with {rows} rows in a physical batch the arithmetic of this machine rounds differently from row to row",
        reason="the proof of privacy moves a record from one slot to another and needs the same number there",
        way_out="choose a physical_batch that is a multiple of 32, or one thread: torch.set_num_threads(1)",
    )
