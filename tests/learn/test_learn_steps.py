"""What moves weights is noisy gradients alone, and what is told about them errs upwards only."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
import torch
from torch import nn

from discreet.errors import Refused
from discreet.learn.torch import make_private
from discreet.learn.torch.clipping.clipped_sums import ClippedSums, check_arithmetic
from discreet.learn.torch.progress import StepsSpent
from discreet.privacy import PureDP

X = torch.linspace(-1, 1, 32).reshape(8, 4)
Y = (X.sum(1) > 0).long()
LOSS = nn.CrossEntropyLoss(reduction="none")


def test_gradients_that_somebody_left_on_frozen_weights_move_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    LOSS(model(X), Y).sum().backward()  # A try without privacy, then the first layer is frozen.
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    make_private(
        model, optimizer, (X, Y), loss=LOSS, noise_multiplier=1, delta=1e-5, public_rows=8, batch_size=8, steps=1,
        physical_batch=32,
    ).fit(progress=False)  # fmt: skip
    assert torch.equal(model[0].weight, before)


@pytest.mark.parametrize("epsilon", [1.70749, 2.00001, 0.99999, 3.0])
def test_an_epsilon_is_never_told_too_small(epsilon):
    told = str(StepsSpent(steps=5, event=PureDP(1), epsilon=epsilon, delta=1e-5))
    assert Decimal(told.split()[2]) >= Decimal(epsilon)


@pytest.mark.parametrize("name", ["ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"])
def test_half_precision_that_the_environment_asks_for_is_refused(monkeypatch, name):
    monkeypatch.setenv(name, "strict")
    check_arithmetic()
    monkeypatch.setenv(name, "BF16")
    with pytest.raises(Refused, match="less precision"):
        check_arithmetic()


def test_half_precision_that_is_set_in_the_new_way_is_refused_in_our_words():
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        with pytest.raises(Refused, match="less precision"):
            check_arithmetic()
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = "none"
    check_arithmetic()


def test_a_sum_that_is_too_long_does_not_tell_how_many_batches_there_were():
    sums = ClippedSums(nn.Linear(4, 2), clip=2**40, grid=Fraction(1, 2), physical_batch=32)
    sums._batches = 98_765
    with pytest.raises(Refused) as refused:
        sums._make_room()
    assert "98" not in str(refused.value)
