"""The parts that every private run is put together from, whoever takes part in which step."""

from __future__ import annotations

import json
from math import isqrt
from typing import Any
from weakref import WeakKeyDictionary, ref

from torch import Tensor, nn

from discreet.exact import positive_integer
from discreet.learn.torch.clipping import ClippedSums
from discreet.learn.torch.layers.probe import Probed, probe
from discreet.learn.torch.losses import RowLosses, as_pair
from discreet.learn.torch.paying import MOST_CLAIMS
from discreet.learn.torch.rows import TrainingRows
from discreet.learn.torch.training import PrivateTraining
from discreet.learn.torch.trees import Tree, leaves, mapped
from discreet.learn.training import Clip, RunPlan, grid_for

__all__ = ["claimed_at_once", "end_run", "identity_of", "probed_on", "remember_run", "slots_for", "sums_of"]

# A run holds its model, not the other way round.
_RUNS: WeakKeyDictionary[nn.Module, ref[PrivateTraining]] = WeakKeyDictionary()


def remember_run(private: PrivateTraining) -> PrivateTraining:
    """Note which run trains a model, and hand it on."""
    _RUNS[private.model] = ref(private)
    return private


def end_run(model: nn.Module) -> None:
    """Close the run that trains this model now, if there is one: a cell of a notebook is run again."""
    earlier = _RUNS.pop(model, None)
    private = None if earlier is None else earlier()
    if private is not None:
        private.close()


def slots_for(physical_batch: int | None, batch_size: int) -> int:
    """Choose how many rows go through the model at once, from public facts.

    Batches of at most 320 rows, as few as hold the expected sample and two standard deviations more; all are of one
    size, a multiple of 32, and what is empty in the last one is computed for nothing.
    """
    if physical_batch is not None:
        return positive_integer(physical_batch, name="physical_batch")
    expected = positive_integer(batch_size, name="batch_size")
    likely = expected + 2 * isqrt(expected)
    batches = -(-likely // 320)
    return 32 * -(-likely // (32 * batches))


def claimed_at_once(plan: RunPlan, steps: int | None) -> int:
    """How many steps are claimed at once: what a crash may lose, a hundredth of the run unless said otherwise."""
    chosen = -(-plan.steps // 100) if steps is None else positive_integer(steps, name="checkpoint_every")
    return max(chosen, -(-plan.steps // MOST_CLAIMS))


def probed_on(losses: RowLosses, rows: TrainingRows, slots: int, watch: Tree | None) -> Probed:
    """Try the model on made-up rows, or on public ones where there are at least two."""
    example = as_pair(mapped(lambda part: part[0], losses.view(rows.blank(slots))))
    several = watch is not None and all(len(part) > 1 for part in leaves(watch) if isinstance(part, Tensor))
    return probe(losses.model, losses.loss, example, slots, public=as_pair(watch) if several else None)


def sums_of(losses: RowLosses, rule: Clip, slots: int) -> ClippedSums:
    """Hook the model, with the grid that its size and the clip ask for."""
    parameters = sum(weight.numel() for weight in losses.model.parameters() if weight.requires_grad)
    return ClippedSums(losses.model, clip=rule, grid=float(grid_for(rule.bound, parameters)), physical_batch=slots)


def identity_of(plan: RunPlan, losses: RowLosses, name: str) -> dict[str, Any]:
    """What must be the same for a run to go on: all of it is public."""
    shapes = [[key, list(value.shape), str(value.dtype)] for key, value in losses.model.state_dict().items()]
    return {"plan": json.loads(plan.to_json()), "model": shapes, "name": name, "views": losses.views}
