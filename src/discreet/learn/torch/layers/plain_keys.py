"""Modules that are built otherwise than torch's, but save and load what torch's save and load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

__all__ = ["PlainKeys", "linear"]


class PlainKeys(nn.Module):
    """A module whose parameters live in children, and which has the `state_dict` of the plain module.

    `renamed` has the plain name of a parameter for each name inside, in the order in which torch saves them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.renamed: dict[str, str] = {}
        self.register_state_dict_post_hook(_save_plain)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_load_plain)  # type: ignore[no-untyped-call]


def linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A `Linear` around these very parameters, so that an optimiser that has them keeps them."""
    rows, columns = weight.shape
    made = nn.Linear(columns, rows, bias=bias is not None, device="meta")
    made.register_parameter("weight", _parameter(weight))
    if bias is not None:
        made.register_parameter("bias", _parameter(bias))
    return made


def _parameter(value: Tensor) -> nn.Parameter:
    assert isinstance(value, nn.Parameter)
    return value


def _save_plain(module: nn.Module, state: dict[str, Any], prefix: str, _metadata: object) -> None:
    assert isinstance(module, PlainKeys)
    for inner, plain in module.renamed.items():
        if prefix + inner in state:
            state[prefix + plain] = state.pop(prefix + inner)


def _load_plain(module: nn.Module, state: dict[str, Any], prefix: str, *_others: object) -> None:
    assert isinstance(module, PlainKeys)
    renamed: Mapping[str, str] = module.renamed
    for inner, plain in renamed.items():
        if prefix + plain in state:
            state[prefix + inner] = state.pop(prefix + plain)
