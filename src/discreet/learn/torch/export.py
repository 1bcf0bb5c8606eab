"""Weights that may be given away, with what was promised about them in the head of the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from discreet.errors import InvalidParameter, Refused
from discreet.exact import up
from discreet.formatting import significant_up
from discreet.learn.training.sampling import RunPlan
from discreet.learn.training.training_plan import record_words
from discreet.ledger.private_files import place
from discreet.privacy import Composed, Event, Relation
from discreet.privacy import epsilon as privacy_epsilon
from discreet.stored_names import stored_names

__all__ = ["WeightsPromise", "export_weights", "load_weights"]

_HEAD = "discreet"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPromise:
    """What is promised about a trained model, as it stands in the file of its weights.

    Args:
        name: What the run was called.
        guarantee: The guarantee, in words.
        epsilon: The epsilon of all weights that the run ever showed, at `delta`.
        delta: The delta of the plan.
        relation: The neighbouring relation, as text.
        unit: Who is protected.
        averaged: Whether these are averaged weights.
        plan: The plan of the last run that trained them, as JSON.
    """

    name: str
    guarantee: str
    epsilon: float
    delta: float
    relation: str
    unit: str
    averaged: bool
    plan: str  # of the last run that trained them, as JSON

    def __str__(self) -> str:
        return self.guarantee

    __repr__ = __str__

    @staticmethod
    def of(plan: RunPlan, name: str, *, averaged: bool, earlier: tuple[Event, ...] = ()) -> WeightsPromise:
        """Say what a run promises, once and for all its weights; with earlier runs on the same weights, together."""
        whom = "row" if plan.unit is None else record_words(plan.unit, plan.max_rows)[1]
        epsilon, delta = _together(plan, earlier), up(plan.delta)
        spent = f"ε = {significant_up(epsilon)} at δ = {delta:.3g}"
        runs = f" by {1 + len(earlier)} runs that were planned beforehand" if earlier else ""
        return WeightsPromise(
            name=name,
            guarantee=(
                f"These weights are differentially private{runs}: {spent}, for adding or removing one {whom} of the "
                "training data, whatever else is known and whatever is done with them."
            ),
            epsilon=epsilon,
            delta=delta,
            relation="add-remove",
            unit=plan.unit or "row",
            averaged=averaged,
            plan=plan.to_json(),
        )


# Stored in the heads of weights: these names never change.
_STORED = stored_names(
    {WeightsPromise: "Promise: name guarantee epsilon delta relation unit averaged plan"},
)[WeightsPromise]


def _together(plan: RunPlan, earlier: tuple[Event, ...]) -> float:
    if not earlier:
        return plan.epsilon(plan.delta)
    return privacy_epsilon(Composed([*earlier, plan.event]), plan.delta, relation=Relation.ADD_REMOVE)


def export_weights(path: Path, weights: Mapping[str, Tensor], promise: WeightsPromise) -> None:
    """Write weights and promise as one safetensors file, all of it or nothing."""
    own = {name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in weights.items()}
    place(path, save(own, {_HEAD: json.dumps(dict(_STORED.values(promise)), ensure_ascii=False)}))


def load_weights(model: nn.Module, path: str | Path) -> WeightsPromise:
    """Load exported weights into a model of the same layers, and return what was promised about them.

    Args:
        model: A model of the same layers; its weights are replaced.
        path: The file that `PrivateTraining.export` wrote.

    Returns:
        What was promised about the weights.

    Raises:
        Refused: If the file holds no exported weights.
        InvalidParameter: If the model has other layers or shapes.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(2, 2)
        >>> rows = torch.randn(256, 2), torch.randint(2, (256,))
        >>> private = dp.make_private(
        ...     model, torch.optim.SGD(model.parameters(), lr=0.1), rows,
        ...     loss=torch.nn.CrossEntropyLoss(reduction="none"),
        ...     epsilon=8, delta=1e-5, public_rows=256, batch_size=64, steps=1,
        ... )
        >>> promise = private.fit(progress=False).export("weights.safetensors")
        >>> dp.learn.torch.load_weights(torch.nn.Linear(2, 2), "weights.safetensors").delta
        1e-05
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            told: dict[str, Any] = json.loads((file.metadata() or {})[_HEAD])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        promise = WeightsPromise(**_STORED.arguments(told) or {})
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError):
        raise Refused("this file holds no weights that private.export wrote") from None
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise InvalidParameter("these weights are of a model with other layers or shapes than this one") from None
    return promise
