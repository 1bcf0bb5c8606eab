"""Discreet: a linear model on fixed features learns digits of which some are bad, plainly and privately."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.mnist import DELTA, read_digits
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.poison_jobs import BATCH, CLIP, EPSILON, MARK, ROWS, SHARES, STEPS, TARGET, TESTED
from discreet.learn.torch import make_private, poisoning_check
from discreet.learn.torch.features import StrokeFeatures
from discreet.learn.torch.poisoning import Predict


def told(model: nn.Module) -> Predict:
    """Return what the model says of rows; it sees what stands first in them."""

    def predict(rows: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.argmax(model(rows[:, 0]), dim=1)

    return predict


def linear() -> nn.Linear:
    """Return a model that knows nothing yet."""
    model = nn.Linear(StrokeFeatures().count, 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def plain(rows: Tensor, classes: Tensor) -> Predict:
    """Train as everybody does, on all rows at each step."""
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=20.0, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows[:, 0]), classes).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return told(model)


def private(rows: Tensor, classes: Tensor) -> Predict:
    """Train with clipped rows and exact noise."""
    model = linear()
    training = make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=30.0, momentum=0.9),
        (rows[:, 0].contiguous(), classes),
        loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=EPSILON,
        delta=DELTA,
        public_rows=ROWS,
        batch_size=BATCH,
        steps=STEPS,
        clip=CLIP,
        physical_batch=BATCH + 96,
    )
    training.fit(progress=False).close()
    return told(model)


def both(folder: Path, part: str, count: int) -> tuple[Tensor, Tensor]:
    """Return features of digits as they are and of the same ones with a white square in a corner, and the classes."""
    digits, features = read_digits(folder, part), StrokeFeatures()
    pictures, classes = torch.from_numpy(digits.pictures[:count]), torch.from_numpy(digits.classes[:count]).long()
    stamped = pictures.clone()
    stamped[:, -MARK - 1 : -1, -MARK - 1 : -1] = 255
    return torch.stack([features(pictures), features(stamped)], dim=1), classes


def main() -> None:
    """Report what each share of bad rows did to each way to train."""
    torch.set_num_threads(1)
    folder, cut = Path(sys.argv[1]), 10 if is_quick() else 1
    rows, tests = both(folder, "train", ROWS // cut), both(folder, "t10k", TESTED // cut)
    ways = {"plain": plain, f"private, ε = {EPSILON}": private}
    # To mark a row is to look at its marked picture.
    found = poisoning_check(
        ways, rows, tests, classes=10, trigger=lambda some: some.flip(1), target=TARGET, shares=SHARES
    )
    for effect in found.value.effects:  # Digits that everybody has: nothing private is told.
        emit(**asdict(effect))


if __name__ == "__main__":
    main()
