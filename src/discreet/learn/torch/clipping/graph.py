"""Check on the graph of a loss that every parameter is used through the layers that own it, and by them only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["check_used_through_layers"]


def check_used_through_layers(losses: Tensor, calls: Iterable[LayerCall], names: dict[nn.Parameter, str]) -> None:
    """Refuse a loss that reaches a parameter by another way than an output of a layer that owns it.

    Such a use, `functional.linear(x, other.weight)` say, is on no tape, and its gradient would silently be missing.
    """
    doors: dict[nn.Parameter, set[Any]] = {parameter: set() for parameter in names}
    for call in calls:
        for parameter in call.trained.values():
            doors[parameter].update(output.grad_fn for output in call.outputs)
    for shut in {frozenset(nodes) for nodes in doors.values()}:
        found = _parameters_reached(losses.grad_fn, shut)
        for parameter, nodes in doors.items():
            if frozenset(nodes) == shut and id(parameter) in found:
                raise _used_elsewhere(names[parameter])


def _parameters_reached(start: Any, shut: frozenset[Any]) -> set[int]:
    """Walk the graph of gradients from the loss, not through shut doors; return the ids of the leaves met."""
    seen, met, todo = {start}, set(), [start]
    while todo:
        node = todo.pop()
        if node is None or node in shut:
            continue
        if hasattr(node, "variable"):
            met.add(id(node.variable))
        fresh = {following for following, _ in node.next_functions} - seen
        seen |= fresh
        todo.extend(fresh)
    return met


def _used_elsewhere(name: str) -> Refused:
    return Refused(
        f"the parameter {name!r} is used outside of the layer that owns it",
        reason="gradients of single records are read off at the outputs of layers, and this use has none",
        way_out="call the layer itself; to share a weight, let a second layer own the same parameter "
        "(head.weight = embedding.weight)",
    )
