"""LSTM, GRU and RNN from Linear cells compute what torch's own do, and save and load the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from discreet.errors import Refused
from discreet.learn.torch.layers.recurrent import Recurrent, RecurrentCell

torch.set_num_threads(1)

LAYERS = {
    "lstm": lambda **o: nn.LSTM(4, 6, **o),
    "gru": lambda **o: nn.GRU(4, 6, **o),
    "tanh": lambda **o: nn.RNN(4, 6, **o),
    "relu": lambda **o: nn.RNN(4, 6, nonlinearity="relu", **o),
    "projected lstm": lambda **o: nn.LSTM(4, 6, proj_size=3, **o),
}
OPTIONS = {
    "one layer": {},
    "batch first": {"batch_first": True},
    "two layers, both ways": {"num_layers": 2, "bidirectional": True},
    "no bias": {"bias": False},
}
CELLS = (nn.LSTMCell, nn.GRUCell, nn.RNNCell)


def pair(name: str, options: str) -> tuple[nn.RNNBase, Recurrent]:
    plain, copied = (LAYERS[name](**OPTIONS[options]).double() for _ in range(2))
    copied.load_state_dict(plain.state_dict())
    return plain, Recurrent(copied)


def flat(output) -> list[torch.Tensor]:
    return [output] if isinstance(output, torch.Tensor) else [part for piece in output for part in flat(piece)]


def same(plain: nn.Module, ours: nn.Module, *given) -> None:
    wanted, got = flat(plain(*given)), flat(ours(*given))
    for first, second in zip(wanted, got, strict=True):
        torch.testing.assert_close(second, first, rtol=0, atol=1e-12)
    saved = ours.state_dict(keep_vars=True)
    names = [name for name, _ in plain.named_parameters()]
    first = torch.autograd.grad(sum(part.square().sum() for part in wanted), list(plain.parameters()))
    second = torch.autograd.grad(sum(part.square().sum() for part in got), [saved[name] for name in names])
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("options", OPTIONS)
def test_recurrent_layers_agree_with_torch_forward_and_backward(name, options):
    plain, ours = pair(name, options)
    x = torch.randn(5, 3, 4, dtype=torch.float64)
    same(plain, ours, x)
    start = tuple(torch.randn_like(part) for part in flat(plain(x)[1]))
    same(plain, ours, x, start if plain.mode == "LSTM" else start[0])


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_plain_checkpoint_loads_and_what_is_saved_is_plain(name, options):
    plain, ours = pair(name, options)
    assert list(ours.state_dict()) == list(plain.state_dict())
    other = LAYERS[name](**OPTIONS[options]).double()
    assert not any(ours.load_state_dict(other.state_dict()))
    x = torch.randn(5, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(ours(x)[0], other(x)[0])
    assert {id(p) for p in Recurrent(other).parameters()} == {id(p) for p in other.parameters()}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_cells_agree_with_torch(kind, bias):
    plain, copied = (kind(4, 6, bias=bias).double() for _ in range(2))
    copied.load_state_dict(plain.state_dict())
    ours = RecurrentCell(copied)
    x = torch.randn(3, 4, dtype=torch.float64)
    same(plain, ours, x)
    state = torch.randn(3, 6, dtype=torch.float64)
    same(plain, ours, x, (state, state + 1) if kind is nn.LSTMCell else state)
    assert list(ours.state_dict()) == list(plain.state_dict())
    ours.load_state_dict(plain.state_dict())


def test_dropout_between_layers_is_there_in_training_only():
    ours = Recurrent(nn.LSTM(4, 6, 2, dropout=0.5))
    x = torch.randn(5, 3, 4)
    assert not torch.equal(ours(x)[0], ours(x)[0])
    ours.eval()
    assert torch.equal(ours(x)[0], ours(x)[0])


def test_what_is_no_batch_is_refused():
    ours = Recurrent(nn.GRU(4, 6))
    with pytest.raises(Refused, match="2 dimensions"):
        ours(torch.zeros(5, 4))
    packed = pack_padded_sequence(torch.zeros(5, 3, 4), torch.tensor([5, 4, 2]))
    with pytest.raises(Refused, match="PackedSequence"):
        ours(packed)
