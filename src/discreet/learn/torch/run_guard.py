"""What must not change behind a run's back: its weights, its buffers, and who steps its optimiser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, clear_autocast_cache, nn
from torch.optim import LBFGS, Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from discreet.errors import Refused
from discreet.learn.torch.checkpoints import pack, unpack
from discreet.learn.torch.clipping.tape import all_modules
from discreet.learn.torch.noisy_step import NoisyStep
from discreet.learn.training.sampling import RunPlan
from discreet.privacy import Event

__all__ = ["Guard", "RunState", "check_optimizer", "check_scheduler", "earlier_runs", "remember_steps"]


def check_optimizer(model: nn.Module, optimizer: Optimizer) -> None:
    """Refuse an optimiser that moves something else than the trained weights of the model, or not all of them."""
    if isinstance(optimizer, LBFGS):
        raise Refused(
            "LBFGS evaluates the loss several times in a step",
            reason="each evaluation reads the rows again, and only one is paid for",
            way_out="use SGD, Adam or another optimiser that takes one gradient a step",
        )
    moved = set(_held(optimizer))
    own = {id(weight) for weight in model.parameters()}
    trained = {id(weight) for weight in model.parameters() if weight.requires_grad}
    if moved - own:
        raise Refused(
            "the optimiser holds parameters that are not the model's",
            reason="they would be moved by gradients that nobody clipped",
            way_out="make it with model.parameters(), after the model has its final layers",
        )
    if trained - moved:
        raise Refused(
            "the model has trainable parameters that the optimiser does not hold",
            reason="they would get noise and never learn",
            way_out="freeze them with parameter.requires_grad_(False), or give them to the optimiser",
        )


def check_scheduler(scheduler: object, optimizer: Optimizer) -> None:
    """Refuse a scheduler that follows a loss, or that belongs to another optimiser."""
    if isinstance(scheduler, ReduceLROnPlateau):
        raise Refused(
            "ReduceLROnPlateau follows a loss, and the losses of private rows are not for it to see",
            reason="a learning rate that depends on them would tell about rows without being paid for",
            way_out="use a schedule that is fixed beforehand, such as CosineAnnealingLR over the steps of the plan",
        )
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        raise Refused(
            "the scheduler belongs to another optimiser", way_out="make it with the one given to make_private"
        )


@final
class Guard:
    """Remembers how a model was left, and lets only the run itself step the optimiser.

    Weights may change by noisy steps only, and buffers not at all: a running mean of private rows would leave the
    model without noise.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._moved = _held(optimizer)
        self._ours = False
        self._hook = optimizer.register_step_pre_hook(self._check_step)
        self.renew()

    def renew(self) -> None:
        """Take the model as it is now."""
        modules = all_modules(self._model)
        self._weights = _stamps(modules)
        self._buffers = {place: buffer.detach().clone() for place, buffer in _buffers(modules).items()}

    def check(self) -> None:
        """Refuse a model that something else has changed."""
        modules = all_modules(self._model)
        if _stamps(modules) != self._weights:
            raise Refused(
                "the weights were changed by something else than private.step",
                reason="what was learnt another way is not covered by this run's guarantee",
                way_out="load weights before make_private; what projection=… and ema=… do to weights is free",
            )
        self._check_moved()
        self._check_buffers(_buffers(modules))

    def _check_moved(self) -> None:
        """Look at the optimiser again if it holds something else than it did."""
        moved = _held(self._optimizer)
        if moved != self._moved:
            check_optimizer(self._model, self._optimizer)
            self._moved = moved

    def check_buffers(self) -> None:
        """Refuse buffers that training changes."""
        self._check_buffers(_buffers(all_modules(self._model)))

    def _check_buffers(self, now: dict[tuple[int, str], Tensor]) -> None:
        if now.keys() != self._buffers.keys() or not all(
            _same(now[place], old) for place, old in self._buffers.items()
        ):
            raise Refused(
                "a buffer of the model changes while it is trained",
                reason="buffers get no noise, so what they learn about rows would leave with the model",
                way_out="use layers that keep no statistics of the data, such as GroupNorm or LayerNorm",
            )

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Let the optimiser step, and take the weights as they are afterwards."""
        self._ours = True
        try:
            yield
        finally:
            self._ours = False
            self._weights = _stamps(all_modules(self._model))
            clear_autocast_cache()  # It holds weights as they were.

    @property
    def in_step(self) -> bool:
        """Whether weights are being moved right now."""
        return self._ours

    def close(self) -> None:
        """Give the optimiser back."""
        self._hook.remove()

    def _check_step(self, _optimizer: Optimizer, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        if not self._ours:
            raise Refused(
                "optimizer.step() is called by private.step, when a logical batch is complete and has its noise",
                reason="called from outside it would use gradients without noise",
                way_out="leave loss.backward(), optimizer.step() and zero_grad() out of the loop",
            )


# Modules hold few things themselves; asking each takes a third of the time that `named_parameters` takes.


def _stamps(modules: list[nn.Module]) -> list[tuple[int, str, int, int, bool]]:
    return [
        (id(module), name, id(weight), weight._version, weight.requires_grad)
        for module in modules
        for name, weight in module._parameters.items()
        if weight is not None
    ]


def _buffers(modules: list[nn.Module]) -> dict[tuple[int, str], Tensor]:
    return {
        (id(module), name): buffer
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    }


def _held(optimizer: Optimizer) -> list[int]:
    return [id(weight) for group in optimizer.param_groups for weight in group["params"]]


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


# --- run_state: Where a run stands: what a checkpoint holds, and how a run goes on from it. ---


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
        clear_autocast_cache()  # The trial has filled it with weights as they were.
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


def earlier_runs(model: nn.Module, run: object, unit: str | None = None) -> tuple[Event, ...]:
    """Return what each other run has spent whose steps are in these weights, if all protect the same."""
    known = [each for key, each in _RUNS.get(model, {}).items() if key != run and each[1].begun]
    if any(plan.unit != unit for plan, _ in known):
        raise Refused(
            "another run has trained these weights, and it protects somebody else than this one does",
            reason="what runs spend adds up only for one unit: a run that protects rows promises less to a person",
            way_out="begin with fresh weights, or train all runs with the same unit",
        )
    return tuple(plan.after(standing.begun) for plan, standing in known)
