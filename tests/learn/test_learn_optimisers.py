"""What follows the noise: averages, projections and an optimiser that knows the noise's variance."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.noisy_step import Box, DPAdamBC, L2Ball, WeightAverage


def test_an_average_warms_up_to_its_decay():
    weight = torch.zeros(1)
    average = WeightAverage([weight], 0.5)
    expected = 0.0
    for step in range(30):
        weight.fill_(step + 1.0)
        average.update([weight])
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * (step + 1)
        assert average.averages[0].item() == pytest.approx(expected, rel=1e-5)
    assert (1 + 0) / (10 + 0) < 0.5 < (1 + 29) / (10 + 29)  # Both parts of the minimum were met.


def test_an_average_is_a_copy():
    weight = torch.ones(2)
    average = WeightAverage([weight], 0.9)
    weight.zero_()
    assert average.averages[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("decay", [0, 1, -0.1, 1.5, math.nan])
def test_a_decay_that_is_none_is_refused(decay):
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        WeightAverage([torch.ones(1)], decay)


def test_a_ball_shrinks_all_weights_by_one_factor():
    weights = [torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])]
    L2Ball(1).apply(weights)
    assert torch.cat([weight.flatten() for weight in weights]).tolist() == pytest.approx([0.6, 0.0, 0.8])
    L2Ball(2).apply(weights)  # What is inside stays where it is.
    assert torch.cat([weight.flatten() for weight in weights]).tolist() == pytest.approx([0.6, 0.0, 0.8])


def test_a_box_clamps_every_weight():
    weights = [torch.tensor([-3.0, 0.25, 7.0])]
    Box(-1, 0.5).apply(weights)
    assert weights[0].tolist() == [-1.0, 0.25, 0.5]


@pytest.mark.parametrize("make", [lambda: L2Ball(0), lambda: L2Ball(-1), lambda: Box(1, 1), lambda: Box(2, 1)])
def test_sets_without_an_inside_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def moved(noise: float, gradients: list[float], lr: float = 0.1) -> float:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = DPAdamBC([weight], lr=lr)
    optimizer.expect_noise(noise)
    for gradient in gradients:
        weight.grad = torch.tensor([gradient])
        optimizer.step()
    return weight.item()


def test_without_noise_it_is_adam():
    weight = nn.Parameter(torch.zeros(1))
    plain = torch.optim.Adam([weight], lr=0.1, eps=0)
    gradients = [0.5, -0.25, 1.0, 2.0, 0.125]
    for gradient in gradients:
        weight.grad = torch.tensor([gradient])
        plain.step()
    assert moved(0.0, gradients) == pytest.approx(weight.item(), rel=1e-5)


def test_the_variance_of_the_noise_is_taken_off_the_second_moment():
    # With g = 5 and noise of variance 16 the corrected moment is 25 - 16 = 9: a step of lr * 5 / 3.
    assert moved(16.0, [5.0]) == pytest.approx(-0.1 * 5 / 3, rel=1e-5)
    assert moved(16.0, [5.0]) != pytest.approx(-0.1, rel=1e-2)  # Which is what plain Adam does.


def test_where_nothing_is_left_the_floor_holds_the_step():
    assert moved(25.0, [3.0]) == pytest.approx(-0.1 * 3 / (0.2 * 5), rel=1e-5)


def test_gradients_below_the_noise_move_weights_as_fast_as_they_would_without_it():
    """The gradient is 0.5 under noise of deviation 1: Adam divides by 1.1, the corrected one by 0.5."""
    generator = torch.Generator().manual_seed(7)
    plain, corrected = (nn.Parameter(torch.zeros(2000)) for _ in range(2))
    optimizers = torch.optim.Adam([plain], lr=0.01), DPAdamBC([corrected], lr=0.01)
    optimizers[1].expect_noise(1.0)
    for _ in range(200):
        plain.grad = corrected.grad = 0.5 + torch.randn(2000, generator=generator)
        for optimizer in optimizers:
            optimizer.step()
    assert 1.5 * -plain.mean() < -corrected.mean()


def test_it_refuses_to_guess_the_noise_and_what_is_no_optimiser():
    optimizer = DPAdamBC([nn.Parameter(torch.zeros(1))])
    with pytest.raises(Refused, match="make_private"):
        optimizer.step()
    for wrong in ({"lr": -1}, {"betas": (1.0, 0.9)}, {"floor": 0}, {"lr": math.nan}):
        with pytest.raises(InvalidParameter):
            DPAdamBC([nn.Parameter(torch.zeros(1))], **wrong)
