"""Loops and augmentations that would leave what was tried and paid: each is refused, or made harmless."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from private_runs import LOSS, flat, model_of, rows, run, silenced
from torch import Tensor, nn
from torch.nn import functional

from discreet.errors import Refused

torch.set_num_threads(1)


def looped(step: Callable[[Any, Tensor, Tensor], object]) -> None:
    private = run()
    for x, y in private.batches():
        private.step(step(private.model, x, y))


def reversed_rows(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    order = torch.arange(len(x) - 1, -1, -1)
    return LOSS(model(x[order]), y[order])


def similar_rows(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    out = model(x)
    return functional.cross_entropy(out @ out.T, torch.arange(len(out)), reduction="none")


def written(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    x.add_(x.mean(0))
    return LOSS(model(x), y)


def straight_through(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The values are right, the gradients mix rows."""
    out = model(x)
    return LOSS(out + (out.mean(0) - out.mean(0).detach()), y)


LOOPS: dict[str, tuple[Callable[..., Any], str]] = {
    "mix-up": (lambda model, x, y: LOSS(model(0.5 * x + 0.5 * x.roll(1, 0)), y), "not called with the batch"),
    "a batch mean taken off": (lambda model, x, y: LOSS(model(x - x.mean(0)), y), "not called with the batch"),
    "random changes from a public seed": (
        lambda model, x, y: LOSS(model(x + torch.randn_like(x)), y), "not called with the batch",
    ),
    "another order": (reversed_rows, "not called with the batch"),
    "rows twice": (
        lambda model, x, y: LOSS(model(torch.cat([x, x])), torch.cat([y, y]))[: len(x)], "not called with the batch",
    ),
    "a mean of losses": (lambda model, x, y: LOSS(model(x), y).mean().expand(len(y)), "the loss given to make_private"),
    "a mean of outputs": (
        lambda model, x, y: LOSS(model(x) - model(x).mean(0).detach(), y), "the loss given to make_private",
    ),
    "other labels": (lambda model, x, y: LOSS(model(x), y.roll(1)), "the loss given to make_private"),
    "rows compared": (similar_rows, "the loss given to make_private"),
    "another loss": (lambda model, x, y: 2 * LOSS(model(x), y), "the loss given to make_private"),
    "a batch written to": (written, "changed in place"),
    "only gradients mixed": (straight_through, "mixes records"),
    "layers called one by one": (lambda model, x, y: LOSS(model[2](model[1](model[0](x))), y), "not called with"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_leave_what_was_tried_are_refused(name):
    step, words = LOOPS[name]
    with pytest.raises(Refused, match=words) as told:
        looped(step)
    assert told.value.way_out


@pytest.mark.parametrize(
    "step",
    [
        lambda private, batch: LOSS(private.model(batch[0]), batch[1]),
        lambda private, batch: LOSS(private.model(batch[0].clone()), batch[1]),
        lambda private, batch: private.losses(batch),
        lambda private, batch: functional.cross_entropy(private.model(batch[0]), batch[1], reduction="none"),
    ],
    ids=["as written", "a copy", "its own losses", "the same loss otherwise"],
)
def test_honest_loops_train(step):
    private = run()
    for batch in private.batches():
        private.model(batch[0])  # Looked at, and not used.
        private.step(step(private, batch))
    assert private.finished


def test_rows_that_are_not_numbers_do_not_stop_an_honest_loop():
    x, y = rows(40)
    x[3] = float("nan")
    private = run(data=(x, y))
    for x, y in private.batches():
        private.step(LOSS(private.model(x), y))
    assert private.finished


def test_losses_of_another_batch_are_not_vouched_for():
    private = run()
    batch = next(private.batches())
    other = tuple(part.flip(0) for part in batch)
    with pytest.raises(Refused, match="not called with the batch"):
        private.step(private.losses(other))


def shifted(batch: Any) -> list[Any]:
    """One shift for all rows that come together."""
    x, y = batch
    return [(x + torch.rand(()), y)]


def test_rows_share_no_coin_of_an_augmentation():
    """With one coin for a batch, a row that moves to another batch would meet another one."""
    private = run(augment=shifted)
    seen: list[Tensor] = []
    private.model.register_forward_pre_hook(lambda _model, given: seen.append(given[0].detach()))
    (x, y) = next(private.batches())
    private.losses((x, y))
    shifts = (seen[-1] - x)[:, 0]
    assert len(shifts.unique()) == len(shifts)


def test_with_views_only_the_run_s_own_losses_are_taken():
    private = run(augment=shifted)
    x, y = next(private.batches())
    with pytest.raises(Refused, match="not of views"):
        private.step(LOSS(private.model(x), y))


def test_a_parameter_that_is_given_to_the_optimiser_later_is_refused():
    """It would be moved by whatever gradient it has."""
    model, extra = model_of(), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    private = run(model, optimizer=optimizer)
    optimizer.add_param_group({"params": [extra]})
    with pytest.raises(Refused, match="not the model's"):
        private.fit(progress=False)


def test_a_parameter_of_the_loss_never_learns():
    temperature = nn.Parameter(torch.ones(1))
    silenced(run(loss=lambda out, y: LOSS(out * temperature, y))).fit(progress=False)
    assert temperature.item() == 1.0
    assert temperature.grad is None


def test_a_loss_that_remembers_rows_is_refused():
    class Remembering(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean: Tensor | float = 0.0

        def forward(self, out: Tensor, y: Tensor) -> Tensor:
            before, self.mean = self.mean, out.detach().mean()
            return LOSS(out - before, y) + before

    with pytest.raises(Refused, match="second time"):
        run(loss=Remembering())


def test_gradients_left_by_a_backward_pass_change_nothing():
    models = [model_of(), model_of()]
    for model, meddled in zip(models, (False, True), strict=True):
        private = silenced(run(model))
        for x, y in private.batches():
            losses = LOSS(model(x), y)
            if meddled:
                losses.sum().backward(retain_graph=True)
            private.step(losses)
    assert torch.allclose(*map(flat, models), atol=1e-5)


def test_nothing_of_a_batch_is_held_when_the_run_is_over():
    private = run()
    private.fit(progress=False)
    assert private._witness._calls == []
    assert private._parts.sums._tape.calls == []
    private.close()
    assert private._witness._batch == ()
    assert not any(module._forward_hooks for module in private.model.modules())
