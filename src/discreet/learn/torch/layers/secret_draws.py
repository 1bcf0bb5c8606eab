"""Dropout whose masks are secret coins: torch's generator starts from a number that everybody knows.

Why it matters: a record that is added takes the slot of another one, which moves to the end of the last batch. The
proof lets that one take its mask along, which it may if masks are secret and alike for all slots. If they were public,
it would meet another known mask there, and the sum would change by more than one record's share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import cache, partial
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.clipping.tape import RunHook
from discreet.noise.samplers import heads

__all__ = [
    "SecretDropout",
    "SecretFunctions",
    "SecretNormal",
    "drop",
    "known_masks",
    "known_rows",
    "require_first_run",
]

_known: ContextVar[Tensor | None] = ContextVar("known", default=None)


@contextmanager
def known_masks(of_slots: Tensor) -> Iterator[None]:
    """Drop nothing and multiply each row by a number of its slot instead, so that runs can be compared bit for bit."""
    token = _known.set(of_slots)
    try:
        yield
    finally:
        _known.reset(token)


def drop(x: Tensor, p: float, training: bool, dimensions: int | None = None) -> Tensor:
    """Zero values with probability p and divide the others by 1 - p; one coin for all beyond `dimensions`."""
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    require_first_run(x)
    keep = 1 - Fraction(str(p))
    shape = x.shape if dimensions is None else (*x.shape[:dimensions], *(1,) * (x.dim() - dimensions))
    known = known_rows(x)
    if known is not None:
        return x * known.to(x).div_(float(keep))
    coins = torch.from_numpy(heads(keep, math.prod(shape)).reshape(shape))
    return x * coins.to(device=x.device, dtype=x.dtype).div_(float(keep))


def known_rows(x: Tensor) -> Tensor | None:
    """While a model is tried: the number of each row's slot, to be multiplied with `x`. Otherwise nothing."""
    of_slots = _known.get()
    if of_slots is None:
        return None
    if x.shape[0] != len(of_slots):
        raise Refused(
            f"a layer that draws gets a tensor of shape {tuple(x.shape)} in a batch of {len(of_slots)} rows",
            reason="rows would share coins, and a record that moves to another batch would meet other ones",
            way_out="apply dropout, and draw noise, where the first dimension is the batch",
        )
    return of_slots.reshape(-1, *(1,) * (x.dim() - 1)).clone()


def require_first_run(x: Tensor) -> None:
    """Coins are drawn once: a layer that is run again, row by row or in a backward pass, would meet other ones."""
    again = torch._C._functorch.is_functorch_wrapped_tensor(x) or torch._C._current_graph_task_id() != -1
    # What is checkpointed saves by hooks, and is run again when gradients are wanted.
    if again or torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        raise Refused(
            "dropout or noise would be drawn a second time for the same rows",
            reason="it lies inside a checkpointed part, or inside a module that owns parameters directly and so is run "
            "again row by row",
            way_out="leave what draws out of checkpoint(); hold a parameter of your own in discreet.learn.torch.layers."
            "Constant, and call that with the batch: self.token = Constant(nn.Parameter(torch.zeros(8)))",
        )


@final
class SecretDropout(nn.Module):
    """What `nn.Dropout` and its kin for whole channels do, with coins from the secure source. It has no parameters."""

    def __init__(self, plain: nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d) -> None:
        super().__init__()
        self.p = plain.p
        self.dimensions = None if isinstance(plain, nn.Dropout) else 2  # Rows and channels have a coin each.
        self.train(plain.training)

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p, self.training, self.dimensions)

    def extra_repr(self) -> str:
        return f"p={self.p}"


# --- secret_functions ---
# Dropout that a forward calls as a function, by itself or inside of attention, draws from the secure source too.


@final
class SecretFunctions:
    """Until it is closed, functions that would drop by torch's generator while the model runs drop by secret coins.

    Only what runs inside of the model is meant: a loss that draws is still refused.
    """

    def __init__(self, model: nn.Module) -> None:
        self._mode, self._depth = _SecretMode(), 0
        self._handles: list[RemovableHandle] = []
        if any(map(_may_call_functions, model.modules())):
            self._handles = [
                model.register_forward_pre_hook(RunHook(self._enter), prepend=True),
                model.register_forward_hook(RunHook(self._leave), always_call=True),
            ]

    def close(self) -> None:
        """Take the hooks off the model; a run that was interrupted inside of the model is left as well."""
        for handle in self._handles:
            handle.remove()
        self._depth = min(self._depth, 1)
        self._leave()

    def _enter(self, *_: object) -> None:
        self._depth += 1
        if self._depth == 1:
            self._mode.__enter__()  # type: ignore[no-untyped-call]

    def _leave(self, *_: object) -> None:
        if self._depth == 1:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._depth = max(0, self._depth - 1)


