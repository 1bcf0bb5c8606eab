"""Real runs: who takes part, what they are divided by, how much noise there is, and what awful gradients do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from audited_runs import first_column, noisy_sums, run_on
from inclusion import right_coins
from torch.utils.data import DataLoader, TensorDataset

from discreet import noise
from discreet.errors import Refused
from discreet.learn.torch import make_private
from discreet.learn.training import AdaptiveClip
from discreet.learn.training.sampling import cut

STEPS = 340  # All samples of four rows are something in that many steps with probability (15/16)^340 = 3e-10.


class Shuffled:
    """What a shuffling loader does: every epoch a new order, cut into batches of half the data."""

    def __init__(self, slots: int) -> None:
        self.slots, self.waiting = slots, np.empty(0, np.int64)

    def draw(self, count: int) -> Any:
        if self.waiting.size == 0:
            self.waiting = noise.permutation(count)
        now, self.waiting = self.waiting[: count // 2], self.waiting[count // 2 :]
        return cut(now, self.slots)


def included(sampler: Any = None, steps: int = STEPS) -> Any:
    """Run on four rows at a rate of one half, and tell from the batches who was in which step."""
    private = run_on(torch.eye(4), noise_multiplier=1, public_rows=4, batch_size=2, steps=steps, physical_batch=8)
    private._sampler = sampler or private._sampler
    drawn = np.zeros((steps, 4), bool)
    for batch in private.batches():
        drawn[private._standing.begun - 1] |= batch[0].sum(0).numpy() > 0
        private.step(private.losses(batch))
    private.close()
    return drawn


@pytest.mark.statistical
def test_a_real_run_draws_independent_coins() -> None:
    drawn = included()
    assert right_coins(drawn, 0.5)
    assert not drawn.any(axis=1).all()  # Some samples are empty, and their steps are taken all the same.


@pytest.mark.statistical
def test_a_real_run_with_a_shuffling_sampler_is_caught() -> None:
    assert not right_coins(included(Shuffled(8), 100), 0.5)


def test_a_shuffling_loader_is_refused() -> None:
    loader = DataLoader(TensorDataset(torch.eye(4)), shuffle=True)
    model = torch.nn.Linear(4, 1)
    plan = {"noise_multiplier": 1, "delta": "1e-6", "public_rows": 4, "batch_size": 2, "steps": 1}
    with pytest.raises(Refused, match="DataLoader"):
        make_private(model, torch.optim.SGD(model.parameters(), lr=1.0), loader, loss=first_column, **plan)


def sums_without_noise(rows: Any, wrong: str = "no noise") -> Any:
    """Everybody is in every step, and nothing hides what the step does."""
    return noisy_sums(run_on(rows, wrong=wrong, noise_multiplier=1, public_rows=64, batch_size=64, steps=2))


def test_a_record_that_adds_nothing_changes_no_update() -> None:
    """n against n + 1: rate, divisor and steps do not come from how many records there are."""
    rows = torch.eye(16) / 4
    more = torch.cat([rows, torch.zeros(1, 16)])
    assert np.array_equal(sums_without_noise(rows), sums_without_noise(more))
    assert np.allclose(sums_without_noise(rows), 0.25)
    assert not np.array_equal(sums_without_noise(rows, "actual divisor"), sums_without_noise(more, "actual divisor"))


def test_no_record_still_steps() -> None:
    private = run_on(torch.zeros(0, 3), noise_multiplier=1, public_rows=10, batch_size=5, steps=7, physical_batch=8)
    sums = noisy_sums(private)
    assert sums.shape == (7, 3)
    assert (sums != 0).any(axis=1).all()
    assert private.spent.steps == private.steps_taken == 7


def noise_only(wrong: str = "", rows: int = 0, steps: int = 10) -> tuple[Any, Any]:
    private = run_on(
        torch.zeros(rows, 20_000),
        wrong=wrong,
        noise_multiplier="1.3",
        clip="0.5",
        public_rows=64,
        batch_size=64,
        physical_batch=32,
        steps=steps,
    )
    return noisy_sums(private), private.plan


def right_noise(sums: Any, plan: Any) -> bool:
    """Tell whether the deviation is right within one per cent, also step by step, and steps are independent.

    The deviation of 200,000 numbers errs by 0.16 %, so that 1 % is more than six deviations; that of the 20,000 of one
    step by 0.5 %, and correlations by 0.7 %.
    """
    claimed = float(plan.noise_multiplier * plan.sensitivity)
    each = sums.std(axis=1) / claimed
    between = np.corrcoef(sums)[np.triu_indices(len(sums), 1)]
    overall = math.sqrt((each**2).mean())
    return bool(abs(overall - 1) < 0.01 and (abs(each - 1) < 0.035).all() and (abs(between) < 0.05).all())


@pytest.mark.statistical
def test_updates_have_the_noise_of_the_plan_within_one_per_cent() -> None:
    assert right_noise(*noise_only())


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("wrong", "rows"),
    [("half noise", 0), ("noise / B", 0), ("carried noise", 0), ("reused noise", 0), ("noise for every batch", 64)],
)
def test_noise_of_another_size_or_of_other_steps_is_caught(wrong: str, rows: int) -> None:
    assert not right_noise(*noise_only(wrong, rows, steps=3))


@pytest.mark.statistical
def test_an_adaptive_clip_scales_its_noise_and_leaves_the_gradient_its_share() -> None:
    rule = AdaptiveClip(3, count_noise=1, quantile="0.9")
    plan = {"noise_multiplier": "1.2", "public_rows": 64, "batch_size": 64, "steps": 10, "physical_batch": 32}
    private, clips = run_on(torch.zeros(0, 20_000), clip=rule, **plan), []
    private._callback = lambda done: clips.append(done.clip)
    sums = noisy_sums(private)
    left = 1 / 1.2**2 - 1 / (2 * 1) ** 2  # What the count does not spend.
    each = sums.std(axis=1) / (np.array(clips) * float(private.plan.sensitivity) / math.sqrt(left))
    assert clips[0] == 3
    assert len(set(clips)) == 10
    assert abs(math.sqrt((each**2).mean()) - 1) < 0.01
    assert (abs(each - 1) < 0.035).all()


def test_updates_lie_on_the_grid_and_nowhere_else() -> None:
    private = run_on(torch.randn(40, 5) / 3, noise_multiplier=1, public_rows=64, batch_size=32, steps=20)
    grid = float(private.plan.grid)
    gradients = []
    private._parts.optimizer.register_step_pre_hook(
        lambda *_: gradients.append(private.model.weight.grad.double().numpy().copy())
    )
    private.fit(progress=False)
    places = np.concatenate(gradients) * 32 / grid  # The divisor is a power of two: nothing was rounded here.
    assert places.size == 100
    assert (places == np.rint(places)).all()
    assert np.unique(places % 2).size == 2  # And it is this grid, not a coarser one.


AWFUL = [math.nan, math.inf, -math.inf, 3e38, 1e38, 1e30, 1e-30, 1e-45, 7.0]


@pytest.mark.parametrize("size", AWFUL)
@pytest.mark.parametrize("everywhere", [False, True])
def test_awful_gradients_stay_below_the_clip(size: float, everywhere: bool) -> None:
    rows = torch.zeros(1, 50)
    rows[0, : 50 if everywhere else 1] = size
    private = run_on(rows, wrong="no noise", noise_multiplier=1, public_rows=32, batch_size=32, steps=1, clip="0.1")
    length = np.linalg.norm(noisy_sums(private)[0])
    assert length <= float(private.plan.sensitivity) * (1 + 1e-6)  # Weights are float32.
    if math.isfinite(size) and 1 < size < 1e18:
        assert length > 0.0999
    if not math.isfinite(size):
        assert length == 0


def test_awful_rows_leave_others_as_they_are() -> None:
    rows = torch.diag(torch.tensor([0.25, 0.5, 0.125, 0.25]))
    awful = torch.tensor([[math.nan, 0, 0, 0], [0, math.inf, 0, 0], [math.nan] * 4])
    assert np.array_equal(sums_without_noise(torch.cat([rows, awful])), sums_without_noise(rows))
