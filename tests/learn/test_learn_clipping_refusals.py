"""What cannot be clipped record by record is refused, in words that say how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.clipping.layer_rules import has_rule
from discreet.learn.training.clip_rules import AdaptiveClip

GRID = Fraction(1, 1 << 24)
ALL = torch.ones(8, dtype=torch.bool)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)


def _sums(model: nn.Module) -> ClippedSums:
    return ClippedSums(model, clip=1, grid=GRID, physical_batch=8)


def _add(model: nn.Module, inputs: Tensor) -> Tensor:
    ours = _sums(model)
    ours.add(model(inputs).square().flatten(1).sum(1), ALL)
    return torch.from_numpy(ours.take().whole())


class Shared(nn.Module):
    """A weight that is used by a function, beside the layer that owns it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(torch.tanh(self.layer(x)), self.layer.weight)


class TimeFirst(nn.Module):
    """A layer that sees time in its first dimension; there are as many times as rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x.transpose(0, 1))
        return out.transpose(0, 1)


class Places(nn.Module):
    """Positions looked up once, without a dimension for rows."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Embedding(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.places(torch.arange(5))
        return out


class Chance(nn.Module):
    """A parameter of its own in a layer that draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(x * self.scale, 0.5)


class OneBefore(nn.Module):
    """Every record also looks at the one before it, and none at those farther off."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        return out + out.roll(1, 0)


class Scaled(nn.Module):
    """A layer with a parameter of its own, which is handed all records beside each one."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, others: Tensor) -> Tensor:
        return x * self.scale * others.sum()


class Sideways(nn.Module):
    """Records that lie in another dimension than the first."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = Scaled()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x, x.transpose(0, 1)[:3])
        return out


MIXING: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "in place": (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), (8, 4), "inplace=False"),
    "shared by a function": (Shared, (8, 4), "head.weight = embedding.weight"),
    "time first": (TimeFirst, (8, 8, 4), "batch first"),
    "places for all": (Places, (8, 5, 4), "expand"),
    "chance": (Chance, (8, 4), "torch.func"),
    "the record before": (OneBefore, (8, 4), "other records"),
    "records in another dimension": (Sideways, (8, 4), "row by row"),
    "running statistics": (
        lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
        (8, 4, 3),
        "track_running_stats=False",
    ),
    "mixed records": (lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, affine=False)), (8, 4), "other records"),
}


@pytest.mark.parametrize("name", MIXING)
def test_what_cannot_be_told_apart_by_record_is_refused(name: str) -> None:
    build, shape, advice = MIXING[name]
    with pytest.raises(Refused, match=advice):
        _add(build(), torch.randn(shape))


def test_inputs_changed_in_place_are_refused() -> None:
    model, inputs = nn.Linear(4, 2), torch.randn(8, 4)
    ours = _sums(model)
    losses = model(inputs).sum(1)
    inputs += 1
    with pytest.raises(Refused, match="in place"):
        ours.add(losses, ALL)


def test_embeddings_that_look_at_other_records_are_refused() -> None:
    for layer in (nn.Embedding(5, 3, max_norm=1.0), nn.Embedding(5, 3, scale_grad_by_freq=True)):
        with pytest.raises(Refused, match="max_norm=None"):
            _add(layer, torch.zeros(8, 2, dtype=torch.int64))


def test_losses_must_be_one_a_row_and_of_this_model() -> None:
    model, other = nn.Linear(4, 2), nn.Linear(4, 2)
    ours = _sums(model)
    with pytest.raises(InvalidParameter, match="reduction='none'"):
        ours.add(model(torch.randn(8, 4)).mean(), ALL)
    with pytest.raises(InvalidParameter, match="one bool"):
        ours.add(model(torch.randn(8, 4)).sum(1), torch.ones(8))
    ours.reset()
    with pytest.raises(Refused, match="do not come from a forward pass"):
        ours.add(other(torch.randn(8, 4)).sum(1), ALL)
    losses = model(torch.randn(8, 4)).sum(1)
    ours.add(losses, ALL)
    with pytest.raises(Refused, match="do not come from a forward pass"):
        ours.add(losses, ALL)
    with torch.no_grad(), pytest.raises(Refused, match="do not come from a forward pass"):
        ours.add(model(torch.randn(8, 4)).sum(1), ALL)


def test_public_parameters_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="power of two"):
        ClippedSums(nn.Linear(2, 2), clip=1, grid=Fraction(1, 10), physical_batch=8)
    with pytest.raises(InvalidParameter, match="physical_batch"):
        ClippedSums(nn.Linear(2, 2), clip=1, grid=GRID, physical_batch=0)
    with pytest.raises(Refused, match=r"model\.float"):
        ClippedSums(nn.Linear(2, 2).double(), clip=1, grid=GRID, physical_batch=8)
    with pytest.raises(Refused, match="no trainable parameters"):
        ClippedSums(nn.ReLU(), clip=1, grid=GRID, physical_batch=8)


def test_a_sum_that_could_leave_the_whole_numbers_is_refused() -> None:
    model = nn.Linear(4, 2)
    ours = ClippedSums(model, clip=1, grid=Fraction(1, 1 << 49), physical_batch=8)
    with pytest.raises(Refused, match="smaller batch_size"):
        ours.add(model(torch.randn(8, 4)).sum(1), ALL)


def test_less_precise_multiplication_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    with pytest.raises(Refused, match="highest"):
        _add(nn.Linear(4, 2), torch.randn(8, 4))


def test_rows_outside_count_for_nothing_whatever_they_hold() -> None:
    model = nn.Linear(4, 2)
    ours, inputs, inside = _sums(model), torch.randn(8, 4), torch.arange(8) < 5
    ours.add(model(inputs).square().sum(1), inside)
    first = ours.take().whole()
    inputs[5:] = torch.tensor([float("nan"), 1e30, 0.0, float("inf")])
    ours.add(model(inputs).square().sum(1), inside)
    assert (first == ours.take().whole()).all()
    assert bool(first.any())


def test_take_begins_anew_and_hooks_come_off() -> None:
    model = nn.Linear(4, 2)
    ours = _sums(model)
    ours.add(model(torch.randn(8, 4)).sum(1), ALL)
    assert ours.take().whole().any()
    assert not ours.take().whole().any()
    ours.close()
    assert not model._forward_hooks


def test_count_is_of_rows_below_less_rows_above_the_threshold() -> None:
    model = nn.Linear(4, 2, bias=False)
    ours = ClippedSums(model, clip=AdaptiveClip("0.5"), grid=GRID, physical_batch=8)
    inputs = torch.eye(4).repeat(2, 1) * torch.tensor([0.1, 0.2, 0.3, 5, 6, float("nan"), 0, 0])[:, None]
    ours.threshold = 1.0
    ours.add(model(inputs)[:, 0], torch.arange(8) < 6)
    assert ours.count == 3 - 3
    ours.add(model(inputs)[:, 0], torch.arange(8) < 3)
    assert ours.count == 3
    ours.take()
    assert ours.count == 0


def test_rules_are_for_layers_whose_forward_is_that_of_torch() -> None:
    class Doubled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    assert has_rule(nn.Linear(2, 2))
    assert not has_rule(Doubled(2, 2))
    assert not has_rule(nn.Bilinear(2, 2, 2))
    model, inputs = Doubled(4, 2), torch.randn(8, 4)
    same = nn.Linear(4, 2)
    same.load_state_dict({name: 2 * value for name, value in model.state_dict().items()})
    assert torch.allclose(_add(model, inputs), _add(same, inputs), rtol=1e-5, atol=20)
