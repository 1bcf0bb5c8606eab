"""Rows become batches of one public shape, each row by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.batches import ItemRows, TensorRows, read_rows

X = torch.arange(12.0).reshape(6, 2)
Y = torch.arange(6)


class Items(Dataset):
    """Rows as people have them: an array and a class."""

    def __init__(self, rows: int = 6) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int):
        return X[index].numpy(), int(Y[index])


def slots(*indices: int):
    chosen = np.array(indices)
    return chosen, chosen >= 0


@pytest.mark.parametrize("dataset", [(X, Y), [X, Y], TensorDataset(X, Y), (X.numpy(), Y.numpy())])
def test_tensors_arrays_and_data_sets_of_them_are_the_same_rows(dataset):
    rows = read_rows(dataset)
    (x, y), inside = rows.batch(*slots(4, 1))
    assert isinstance(rows, TensorRows)
    assert rows.size == 6
    assert x.tolist() == [[8.0, 9.0], [2.0, 3.0]]
    assert y.tolist() == [4, 1]
    assert inside.all()


def test_items_are_the_same_rows_as_tensors():
    items = read_rows(Items(), example=(np.ones(2, np.float32), 3))
    for chosen in (slots(4, 1, 5), slots(2, -1, -1), slots(-1, -1, -1)):
        (x, y), inside = items.batch(*chosen)
        (x2, y2), inside2 = read_rows((X, Y)).batch(*chosen)
        assert torch.equal(x, x2)
        assert torch.equal(y, y2)
        assert inside.tolist() == inside2.tolist() == chosen[1].tolist()


@pytest.mark.parametrize("rows", [read_rows((X, Y)), read_rows(Items(), example=(np.ones(2, np.float32), 1))])
def test_slots_without_a_record_are_rows_of_zeros(rows):
    (x, y), inside = rows.batch(*slots(3, -1, -1))
    assert inside.tolist() == [True, False, False]
    assert x.tolist() == [[6.0, 7.0], [0.0, 0.0], [0.0, 0.0]]
    assert y.tolist() == [3, 0, 0]
    assert [part.shape for part in rows.blank(5)] == [(5, 2), (5,)]
    assert not any(part.any() for part in rows.blank(5))


def test_an_empty_data_set_has_batches_of_the_same_shape():
    rows = read_rows((X[:0], Y[:0]))
    (x, _), inside = rows.batch(*slots(-1, -1))
    assert rows.size == 0
    assert x.shape == (2, 2)
    assert not inside.any()


def test_an_item_of_another_shape_counts_as_blank_and_harms_no_other():
    class Odd(Items):
        def __getitem__(self, index: int):
            return (np.zeros(3, np.float32), 1) if index == 2 else super().__getitem__(index)

    (x, y), inside = read_rows(Odd(), example=(np.ones(2, np.float32), 1)).batch(*slots(1, 2, 3))
    assert inside.tolist() == [True, False, True]
    assert x.tolist() == [[2.0, 3.0], [0.0, 0.0], [6.0, 7.0]]
    assert y.tolist() == [1, 0, 3]


def test_a_collate_function_sees_one_row_at_a_time():
    seen = []

    def collate(rows):
        seen.append(len(rows))
        return torch.tensor([row[0] for row in rows]), torch.tensor([row[1] for row in rows])

    rows = read_rows([(1.0, 2.0), (3.0, 4.0)], collate=collate, example=(0.0, 0.0))
    (x, y), _ = rows.batch(*slots(1, 0))
    assert isinstance(rows, ItemRows)
    assert set(seen) == {1}
    assert (x.tolist(), y.tolist()) == ([3.0, 1.0], [4.0, 2.0])


def test_dictionaries_inside_rows_are_kept():
    rows = read_rows(({"words": X, "mask": X > 3}, Y))
    (x, _), _ = rows.batch(*slots(1, -1))
    assert x["words"].tolist() == [[2.0, 3.0], [0.0, 0.0]]
    assert x["mask"].tolist() == [[False, False], [False, False]]


def test_foreign_samplers_and_streams_are_refused_with_a_way_out():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(())

    with pytest.raises(Refused, match=r"way out: hand over loader\.dataset"):
        read_rows(DataLoader(TensorDataset(X, Y)))
    with pytest.raises(Refused, match="rows must have numbers"):
        read_rows(Stream(), example=(X[0], 0))


def test_items_are_not_read_for_their_shapes():
    class Secret(Items):
        def __getitem__(self, index: int):
            raise AssertionError("nothing is read before it is paid")

    assert read_rows(Secret(), example=(np.ones(2, np.float32), 1)).size == 6
    with pytest.raises(Refused, match="example"):
        read_rows(Secret())


def test_rows_without_one_shape_are_refused_in_words_without_data():
    with pytest.raises(InvalidParameter, match="same number of rows"):
        read_rows((X, Y[:3]))
    with pytest.raises(InvalidParameter, match="first dimension"):
        read_rows((X, torch.tensor(1)))
    with pytest.raises(Refused, match="turn texts"):
        read_rows(Items(), example=("word", 1))
