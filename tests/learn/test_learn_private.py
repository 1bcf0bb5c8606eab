"""A private run does what its plan says: sampling, clip, divisor, noise and steps are those of the account."""

from __future__ import annotations

import gc
import io
import os
import pickle
import re
import traceback
from copy import copy, deepcopy
from fractions import Fraction

import numpy as np
import pytest
import torch
from notebook_cell import notebook_cell
from private_runs import LOSS, flat, model_of, rows, run, silenced
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.learn.torch import Box, DPAdamBC, L2Ball, load_weights, make_private
from discreet.learn.torch.clipping.tape import RunHook
from discreet.learn.torch.noisy_step import gradient_noise
from discreet.learn.training import AdaptiveClip, Automatic, PerLayer


def clipped_sum(model: nn.Module, x: torch.Tensor, y: torch.Tensor, clip: float) -> torch.Tensor:
    """The definition: every row's gradient by itself, shrunk to the clip, added up."""
    weights = {name: weight.detach().double() for name, weight in model.named_parameters()}

    def loss(weights, row, label):
        return LOSS(functional_call(model, weights, (row[None],)), label[None])[0]

    each = vmap(grad(loss), (None, 0, 0))(weights, x.double(), y)
    whole = torch.cat([part.flatten(1) for part in each.values()], dim=1)
    factors = (clip / whole.norm(dim=1)).clamp(max=1)
    return (whole * factors[:, None]).sum(0)


def torch_saved(model: torch.nn.Module) -> torch.nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class TestOneStep:
    """What one step does to the weights, with the noise taken away."""

    @pytest.mark.parametrize("clip", [0.1, 100])
    def test_weights_move_by_the_clipped_sum_over_the_public_divisor(self, clip):
        model, (x, y) = model_of(), rows(40)
        before, expected = flat(model), clipped_sum(model, x, y, clip) / 40
        private = silenced(run(model, (x, y), clip=clip, steps=1)).fit(progress=False)
        rounding = float(private.plan.grid) / 2 + 1e-5 * float(expected.norm())  # 40 blocks at most, over 40
        assert torch.allclose((before - flat(model)).double(), expected, atol=rounding, rtol=0)

    def test_a_loop_does_what_fit_does(self):
        by_loop, by_fit, data = model_of(), model_of(), rows(40)
        private = silenced(run(by_loop, data))
        for x, y in private.batches():
            private.step(LOSS(by_loop(x), y))
        silenced(run(by_fit, data)).fit(progress=False)
        assert torch.allclose(flat(by_loop), flat(by_fit), atol=1e-5)

    def test_the_size_of_physical_batches_changes_nothing(self):
        found = []
        for slots in (32, 64):
            model = model_of()
            silenced(run(model, rows(40), physical_batch=slots, steps=1)).fit(progress=False)
            found.append(flat(model))
        assert torch.allclose(*found, atol=1e-5)

    def test_the_divisor_does_not_know_how_many_rows_there_are(self):
        """C40: one row more whose gradient is zero moves nothing; dividing by the batch would."""
        frozen = torch.zeros(1, 4), torch.zeros(1, dtype=torch.int64)
        loss = lambda output, y: LOSS(output, y) * (y >= 0) * (output.detach()[:, 0] != 0)  # noqa: E731
        more = [torch.cat(pair) for pair in zip(rows(40), frozen, strict=True)]
        found = []
        for data in (rows(40), tuple(more)):
            model = nn.Linear(4, 2, bias=False)  # A row of zeros has no gradient here.
            with torch.no_grad():
                model.weight.copy_(torch.arange(8).reshape(2, 4) / 8)
            silenced(run(model, data, steps=1, loss=loss)).fit(progress=False)
            found.append(flat(model))
        assert torch.allclose(*found, atol=1e-5)

    def test_rows_that_are_not_numbers_add_nothing(self):
        x, y = rows(40)
        broken = torch.cat([x, torch.tensor([[float("nan")] * 4, [float("inf")] * 4])]), torch.cat([y, y[:2]])
        found = []
        for data in ((x, y), broken):
            model = model_of()
            silenced(run(model, data, steps=1)).fit(progress=False)
            found.append(flat(model))
        assert torch.allclose(*found, atol=1e-5)

    @pytest.mark.parametrize("clip", [Automatic(1), PerLayer(1), AdaptiveClip(1, count_noise=5)])
    def test_other_rules_of_clipping_train_too(self, clip):
        model = model_of()
        private = silenced(run(model, clip=clip, steps=4)).fit(progress=False)
        assert private.finished
        assert bool(flat(model).isfinite().all())
        assert not torch.equal(flat(model), flat(model_of()))


