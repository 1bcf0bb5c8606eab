"""An exported promise is about the weights in the file, whichever runs have trained them."""

from __future__ import annotations

import torch
from torch import nn

from discreet.learn.torch import make_private
from discreet.learn.torch.run_guard import RunState, earlier_runs, remember_steps

X = torch.linspace(-1, 1, 32).reshape(8, 4)
Y = (X.sum(1) > 0).long()


def begun(model, checkpoint=None):
    return make_private(
        model, torch.optim.SGD(model.parameters(), lr=1.0), (X, Y), loss=nn.CrossEntropyLoss(reduction="none"),
        noise_multiplier=4, delta=1e-5, public_rows=8, batch_size=8, steps=4, physical_batch=32, checkpoint=checkpoint,
    )  # fmt: skip


def test_weights_that_two_runs_trained_promise_what_both_spend(tmp_path):
    """Each file said what its own run had spent, though the weights held what an earlier one had learnt as well."""
    model = nn.Linear(4, 2)
    first = begun(model).fit(progress=False).export(tmp_path / "first")
    second = begun(model)
    both = second.fit(progress=False).export(tmp_path / "second")
    assert first.epsilon == second.epsilon
    assert both.epsilon > 1.2 * second.epsilon
    assert "by 2 runs" in str(both)
    assert "runs" not in str(first)


def test_a_run_that_goes_on_and_one_that_took_no_step_count_once_and_not_at_all(tmp_path):
    model = nn.Linear(4, 2)
    begun(model).close()
    begun(model, tmp_path / "run").fit(progress=False).close()
    again = begun(model, tmp_path / "run")
    assert again.export(tmp_path / "file").epsilon == again.epsilon


def test_steps_that_were_begun_and_lost_are_in_the_promise_of_a_later_run():
    """A step that may have been released is spent, whether or not it moved the weights."""
    model, plan = nn.Linear(4, 2), begun(nn.Linear(4, 2)).plan
    remember_steps(model, "earlier", plan, RunState(begun=3, taken=1))
    assert earlier_runs(model, "later") == (plan.after(3),)
