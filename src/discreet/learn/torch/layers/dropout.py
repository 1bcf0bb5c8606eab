"""Dropout whose masks are secret coins: torch's generator starts from a number that everybody knows.

Why it matters: a record that is added takes the slot of another one, which moves to the end of the last batch. The
proof lets that one take its mask along, which it may if masks are secret and alike for all slots. If they were public,
it would meet another known mask there, and the sum would change by more than one record's share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import final

import torch
from torch import Tensor, nn

from discreet import noise
from discreet.errors import Refused

__all__ = ["SecretDropout", "drop", "known_masks", "known_rows", "require_first_run"]

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