@pytest.mark.statistical
class TestNoise:
    """With no row at all, a step is its noise."""

    def test_the_noise_of_a_step_has_the_deviation_of_the_plan(self):
        """Of 100,000 coordinates the deviation is known to 0.22 %: six times that is a false alarm of 1e-9."""
        model = nn.Linear(999, 100)
        data = torch.zeros(0, 999), torch.zeros(0, dtype=torch.int64)
        private = run(model, data, clip=0.5, noise_multiplier=2, batch_size=8, steps=1)
        before = flat(model).double()
        private.fit(progress=False)
        found = float((flat(model).double() - before).std())
        claimed = 2 * float(private.plan.sensitivity) / 8
        assert 0.5 <= private.plan.sensitivity <= Fraction(5005, 10000)
        assert abs(found / claimed - 1) < 0.0135
        assert gradient_noise(private.plan) == pytest.approx(claimed, rel=1e-12)

    def test_an_empty_sample_is_a_step_too(self):
        told = []
        data = torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)
        private = run(data=data, steps=4, callback=told.append).fit(progress=False)
        assert [done.step for done in told] == [1, 2, 3, 4]
        assert private.steps_taken == 4

    def test_noise_is_drawn_once_for_a_logical_batch(self):
        """Two physical batches and one of them have the same noise: accumulating it would double the variance."""
        found = []
        for count in (64, 32):
            model = nn.Linear(999, 100)
            data = torch.zeros(count, 999), torch.zeros(count, dtype=torch.int64)
            before = flat(model).double()
            run(model, data, public_rows=64, batch_size=64, steps=1, loss=lambda o, y: 0 * LOSS(o, y)).fit(
                progress=False
            )
            found.append(float((flat(model).double() - before).std()))
        assert abs(found[0] / found[1] - 1) < 0.03


class TestAccount:
    """What is promised follows from public numbers."""

    def test_the_price_does_not_know_the_data(self):
        plans = {run(data=rows(count), epsilon=2, noise_multiplier=None).plan for count in (0, 1, 40, 77)}
        assert len(plans) == 1

    def test_epsilon_is_of_the_whole_run_and_spent_grows_to_it(self):
        private = run(steps=5)
        spent = [private.spent.epsilon]
        for batch in private.batches():
            private.step(private.losses(batch))
            spent.append(private.spent.epsilon)
        assert spent[0] == 0
        assert spent == sorted(spent)
        assert spent[-1] == private.epsilon == private.plan.epsilon(private.plan.delta)
        assert private.spent.event == private.plan.event

    def test_the_same_number_of_views_or_more_cost_the_same(self):
        plans = {run(augment=lambda batch, views=views: [batch] * views).plan for views in (1, 4)}
        assert len(plans) == 1


