"""Noise that a model draws for each row: secret, independent, alike for all slots, and never shared."""

from __future__ import annotations

import math

import pytest
import torch
from learn_zoo import PLAIN, ROWS, Between, cross_entropy
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.layers import SecretNormal, prepare, probe


class Noisy(nn.Module):
    """Adds noise to what it gets, as `made` makes it of the rows and the layer that draws."""

    def __init__(self, made=lambda layer, x: layer(x)) -> None:
        super().__init__()
        self.draws, self.made = SecretNormal(8), made

    def forward(self, x: Tensor) -> Tensor:
        return x + self.made(self.draws, x)


def shared(layer: SecretNormal, x: Tensor) -> Tensor:
    """Every row gets the noise of the first."""
    return layer(x)[:1]


def mixed(layer: SecretNormal, x: Tensor) -> Tensor:
    """Every row gets a part of the noise of its neighbour."""
    drawn = layer(x)
    return drawn + drawn.roll(1, 0)


def by_place(layer: SecretNormal, x: Tensor) -> Tensor:
    """Later rows get more noise."""
    return layer(x) * (1 + torch.arange(len(x)))[:, None]


def too_few(layer: SecretNormal, x: Tensor) -> Tensor:
    """One draw for all."""
    return layer(x[:1])


def again_backwards(layer: SecretNormal, x: Tensor) -> Tensor:
    drawn: Tensor = checkpoint(lambda rows: layer(rows) * rows, x, use_reentrant=False)
    return drawn


def test_noise_of_each_row_goes_through_the_trial_and_leaves_torchs_generator_alone():
    model, state = Between(Noisy()), torch.get_rng_state()
    assert probe(prepare(model).model, cross_entropy, PLAIN, ROWS).layers == ("first", "between.draws", "last")
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (shared, "mixed at"),
        (mixed, "mixed at"),
        (by_place, "by its place"),
        (too_few, "gets a tensor of shape"),
        (again_backwards, "drawn a second time"),
    ],
)
def test_noise_that_rows_share_or_that_knows_its_place_is_refused(made, found):
    with pytest.raises(Refused, match=found):
        probe(Between(Noisy(made)), cross_entropy, PLAIN, ROWS)


def test_the_same_rows_get_other_noise_each_time_even_from_one_torch_seed():
    layer, drawn = SecretNormal(3), []
    for _ in range(2):
        torch.manual_seed(1)
        drawn.append(layer(torch.ones(50, 2)))
    assert drawn[0].shape == (50, 3)
    assert not torch.equal(*drawn)


@pytest.mark.statistical
def test_draws_follow_the_normal_law():
    """Kolmogorov's distance of 400,000 draws beyond 3.4 / sqrt(n) has probability 2 exp(-2 * 3.4^2) < 1e-9."""
    drawn = SecretNormal(4, 100)(torch.ones(1000, 1))
    values = drawn.flatten().double().sort().values
    steps = torch.arange(1, len(values) + 1) / len(values)

    def distance(scale: float) -> float:
        return float((torch.special.ndtr(values / scale) - steps).abs().max()) * math.sqrt(len(values))

    assert distance(1.0) < 3.4
    assert distance(0.97) > 3.4
    assert distance(1.03) > 3.4
    # Fields of one word are independent: so are neighbours, of which the product has mean 0 and variance 1.
    pairs = drawn.double().reshape(-1, 4)
    for one, other in ((0, 1), (0, 3), (1, 2), (2, 3)):
        assert abs(float((pairs[:, one] * pairs[:, other]).mean())) * math.sqrt(len(pairs)) < 6.2


def test_shapes_must_be_whole_numbers():
    with pytest.raises(InvalidParameter, match="sizes"):
        SecretNormal(3, 0)
