"""Discreet: a model learns MNIST privately, several times, and is tried on the digits that are set apart."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.mnist import DELTA, MNIST_RUNS, PUBLIC_SIZE, RECIPES, Digits, Recipe, read_digits
from benchmarks.peers.protocol import emit, is_quick
from discreet.learn.torch import make_private
from discreet.learn.torch.features import StrokeFeatures

Rows = tuple[Tensor, Tensor]
SLOTS = {"linear": 4096, "cnn": 288}


def network(kind: str) -> nn.Module:
    """Return the linear model, or the network of Tramèr and Boneh."""
    if kind == "linear":
        model = nn.Linear(StrokeFeatures().count, 10)
        nn.init.zeros_(model.weight)
        return model
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def prepared(digits: Digits, kind: str) -> Rows:
    """Return what the model is given; a row depends on its picture only."""
    pictures, classes = torch.from_numpy(digits.pictures), torch.from_numpy(digits.classes).long()
    if kind == "linear":
        return StrokeFeatures()(pictures), classes
    return pictures[:, None].float() / 127.5 - 1, classes


def trained(recipe: Recipe, rows: Rows, steps: int) -> tuple[nn.Module, float]:
    """Train once; return the averaged model and the epsilon of the whole run."""
    model = network(recipe.model)
    private = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=recipe.rate, momentum=0.9),
        rows,
        loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=recipe.epsilon,
        delta=DELTA,
        public_rows=PUBLIC_SIZE,
        batch_size=recipe.batch,
        steps=steps,
        clip=recipe.clip,
        ema=recipe.average,
        physical_batch=min(recipe.batch, SLOTS[recipe.model]),
    )
    private.fit(progress=False)
    with private.averaged():
        weights = {name: value.clone() for name, value in model.state_dict().items()}
    private.close()
    model.load_state_dict(weights)
    return model, private.epsilon


def accuracy(model: nn.Module, tests: Rows) -> float:
    """Return the share of digits that are told right, in per cent."""
    right, (x, y) = 0, tests
    with torch.no_grad():
        for start in range(0, len(y), 1000):
            some = slice(start, start + 1000)
            right += int((model(x[some]).argmax(1) == y[some]).sum())
    return 100 * right / len(y)


def asked() -> Iterator[Recipe]:
    """Return the recipes of the model that the command line names."""
    return (recipe for recipe in RECIPES.values() if recipe.model == sys.argv[2])


def main() -> None:
    """Report every run of a model: what it reached, what it spent, and how long it took."""
    torch.set_num_threads(1)
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    start = time.perf_counter()
    rows, tests = (prepared(read_digits(folder, part), kind) for part in ("train", "t10k"))
    emit(part="features", model=kind, minutes=(time.perf_counter() - start) / 60)
    for recipe in asked():
        steps = recipe.steps // 20 if is_quick() else recipe.steps
        for run in range(MNIST_RUNS):
            start, cpu = time.perf_counter(), time.process_time()
            model, epsilon = trained(recipe, rows, steps)
            emit(
                part="run",
                model=kind,
                wanted=recipe.epsilon,
                run=run,
                accuracy=accuracy(model, tests),
                epsilon=epsilon,
                steps=steps,
                minutes=(time.perf_counter() - start) / 60,
                cpu_minutes=(time.process_time() - cpu) / 60,
            )


if __name__ == "__main__":
    main()
