"""Opacus on people with twenty rows: noise for twenty rows (group privacy), or one row of each person."""

from __future__ import annotations

import sys

import torch
from opacus import PrivacyEngine  # type: ignore[import-not-found]
from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found]
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.peers.protocol import emit
from benchmarks.people_jobs import (
    BATCH,
    DELTA,
    EACH,
    PEOPLE,
    STEPS,
    TRIED,
    PeopleTable,
    network,
    people_table,
    right,
)

SHARE = BATCH / PEOPLE


def trained(model: nn.Module, x: torch.Tensor, y: torch.Tensor, noise: float, clip: float, rate: float) -> None:
    """Train for as many steps as everybody, each on a Poisson sample of a fifth of the rows."""
    loader = DataLoader(TensorDataset(x, y), batch_size=round(SHARE * len(x)))
    network_, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), rate),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=clip,
    )
    done = 0
    while done < STEPS:
        for rows, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network_(rows), labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            done += 1
            if done == STEPS:
                break


def plainly(model: nn.Module, table: PeopleTable, rate: float) -> None:
    """Train without privacy, on all rows in every step."""
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(table.x), table.y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def accuracy(way: str, noise: float, clip: float, rate: float, seed: int) -> float:
    """Train once, and return the share of right answers about other people."""
    table, model = people_table(seed), network(seed)
    if way == "not private":
        plainly(model, table, rate * clip)
    elif way == "one row a person":
        trained(model, table.x[::EACH], table.y[::EACH], noise, clip, rate)
    else:
        trained(model, table.x, table.y, EACH * noise, clip, rate)
    return right(model, table)


def main(epsilon: int, seeds: int) -> None:
    """Report every way, with every clip and learning rate."""
    torch.set_num_threads(1)
    noise = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=DELTA, sample_rate=SHARE, steps=STEPS, accountant="prv"
    )
    for way in ("not private", "noise for 20 rows", "one row a person"):
        for clip, rate in TRIED if way != "not private" else TRIED[-2:]:
            found = [accuracy(way, noise, clip, rate, seed) for seed in range(seeds)]
            emit(way=way, clip=clip, rate=rate, accuracies=found)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
