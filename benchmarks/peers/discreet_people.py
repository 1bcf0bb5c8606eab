"""User-level DP-SGD of ours on people with twenty rows, with 1, 5 and 20 of them in a step."""

from __future__ import annotations

import sys

import torch

from benchmarks.peers.protocol import emit
from benchmarks.people_jobs import BATCH, DELTA, PEOPLE, STEPS, TRIED, network, people_table, right
from discreet.learn.torch import make_private


def accuracy(epsilon: int, max_rows: int, clip: float, rate: float, seed: int) -> float:
    """Train once, and return the share of right answers about other people."""
    table, model = people_table(seed), network(seed)
    private = make_private(
        model,
        torch.optim.SGD(model.parameters(), rate),
        (table.x, table.y),
        loss=torch.nn.CrossEntropyLoss(reduction="none"),
        epsilon=epsilon,
        delta=DELTA,
        unit=table.ids,
        max_rows=max_rows,
        public_units=PEOPLE,
        batch_size=BATCH,
        steps=STEPS,
        clip=clip,
        physical_batch=128,
    )
    private.fit(progress=False)
    return right(model, table)


def main(epsilon: int, seeds: int) -> None:
    """Report every number of rows in a step, with every clip and learning rate."""
    torch.set_num_threads(1)
    for max_rows in (1, 5, 20):
        for clip, rate in TRIED:
            found = [accuracy(epsilon, max_rows, clip, rate, seed) for seed in range(seeds)]
            emit(way=f"at most {max_rows}", clip=clip, rate=rate, accuracies=found)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
