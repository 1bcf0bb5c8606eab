"""What diffusion promises: one picture moves gradients by at most the clip for any K, and sums by their bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from discreet.errors import Refused
from discreet.lab.audit import audit_steps
from discreet.lab.audit.training_audit import TrainingAudit
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.training.sampling import cut
from discreet.privacy import Composed, Gaussian, PoissonSampled, Relation, Repeated, epsilon
from discreet.synth.diffusion import Diffusion, Linear, WarmUp, denoiser_training
from discreet.synth.diffusion.denoiser import DiffusionRowLosses, build
from discreet.synth.diffusion.diffusion_plan import DiffusionPlan
from discreet.synth.diffusion.warm_up import CentralRelease, FrameRelease, PictureCoordinates, noisy_products
from discreet.synth.domain.images import Images
from discreet.synth.method import Terms

torch.set_num_threads(1)
DOMAIN = Images(3, 3, classes=(0, 1))
CLIP, GRID, SLOTS = 0.1, 2.0**-24, 32
TERMS = Terms(
    domain=DOMAIN, epsilon=Fraction(4), delta=Fraction(1, 10**6), relation=Relation.ADD_REMOVE, public_rows=640
)


def method(**changes: Any) -> Diffusion:
    small: dict[str, Any] = {
        "network": Linear(hidden=6), "steps": 40, "batch_size": 32, "physical_batch": SLOTS, "clip": "0.1",
        "warm_up": WarmUp(places=4),
    }  # fmt: skip
    return Diffusion(**(small | changes))


def planned(**changes: Any) -> DiffusionPlan:
    return DiffusionPlan.of(method(**changes), TERMS)


class TestDraws:
    """K noisy copies of a picture are one row."""

    def test_the_price_is_the_same_for_all_numbers_of_draws(self):
        events = {planned(draws=draws).event for draws in (1, 2, 8, 32)}
        assert len(events) == 1

    def test_the_price_is_what_was_asked_and_nearly_all_of_it(self):
        plan = planned()
        spent = epsilon(plan.event, TERMS.delta, relation=Relation.ADD_REMOVE)
        assert 3.99 < spent <= 4
        assert isinstance(plan.event, Composed)
        assert plan.event.events[2] == Repeated(PoissonSampled(Gaussian(plan.noise_multiplier), Fraction(1, 20)), 40)

    @pytest.mark.parametrize("draws", [1, 3, 16])
    def test_one_picture_moves_the_sum_by_at_most_the_clip_for_all_numbers_of_draws(self, draws):
        """Wherever the picture lies, also far outside; nearly all of the clip is used."""
        found = [share(row, draws) for row in (torch.ones(9), -torch.ones(9), torch.full((9,), 1e4), torch.zeros(9))]
        assert max(found) <= CLIP * 1.001
        assert max(found) > 0.9 * CLIP

    def test_clipping_each_draw_and_adding_them_up_is_caught_by_the_same_check(self):
        """The mistake that THEORY names: K draws as K records."""
        assert share(torch.full((9,), 1e4), 8, clipped_by_draw=True) > 4 * CLIP

    def test_gradients_that_are_not_the_priced_ones_are_refused(self):
        plan = planned()
        other = replace(plan, noise_multiplier=plan.noise_multiplier / 2)
        nothing = torch.zeros(1, 9), torch.zeros(1, dtype=torch.int64)
        around = PictureCoordinates.guessed(9, 2, 0.5, places=4)
        assert denoiser_training.begin(other, around, *nothing).plan.event == other.learning != plan.learning
        with pytest.raises(Refused, match="paid for"):
            denoiser_training.begin(_Mispriced(plan), around, *nothing)  # type: ignore[arg-type]


class _Mispriced:
    """A plan whose price is not that of its noise."""

    def __init__(self, plan: DiffusionPlan) -> None:
        self.plan = plan

    def __getattr__(self, name: str) -> Any:
        return self.plan.central.event if name == "learning" else getattr(self.plan, name)


def share(row: Tensor, draws: int, *, clipped_by_draw: bool = False) -> float:
    """The norm of what one picture adds to the sum of clipped gradients."""
    around = PictureCoordinates.guessed(9, 2, 0.5)
    once = 1 if clipped_by_draw else draws
    model = DiffusionRowLosses(
        build(Linear(hidden=6), DOMAIN, around), axes=torch.eye(9), draws=once, drop=0.1, levels=(-3.0, 0.5)
    )
    sums = ClippedSums(model, clip="0.1", grid=GRID, physical_batch=SLOTS)
    inside = torch.zeros(SLOTS, dtype=torch.bool)
    inside[5] = True
    for _ in range(draws if clipped_by_draw else 1):
        sums.add(model(row.expand(SLOTS, 9), torch.zeros(SLOTS, dtype=torch.int64)), inside)
    return float(np.linalg.norm(sums.take().whole() * GRID))


class TestSums:
    """What is bought before learning."""

    def pictures(self) -> Any:
        chance = np.random.default_rng(5)
        plain = chance.integers(0, 256, (40, 9)).astype(np.uint8)
        return np.concatenate([plain, np.full((1, 9), 255, np.uint8), np.eye(9, dtype=np.uint8) * 255])

    def test_one_picture_moves_all_sums_by_at_most_what_is_priced(self):
        """The squared shift in units of the noise, by brute force over awful pictures; nearly reached."""
        release = CentralRelease(pixels=9, classes=2, noise_multiplier=Fraction(3), products=True)
        pixel, count, product = release.variances
        shifts = []
        for picture in self.pictures():
            sums, counts, products = release.exact(picture[None], np.array([1], np.int32))
            shifts.append((sums**2).sum() / pixel + (counts**2).sum() / count + _shift(products, product))
        assert max(shifts) <= release.event.mu_squared == Fraction(1, 9)
        assert max(shifts) > 0.97 * Fraction(1, 9)

    def test_one_picture_moves_products_of_coordinates_by_at_most_what_is_priced(self):
        release = FrameRelease(pixels=9, noise_multiplier=Fraction(3))
        axes = np.linalg.qr(np.arange(81.0).reshape(9, 9) ** 0.5)[0][:, :4].astype(np.float32)
        centres = np.full((2, 9), -0.7, np.float32)
        shifts = [
            _shift(release.exact(picture[None], np.array([1], np.int32), axes=axes, centres=centres), release.variance)
            for picture in self.pictures()
        ]
        assert max(shifts) <= release.event.mu_squared == Fraction(1, 9)
        assert max(shifts) > 0.97 * Fraction(1, 9)

    def test_pictures_that_are_not_shortened_are_caught_by_the_same_check(self, monkeypatch):
        monkeypatch.setattr("discreet.synth.diffusion.warm_up.shortened", lambda rows, longest: rows)
        with pytest.raises(AssertionError):
            self.test_one_picture_moves_all_sums_by_at_most_what_is_priced()

    def test_sums_are_exact_and_do_not_depend_on_the_order_of_pictures(self):
        release = CentralRelease(pixels=9, classes=2, noise_multiplier=Fraction(1), products=True)
        pictures, labels = self.pictures(), np.arange(50, dtype=np.int32) % 2
        there, back = release.exact(pictures, labels), release.exact(pictures[::-1], labels[::-1])
        assert all((one == other).all() for one, other in zip(there, back, strict=True))
        assert (there[1] == [25, 25]).all()

    @pytest.mark.statistical
    def test_noise_follows_the_variance_that_is_priced(self):
        """200,000 numbers beside the diagonal and 1,000 on it; half of the noise is refuted."""
        drawn = noisy_products(np.zeros((50, 20, 20), np.int64), Fraction(10**6)).astype(np.float64)
        assert (drawn == np.swapaxes(drawn, 1, 2)).all()
        beside, on = drawn[:, *np.triu_indices(20, 1)], np.diagonal(drawn, axis1=1, axis2=2)
        for numbers, variance in ((beside, 1e6), (on, 2e6)):
            wrong = 6.5 * np.sqrt(2 / numbers.size)
            assert abs((numbers**2).mean() / variance - 1) < wrong
            assert abs((numbers**2).mean() / (variance / 2) - 1) > wrong


def _shift(products: Any, variance: Fraction) -> Fraction:
    """The squared shift of symmetric sums in units of noise, which is doubled on the diagonal."""
    square = np.atleast_3d(products).astype(object)
    square = square.reshape(-1, *products.shape[-2:])
    beside = sum(int(matrix[i, j]) ** 2 for matrix in square for i in range(len(matrix)) for j in range(i))
    on = sum(int(matrix[i, i]) ** 2 for matrix in square for i in range(len(matrix)))
    return Fraction(beside) / variance + Fraction(on) / (2 * variance)


class Kept:
    """Noise that also keeps what was released."""

    def __init__(self, noise: Any) -> None:
        self.noise, self.released_sums = noise, []

    def released(self, total: Any, unit: float) -> Any:
        found = self.noise.released(total, unit)
        self.released_sums.append(found / unit)
        return found

    def close(self) -> None:
        self.noise.close()


class InEverySecondStep:
    """Let the one record take part in every second step without a coin, in so many slots as it wrongly has draws."""

    def __init__(self, slots: int) -> None:
        self.slots, self.steps = slots, 0

    def draw(self, _count: int) -> Any:
        self.steps += 1
        return cut(np.zeros(self.steps % 2 * self.slots, np.int64), SLOTS)


def audited(steps: int, target: int, *, draws: int, slots: int = 1) -> TrainingAudit:
    """Noisy sums of steps with and without a canary, along its own gradient; nothing is learnt between steps."""
    chosen = method(draws=draws, learning_rate=1e-30, steps=2 * steps, levels=(-4.0, 0.3), warm_up=None)
    plan = DiffusionPlan.of(chosen, replace(TERMS, epsilon=Fraction(target)))
    canary = torch.ones(1, 9), torch.zeros(1, dtype=torch.int64)
    with denoiser_training.begin(plan, PictureCoordinates.guessed(9, 2, 0.1), *canary) as private:
        kept, private._sampler = Kept(private._parts.noise), InEverySecondStep(slots)
        private._parts = replace(private._parts, noise=kept)
        direction = _direction(private.model, canary)
        private.fit(progress=False)
    scores = np.array([float(direction @ total) for total in kept.released_sums])
    return audit_steps(
        scores[1::2], scores[::2], step=Gaussian(plan.noise_multiplier), steps=2 * steps,
        sampling_rate=plan.schedule.rate, delta=TERMS.delta, error=1e-9,
    )  # fmt: skip


def _direction(model: Any, canary: tuple[Tensor, Tensor]) -> Any:
    """The gradient of the canary at these weights, on average over draws: what an attacker would look for."""
    pictures, labels = canary
    with torch.enable_grad():
        losses = model(pictures.expand(256, -1), labels.expand(256))
        found = torch.autograd.grad(losses.mean(), list(model.parameters()), allow_unused=True)
    parts = [
        torch.zeros_like(weight) if part is None else part
        for weight, part in zip(model.parameters(), found, strict=True)
    ]
    flat = torch.cat([part.flatten() for part in parts]).double()
    return (flat / flat.norm()).numpy()


@pytest.mark.long
@pytest.mark.statistical
def test_the_audit_of_a_diffusion_training_stays_below_epsilon_and_refutes_draws_clipped_one_by_one():
    """White box: the auditor sees the noisy sum of every step, and knows the canary and its gradient."""
    assert not audited(100, 1, draws=8).refuted
    assert audited(100, 1, draws=1, slots=32).refuted


@pytest.mark.soak
@pytest.mark.statistical
def test_the_audit_of_many_steps_shows_most_of_what_a_step_claims_and_not_more():
    found = audited(2000, 40, draws=8)
    assert 0.5 * found.mu_claimed < found.mu <= found.mu_claimed, str(found)