def _may_call_functions(module: nn.Module) -> bool:
    """Layers of torch that draw are replaced or refused by their type; a mode that has nothing to see costs time."""
    own = not type(module).__module__.startswith(("torch.nn.", "discreet."))
    return own or "forward" in vars(module)


class _SecretMode(TorchFunctionMode):
    """Sees every function of torch that is called, and puts ours in the place of those that draw masks."""

    def __torch_function__(
        self, function: Callable[..., Any], _types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _SECRET.get(function, function)(*args, **(kwargs or {}))


def _dropped(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, dimensions: int | None = None
) -> Tensor:
    left = drop(input, p, training, dimensions)
    return input.copy_(left) if inplace and left is not input else left


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention as torch defines it, with coins of ours on its weights.

    A mask that hides nothing changes no bit of a row: whether there is one may follow from all rows of a batch.
    """
    if not dropout_p:
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        key, value = (part.repeat_interleave(query.shape[-3] // part.shape[-3], -3) for part in (key, value))
    scores = (query * (scale if scale is not None else query.shape[-1] ** -0.5)) @ key.transpose(-2, -1)
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    if attn_mask is not None:
        hidden = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if hidden else scores + attn_mask
    return drop(_weights(scores), dropout_p, True).to(value.dtype) @ value


def _weights(scores: Tensor) -> Tensor:
    """Softmax, and zeros where every key is hidden, as in torch."""
    nothing = scores.detach().amax(-1, keepdim=True) == -torch.inf
    return scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)


_SECRET: Mapping[Callable[..., Any], Callable[..., Any]] = {
    functional.dropout: _dropped,
    torch.dropout: _dropped,
    functional.dropout1d: partial(_dropped, dimensions=2),
    functional.dropout2d: partial(_dropped, dimensions=2),
    functional.dropout3d: partial(_dropped, dimensions=2),
    functional.scaled_dot_product_attention: _attended,
}


# --- secret_normal: Normal numbers that a model draws for each row while it learns, from the secure source. ---
#
# A diffusion model learns to take noise away, so it draws noise for each row in every pass. That noise protects nobody,
# and its exact law is no matter for privacy; but it must be secret, independent and alike for all slots, as masks of
# dropout are, and for the same reason: the proof lets a record that moves to another slot take its draws along.


_BITS = 15  # A secret word of 63 bits holds four fields of 15; the top one has no more.


@final
class SecretNormal(nn.Module):
    """Give each row of a batch its own standard normal numbers of a given shape. It has no parameters.

    They are rounded to 2^15 values, each as likely as the others, the largest about 4.2; mean is 0 and variance 1.
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        if not all(isinstance(size, int) and size >= 1 for size in shape):
            raise InvalidParameter("SecretNormal needs the sizes of what each row gets, such as SecretNormal(8, 196)")
        self.shape = shape

    def forward(self, rows: Tensor) -> Tensor:
        """Return a tensor of (rows, *shape); of `rows` only their number, type and device are used."""
        require_first_run(rows)
        known = known_rows(rows)
        if known is not None:
            return _pattern(self.shape).to(rows) * known.reshape(-1, *(1,) * len(self.shape)).to(rows)
        drawn = torch.from_numpy(_draw(len(rows) * math.prod(self.shape)))
        return drawn.reshape(len(rows), *self.shape).to(rows)

    def extra_repr(self) -> str:
        return f"shape={self.shape}"


def _draw(count: int) -> NDArray[np.float32]:
    words = noise.uniform(1 << 63, -(-count // 4)).view(np.uint16)
    np.bitwise_and(words, (1 << _BITS) - 1, out=words)
    return _quantiles().take(words[:count])


@cache
def _quantiles() -> NDArray[np.float32]:
    """The middle of each of 2^15 slices of the normal law, scaled to variance 1."""
    levels = (torch.arange(1 << _BITS, dtype=torch.float64) + 0.5) / (1 << _BITS)
    values = torch.special.ndtri(levels)
    scaled: NDArray[np.float32] = (values / values.square().mean().sqrt()).float().numpy()
    return scaled


def _pattern(shape: tuple[int, ...]) -> Tensor:
    """Uneven numbers that every slot gets alike while a model is tried, so that runs can be compared bit for bit."""
    steps = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64)
    return torch.sin(steps * 12.9898).mul_(1.3).reshape(shape)
