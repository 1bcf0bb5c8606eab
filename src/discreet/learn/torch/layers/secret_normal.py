"""Normal numbers that a model draws for each row while it learns, from the secure source.

A diffusion model learns to take noise away, so it draws noise for each row in every pass. That noise protects nobody,
and its exact law is no matter for privacy; but it must be secret, independent and alike for all slots, as masks of
`dropout.py` are, and for the same reason: the proof lets a record that moves to another slot take its draws along.
"""

from __future__ import annotations

import math
from functools import cache
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.learn.torch.layers.dropout import known_rows, require_first_run

__all__ = ["SecretNormal"]

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