class TestViews:
    """K views of a row are one row."""

    def test_views_are_averaged_before_they_are_clipped(self):
        """Opposite views cancel: clipped first, they would not."""

        def flipped(batch):
            x, y = batch
            return [(x, y), (x, 1 - y)]

        model, still = nn.Linear(4, 2), nn.Linear(4, 2)
        with torch.no_grad():
            for weight in model.parameters():
                weight.zero_()
        still.load_state_dict(model.state_dict())
        silenced(run(model, rows(40), clip=0.01, augment=flipped, steps=1)).fit(progress=False)
        assert torch.allclose(flat(model), flat(still), atol=1e-7)

    @pytest.mark.parametrize("views", [1, 2, 5])
    def test_one_row_moves_the_sum_by_the_clip_at_most_however_many_views_it_has(self, views):
        def shifted(batch):
            x, y = batch
            return [(x + shift, y) for shift in range(views)]

        model, (x, y) = model_of(), rows(1)
        before = flat(model)
        private = silenced(run(model, (100 * x, y), clip=0.25, augment=shifted, steps=1)).fit(progress=False)
        moved = float((flat(model) - before).double().norm()) * 40
        assert moved <= float(private.plan.sensitivity)
        assert moved > 0.24  # It was clipped: the wrong neighbour, the sum of clipped views, moves up to 1.25.

    def test_random_views_are_drawn_from_secret_bits_whatever_the_seed(self):
        seen = []

        def jittered(batch):
            x, y = batch
            seen.append(torch.rand(len(x), 1))
            return [(x + seen[-1], y)]

        for _ in range(2):
            torch.manual_seed(5)
            private = run(data=rows(8), augment=jittered, steps=1)
            seen.clear()
            private.fit(progress=False)
        torch.manual_seed(5)
        assert not torch.equal(torch.cat(seen[:32]), torch.rand(32, 1))

    def test_an_augmentation_sees_one_row_at_a_time(self):
        """So it cannot mix rows, share a coin between them, or treat them by their place."""
        seen = []

        def mixed(batch):
            x, y = batch
            seen.append(len(x))
            return [(0.5 * x + 0.5 * x.flip(0), y.roll(1))]

        model, same = model_of(), model_of()
        silenced(run(model, augment=mixed)).fit(progress=False)
        silenced(run(same)).fit(progress=False)
        assert set(seen) == {1}
        assert torch.allclose(flat(model), flat(same), atol=1e-5)

    def test_views_by_a_chance_that_is_not_torch_s_are_refused(self):
        draw = np.random.default_rng(3)
        with pytest.raises(Refused, match="draw with torch"):
            run(augment=lambda batch: [(batch[0] + float(draw.random()), batch[1])])

    def test_the_number_of_views_may_not_change(self):
        calls = []

        def more(batch):
            calls.append(1)
            return [batch] * (1 if len(calls) < 100 else 2)

        private = run(augment=more)
        calls.extend([1] * 100)
        with pytest.raises(Refused, match="same number of views"):
            private.fit(progress=False)


class Scaled(nn.Module):
    """A scale of its own, so it is run again for each row, and a condition that is handed over or found."""

    def __init__(self, found):
        super().__init__()
        self.scale, self.given, self.found = nn.Parameter(torch.ones(5)), [], found

    def forward(self, x, given=None):
        return torch.tanh(x * self.scale * (given if self.found is None else self.found(self.given, x)))


class Conditioned(nn.Module):
    def __init__(self, found):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(4, 5), Scaled(found), nn.Linear(5, 2)

    def forward(self, x):
        hidden = self.first(x)
        self.middle.given = [hidden.detach()]
        return self.last(self.middle(hidden, hidden.detach() if self.middle.found is None else None))


