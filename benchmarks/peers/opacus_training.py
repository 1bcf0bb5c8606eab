"""Training steps of Opacus: hooks that keep every gradient (its default), and ghost clipping; float noise."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch
from opacus import PrivacyEngine  # type: ignore[import-not-found]
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.peers.training_models import CLIP, NOISE, RATE, Job, asked, report


def step_of(job: Job, noise: float) -> Callable[[], object]:
    """Return a step of a copy of the network, wrapped as Opacus wants it."""
    network, criterion = deepcopy(job.network), nn.CrossEntropyLoss()
    given = {
        "module": network,
        "optimizer": torch.optim.SGD(network.parameters(), RATE),
        "data_loader": DataLoader(TensorDataset(job.rows, job.labels), batch_size=len(job.rows)),
        "noise_multiplier": noise,
        "max_grad_norm": CLIP,
        "poisson_sampling": False,
        "grad_sample_mode": job.mode,
    }
    if job.mode == "ghost":
        network, optimizer, criterion, _ = PrivacyEngine().make_private(criterion=criterion, **given)
    else:
        network, optimizer, _ = PrivacyEngine().make_private(**given)

    def step() -> None:
        optimizer.zero_grad()
        criterion(network(job.rows), job.labels).backward()
        optimizer.step()

    return step


def main() -> None:
    """Time what the command line names."""
    job = asked()
    report({"clipped": step_of(job, 0.0), "noisy": step_of(job, NOISE)})


if __name__ == "__main__":
    main()
