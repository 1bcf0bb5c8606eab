"""Dropout whose masks are secret coins: torch's generator starts from a number that everybody knows.

Why it matters: a record that is added takes the slot of another one, which moves to the end of the last batch. The
proof lets that one take its mask along, which it may if masks are secret and alike for all slots. If they were public,
it would meet another known mask there, and the sum would change by more than one record's share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet import noise
from discreet.errors import InvalidParameter, Refused

__all__ = ["SecretDropout", "SecretNormal", "drop", "known_masks", "known_rows", "require_first_run"]

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
    coins = torch.from_numpy(noise.bernoulli(keep, tuple(shape)))
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
    again = torch._C._functorch.is_functorch_wrapped_tensor(x)
    if again or torch._C._current_graph_task_id() != -1:
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
