"""What trained a model before: weights that several runs have moved promise what all of them spend together."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from torch import nn

from discreet.learn.torch.standing import RunState
from discreet.learn.training import RunPlan
from discreet.privacy import Event

__all__ = ["earlier_runs", "remember_steps"]

# By model and run. A run that goes on from its folder is the same one.
_RUNS: WeakKeyDictionary[nn.Module, dict[object, tuple[RunPlan, RunState]]] = WeakKeyDictionary()


def remember_steps(model: nn.Module, run: object, plan: RunPlan, standing: RunState) -> None:
    """Note that a run moves the weights of a model; `standing` says at any time how far it is."""
    _RUNS.setdefault(model, {})[run] = (plan, standing)


def earlier_runs(model: nn.Module, run: object) -> tuple[Event, ...]:
    """Return what each other run has spent whose steps are in these weights."""
    known = _RUNS.get(model, {}).items()
    return tuple(plan.after(standing.begun) for key, (plan, standing) in known if key != run and standing.begun)
