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

__all__ = ["SecretDropout", "drop", "nothing_dropped"]

_all_kept: ContextVar[bool] = ContextVar("all_kept", default=False)


@contextmanager
def nothing_dropped() -> Iterator[None]:
    """Keep every value, so that two runs can be compared bit for bit; what is kept is scaled as ever."""
    token = _all_kept.set(True)
    try:
        yield
    finally:
        _all_kept.reset(token)


def drop(x: Tensor, p: float, training: bool, dimensions: int | None = None) -> Tensor:
    """Zero values with probability p and divide the others by 1 - p; one coin for all beyond `dimensions`."""
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    _require_first_run(x)
    keep = 1 - Fraction(str(p))
    shape = x.shape if dimensions is None else (*x.shape[:dimensions], *(1,) * (x.dim() - dimensions))
    if _all_kept.get():
        return x * torch.full(shape, 1 / float(keep), dtype=x.dtype, device=x.device)
    coins = torch.from_numpy(noise.bernoulli(keep, tuple(shape)))
    return x * coins.to(device=x.device, dtype=x.dtype).div_(float(keep))


def _require_first_run(x: Tensor) -> None:
    """Coins are drawn once: a layer that is run again, row by row or in a backward pass, would meet other ones."""
    again = torch._C._functorch.is_functorch_wrapped_tensor(x)
    if again or torch._C._current_graph_task_id() != -1:
        raise Refused(
            "dropout would be drawn a second time for the same rows",
            reason="it lies inside a checkpointed part, or inside a module that owns parameters directly and so is run "
            "again row by row",
            way_out="leave dropout out of checkpoint(); hold a parameter of your own in discreet.learn.torch.layers."
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
