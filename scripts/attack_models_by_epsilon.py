"""Attack models of the bundled county, plain ones and privately trained ones: the table of docs/attacks/models.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import data, noise
from discreet.lab import attacks
from discreet.lab.attacks.lab_tables import encoder, numbered
from discreet.lab.attacks.membership import softmax, softmax_regressions
from discreet.privacy import Gaussian, Repeated, epsilon, gaussian_sigma

DELTA, STEPS, FINE = 1e-6, 40, 2**16
COLUMNS = ["zip", "birth_date", "sex", "nights", "cost"]


@dataclass(frozen=True)
class PrivateDescent:
    """Gradient descent on everybody, with gradients clipped to length 1 and Gaussian noise: DP-SGD without sampling."""

    multiplier: float

    @property
    def event(self) -> Repeated:
        return Repeated(Gaussian(variance=str(self.multiplier**2), squared_sensitivity=1), STEPS)

    def __call__(self, rows: Any, labels: Any, inside: Any) -> Callable[[Any], Any]:
        examples = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        lengths, classes = np.linalg.norm(examples, axis=1), np.eye(labels.max() + 1)[labels]
        weights = np.zeros((len(inside), examples.shape[1], classes.shape[1]))
        for _ in range(STEPS):
            wrong = softmax(examples @ weights) - classes
            clipped = inside / np.maximum(1, lengths * np.linalg.norm(wrong, axis=2))
            drawn = noise.rounded_gaussian(round(self.multiplier * FINE), weights.shape) / FINE
            weights = weights - 4 * (examples.T @ (wrong * clipped[:, :, None]) + drawn) / (len(rows) / 2)
        return lambda asked: softmax(np.concatenate([asked, np.ones((len(asked), 1))], axis=1) @ weights)


def lines(people: int, shadows: int) -> Iterator[str]:
    with data.folder("hospital") as folder:
        read = attacks.read_columns(folder / "stays.parquet", [*COLUMNS, "diagnosis"], people=people)
    rows, labels = encoder(read, COLUMNS)(read), numbered(read["diagnosis"])[1]
    yield line("plain", softmax_regressions, rows, labels, shadows, None)
    for target in (10, 1, 0.1):
        trained = PrivateDescent(float(gaussian_sigma(target, DELTA)) * STEPS**0.5)
        assert epsilon(trained.event, DELTA) < 1.01 * target
        yield line(f"ε = {target:g}", trained, rows, labels, shadows, trained.event)


def line(name: str, train: Any, rows: Any, labels: Any, shadows: int, event: Any) -> str:
    begun = time.perf_counter()
    found = attacks.membership(train, rows, labels, shadows=shadows, targets=4, many=True, event=event).value
    assert not found.refutes(error=1e-9)
    cells = [name]
    for attacker in found.attackers:
        cells.append(f"{attacker.auc:.3f}")
        cells += [f"{100 * one.members.share:.1f} %" for one in attacker.found]
    cells += ["" if one.ceiling is None else f"{100 * one.ceiling:.1f} %" for one in found.attackers[1].found]
    print(f"{time.perf_counter() - begun:.0f} s", end="  ", flush=True)
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    for one in lines(people=1000, shadows=16):
        print(one, flush=True)
