"""A parameter that a model uses by itself, beside its layers."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

__all__ = ["Constant"]


@final
class Constant(nn.Module):
    """A parameter as one copy for each row of the batch, so that each row has its own gradient.

    For parameters that a module would own directly (a class token, positions, a scale): `self.token = Constant(
    nn.Parameter(torch.zeros(8)))`, and in forward `self.token(x)`, of shape (rows of x, 8). A module that owns a
    parameter and has layers inside is run again row by row, which this spares.
    """

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.value: Tensor = value

    def forward(self, rows: Tensor) -> Tensor:
        return self.value.expand(len(rows), *self.value.shape)
