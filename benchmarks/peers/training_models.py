"""The networks whose training steps are timed, and how a step is timed, for every subject alike."""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import alternate

__all__ = ["CLIP", "NOISE", "POOL", "RATE", "Job", "asked", "pool", "report"]

CLIP, NOISE, RATE = 1.0, 1.0, 0.1  # clip, noise multiplier, learning rate
POOL = 60_000  # rows that a whole loop draws its batches from
STEPS = 5  # of one timing: noise that is drawn ahead in one step is then paid in another
SECONDS = 4.0


class Job(NamedTuple):
    """What the command line asks for: a network, rows that suit it, and the way to train it."""

    model: str
    mode: str
    network: nn.Module
    rows: Tensor
    labels: Tensor


class Attention(nn.Module):
    """Self-attention from linear layers, as every subject can hook them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        mixed: Tensor = functional.scaled_dot_product_attention(query, key, value)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        return torch.unflatten(x, 2, (self.heads, -1)).transpose(1, 2)


class Transformer(nn.Module):
    """One block of width 64 with four heads, over 32 positions of 32 numbers; 53,000 parameters."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(32, width), nn.Linear(width, 10)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        x = x + self.attention(self.first(x))
        x = x + self.inner(self.second(x))
        out: Tensor = self.leave(x.mean(1))
        return out


def perceptron() -> nn.Module:
    """784-256-10; 203,000 parameters."""
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def wide() -> nn.Module:
    """784-1024-1024-10; 1,863,000 parameters."""
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def convolutions() -> nn.Module:
    """The small network of Tramer and Boneh for MNIST; 26,000 parameters."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten()),
        *(nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10)),
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (perceptron, (784,)),
    "wide": (wide, (784,)),
    "cnn": (convolutions, (1, 28, 28)),
    "transformer": (Transformer, (32, 32)),
}


def asked() -> Job:
    """Read network, batch, threads and mode from the command line; make the network and rows."""
    model, batch, threads, mode = sys.argv[1:5]
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    _keep_memory()
    make, shape = NETWORKS[model]
    return Job(model, mode, make(), torch.randn(int(batch), *shape), torch.randint(0, 10, (int(batch),)))


def pool(job: Job) -> tuple[Tensor, Tensor]:
    """Make up the rows of a whole loop."""
    return torch.randn(POOL, *job.rows.shape[1:]), torch.randint(0, 10, (POOL,))


def report(steps: dict[str, Callable[[], object]], **facts: object) -> None:
    """Time one training step of each way, in turns, and tell the largest memory of the process."""
    before = _megabytes()
    jobs = {name: _several(step) for name, step in steps.items()}
    for job in jobs.values():
        job()
    timings = alternate(jobs, repetitions=3 if is_quick() else 200, seconds=3.0 if is_quick() else SECONDS)
    peak = _megabytes()
    for name, timing in timings.items():
        share = timing.per(STEPS)
        times = {"cpu_ms": share.cpu * 1e3, "wall_ms": share.wall * 1e3}
        emit(way=name, **times, peak_mb=peak, growth_mb=peak - before, repetitions=timing.repetitions, **facts)


def _several(step: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(STEPS):
            step()

    return run


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _keep_memory() -> None:
    """Let the C library keep freed memory: all subjects are faster, Opacus three times on the perceptron."""
    if (adjust := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        adjust(-3, 1 << 30)  # M_MMAP_THRESHOLD
        adjust(-1, 1 << 30)  # M_TRIM_THRESHOLD
