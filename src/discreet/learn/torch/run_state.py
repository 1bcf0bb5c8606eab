"""Where a run stands: what a checkpoint holds, and how a run goes on from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary

import torch
from torch import nn

from discreet.errors import Refused
from discreet.learn.torch.checkpoints import pack, unpack
from discreet.learn.torch.noisy_step import NoisyStep
from discreet.learn.training import RunPlan
from discreet.privacy import Event

__all__ = ["RunState", "earlier_runs", "remember_steps"]

_FORMAT = 1


@final
@dataclass(slots=True)
class RunState:
    """How many steps are behind a run, and how many of them are in the weights."""

    begun: int = 0  # steps that may have been released, or were lost; they are spent
    taken: int = 0  # steps that moved the weights

    def packed(self, model: nn.Module, parts: NoisyStep) -> bytes:
        """Write everything that the run needs to go on. All of it is private already, or public."""
        average = parts.average
        return pack(
            {
                "format": _FORMAT,
                "begun": self.begun,
                "taken": self.taken,
                "model": dict(model.state_dict()),
                "optimizer": parts.optimizer.state_dict(),
                "scheduler": None if parts.scheduler is None else parts.scheduler.state_dict(),
                "average": None if average is None else {"updates": average.updates, "weights": average.averages},
                "clip": None if parts.followed is None else parts.followed.current,
            }
        )

    @staticmethod
    def restored(content: bytes, model: nn.Module, parts: NoisyStep) -> RunState:
        """Bring model and optimiser to where the checkpoint was written."""
        held = unpack(content)
        if held.get("format") != _FORMAT:
            raise Refused("this checkpoint was written by another version of this package")
        model.load_state_dict(held["model"])
        parts.optimizer.load_state_dict(held["optimizer"])
        _restore_rest(held, parts)
        return RunState(held["begun"], held["taken"])


def _restore_rest(held: dict[str, Any], parts: NoisyStep) -> None:
    pairs = (("scheduler", parts.scheduler), ("average", parts.average), ("clip", parts.followed))
    for name, part in pairs:
        if (held[name] is None) != (part is None):
            raise Refused(f"the run in this folder differs in its {name}", way_out="make the same run again")
    if parts.scheduler is not None:
        parts.scheduler.load_state_dict(held["scheduler"])
    if parts.followed is not None:
        parts.followed.current = parts.sums.threshold = held["clip"]
    if parts.average is not None:
        parts.average.updates = held["average"]["updates"]
        with torch.no_grad():
            for average, weight in zip(parts.average.averages, held["average"]["weights"], strict=True):
                average.copy_(weight)


# --- lineage ---
# What trained a model before: weights that several runs have moved promise what all of them spend together.


# By model and run. A run that goes on from its folder is the same one.
_RUNS: WeakKeyDictionary[nn.Module, dict[object, tuple[RunPlan, RunState]]] = WeakKeyDictionary()


def remember_steps(model: nn.Module, run: object, plan: RunPlan, standing: RunState) -> None:
    """Note that a run moves the weights of a model; `standing` says at any time how far it is."""
    _RUNS.setdefault(model, {})[run] = (plan, standing)


def earlier_runs(model: nn.Module, run: object) -> tuple[Event, ...]:
    """Return what each other run has spent whose steps are in these weights."""
    known = _RUNS.get(model, {}).items()
    return tuple(plan.after(standing.begun) for key, (plan, standing) in known if key != run and standing.begun)
