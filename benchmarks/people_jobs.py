"""The table of the topic "people": made-up people with twenty rows each, and what is asked of those who train on it."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

__all__ = [
    "BATCH",
    "DELTA",
    "EACH",
    "EPSILONS",
    "PEOPLE",
    "SEEDS",
    "STEPS",
    "TRIED",
    "PeopleTable",
    "network",
    "people_table",
    "right",
]

OTHERS: Final = 2_000  # people to be tested on
PEOPLE: Final = 500
EACH: Final = 20  # rows of a person
FEATURES: Final = 20
EPSILONS: Final = (1, 4)  # for a person with all their rows
DELTA: Final = 1e-4
BATCH: Final = 100  # people expected in a step, or a fifth of the rows
STEPS: Final = 100
# Clips and learning rates, of which everybody's best is told: a step moves the weights by rate / clip times a gradient.
TRIED: Final = tuple((clip, rate / clip) for clip in (0.1, 1.0) for rate in (0.25, 1.0))
SEEDS: Final = 3


class PeopleTable(NamedTuple):
    """Rows, classes and whose they are, and rows of other people to be tested on."""

    x: Tensor
    y: Tensor
    ids: Tensor
    test_x: Tensor
    test_y: Tensor


def people_table(seed: int) -> PeopleTable:
    """Make people whose rows have a fifth of their variance in common; one class in ten is wrong."""
    drawn = torch.Generator().manual_seed(seed)
    count = PEOPLE + OTHERS
    centres = torch.randn(count, 1, FEATURES, generator=drawn)
    x = (centres * 0.2**0.5 + torch.randn(count, EACH, FEATURES, generator=drawn) * 0.8**0.5).flatten(0, 1)
    scores = x @ torch.linspace(-1, 1, FEATURES) + x[:, 0] * x[:, 1]
    y = ((scores > 0) ^ (torch.rand(len(x), generator=drawn) < 0.1)).long()
    cut = PEOPLE * EACH
    ids = torch.arange(PEOPLE).repeat_interleave(EACH)
    return PeopleTable(x[:cut], y[:cut], ids, x[cut:], y[cut:])


def network(seed: int) -> nn.Module:
    """The same weights for everybody to begin from."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 2))


@torch.no_grad()
def right(model: nn.Module, table: PeopleTable) -> float:
    """Return the share of rows of other people that are classified right."""
    return float((model(table.test_x).argmax(1) == table.test_y).float().mean())
