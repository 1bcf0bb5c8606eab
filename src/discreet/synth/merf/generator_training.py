"""Train a generator until its features match the released ones. Any number of steps: it costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.learn.secret_chance import secret_generator
from discreet.synth.merf.generator import GeneratorNetwork, Training

__all__ = ["Matching", "train"]

_WARM = 20  # Steps over which the learning rate rises; over the last third it falls.
_TINY = 1e-5
_UNLIKE = 0.3  # By how much classes differ inside before training.
_SETTLING = 50  # Batches from which the last means and deviations of the hidden layers are taken.


class Matching(Protocol):
    """What a generator is to match, and how rows become features."""

    @property
    def weights(self) -> Tensor:
        """How much each class counts."""

    @property
    def parameters(self) -> list[Tensor]:
        """What else is learnt beside the network."""

    def pick(self, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        """Pick some features for one step, and return them with what they should be, (classes, features)."""

    def features(self, outputs: Tensor, picked: Tensor, chance: torch.Generator) -> Tensor:
        """Return the features of generated rows: (classes, rows of a class, features)."""


@final
class _Trunk(nn.Module):
    """Two hidden layers, each brought to mean 0 and deviation 1 over a batch before it is cut at zero.

    Each class has its own starts in all layers: what sets classes apart need not pass through the code.
    """

    def __init__(self, codes: int, hidden: int, scale: float, start: Tensor, chance: torch.Generator):
        super().__init__()
        classes, outputs = start.shape
        self.first, self.second = (
            nn.Parameter(torch.empty(size, hidden).normal_(0, size**-0.5, generator=chance)) for size in (codes, hidden)
        )
        self.gains = nn.Parameter(torch.ones(2, hidden))
        self.shifts = nn.Parameter(torch.empty(2, classes, hidden).normal_(0, _UNLIKE, generator=chance))
        self.last = nn.Parameter(torch.empty(hidden, outputs).normal_(0, scale * hidden**-0.5, generator=chance))
        self.last_start = nn.Parameter(start.clone())

    def forward(self, codes: Tensor, labels: Tensor) -> Tensor:
        """Return the outputs for codes; `labels` has a one at the place of each row's class."""
        hidden = torch.relu(self._even(codes @ self.first, 0) + labels @ self.shifts[0])
        hidden = torch.relu(self._even(hidden @ self.second, 1) + labels @ self.shifts[1])
        return hidden @ self.last + labels @ self.last_start

    def _even(self, hidden: Tensor, layer: int) -> Tensor:
        variance, mean = torch.var_mean(hidden, dim=0, correction=0)
        return (hidden - mean) * torch.rsqrt(variance + _TINY) * self.gains[layer]

    @torch.no_grad()
    def settled(self, codes: Tensor, labels: Tensor) -> GeneratorNetwork:
        """Return a plain network whose hidden layers keep the means and deviations of these many inputs."""
        hidden, parts = codes, []
        for layer, weights in enumerate((self.first, self.second)):
            variance, mean = torch.var_mean(hidden @ weights, dim=0, correction=0)
            gain = torch.rsqrt(variance + _TINY) * self.gains[layer]
            parts += [weights * gain, self.shifts[layer] - mean * gain]
            hidden = torch.relu(hidden @ parts[-2] + labels @ parts[-1])
        return GeneratorNetwork(*(part.detach().numpy().copy() for part in (*parts, self.last, self.last_start)))


def train(
    matching: Matching, how: Training, *, start: NDArray[np.float32], tell: Callable[[str], None]
) -> GeneratorNetwork:
    """Train a generator on released numbers; return it in plain arrays."""
    chance, classes = secret_generator(), len(matching.weights)
    trunk = _Trunk(how.codes, how.hidden, how.scale, torch.from_numpy(start), chance)
    learnt = [*trunk.parameters(), *matching.parameters]
    optimiser = torch.optim.Adam(learnt, lr=how.learning_rate, betas=(0.9, 0.99))
    pace = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _pace(step, how.steps))
    for _ in range(how.steps):
        loss = _loss(matching, trunk(*_inputs(classes, how.rows_per_class, how.codes, chance)), chance)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        pace.step()
        tell("")
    return trunk.settled(*_inputs(classes, _SETTLING * how.rows_per_class, how.codes, chance))


def _pace(step: int, steps: int) -> float:
    return min(1.0, (step + 1) / _WARM, 3 * (1 - step / steps))


def _inputs(classes: int, rows: int, codes: int, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw codes for so many rows of each class, one class after the other."""
    drawn = torch.empty(classes * rows, codes).normal_(generator=chance)
    return drawn, torch.eye(classes).repeat_interleave(rows, dim=0)


def _loss(matching: Matching, outputs: Tensor, chance: torch.Generator) -> Tensor:
    """Return the squared distance of the features' means, without the part that a small batch adds.

    A batch's mean lies apart from the generator's by its variance over the number of rows. Left in, that part rewards
    generators whose rows are all alike.
    """
    picked, wanted = matching.pick(chance)
    found = matching.features(outputs, picked, chance)
    variance, mean = torch.var_mean(found, dim=1)
    apart = ((mean - wanted) ** 2 - variance / found.shape[1]).sum(dim=1)
    return (matching.weights * apart).sum() / matching.weights.sum()
