"""One record more, in the order that the proof couples: the real float sums move by no more than the plan says."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from discreet import noise
from discreet.learn.torch.clipping import gradient_forms
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers import prepare
from discreet.learn.training import AdaptiveClip, Automatic, Flat, PerLayer, TrainingPlan, plan_training
from discreet.learn.training.sampling import cut

torch.set_num_threads(1)
SLOTS = 32


class Reader(nn.Module):
    """A small reader of words: places, attention, a norm and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(11, 8), nn.Linear(8, 3)
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Any:
        read = self.words((x.nan_to_num(0, 0, 0).abs() * 7).long() % 11) * (1 + x[:, :, None])
        seen = self.attention(read, read, read, need_weights=False)[0]
        return self.head(self.norm(read + seen).mean(1))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "dense": lambda: nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 3)),
    "picture": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 3, 4)), nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(24, 3)
    ),
    "words": Reader,
}
BROAD = "broad"  # The first sum has more numbers than are added up block by block, and lies between two short ones.
MODELS_AND_BROAD = MODELS | {
    BROAD: lambda: nn.Sequential(nn.Linear(12, 181), nn.Tanh(), nn.Linear(181, 182), nn.Tanh(), nn.Linear(182, 3))
}
CASES = [
    *(("dense", clip) for clip in (Flat(1), Flat("0.001"), Automatic(1), PerLayer("0.01"), AdaptiveClip("0.001"))),
    *((name, clip) for name in ("picture", "words") for clip in (Flat("0.001"), PerLayer(1))),
]


def drawn(count: int) -> Tensor:
    """Rows of very different length, some of them no numbers at all."""
    rows = noise.rounded_gaussian(1 << 20, (count, 12)) / 2**20
    lengths = 10.0 ** (noise.uniform(9, count) - 4)
    rows = torch.from_numpy(rows * lengths[:, None]).float()
    awful = torch.tensor([math.nan, math.inf, 3e38, 1.0])[noise.uniform(4, count)]
    spoilt = torch.from_numpy(noise.uniform(8, count) == 0)
    spoilt[-1] = False
    rows[spoilt, 0] = awful[spoilt]
    return rows


def loss(output: Tensor) -> Tensor:
    return nn.functional.softplus(output[:, 0]) + output[:, 1] / 8


class Case:
    """A model with its sums and its plan."""

    def __init__(self, name: str, clip: Any, slots: int = SLOTS) -> None:
        self.model, self.slots = prepare(MODELS_AND_BROAD[name]()).model, slots
        count = sum(weight.numel() for weight in self.model.parameters())
        self.plan = _plan(clip, count, Fraction(0))
        self.sums = ClippedSums(self.model, clip=clip, grid=self.plan.grid, physical_batch=slots)
        self.plan = _plan(clip, count, self.sums.slack)

    def add_all(self, rows: Tensor, order: Any) -> None:
        for batch in cut(np.asarray(order, np.int64), self.slots):
            x = rows[torch.from_numpy(batch.indices).clamp(min=0)]
            inside = torch.from_numpy(batch.inside)
            x[~inside] = 0
            self.sums.add(loss(self.model(x)), inside)

    def sum_of(self, rows: Tensor, order: Any) -> Any:
        """Return the sum of rows in an order, in whole grid steps."""
        self.add_all(rows, order)
        return self.sums.take().whole().astype(np.int64)

    def moved(self, before: Any, after: Any) -> Fraction:
        """The squared distance of two sums, exactly."""
        return sum(int(step) ** 2 for step in after - before) * self.plan.grid**2


def _plan(clip: Any, parameters: int, slack: Fraction) -> TrainingPlan:
    return plan_training(
        noise_multiplier=1,
        delta="1e-6",
        public_rows=1000,
        batch_size=100,
        steps=1,
        clip=clip,
        parameters=parameters,
        physical_batch=SLOTS,
        slack=slack,
    )


def coupled(size: int) -> tuple[Any, Any]:
    """A random order of `size` records, and the same with one more: it takes a slot, whoever was there goes last."""
    order = noise.permutation(size)
    place = noise.uniform(size + 1)
    longer = np.append(order, size)
    longer[[place, size]] = longer[[size, place]]
    return order, longer


def test_the_coupling_takes_uniform_orders_to_uniform_orders() -> None:
    seen = {(tuple(order), tuple(longer)) for order, longer in (coupled(2) for _ in range(300))}
    assert len({longer for _, longer in seen}) == 6 == len(seen)  # Each of 3! from exactly one of 2! and a slot of 3.