class TestMisuse:
    """A loop that would break the account is refused, and told how it should be."""

    def test_losses_without_a_batch(self):
        private = run()
        with pytest.raises(Refused, match="no batch that waits"):
            private.step(torch.zeros(32, requires_grad=True))

    def test_losses_given_twice(self):
        private = run()
        x, y = next(private.batches())
        private.step(LOSS(private.model(x), y))
        with pytest.raises(Refused, match="count its rows twice"):
            private.step(LOSS(private.model(x), y))

    def test_a_batch_that_is_skipped(self):
        private = run(steps=3)
        with pytest.raises(Refused, match="a batch was skipped"):
            for _ in private.batches():
                pass

    @pytest.mark.parametrize(
        "reduce", [torch.mean, torch.sum, lambda losses: losses[:3], lambda losses: losses[:, None]]
    )
    def test_anything_but_one_loss_a_row(self, reduce):
        private = run()
        x, y = next(private.batches())
        with pytest.raises(Refused, match='reduction="none"'):
            private.step(reduce(LOSS(private.model(x), y)))

    def test_losses_without_a_gradient_or_of_no_forward_pass_here(self):
        private = run()
        x, y = next(private.batches())
        with pytest.raises(Refused, match="no gradient"):
            private.step(LOSS(private.model(x), y).detach())
        with pytest.raises(InvalidParameter, match="tensor"):
            private.step(0.5)
        with pytest.raises(Refused, match="forward pass"):
            private.step(LOSS(model_of()(x), y))

    def test_losses_of_an_earlier_batch(self):
        private = run(steps=2, data=rows(64), public_rows=64, batch_size=64)
        batches = private.batches()
        x, y = next(batches)
        kept = LOSS(private.model(x), y)
        private.step(kept)
        next(batches)
        with pytest.raises(Refused, match="not called with the batch"):
            private.step(kept)

    def test_a_step_of_the_optimiser_from_outside(self):
        model = model_of()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        private = run(model, optimizer=optimizer)
        x, y = next(private.batches())
        LOSS(model(x), y).mean().backward()
        with pytest.raises(Refused, match="gradients without noise"):
            optimizer.step()
        assert torch.equal(flat(model), flat(model_of()))
        private.close()
        optimizer.step()  # After the run the optimiser is the user's again.

    def test_gradients_that_somebody_left_are_not_used(self):
        model, other = model_of(), model_of()
        private = silenced(run(model, steps=1))
        for x, y in private.batches():
            losses = LOSS(model(x), y)
            losses.mean().backward(retain_graph=True)
            private.step(losses)
        silenced(run(other, steps=1)).fit(progress=False)
        assert torch.allclose(flat(model), flat(other), atol=1e-5)

    def test_weights_changed_behind_its_back(self):
        private = run()
        batches = private.batches()
        x, y = next(batches)
        with torch.no_grad():
            next(private.model.parameters()).add_(1)
        with pytest.raises(Refused, match="changed by something else"):
            private.step(LOSS(private.model(x), y))

    def test_a_buffer_that_learns(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.counting = nn.Linear(4, 2), False
                self.register_buffer("seen", torch.zeros(1))

            def forward(self, x):
                if self.counting:
                    self.seen = self.seen + x.sum()
                return self.linear(x)

        private = run(Counting())
        private.model.counting = True
        with pytest.raises(Refused, match="buffers get no noise"):
            private.fit(progress=False)
        with pytest.raises(Refused, match="buffers get no noise"):
            private.export("nowhere.safetensors")

    def test_another_mode_than_the_one_that_was_tried(self):
        private = run()
        private.model.eval()
        with pytest.raises(Refused, match="otherwise than it was tried"):
            private.fit(progress=False)

    @pytest.mark.parametrize(
        "switched",
        [lambda: sdpa_kernel(SDPBackend.MATH), lambda: torch.backends.mkldnn.flags(enabled=False)],
    )
    def test_other_kernels_than_those_that_were_tried(self, switched):
        private = run()
        for x, y in private.batches():
            with switched(), pytest.raises(Refused, match="other kernels"):
                LOSS(private.model(x), y)
            private.step(LOSS(private.model(x), y))
            break
        with switched():
            run().fit(progress=False)

    def test_a_model_in_evaluation_mode_trains(self):
        assert run(model_of().eval()).fit(progress=False).finished

    def test_a_loop_that_was_left_loses_its_step_and_another_goes_on(self):
        private = run(steps=3, data=rows(64), public_rows=64, batch_size=64)
        old = private.batches()
        next(old)
        private.fit(progress=False)
        assert (private.spent.steps, private.steps_taken) == (3, 2)
        with pytest.raises(Refused, match="another loop"):
            next(old)

    def test_copies_are_refused(self):
        private = run()
        for make in (copy, deepcopy, pickle.dumps):
            with pytest.raises(Refused, match="cannot be copied"):
                make(private)

    def test_a_model_in_a_run_is_saved_and_copies_hold_no_rows(self):
        model = model_of()
        private = run(model)
        for x, y in private.batches():
            said = private.losses((x, y))
            for saved in (pickle.loads(pickle.dumps(model)), torch_saved(model)):
                hooks = [hook for part in saved.modules() for hook in part._forward_hooks.values()]
                assert not any(vars(hook) for hook in hooks)
                assert all(torch.equal(a, b) for a, b in zip(saved.parameters(), model.parameters(), strict=True))
                assert torch.equal(saved.eval()(x), deepcopy(model).eval()(x))
            twin = deepcopy(model)
            hooks = [hook for part in twin.modules() for hook in part._forward_hooks.values()]
            assert hooks
            assert all(isinstance(hook, RunHook) for hook in hooks)
            assert {id(hook) for hook in hooks} == {
                id(hook) for part in model.modules() for hook in part._forward_hooks.values()
            }
            twin(x)
            torch.save(model.state_dict(), io.BytesIO())
            private.step(said)
            break
        private.close()
        assert pickle.loads(pickle.dumps(model)) is not None

    def test_a_model_is_free_after_the_last_step_and_not_compiled_before(self):
        model = model_of()
        private = run(model)
        with pytest.raises(Refused, match="cannot be compiled"):
            torch.jit.script(model)
        private.fit(progress=False)
        assert pickle.loads(pickle.dumps(model)) is not None
        assert not any(part._forward_hooks for part in model.modules())
        with pytest.raises(Refused):
            private.step(torch.zeros(1))

    def test_a_model_that_is_made_private_again_leaves_its_first_run(self):
        model = model_of()
        first, second = run(model), run(model)
        with pytest.raises(Refused, match="taken its model over"):
            next(first.batches())
        assert second.fit(progress=False).finished
        with run(model) as third:
            third.fit(progress=False)
        with pytest.raises(Refused, match="closed"):
            third.fit(progress=False)

    def test_optimisers_that_cannot_be_used(self):
        model, other = model_of(), nn.Linear(2, 2)
        with pytest.raises(Refused, match="not the model's"):
            run(model, optimizer=torch.optim.SGD([*model.parameters(), *other.parameters()], lr=1.0))
        with pytest.raises(Refused, match="requires_grad_"):
            run(model, optimizer=torch.optim.SGD(model[0].parameters(), lr=1.0))
        with pytest.raises(Refused, match="SGD, Adam"):
            run(model, optimizer=torch.optim.LBFGS(model.parameters()))

    def test_schedules_that_follow_a_loss_or_another_optimiser(self):
        model = model_of()
        optimizer, other = (torch.optim.SGD(model.parameters(), lr=1.0) for _ in range(2))
        with pytest.raises(Refused, match="fixed beforehand"):
            run(model, optimizer=optimizer, scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))
        with pytest.raises(Refused, match="another optimiser"):
            run(model, optimizer=optimizer, scheduler=torch.optim.lr_scheduler.ConstantLR(other))

    def test_failures_on_rows_that_tell_nothing_about_them(self):
        """torch says 'Target 4711 is out of bounds', and a data set the name of a file."""

        class Files:
            def __len__(self):
                return 40

            def __getitem__(self, index):
                raise FileNotFoundError("4711.png")

        x, y = rows(40)
        y[7] = 4711
        said = []
        for data, more in (((x, y), {}), (Files(), {"example": (torch.zeros(4), 0)})):
            with pytest.raises(AnswerFailed) as failed:
                run(data=data, **more).fit(progress=False)
            shown = "".join(traceback.format_exception(failed.value))
            assert "4711" not in shown
            said.append(str(failed.value))
        assert said[0] == said[1]

    def test_units_other_than_rows(self):
        with pytest.raises(Refused, match=r'unit=\{"patient": ids\}, a column with the patient of each row'):
            run(unit="patient")

    def test_losses_and_layers_that_mix_rows(self):
        with pytest.raises(Refused, match="GroupNorm"):
            run(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)))
        with pytest.raises(Refused, match="reduction"):
            run(loss=nn.CrossEntropyLoss())

    @pytest.mark.parametrize(
        "wrong",
        [
            {"epsilon": 1}, {"noise_multiplier": None}, {"epochs": 1}, {"steps": 0}, {"clip": 0}, {"batch_size": 41},
            {"physical_batch": 0}, {"delta": 0}, {"public_rows": -1}, {"ema": 2}, {"noise_multiplier": float("nan")},
        ],
    )  # fmt: skip
    def test_numbers_that_make_no_plan(self, wrong):
        with pytest.raises(InvalidParameter):
            run(**wrong)

    @pytest.mark.parametrize("people", [False, True])
    @pytest.mark.parametrize("found", [lambda given, x: given[0], lambda given, x: given[0][: len(x)]])
    def test_layers_that_find_the_batch_elsewhere_than_in_their_arguments(self, found, people):
        """The model keeps rows apart. Run again for one row, such a layer takes what is the first row's for all."""
        of_two = {"unit": np.arange(40) // 2, "max_rows": 2, "public_rows": None, "public_units": 20, "batch_size": 20}
        facts = of_two if people else {}
        with pytest.raises(Refused, match=r"cannot be run row by row|depends on other rows"):
            run(Conditioned(found), **facts)
        run(Conditioned(None), **facts).close()

    def test_a_run_that_was_refused_leaves_the_model_free(self):
        model = model_of()
        with pytest.raises(InvalidParameter):
            run(model, ema=2)
        assert not any(module._forward_hooks for module in model.modules())
        torch.optim.SGD(model.parameters(), lr=1.0).step()


class TestAfterTheNoise:
    """Optimisers, schedules, averages and projections work on noisy numbers, and are free."""

    @pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, DPAdamBC])
    def test_optimisers_of_all_kinds_train(self, kind):
        model = model_of()
        run(model, optimizer=kind(model.parameters(), lr=0.1)).fit(progress=False)
        assert not torch.equal(flat(model), flat(model_of()))

    def test_the_corrected_optimiser_is_told_the_variance_of_the_noise(self):
        model = model_of()
        optimizer = DPAdamBC(model.parameters(), lr=0.1)
        private = run(model, optimizer=optimizer).fit(progress=False)
        assert optimizer._noise_variance == pytest.approx((float(private.plan.sensitivity) / 40) ** 2, rel=1e-9)

    def test_a_scheduler_steps_once_for_every_noisy_step(self):
        model, told = model_of(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        run(
            model,
            rows(64),
            public_rows=64,
            batch_size=64,
            optimizer=optimizer,
            scheduler=schedule,
            callback=told.append,
        ).fit(progress=False)
        assert [done.learning_rate for done in told] == [0.5, 0.25, 0.125]

    def test_projections_hold_after_every_step(self):
        for projection, holds in (
            (L2Ball("0.5"), lambda w: w.norm() <= 0.5001),
            (Box(-0.1, 0.1), lambda w: w.abs().max() <= 0.1),
        ):
            model, seen = model_of(), []
            run(model, projection=projection, callback=lambda _, m=model, s=seen: s.append(flat(m))).fit(progress=False)
            assert len(seen) == 3
            assert all(holds(weights) for weights in seen)

    def test_averages_are_lent_and_given_back(self):
        model, seen = model_of(), [flat(model_of())]
        private = run(model, ema=0.5, callback=lambda _: seen.append(flat(model))).fit(progress=False)
        expected = seen[0]
        for step, weights in enumerate(seen[1:]):
            decay = min(0.5, (1 + step) / (10 + step))
            expected = decay * expected + (1 - decay) * weights
        with private.averaged() as lent:
            assert torch.allclose(flat(lent), expected, atol=1e-5)
            with pytest.raises(Refused, match="averaged weights now"):
                next(private.batches())
        assert torch.equal(flat(model), seen[-1])
        private.fit(progress=False)

    def test_frozen_layers_stay(self):
        model = model_of()
        model[0].requires_grad_(False)
        private = run(model, optimizer=torch.optim.SGD(model[2].parameters(), lr=1.0)).fit(progress=False)
        assert torch.equal(model[0].weight, model_of()[0].weight)
        assert private.plan.parameters == 12


class TestWhatIsShown:
    """Everything that is shown is public or noisy."""

    def test_the_line_shows_steps_and_epsilon_and_the_loss_on_public_rows_only(self, monkeypatch):
        cell = notebook_cell(monkeypatch, silent=0.0)
        run().fit()
        run(watch=rows(3)).fit()
        (*_, private), (*_, watched) = cell.texts
        assert re.fullmatch(r"training · 3 of 3 · ε [\d.]+ of [\d.]+", private)
        assert re.fullmatch(r"training · 3 of 3 · ε [\d.]+ of [\d.]+  public loss [\d.]+", watched)

    def test_what_loggers_get_has_no_loss_unless_it_is_public(self):
        told = []
        run(callback=told.append).fit(progress=False)
        assert [done.public_loss for done in told] == [None] * 3
        x, y = rows(5)
        model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 2))
        run(model, watch=(x, y), callback=told.append).fit(progress=False)
        model.eval()
        assert told[-1].public_loss == pytest.approx(float(LOSS(model(x), y).mean().detach()), rel=1e-6)

    def test_the_report_tells_plan_and_layers(self):
        text = str(run().report)
        assert "3 steps" in text
        assert "Linear" in text
        assert "32 rows at a time" in text


