"""The probe refuses models that mix rows, and lets honest ones pass."""

from __future__ import annotations

import pytest
import torch
from learn_zoo import BAD, BAD_LOSSES, GOOD, PLAIN, ROWS, Between, Padded, cross_entropy, longest
from torch import nn
from torch.nn import functional

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.layers import prepare, probe

# As many rows as the widest vector unit takes at once: of fewer, the last ones are computed in another way (AVX-512).
EVEN_ROWS = 32


@pytest.mark.parametrize("name", GOOD)
def test_honest_models_pass(name):
    make, example = GOOD[name]
    model = prepare(make()).model
    probed = probe(model, cross_entropy, example, EVEN_ROWS)
    trained = {
        path.rpartition(".")[0] or "the model" for path, weight in model.named_parameters() if weight.requires_grad
    }
    assert trained <= set(probed.layers)


@pytest.mark.parametrize("name", BAD)
def test_models_that_mix_rows_are_refused_with_a_way_out(name):
    make, example, words = BAD[name]
    with pytest.raises(Refused, match=words) as told:
        probe(prepare(make()).model, cross_entropy, example, ROWS)
    assert told.value.reason
    assert told.value.way_out


@pytest.mark.parametrize("name", BAD_LOSSES)
def test_losses_that_mix_rows_are_refused_with_a_way_out(name):
    loss, words = BAD_LOSSES[name]
    with pytest.raises(Refused, match=words) as told:
        probe(Between(torch.tanh), loss, PLAIN, ROWS)
    assert told.value.way_out


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 16])
def test_every_pair_of_slots_is_told_apart_for_all_sizes(rows):
    """Mix one pair only: it is found, whichever pair it is."""
    probe(Between(torch.tanh), cross_entropy, PLAIN, rows)
    for pair in [(0, rows - 1), (rows - 1, 0), (rows // 2, 0)] if rows > 1 else []:
        mix = torch.zeros(rows, rows)
        mix[pair] = 1.0
        model = Between(lambda x, mix=mix: x + mix @ x.detach())
        with pytest.raises(Refused, match="mixed at"):
            probe(model, cross_entropy, PLAIN, rows)


class _Words(nn.Module):
    """Words and positions, with a head that begins at zero: no gradient shows yet which way it would go."""

    def __init__(self, positions, add):
        super().__init__()
        self.words, self.positions, self.head = nn.Embedding(5, 4), positions, nn.Linear(4, 2, bias=False)
        self.gate, self.add = nn.Parameter(torch.zeros(1, 1, 4)), add
        nn.init.zeros_(self.head.weight)

    def forward(self, x):
        return self.head(self.add(self, self.words(x)).mean(1))


WORDS = torch.zeros(3, dtype=torch.int64), torch.tensor(0)
ONCE = torch.arange(3)[None]
SHARED = {
    "the first copy of a parameter": (lambda: nn.Parameter(torch.zeros(1, 3, 4)), lambda net, h: h + net.positions[0]),
    "the first copy, behind what is off": (
        lambda: nn.Parameter(torch.zeros(1, 3, 4)),
        lambda net, h: torch.relu(0 * h + net.positions[0]),
    ),
    "the first copy of an embedding": (lambda: nn.Embedding(3, 4), lambda net, h: h + net.positions(ONCE)[0]),
    "a mean over rows, times zero": (lambda: None, lambda net, h: h + net.gate * h.mean(0, keepdim=True)),
}
EACH = {
    "a parameter": (lambda: nn.Parameter(torch.zeros(1, 3, 4)), lambda net, h: h + net.positions + net.gate),
    "an embedding": (lambda: nn.Embedding(3, 4), lambda net, h: h + net.positions(ONCE) + net.gate),
}


@pytest.mark.parametrize("name", SHARED)
def test_what_zero_weights_hide_so_far_is_refused(name):
    make, add = SHARED[name]
    with pytest.raises(Refused, match="mixed at"):
        probe(_Words(make(), add), cross_entropy, WORDS, ROWS)


@pytest.mark.parametrize("name", EACH)
def test_what_each_row_has_for_itself_passes_with_zero_weights(name):
    make, add = EACH[name]
    probe(_Words(make(), add), cross_entropy, WORDS, EVEN_ROWS)


def test_the_model_is_left_as_it_was():
    model = Between(nn.Dropout(0.5))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    drawn = torch.get_rng_state()
    probe(prepare(model).model, cross_entropy, PLAIN, ROWS)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(drawn, torch.get_rng_state())
    assert not any(module._forward_hooks for module in model.modules())


def test_values_of_the_example_are_not_used():
    """A label that no class has would stop the loss."""
    example = (torch.full((6,), float("nan")), torch.tensor(10**9))
    assert probe(Between(torch.tanh), cross_entropy, example, ROWS).layers == ("first", "last")


def test_public_rows_are_used_where_made_up_ones_do_not_fit():
    """Labels from 5 on: made-up ones would be refused by the loss."""

    def shifted(output, y):
        return functional.cross_entropy(output, y - 5, reduction="none")

    with pytest.raises(Refused, match="could not run"):
        probe(Between(torch.tanh), shifted, PLAIN, ROWS)
    with pytest.raises(InvalidParameter, match="two rows"):
        probe(Between(torch.tanh), shifted, PLAIN, ROWS, public=(torch.ones(1, 6), torch.tensor([5])))
    with pytest.raises(Refused, match="zeros"):  # Padding has labels of zero, and must not stop it either.
        probe(Between(torch.tanh), shifted, PLAIN, ROWS, public=(torch.ones(2, 6), torch.tensor([5, 6])))
    positive = Between(torch.tanh)
    public = (torch.ones(3, 6), torch.tensor([0, 1, 2]))
    assert probe(positive, cross_entropy, PLAIN, ROWS, public=public).physical_batch == ROWS


def test_models_with_several_inputs_are_called_as_a_loop_calls_them():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(3, 2), nn.Linear(4, 2)

        def forward(self, a, b):
            return self.left(a) * self.right(b)

    for x in ((torch.zeros(3), torch.zeros(4)), {"b": torch.zeros(4), "a": torch.zeros(3)}):
        assert probe(Two(), cross_entropy, (x, torch.tensor(0)), 4).layers == ("left", "right")


def test_what_was_tried_holds_only_as_it_was_tried():
    model = Between(torch.tanh)
    probed = probe(model, cross_entropy, PLAIN, ROWS)
    probed.require(model)
    model.eval()
    with pytest.raises(Refused, match="otherwise than it was tried"):
        probed.require(model)
    model.train()
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(Refused, match="otherwise"):
        probed.require(model)


def test_uneven_kernels_are_told_from_mixing():
    """A sum that differs in its last bits by the slot, as uneven work of threads makes it."""
    shift = torch.zeros(ROWS, 1)
    shift[-1] = 2**-23
    model = Between(lambda x: x * (1 + shift))
    with pytest.raises(Refused, match="multiple of 32"):
        probe(model, cross_entropy, PLAIN, ROWS)


@pytest.mark.parametrize("loss", [cross_entropy, nn.CrossEntropyLoss(reduction="none", ignore_index=2)])
def test_losses_that_leave_rows_out_one_by_one_pass(loss):
    probe(Between(torch.tanh), loss, PLAIN, ROWS)


def test_a_loss_that_needs_more_than_what_the_model_said_is_tried_with_all_of_it():
    """Its gradient by the weights exists only where the model runs."""
    model = Between(torch.tanh)

    def loss(output, y):
        torch.autograd.grad(output.sum(), model.last.weight, retain_graph=True)
        return cross_entropy(output, y) / (y != -100).sum()

    with pytest.raises(Refused, match="mixed at the loss"):
        probe(model, loss, PLAIN, ROWS)


def test_shapes_that_the_trial_has_not_seen_are_refused_while_it_trains():
    """Nobody names 17 as padding, so no made-up batch is full of it; the rows are."""
    model = Padded(lambda words, ids: words(ids[:, : longest(ids, 17)]).mean(1), None)
    ids = torch.full((64, 6), 17)
    ids[:, :2] = torch.arange(64)[:, None] % 16
    private = dp.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        (ids, torch.zeros(64, dtype=torch.int64)),
        loss=cross_entropy,
        noise_multiplier=1,
        delta=1e-5,
        batch_size=32,
        physical_batch=64,
        public_rows=64,
        steps=3,
    )
    # Full batches have rows with padding only; with an empty slot, which holds zeros, nothing is cut.
    handed = ids[:1].expand(64, 6)
    with pytest.raises(Refused, match="do not run as they did when it was tried") as told:
        private._parts.sums.add(cross_entropy(model(handed), torch.zeros(64, dtype=torch.int64)), torch.ones(64) > 0)
    assert "longest" in str(told.value.way_out)


def test_rows_of_64_bits_are_told_by_torchs_own_words_and_the_parameter_by_its_name():
    model, y = nn.Linear(3, 2), torch.zeros(8, dtype=torch.long)
    with pytest.raises(Refused, match=r"(?s)Double.*x\.float\(\).*watch=\(x, y\)") as told:
        dp.make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=1.0),
            (torch.zeros(8, 3).double(), y),
            loss=nn.CrossEntropyLoss(reduction="none"),
            epsilon=1,
            delta=1e-5,
            batch_size=4,
            public_rows=8,
            epochs=1,
        )
    assert "pass public=" not in str(told.value)