@pytest.mark.parametrize(("name", "clip"), CASES)
def test_one_record_moves_the_real_sum_by_no_more_than_the_plan_says(name: str, clip: Any) -> None:
    case, largest = Case(name, clip), Fraction(0)
    for size in (0, 1, SLOTS - 1, SLOTS, 2 * SLOTS + 5):
        rows, (order, longer) = drawn(size + 1), coupled(size)
        moved = case.moved(case.sum_of(rows, order), case.sum_of(rows, longer))
        assert moved <= case.plan.sensitivity**2
        largest = max(largest, moved)
    if clip in (Flat("0.001"), AdaptiveClip("0.001")):
        assert largest > (clip.bound * Fraction(99, 100)) ** 2  # Every gradient is longer, and all of it is used.


@pytest.mark.parametrize("clip", [Flat("0.001"), PerLayer(1), AdaptiveClip("0.001")])
def test_one_record_moves_a_sum_in_chains_by_no_more_than_the_plan_says(clip: Any) -> None:
    slots, largest = 288, Fraction(0)
    case = Case(BROAD, clip, slots)
    for size in (43, slots - 1, slots + 50):
        rows, (order, longer) = drawn(size + 1), coupled(size)
        moved = case.moved(case.sum_of(rows, order), case.sum_of(rows, longer))
        assert moved <= case.plan.sensitivity**2
        largest = max(largest, moved)
    assert largest > (clip.bound * Fraction(9, 10)) ** 2 or isinstance(clip, PerLayer)


@pytest.mark.parametrize("name", MODELS)
def test_what_moves_beyond_the_record_itself_is_rounding(name: str) -> None:
    case = Case(name, Flat(1))
    rows, (order, longer) = drawn(SLOTS * 2), coupled(SLOTS * 2 - 1)
    alone = case.sum_of(rows, [SLOTS * 2 - 1])
    rest = case.sum_of(rows, longer) - case.sum_of(rows, order) - alone
    allowed = case.plan.sensitivity - case.plan.clip.bound
    assert sum(int(step) ** 2 for step in rest) * case.plan.grid**2 <= allowed**2


def test_one_record_moves_the_count_of_short_gradients_by_exactly_one() -> None:
    case = Case("dense", AdaptiveClip("0.7"))
    for size in (0, 5, SLOTS, SLOTS + 3):
        rows, (order, longer), counts = drawn(size + 1), coupled(size), []
        for each in (order, longer):
            case.add_all(rows, each)
            counts.append(case.sums.count)
            case.sums.reset()
        assert abs(counts[1] - counts[0]) == 1
        assert abs(counts[0]) <= size


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("awful", [math.nan, math.inf])
def test_a_row_that_is_dropped_leaves_every_bit_of_the_others(name: str, awful: float) -> None:
    case = Case(name, Flat(1))
    rows = drawn(SLOTS).nan_to_num(1.0, 1.0, 1.0)
    spoilt, order = rows.clone(), np.arange(SLOTS)
    spoilt[5] = awful
    with_it = case.sum_of(spoilt, order)
    inside = torch.ones(SLOTS, dtype=torch.bool)
    inside[5] = False
    rows[5] = 0
    case.sums.add(loss(case.model(rows)), inside)
    assert np.array_equal(case.sums.take().whole(), with_it)


@pytest.mark.parametrize("name", MODELS)
def test_layers_in_half_precision_leave_the_bound_as_it_is(name: str) -> None:
    """What layers pass on and get back is bfloat16; norms and sums take it as float32."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        case, largest = Case(name, Flat("0.001")), Fraction(0)
        for size in (0, 1, SLOTS - 1, 2 * SLOTS + 5):
            rows, (order, longer) = drawn(size + 1), coupled(size)
            moved = case.moved(case.sum_of(rows, order), case.sum_of(rows, longer))
            assert moved <= case.plan.sensitivity**2
            largest = max(largest, moved)
        assert largest > (case.plan.clip.bound * Fraction(99, 100)) ** 2


def test_norms_in_half_precision_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(several: list[Tensor]) -> Any:
        return torch.cat(several, 1).bfloat16().norm(dim=1).double().square().numpy()

    monkeypatch.setattr(gradient_forms, "_squares", coarse)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        case = Case("dense", Flat("0.001"))
        rows = drawn(200).nan_to_num(1.0, 1.0, 1.0)
        moved = [case.moved(0, case.sum_of(rows, [row])) for row in range(len(rows))]
    assert max(moved) > case.plan.sensitivity**2
