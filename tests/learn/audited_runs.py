"""Real private training runs whose gradients are known, and the same runs broken in one way.

The model is a table of weights, and the loss of a row is its product with them: the gradient of a row is the row
itself, whatever the weights are. A canary is a row with one coordinate that no other row uses, far above the clip.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.learn.torch import make_private
from discreet.learn.torch.clipping import clipped_sums as clipping
from discreet.learn.training import TrainingPlan
from discreet.learn.training.grid_sums import GridSum
from discreet.learn.training.sampling import cut

torch.set_num_threads(1)
LONG = 40.0  # The norm of a canary, in clips.


def first_column(output: Tensor, _: Tensor) -> Tensor:
    return output[:, 0]


def run_on(rows: Tensor, *, wrong: str = "", **changes: Any) -> Any:
    """Make a private run on rows that are their own gradients; `wrong` breaks it in one way."""
    model = nn.Linear(rows.shape[1], 1, bias=False)
    nn.init.zeros_(model.weight)
    chosen: dict[str, Any] = {"delta": "1e-6", "clip": 1, "loss": first_column}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    private = make_private(model, optimizer, (rows, torch.zeros(len(rows))), **(chosen | changes))
    parts = private._parts
    if wrong in _NOISES:
        private._parts = replace(parts, noise=_NOISES[wrong](parts.noise))
    if wrong == "actual divisor":
        private._parts = replace(parts, noise=Scaled(parts.noise, 0.0), sums=ActualDivisor(parts.sums, private.plan))
    if wrong == "noise for every batch":
        private._parts = replace(parts, sums=NoiseForEveryBatch(parts.sums, parts.noise))
    return private


def canaries(count: int, columns: int) -> Tensor:
    """One row for each of the first coordinates."""
    rows = torch.zeros(count, columns)
    rows[torch.arange(count), torch.arange(count)] = LONG
    return rows


def noisy_sums(private: Any) -> Any:
    """Run to the end and return the noisy sum of every step: with a rate of one the weights fall by sum / divisor."""
    weights, divisor = [np.zeros(private.plan.parameters)], float(private.plan.divisor)
    told = private._callback

    def keep(done: Any) -> None:
        weights.append(private.model.weight.detach().double().numpy()[0].copy())
        if told is not None:
            told(done)

    private._callback = keep
    private.fit(progress=False)
    private.close()
    return -np.diff(weights, axis=0) * divisor


def without_clip(patch: Any) -> None:
    """Let every gradient pass as it is."""
    patch.setattr(clipping, "factors_down", lambda clip, threshold, share, squares, sizes: torch.ones(len(squares)))


class Scaled:
    """Noise of another size."""

    def __init__(self, noise: Any, factor: float) -> None:
        self.noise, self.factor = noise, factor

    def next(self) -> Any:
        return np.rint(self.noise.next() * self.factor).astype(np.int64)

    def released(self, total: Any, unit: float) -> Any:
        return total.noisy(self.next(), unit)

    def close(self) -> None:
        self.noise.close()


class Carried(Scaled):
    """Noise that is added to what was there before, and never cleared."""

    total: Any = 0

    def next(self) -> Any:
        self.total = self.total + self.noise.next()
        return self.total.copy()


class Reused(Scaled):
    """One vector of noise for all steps."""

    kept: Any = None

    def next(self) -> Any:
        self.kept = self.noise.next() if self.kept is None else self.kept
        return self.kept.copy()


_NOISES: dict[str, Any] = {
    "no noise": lambda noise: Scaled(noise, 0.0),
    "half noise": lambda noise: Scaled(noise, 0.5),
    "noise / B": lambda noise: Scaled(noise, 1 / float(noise.plan.divisor)),
    "carried noise": lambda noise: Carried(noise, 1.0),
    "reused noise": lambda noise: Reused(noise, 1.0),
}


class _Around:
    """Clipped sums with something else around them."""

    def __init__(self, sums: Any) -> None:
        self.sums, self.rows = sums, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sums, name)

    def add(self, losses: Tensor, inside: Tensor) -> None:
        self.rows += int(inside.sum())
        self.sums.add(losses, inside)


class ActualDivisor(_Around):
    """Divide by how many rows were drawn instead of the public number."""

    def __init__(self, sums: Any, plan: TrainingPlan) -> None:
        super().__init__(sums)
        self.divisor = float(plan.divisor)

    def take(self) -> GridSum:
        scale, self.rows = self.divisor / max(self.rows, 1), 0
        return GridSum([[self.sums.take().whole() * scale]], 1.0)


class NoiseForEveryBatch(_Around):
    """Add noise after every physical batch as well."""

    def __init__(self, sums: Any, noise: Any) -> None:
        super().__init__(sums)
        self.noise = noise

    def add(self, losses: Tensor, inside: Tensor) -> None:
        super().add(losses, inside)
        self.sums._total = self.sums._sum().whole() + self.noise.next()
        self.sums._last = [[torch.zeros(self.noise.plan.parameters)]]


class AlwaysIn:
    """Sample as the plan says, but let some records take part in every step."""

    def __init__(self, sampler: Any, always: int) -> None:
        self.sampler, self.always = sampler, always

    def draw(self, count: int) -> Any:
        drawn = [batch.indices[batch.inside] for batch in self.sampler.draw(count)]
        others = [part[part >= self.always] for part in drawn]
        return cut(np.concatenate([np.arange(self.always), *others]), self.sampler.plan.physical_batch)
