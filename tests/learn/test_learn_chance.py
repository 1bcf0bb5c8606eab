"""Chance that a run meets in its rows is secret, whatever seeds the world knows.

A record that is added sends another one to the last slot. If the slot decided how that one is varied, one record would
move the sum by three contributions instead of one.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from discreet.learn.secret_chance import renew_torch_generator
from discreet.learn.torch import make_private

DRAWS = {
    "torch": lambda: torch.rand(4),
    "numpy": lambda: torch.from_numpy(np.random.rand(4)).float(),
    "python": lambda: torch.tensor([random.random() for _ in range(4)]),
}


class Varied(Dataset):
    """Items that are varied while they are read, as transforms of pictures are."""

    def __init__(self, drawn) -> None:
        self.drawn = drawn

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int):
        return self.drawn(), 0


def know_all_seeds() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)


def first_batch(drawn):
    model = nn.Linear(4, 2)
    private = make_private(
        model, torch.optim.SGD(model.parameters(), lr=1.0), Varied(drawn), loss=nn.CrossEntropyLoss(reduction="none"),
        noise_multiplier=1, delta=1e-5, public_rows=8, batch_size=8, steps=1, physical_batch=32,
        example=(torch.zeros(4), 0),
    )  # fmt: skip
    know_all_seeds()
    return next(private.batches())[0]


@pytest.mark.parametrize("drawn", DRAWS.values(), ids=DRAWS.keys())
def test_a_seed_that_the_world_knows_does_not_decide_how_items_are_varied(drawn):
    assert not torch.equal(first_batch(drawn), first_batch(drawn))


def test_no_number_that_was_drawn_before_is_handed_out_afterwards():
    """The normal numbers of torch come in pairs, and the second waits in the state of the generator."""
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        torch.randn(1)
        renew_torch_generator()
        found.append(float(torch.randn(())))
    assert found[0] != found[1]
