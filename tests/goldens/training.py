"""Private training of tiny networks: plans, a few steps, streams, clips, checkpoints of weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

import discreet as dp

from .flow import Flow, Said
from .made_up import labels, matrix

__all__ = ["flows"]

_T = dp.learn.training
_SIZE = 300
_LOSS = nn.CrossEntropyLoss(reduction="none")


def flows() -> Iterator[Flow]:
    """Plans, then runs; weights are rounded."""
    torch.set_num_threads(1)
    yield from _plans()
    clips = {
        "flat": 1,
        "per layer": _T.PerLayer(1),
        "automatic": _T.Automatic(1),
        "adaptive": _T.AdaptiveClip(1),
    }
    for name, clip in clips.items():
        yield Flow(f"steps, {name}", lambda clip=clip: _trained(clip=clip), rounded=True)
    for name, make in _models().items():
        yield Flow(f"model {name}", lambda make=make: _trained(make=make), rounded=True)
    yield Flow("epochs for ε", lambda: _trained(budget={"epsilon": 3, "epochs": 1}), rounded=True)
    yield Flow("averaged", lambda: _trained(ema=0.9), rounded=True)
    yield Flow("adam", lambda: _trained(optimiser=dp.learn.torch.DPAdamBC), rounded=True)
    yield Flow("projected", lambda: _trained(projection=dp.learn.torch.L2Ball(1)), rounded=True)
    yield Flow("by hand", lambda: _stepped(), rounded=True)
    yield Flow("stream", lambda: _streamed(), rounded=True)
    yield Flow("stream in bands", lambda: _streamed(band=2), rounded=True)
    yield Flow("refused layer", lambda: _trained(make=lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))))


def _plans() -> Iterator[Flow]:
    how: dict[str, Any] = {"delta": "1e-5", "public_rows": 60_000, "batch_size": 512, "clip": 1, "parameters": 26_010}
    runs: dict[str, dict[str, Any]] = {
        "epochs": {"epsilon": 3, "epochs": 20},
        "steps": {"epsilon": 1, "steps": 100},
        "multiplier": {"noise_multiplier": 1, "steps": 500},
    }
    for name, run in runs.items():
        yield Flow(f"plan by {name}", lambda run=run: _planned(_T.plan_training(physical_batch=256, **how, **run)))
    stream = {**how, "public_rows": 6000, "batch_size": 100}
    yield Flow(
        "plan of a stream",
        lambda: _planned(_T.plan_stream(epsilon=2, epochs=2, physical_batch=50, **stream)),
        rounded=True,
    )


def _planned(plan: Any) -> Said:
    return Said([plan.steps, plan.noise_multiplier, plan.sensitivity, plan.epsilon("1e-5")], plan.describe())


def _data() -> tuple[torch.Tensor, torch.Tensor]:
    rows = matrix(_SIZE, 4)
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(labels(rows))


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def _models() -> dict[str, Any]:
    return {
        "normed": lambda: nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 2)),
        "convolution": lambda: nn.Sequential(
            nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 2), nn.GroupNorm(1, 3), nn.Flatten(), nn.Linear(9, 2)
        ),
    }


def _trained(*, make: Any = _mlp, clip: Any = 1, budget: Any = None, optimiser: Any = None, **more: Any) -> Said:
    torch.manual_seed(3)
    model = make()
    kind = optimiser or torch.optim.SGD
    offer = budget or {"noise_multiplier": 1, "steps": 4}
    how = {"loss": _LOSS, "delta": "1e-5", "public_rows": _SIZE, "batch_size": 40, "clip": clip, **offer, **more}
    private = dp.make_private(model, kind(model.parameters(), lr=0.5), _data(), **how)
    private.fit(progress=False)
    return _learned(private, model)


def _learned(private: Any, model: nn.Module) -> Said:
    weights = [parameter.detach().numpy() for parameter in model.parameters()]
    with TemporaryDirectory() as folder:
        promise = private.export(Path(folder) / "model.safetensors")
    return Said(
        [weights, private.spent.event, private.epsilon], [str(private.spent), str(private.report), str(promise)]
    )


def _stepped() -> Said:
    torch.manual_seed(3)
    model = _mlp()
    how: dict[str, Any] = {"loss": _LOSS, "noise_multiplier": 1, "delta": "1e-5", "steps": 3}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    private = dp.make_private(model, optimiser, _data(), public_rows=_SIZE, batch_size=40, **how)
    for rows, classes in private.batches():
        private.step(_LOSS(model(rows), classes))
    return _learned(private, model)


def _streamed(**more: Any) -> Said:
    torch.manual_seed(3)
    model = _mlp()
    how: dict[str, Any] = {"loss": _LOSS, "epsilon": 4, "delta": "1e-5", "public_rows": _SIZE, "batch_size": 60, **more}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    private = dp.learn.torch.make_private_stream(model, optimiser, _data(), epochs=2, **how)
    private.fit(progress=False)
    weights = [parameter.detach().numpy() for parameter in model.parameters()]
    return Said([weights, private.spent.event, private.epsilon], [str(private.spent), str(private.report)])
