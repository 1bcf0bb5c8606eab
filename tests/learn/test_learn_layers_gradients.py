"""Each row's gradient through rebuilt layers is what torch's own layers give for that row alone."""

from __future__ import annotations

import copy

import pytest
import torch
from learn_zoo import SIGNAL, WORDS, LastOf, Transformer, cross_entropy
from torch import Tensor, nn

from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers import Constant, prepare

torch.set_num_threads(1)

ROWS, GRID, CLIP = 8, 2.0**-30, 2**10


class Mixing(nn.Module):
    """Attention of a signal to itself, or to another width and back."""

    def __init__(self, **options) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, **options)
        self.other = nn.Linear(4, self.attention.kdim)
        self.head, self.to_itself = nn.Linear(4, 3), not options

    def forward(self, x: Tensor) -> Tensor:
        other = x if self.to_itself else self.other(x)
        return self.head(self.attention(x, other, other, need_weights=False)[0].mean(dim=1))


class ViaCells(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell, self.head = cell, nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = self.cell(x[:, 0])
        for moment in range(1, x.shape[1]):
            state = self.cell(x[:, moment], state)
        return self.head(state if isinstance(state, Tensor) else state[0])


MODELS = {
    "transformer": (lambda: Transformer(dropout=0.0), WORDS),
    "transformer, time first": (lambda: Transformer(dropout=0.0, batch_first=False), WORDS),
    "self attention": (lambda: Mixing(), SIGNAL),
    "cross attention, other widths": (lambda: Mixing(kdim=5, vdim=5), SIGNAL),
    "extra rows": (lambda: Mixing(add_bias_kv=True, add_zero_attn=True, bias=False), SIGNAL),
    "lstm": (lambda: LastOf(nn.LSTM(4, 6, 2, batch_first=True), 6), SIGNAL),
    "projected lstm": (lambda: LastOf(nn.LSTM(4, 6, proj_size=2, batch_first=True), 2), SIGNAL),
    "gru, both ways": (lambda: LastOf(nn.GRU(4, 6, bidirectional=True, batch_first=True), 12), SIGNAL),
    "rnn": (lambda: LastOf(nn.RNN(4, 6, batch_first=True), 6), SIGNAL),
    "lstm cells": (lambda: ViaCells(nn.LSTMCell(4, 6)), SIGNAL),
    "gru cells": (lambda: ViaCells(nn.GRUCell(4, 6)), SIGNAL),
}


def rows_like(example: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    x, _ = example
    y = torch.arange(ROWS) % 3
    return (torch.randn(ROWS, *x.shape) if x.is_floating_point() else torch.randint(0, 10, (ROWS, *x.shape))), y


def summed(model: nn.Module, x: Tensor, y: Tensor, inside: Tensor) -> dict[int, Tensor]:
    sums = ClippedSums(model, clip=CLIP, grid=GRID, physical_batch=ROWS)
    sums.add(cross_entropy(model(x), y), inside)
    parts = (torch.from_numpy(sums.take().whole()) * GRID).split([p.numel() for p in sums.parameters])
    sums.close()
    return {id(p): part.reshape(p.shape).float() for p, part in zip(sums.parameters, parts, strict=True)}


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_of_a_row_agrees_with_torch_own_layers(name):
    make, example = MODELS[name]
    plain = make()
    ours = prepare(copy.deepcopy(plain)).model
    x, y = rows_like(example)
    own = ours.state_dict(keep_vars=True)
    for row in (0, ROWS - 1):
        found = summed(ours, x, y, torch.arange(ROWS) == row)
        loss = cross_entropy(plain(x[row : row + 1]), y[row : row + 1]).sum()
        names, weights = zip(*plain.named_parameters(), strict=True)
        for path, gradient in zip(names, torch.autograd.grad(loss, weights, allow_unused=True), strict=True):
            wanted = torch.zeros_like(own[path]) if gradient is None else gradient
            torch.testing.assert_close(found[id(own[path])], wanted, rtol=1e-5, atol=1e-7)


def test_a_constant_spares_the_second_run_of_a_model_that_owns_a_parameter():
    class WithToken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.drop, self.head = (
                Constant(nn.Parameter(torch.randn(1, 4))),
                nn.Dropout(0.5),
                nn.Linear(4, 3),
            )

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.drop(torch.cat([x, self.token(x)], dim=1)).mean(dim=1))

    model = prepare(WithToken()).model
    x, y = rows_like(SIGNAL)
    assert len(summed(model, x, y, torch.ones(ROWS, dtype=torch.bool))) == 3
    model.eval()
    found = summed(model, x, y, torch.arange(ROWS) == 2)
    (wanted,) = torch.autograd.grad(cross_entropy(model(x), y)[2], [model.token.value])
    torch.testing.assert_close(found[id(model.token.value)], wanted, rtol=1e-5, atol=1e-7)
