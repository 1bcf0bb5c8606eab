"""A survey that nobody took: train a model on it privately, on a ledger, with checkpoints, and give it away.

    python examples/train_privately.py [folder]

The ledger, the checkpoints and the weights go into the folder, or into a temporary one. Interrupt it and start it
again with the same folder: it goes on where it was, and is not charged again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import discreet as dp
from discreet.learn.torch import DPAdamBC, load_weights
from discreet.ledger import Account, Ledger

PEOPLE = 8000  # About how many took part, as everybody knows.
LOSS = nn.CrossEntropyLoss(reduction="none")


def survey(people: int, seed: int) -> tuple[Tensor, Tensor]:
    """Make answers up: twelve numbers a person, and which of three groups they are in. They are about nobody."""
    chance = torch.Generator().manual_seed(seed)
    group = torch.randint(3, (people,), generator=chance)
    answers = 0.4 * torch.randn(people, 12, generator=chance)
    answers[torch.arange(people), 4 * group] += 1
    return answers, group


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 3))


def accuracy(model: nn.Module, rows: tuple[Tensor, Tensor]) -> float:
    x, y = rows
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def main(folder: Path) -> None:
    """Pay, train, export; then load the weights as whoever was given them would."""
    torch.set_num_threads(1)
    public = survey(300, seed=2)  # Rows that are nobody's secret: their loss may be shown.
    account = Account("survey", unit="row", relation=dp.Relation.ADD_REMOVE, budget=dp.Budget(epsilon=4, delta=1e-4))
    model = network()
    with (
        Ledger.open(folder / "survey.ledger", account) as ledger,
        dp.make_private(
            model,
            DPAdamBC(model.parameters(), lr=0.02),
            survey(PEOPLE + 17, seed=1),  # The true number is private, and changes nothing that is shown.
            loss=LOSS,
            epsilon=2,
            delta=1e-5,
            public_rows=PEOPLE,
            batch_size=400,
            epochs=5,
            session=ledger,
            name="groups of the survey",
            checkpoint=folder / "run",
            ema=0.9,
            watch=public,
        ) as private,
    ):
        print(private.report, "\n")
        private.fit()
        print(f"\n{private.spent}; left in the ledger: {ledger.left()}")
        private.export(folder / "groups.safetensors")

    given = network()
    print(load_weights(given, folder / "groups.safetensors"))
    print(f"right about {accuracy(given, survey(2000, seed=3)):.0%} of people it never saw")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
