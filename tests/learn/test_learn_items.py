"""Items whose numbers have another type than the example's are trained on: left out in silence, nobody would learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discreet.learn.torch.batches import read_rows

EXAMPLE = (torch.zeros(2), 0)


class Items:
    def __init__(self, item) -> None:
        self.item = item

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int):
        return self.item


@pytest.mark.parametrize(
    "item",
    [
        (np.array([1.0, 2.0]), 1),  # float64, as NumPy has it
        (np.array([1, 2]), np.int32(1)),
        (torch.tensor([1.0, 2.0], dtype=torch.float16), True),
    ],
)
def test_numbers_of_another_type_are_the_same_row(item):
    (x, y), inside = read_rows(Items(item), example=EXAMPLE).batch(np.array([0]), np.array([True]))
    assert inside.tolist() == [True]
    assert (x.tolist(), y.tolist()) == ([[1.0, 2.0]], [1])
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)


@pytest.mark.parametrize("item", [(torch.zeros(3), 1), (torch.zeros(2), 0.5), torch.zeros(2), (torch.zeros(2) * 1j, 1)])
def test_what_cannot_be_the_row_that_was_declared_counts_for_nothing(item):
    (x, _), inside = read_rows(Items(item), example=EXAMPLE).batch(np.array([0]), np.array([True]))
    assert inside.tolist() == [False]
    assert x.tolist() == [[0.0, 0.0]]