class TestExport:
    """Weights leave with what was promised about them."""

    def test_weights_and_promise_are_read_back(self, tmp_path):
        private = run(name="people").fit(progress=False)
        written = private.export(tmp_path / "weights.safetensors")
        other = model_of()
        found = load_weights(other, tmp_path / "weights.safetensors")
        assert found == written
        assert torch.equal(flat(other), flat(private.model))
        assert (found.name, found.epsilon, found.delta, found.unit) == ("people", private.epsilon, 1e-5, "row")
        assert "differentially private" in str(found)

    def test_what_is_exported_are_the_averages_if_there_are_any(self, tmp_path):
        private = run(ema=0.9).fit(progress=False)
        assert private.export(tmp_path / "w").averaged
        other = model_of()
        load_weights(other, tmp_path / "w")
        with private.averaged() as lent:
            assert torch.equal(flat(other), flat(lent))
        assert not torch.equal(flat(other), flat(private.model))

    def test_weights_that_something_else_has_changed_are_not_promised_about(self, tmp_path):
        private = run().fit(progress=False)
        private.close()
        private.export(tmp_path / "w")
        with torch.no_grad():
            private.model[0].weight.add_(1)
        with pytest.raises(Refused, match="something else"):
            private.export(tmp_path / "w")

    def test_a_lent_model_is_neither_exported_nor_kept(self, tmp_path):
        private = run(ema=0.9, checkpoint=tmp_path / "run").fit(progress=False)
        with private.averaged():
            for give in (private.save, lambda: private.export(tmp_path / "w"), private.averaged().__enter__):
                with pytest.raises(Refused, match="averaged weights now"):
                    give()

    def test_other_files_and_other_models_are_refused(self, tmp_path):
        (tmp_path / "other").write_bytes(b"no weights")
        with pytest.raises(Refused, match="no weights"):
            load_weights(model_of(), tmp_path / "other")
        run().fit(progress=False).export(tmp_path / "w")
        with pytest.raises(InvalidParameter, match="other layers"):
            load_weights(nn.Linear(4, 2), tmp_path / "w")


