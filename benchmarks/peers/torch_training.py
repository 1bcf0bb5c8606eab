"""Training steps of plain torch, and of `torch.func` compiled: gradients of all rows at once, then clipped."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from benchmarks.peers.training_models import CLIP, NOISE, POOL, RATE, Job, asked, pool, report


def plain(job: Job) -> dict[str, Callable[[], object]]:
    """Return an ordinary step."""
    optimizer = torch.optim.SGD(job.network.parameters(), RATE)

    def step() -> None:
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(job.network(job.rows), job.labels))
        optimizer.step()

    return {"not private": step}


def loop(job: Job) -> dict[str, Callable[[], object]]:
    """Return an ordinary step on rows that are drawn from many."""
    optimizer, (rows, labels) = torch.optim.SGD(job.network.parameters(), RATE), pool(job)

    def step() -> None:
        drawn = torch.randint(0, POOL, (len(job.rows),))
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(job.network(rows[drawn]), labels[drawn]))
        optimizer.step()

    return {"loop": step}


def compiled(job: Job) -> dict[str, Callable[[], object]]:
    """Return steps with and without (insecure float) noise."""
    weights = {name: value.detach() for name, value in job.network.named_parameters()}

    def loss(values: dict[str, Tensor], row: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(job.network, values, (row[None],)), label[None])

    def clipped(values: dict[str, Tensor], rows: Tensor, labels: Tensor) -> dict[str, Tensor]:
        found = vmap(grad(loss), (None, 0, 0))(values, rows, labels)
        squares = torch.stack([value.flatten(1).square().sum(1) for value in found.values()]).sum(0)
        factors = (CLIP / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        return {name: torch.tensordot(factors, value, 1) for name, value in found.items()}

    quick = torch.compile(clipped)

    def step(noise: float) -> None:
        for name, value in quick(weights, job.rows, job.labels).items():
            if noise:
                value += torch.randn_like(value) * (noise * CLIP)
            weights[name] -= RATE / len(job.rows) * value

    return {"clipped": lambda: step(0.0), "noisy": lambda: step(NOISE)}


def main() -> None:
    """Time what the command line names."""
    job = asked()
    report({"plain": plain, "loop": loop, "compiled": compiled}[job.mode](job))


if __name__ == "__main__":
    main()
