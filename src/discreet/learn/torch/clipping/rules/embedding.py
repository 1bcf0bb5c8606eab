"""Embeddings: the gradient of a picked row is the output's gradient there."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.clipping.parts import Part, Picks
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["embedding"]


def embedding(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Pair each position's index with its gradient; the padding index gets none."""
    module = cast(nn.Embedding, call.module)
    if module.scale_grad_by_freq or module.max_norm is not None:
        raise _unusable(call.name)
    picked = call.input.long().reshape(len(gradient), -1)
    right = gradient.float().reshape(len(gradient), -1, gradient.shape[-1])
    if module.padding_idx is not None:
        right = right.masked_fill((picked == module.padding_idx)[:, :, None], 0.0)
    return {"weight": Picks(picked, right, module.num_embeddings)}


def _unusable(name: str) -> Refused:
    return Refused(
        f"the embedding {name!r} uses scale_grad_by_freq or max_norm",
        reason="both let one record change what another one contributes",
        way_out="leave scale_grad_by_freq=False and max_norm=None",
    )