def test_items_train_like_tensors():
    class Items:
        def __len__(self):
            return 40

        def __getitem__(self, index):
            x, y = rows(40)
            return x[index], y[index]

    found = []
    for data, more in ((Items(), {"example": (torch.zeros(4), 0)}), (rows(40), {})):
        model = model_of()
        silenced(run(model, data, steps=1, **more)).fit(progress=False)
        found.append(flat(model))
    assert torch.allclose(*found, atol=1e-5)


def test_the_physical_batch_is_chosen_from_public_facts():
    x, y = rows(4)
    for batch, slots in ((40, 64), (256, 288), (1024, 288)):
        model = model_of()
        private = make_private(
            model, torch.optim.SGD(model.parameters(), lr=1.0), (x, y), loss=LOSS, noise_multiplier=1, delta=1e-6,
            public_rows=10_000, batch_size=batch, steps=1,
        )  # fmt: skip
        assert private.plan.physical_batch == slots


class TestLettingGo:
    """A run ends when it is closed, dropped or copied into another process."""

    def test_a_run_that_nobody_holds_gives_the_model_back(self):
        model = model_of()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        private = run(model, optimizer=optimizer)
        private.fit(progress=False)
        del private
        gc.collect()
        assert not any(module._forward_hooks for module in model.modules())
        optimizer.step()

    def test_a_forked_child_does_not_go_on(self):
        private = run()
        child = os.fork()
        if child == 0:
            code = 0
            try:
                next(private.batches())
            except Refused:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    def test_a_batch_whose_adding_failed_is_not_added_again(self, monkeypatch):
        private = run(steps=2)
        sums, add = private._parts.sums, private._parts.sums.add

        def interrupted(losses, inside):
            add(losses, inside)
            raise KeyboardInterrupt

        batches = private.batches()
        losses = private.losses(next(batches))
        monkeypatch.setattr(sums, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            private.step(losses)
        with pytest.raises(Refused, match="no batch that waits"):
            private.step(losses)
        assert not sums.take().whole().any()
        monkeypatch.undo()
        private.fit(progress=False)
        assert (private.spent.steps, private.steps_taken) == (2, 1)
