"""Discreet: a diffusion model learns MNIST at 14 x 14; classifiers learn from what it draws and see real digits.

`discreet_diffusion.py DATA [SHEETS]`: the second folder, if there is one, gets a sheet of a hundred drawn digits each.
"""

from __future__ import annotations

import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import discreet as dp
from benchmarks.mnist import DELTA, PUBLIC_SIZE, Digits, read_digits
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.twelve_classifiers import for_pictures
from discreet.synth.diffusion import Diffusion

SIDE, EPSILONS, DRAWN, QUICK_DRAWN, QUICK_STEPS = 14, (1, 10), 20_000, 1_000, 2
Bytes = NDArray[np.uint8]


def pooled(digits: Digits) -> Bytes:
    """Average two by two pixels of each digit by itself."""
    fours = digits.pictures.reshape(-1, SIDE, 2, SIDE, 2).astype(np.uint16).sum((2, 4))
    small: Bytes = ((fours + 2) // 4).astype(np.uint8)
    return small.reshape(-1, SIDE * SIDE)


def convolutional() -> nn.Module:
    """The small network by which DPDM is judged, without its third layer: pictures are half as wide here."""
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)), nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5),
        nn.Linear(576, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def convolutional_accuracy(pictures: Tensor, labels: Tensor, seen: Tensor, truth: Tensor, epochs: int) -> float:
    """Train it on drawn pictures and say how many real ones it knows."""
    model = convolutional()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(128):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    with torch.no_grad():
        return float((model.eval()(seen).argmax(1) == truth).float().mean())


def judge(drawn: tuple[Bytes, NDArray[np.integer]], tests: Digits, **facts: object) -> None:
    """Let three classifiers learn from drawn pictures, and see the 10,000 real ones that are set apart."""
    pictures, seen = drawn[0].reshape(len(drawn[0]), -1) / 255, pooled(tests) / 255
    for name in ("LR", "MLP"):
        model = for_pictures(name).fit(pictures, drawn[1])
        accuracy = float(np.mean(model.predict(seen) == tests.classes))
        emit(part="classifier", classifier=name, accuracy=accuracy, **facts)
    tensors = (torch.from_numpy(part).float() for part in (pictures, seen))
    labels, truth = torch.from_numpy(drawn[1].astype(np.int64)), torch.from_numpy(tests.classes.astype(np.int64))
    shown, real = tensors
    accuracy = convolutional_accuracy(shown, labels, real, truth, 1 if is_quick() else 10)
    emit(part="classifier", classifier="CNN", accuracy=accuracy, **facts)


def sheet(pictures: Bytes, labels: NDArray[np.integer], path: Path) -> None:
    """Write ten of each class as one grey PNG, a row a class."""
    rows = [pictures[labels == label][:10].reshape(-1, SIDE, SIDE) for label in range(10)]
    whole = np.concatenate([np.concatenate(list(row), axis=1) for row in rows]).repeat(4, 0).repeat(4, 1)
    lines = b"".join(b"\0" + line.tobytes() for line in whole)
    head = struct.pack(">IIBBBBB", whole.shape[1], whole.shape[0], 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def measure(folder: Path, sheets: Path | None) -> None:
    """Fit one model for each epsilon."""
    train, tests = read_digits(folder, "train"), read_digits(folder, "t10k")
    count = QUICK_DRAWN if is_quick() else DRAWN
    judge((pooled(train)[:count], train.classes[:count]), tests, epsilon="real")
    domain = dp.synth.Images(SIDE, SIDE, classes=range(10))
    for epsilon in EPSILONS:
        method = Diffusion(steps=QUICK_STEPS) if is_quick() else Diffusion()
        begun, cpu = time.perf_counter(), time.process_time()
        model = dp.synthesize(
            (pooled(train), train.classes), method, domain=domain, epsilon=epsilon, delta=DELTA,
            public_rows=PUBLIC_SIZE, progress=False,
        )  # fmt: skip
        emit(
            part="fit", epsilon=epsilon, minutes=(time.perf_counter() - begun) / 60,
            cpu_minutes=(time.process_time() - cpu) / 60,
        )  # fmt: skip
        drawn = model.sample(count)
        judge((drawn.images, drawn.labels), tests, epsilon=epsilon)
        if sheets is not None:
            sheet(drawn.images.reshape(count, -1), drawn.labels, sheets / f"diffusion-{epsilon}.png")


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("--")]
    measure(given[0], given[1] if len(given) > 1 else None)
