"""Small runs for tests: a model, made-up rows, and noise that can be silenced."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.learn.torch import PrivateTraining, make_private

LOSS = nn.CrossEntropyLoss(reduction="none")


def rows(count: int, features: int = 4) -> tuple[Tensor, Tensor]:
    """Rows about nobody, of two classes."""
    values = torch.arange(count * features, dtype=torch.float64).mul_(0.61803398875).frac_()
    x = (2 * values.reshape(count, features) - 1).float()
    return x, (x.sum(1) > 0).long()


def model_of(features: int = 4, hidden: int = 5, classes: int = 2) -> nn.Module:
    """The same weights every time."""
    model = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, classes))
    with torch.no_grad():
        for weight in model.parameters():
            values = torch.arange(weight.numel(), dtype=torch.float64).add_(0.5).mul_(0.7548776662).frac_()
            weight.copy_((values - 0.5).reshape(weight.shape))
    return model


def run(model: nn.Module | None = None, data: Any = None, **chosen: Any) -> PrivateTraining:
    """A run of a few steps in which every row takes part, unless chosen otherwise."""
    model = model_of() if model is None else model
    optimizer = chosen.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=chosen.pop("lr", 1.0))
    facts: dict[str, Any] = {
        "loss": LOSS, "noise_multiplier": 1, "delta": Fraction(1, 10**5), "public_rows": 40, "batch_size": 40,
        "steps": 3, "physical_batch": 32,
    }  # fmt: skip
    return make_private(model, optimizer, rows(40) if data is None else data, **(facts | chosen))


class Silence:
    """Noise that is none, to see what it would be added to."""

    def released(self, total: Any, unit: float) -> Any:
        return total.noisy(np.zeros(total.size, np.int64), unit)

    def close(self) -> None:
        pass


def silenced(private: PrivateTraining) -> PrivateTraining:
    """The same run without noise."""
    private._parts.noise.close()
    private._parts = replace(private._parts, noise=Silence())
    return private


def flat(model: nn.Module) -> Tensor:
    """All weights as one vector."""
    return torch.cat([weight.detach().flatten() for weight in model.parameters()]).clone()
