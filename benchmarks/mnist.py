"""MNIST as it is distributed, and the rows of the table that is learnt from it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["DELTA", "MNIST_RUNS", "PUBLIC_SIZE", "RECIPES", "Digits", "Recipe", "read_digits"]

Bytes = NDArray[np.uint8]
DELTA: Final = "1e-5"
PUBLIC_SIZE: Final = 60_000
MNIST_RUNS: Final = 3


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained: all of it public, and found on MNIST itself."""

    name: str
    model: str  # "linear" or "cnn"
    epsilon: int
    batch: int
    steps: int
    rate: float
    clip: str
    average: float  # decay of averaged weights
    goal: float  # accuracy in per cent
    published: str


_LINEAR: Final = "fixed features + linear"
RECIPES: Final = {
    "linear-3": Recipe(_LINEAR, "linear", 3, 4096, 800, 60.0, "0.1", 0.97, 98.5, "98.7 (ScatterNet + linear)"),
    "linear-1": Recipe(_LINEAR, "linear", 1, 4096, 300, 40.0, "0.1", 0.97, 97.5, "–"),
    "cnn-3": Recipe("CNN, 26,010 weights", "cnn", 3, 512, 4688, 0.5, "0.1", 0.999, 98.1, "98.1 (the same network)"),
}


@dataclass(frozen=True, slots=True)
class Digits:
    """Pictures of 28 by 28 bytes and the digits they show."""

    pictures: Bytes
    classes: Bytes


def read_digits(folder: Path, part: str) -> Digits:
    """Read "train" or "t10k" from a folder with the four files, or with a folder `mnist` that has them."""
    home = folder / "mnist" if (folder / "mnist").is_dir() else folder
    return Digits(_idx(home / f"{part}-images-idx3-ubyte.gz"), _idx(home / f"{part}-labels-idx1-ubyte.gz"))


def _idx(path: Path) -> Bytes:
    """Read whole numbers of one byte: four bytes of kind, the last one the number of sides, then the sides."""
    raw = np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8)
    sides = int(raw[3])
    shape = raw[4 : 4 + 4 * sides].view(">u4")
    return raw[4 + 4 * sides :].reshape(tuple(int(side) for side in shape)).copy()
