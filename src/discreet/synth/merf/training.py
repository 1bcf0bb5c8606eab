"""Train a generator until its features match the released ones. Any number of steps: it costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, final

import torch
from torch import Tensor, nn

from discreet.learn.torch.secret_chance import secret_generator
from discreet.synth.merf.how import Training
from discreet.synth.merf.network import Network

__all__ = ["Matching", "train"]

_WARM = 20  # Steps over which the learning rate rises; over the last third it falls.
_TINY = 1e-5
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
    """Two hidden layers, each brought to mean 0 and deviation 1 over a batch before it is cut at zero."""

    def __init__(self, inputs: int, hidden: int, outputs: int, scale: float, start: Tensor, chance: torch.Generator):
        super().__init__()
        self.first, self.second = (
            nn.Parameter(torch.empty(size, hidden).normal_(0, size**-0.5, generator=chance))
            for size in (inputs, hidden)
        )
        self.gains = nn.Parameter(torch.ones(2, hidden))
        self.shifts = nn.Parameter(torch.zeros(2, hidden))
        self.last = nn.Parameter(torch.empty(hidden, outputs).normal_(0, scale * hidden**-0.5, generator=chance))
        self.last_start = nn.Parameter(start.clone())

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = torch.relu(self._even(inputs @ self.first, 0))
        hidden = torch.relu(self._even(hidden @ self.second, 1))
        return hidden @ self.last + self.last_start

    def _even(self, hidden: Tensor, layer: int) -> Tensor:
        variance, mean = torch.var_mean(hidden, dim=0, correction=0)
        return (hidden - mean) * torch.rsqrt(variance + _TINY) * self.gains[layer] + self.shifts[layer]

    @torch.no_grad()
    def settled(self, inputs: Tensor) -> Network:
        """Return a plain network whose hidden layers keep the means and deviations of these many inputs."""
        parts: list[Tensor] = []
        hidden = inputs
        for layer, weights in enumerate((self.first, self.second)):
            variance, mean = torch.var_mean(hidden @ weights, dim=0, correction=0)
            gain = torch.rsqrt(variance + _TINY) * self.gains[layer]
            parts += [weights * gain, self.shifts[layer] - mean * gain]
            hidden = torch.relu(hidden @ parts[-2] + parts[-1])
        return Network(*(part.numpy().copy() for part in (*parts, self.last, self.last_start)))


def train(
    matching: Matching, how: Training, *, scale: float, start: Sequence[float], tell: Callable[[str], None]
) -> Network:
    """Train a generator on released numbers; return it in plain arrays."""
    chance, classes = secret_generator(), len(matching.weights)
    trunk = _Trunk(how.codes + classes, how.hidden, len(start), scale, torch.tensor(start), chance)
    learnt = [*trunk.parameters(), *matching.parameters]
    optimiser = torch.optim.Adam(learnt, lr=how.learning_rate, betas=(0.9, 0.99))
    pace = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _pace(step, how.steps))
    for _ in range(how.steps):
        loss = _loss(matching, trunk(_inputs(classes, how, chance)), chance)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        pace.step()
        tell("")
    return trunk.settled(torch.cat([_inputs(classes, how, chance) for _ in range(_SETTLING)]))


def _pace(step: int, steps: int) -> float:
    return min(1.0, (step + 1) / _WARM, 3 * (1 - step / steps))


def _inputs(classes: int, how: Training, chance: torch.Generator) -> Tensor:
    codes = torch.empty(classes * how.rows_per_class, how.codes).normal_(generator=chance)
    return torch.cat([codes, torch.eye(classes).repeat_interleave(how.rows_per_class, dim=0)], dim=1)


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
