"""Nested dictionaries of tensors and plain values as one safetensors file: no pickle, nothing in it is ever run.

Tensors get the path to them as their name. What is left is JSON in the head of the file, where tuples and
dictionaries are marked, so that states of optimisers and schedulers come back as they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from discreet.errors import Refused

__all__ = ["pack", "unpack"]

_HEAD = "discreet"
_PLAIN = (str, int, float, bool, type(None))


def pack(value: Mapping[str, Any]) -> bytes:
    """Write a nested value as a safetensors file; refuse what is neither a tensor nor plain."""
    tensors: dict[str, Tensor] = {}
    head = _packed(value, "", tensors)
    own = {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    return save(own, {_HEAD: json.dumps(head)})


def unpack(content: bytes) -> dict[str, Any]:
    """Read what `pack` wrote."""
    try:
        size = int.from_bytes(content[:8], "little")
        head = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][_HEAD])
        value = _unpacked(head, load(content))
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError):
        value = None
    if not isinstance(value, dict):
        raise Refused("this checkpoint was changed or is damaged", way_out="start a new run in another folder")
    return value


def _packed(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, Mapping):
        return {"dict": [[key, _packed(part, f"{path}/{key}".strip("/"), tensors)] for key, part in value.items()]}
    if isinstance(value, tuple | list):
        parts = [_packed(part, f"{path}/{index}", tensors) for index, part in enumerate(value)]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    if isinstance(value, _PLAIN):
        return value
    raise Refused(
        f"a {type(value).__name__} at {path} cannot be kept in a checkpoint",
        reason="checkpoints hold tensors and plain values only, so that opening one runs nothing",
        way_out="use an optimiser and a scheduler whose state is such, or train without checkpoint=…",
    )


def _unpacked(head: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(head, list):
        return [_unpacked(part, tensors) for part in head]
    if not isinstance(head, dict):
        return head
    ((kind, inner),) = head.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "tuple":
        return tuple(_unpacked(part, tensors) for part in inner)
    return {key: _unpacked(part, tensors) for key, part in inner}
