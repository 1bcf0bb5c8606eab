"""Attention from `Linear` cells: each parameter is seen by the book-keeping, the rest is as in torch."""

from __future__ import annotations

from math import sqrt
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import Refused
from discreet.learn.torch.layers.recurrent import PlainKeys, linear
from discreet.learn.torch.layers.secret_draws import drop

__all__ = ["Attention", "Constant"]


@final
class Attention(PlainKeys):
    """What `nn.MultiheadAttention` computes, with the same parameters and the same `state_dict`.

    torch's module hands its packed weights to one fused function, so no hook sees what they were multiplied by. Here
    one `Linear` holds the very same packed weight; it sees query, key and value one after the other along time, and
    each takes its third of the answer. Where key is value or all are the same, they are projected once.
    """

    def __init__(self, plain: nn.MultiheadAttention) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = plain.embed_dim, plain.num_heads, plain.head_dim
        self.kdim, self.vdim = plain.kdim, plain.vdim
        self.dropout, self.batch_first, self.add_zero_attn = plain.dropout, plain.batch_first, plain.add_zero_attn
        self._qkv_same_embed_dim = False  # Says to torch's encoder layers that there is no fused path here.
        self._take_projections(plain)
        self.out_proj = linear(plain.out_proj.weight, plain.out_proj.bias)
        self._take_extra_rows(plain)
        self.train(plain.training)

    def _take_projections(self, plain: nn.MultiheadAttention) -> None:
        packed = plain.in_proj_weight is not None
        self.in_proj = linear(plain.in_proj_weight, plain.in_proj_bias) if packed else None
        self.separate, self.in_bias = None, None
        if packed:
            self.renamed = {"in_proj.weight": "in_proj_weight", "in_proj.bias": "in_proj_bias"}
            return
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        self.separate = nn.ModuleList(linear(getattr(plain, name), None) for name in names)
        self.renamed = {f"separate.{place}.weight": name for place, name in enumerate(names)}
        if plain.in_proj_bias is not None:
            self.in_bias = Constant(plain.in_proj_bias)
            self.renamed["in_bias.value"] = "in_proj_bias"

    def _take_extra_rows(self, plain: nn.MultiheadAttention) -> None:
        self.extra_key = None if plain.bias_k is None else Constant(plain.bias_k)
        self.extra_value = None if plain.bias_v is None else Constant(plain.bias_v)
        own = {"extra_key.value": "bias_k", "extra_value.value": "bias_v"} if self.extra_key is not None else {}
        out = {f"out_proj.{name}": f"out_proj.{name}" for name in ("weight", "bias")}
        self.renamed = {**self.renamed, **own, **out}

    @property
    def in_proj_bias(self) -> Tensor | None:
        """torch's encoder layers ask whether there is one."""
        if self.in_proj is not None:
            return self.in_proj.bias
        return None if self.in_bias is None else self.in_bias.value

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        _require_batch(query, is_causal, attn_mask)
        q, k, v = self._projected(query, key, value)
        k, v, added = self._with_extra_rows(k, v)
        mask = _mask(attn_mask, key_padding_mask, q, k.shape[1], added)
        mixed, weights = self._mixed(self._split(q), self._split(k), self._split(v), mask, need_weights)
        out = self.out_proj(mixed.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value after their projections; the first dimension is the batch."""
        different = [query, *([key] if key is not query else []), *([value] if value is not key else [])]
        firsts = {id(part): part if self.batch_first else part.transpose(0, 1) for part in different}
        if self.in_proj is None:
            return self._projected_apart(*(firsts[id(part)] for part in (query, key, value)))
        lengths = [part.shape[1] for part in firsts.values()]
        pieces = self.in_proj(torch.cat(list(firsts.values()), dim=1)).split(lengths, dim=1)
        seen = dict(zip(firsts, pieces, strict=True))
        q, k, v = (seen[id(part)].chunk(3, dim=-1)[place] for place, part in enumerate((query, key, value)))
        return q, k, v

    def _projected_apart(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        assert self.separate is not None
        q, k, v = (project(part) for project, part in zip(self.separate, (query, key, value), strict=True))
        if self.in_bias is None:
            return q, k, v
        first, second, third = self.in_bias(query)[:, None].chunk(3, dim=-1)
        return q + first, k + second, v + third

    def _with_extra_rows(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        added = 0
        if self.extra_key is not None and self.extra_value is not None:
            k = torch.cat([k, self.extra_key(k).flatten(0, 1)], dim=1)
            v = torch.cat([v, self.extra_value(v).flatten(0, 1)], dim=1)
            added += 1
        if self.add_zero_attn:
            k, v = (functional.pad(part, (0, 0, 0, 1)) for part in (k, v))
            added += 1
        return k, v, added

    def _split(self, part: Tensor) -> Tensor:
        return part.reshape(*part.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def _mixed(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        dropout = self.dropout if self.training else 0.0
        if not need_weights and not dropout:
            return functional.scaled_dot_product_attention(q, k, v, mask), None
        scores = (q / sqrt(self.head_dim)) @ k.transpose(-2, -1)
        weights = drop((scores if mask is None else scores + mask).softmax(dim=-1), dropout, True)
        return weights @ v, weights if need_weights else None


def _require_batch(query: Tensor, is_causal: bool, attn_mask: Tensor | None) -> None:
    if query.dim() != 3:
        raise Refused(
            f"attention got a query of {query.dim()} dimensions, and needs (batch, time, features)",
            reason="each row of the batch is one example",
            way_out="call the model with a batch of examples",
        )
    if is_causal and attn_mask is None:
        raise Refused(
            "attention was told is_causal=True without an attn_mask",
            reason="torch's own module takes it as a hint about the mask only, and so does this one",
            way_out="pass attn_mask=nn.Transformer.generate_square_subsequent_mask(length) too",
        )


def _mask(attn_mask: Tensor | None, padding: Tensor | None, q: Tensor, keys: int, added: int) -> Tensor | None:
    """Both masks as one number to be added to each score, of shape (batch or 1, heads or 1, query or 1, key)."""
    parts = []
    if attn_mask is not None:
        shape = attn_mask.shape
        parts.append(attn_mask if len(shape) == 2 else attn_mask.reshape(len(q), -1, *shape[1:]))
    if padding is not None:
        parts.append(padding[:, None, None, :])
    if not parts:
        return None
    return torch.as_tensor(sum(functional.pad(_additive(part, q.dtype), (0, added)) for part in parts))


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype is not torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, float("-inf"))


# --- constant: A parameter that a model uses by itself, beside its layers. ---


@final
class Constant(nn.Module):
    """A parameter as one copy for each row of the batch, so that each row has its own gradient.

    For parameters that a module would own directly (a class token, positions, a scale): `self.token = Constant(
    nn.Parameter(torch.zeros(8)))`, and in forward `self.token(x)`, of shape (rows of x, 8). A module that owns a
    parameter and has layers inside is run again row by row, which this spares.
    """

    gives_copies = True  # So nobody else does; see `shared_by_rows`.

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.value: Tensor = value

    def forward(self, rows: Tensor) -> Tensor:
        return self.value.expand(len(rows), *self.value.shape)
