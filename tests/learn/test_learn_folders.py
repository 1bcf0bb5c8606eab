"""A folder of a run is no way round the ledger, and no way to draw a step twice."""

from __future__ import annotations

import shutil

import pytest
import torch
from torch import nn

from discreet.errors import Refused
from discreet.learn.torch import make_private
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy.relation import Relation

X = torch.linspace(-1, 1, 32).reshape(8, 4)
Y = (X.sum(1) > 0).long()


def begun(folder, session=None):
    model = nn.Linear(4, 2)
    return make_private(
        model, torch.optim.SGD(model.parameters(), lr=1.0), (X, Y), loss=nn.CrossEntropyLoss(reduction="none"),
        noise_multiplier=4, delta=1e-5, public_rows=8, batch_size=8, steps=4, physical_batch=32, session=session,
        checkpoint=folder, checkpoint_every=2,
    )  # fmt: skip


def ledger(path, dataset: str) -> Ledger:
    account = Account(dataset, budget=Budget(epsilon=100, delta=1e-2), unit="row", relation=Relation.ADD_REMOVE)
    return Ledger.open(path, account)


def charges(book: Ledger) -> int:
    return sum(entry.kind == "charge" for entry in book.history())


def interrupted(folder, session) -> None:
    """Take one step and leave."""
    with begun(folder, session) as private:
        for x, y in private.batches():
            private.step(private.losses((x, y)))
            break


def test_going_on_with_the_data_of_another_ledger_is_charged_there(tmp_path):
    """A note in the folder said that some ledger was charged, and any other one believed it."""
    with ledger(tmp_path / "a.ledger", "patients") as patients, ledger(tmp_path / "b.ledger", "pupils") as pupils:
        interrupted(tmp_path / "run", patients)
        begun(tmp_path / "run", pupils).close()
        assert (charges(patients), charges(pupils)) == (1, 1)
        begun(tmp_path / "run", patients).close()
        begun(tmp_path / "run", pupils).close()
        assert (charges(patients), charges(pupils)) == (1, 1)


def test_a_payer_without_a_ledger_is_told_the_key_of_the_run_each_time(tmp_path):
    class Purse:
        def __init__(self):
            self.keys = []

        def charge(self, event, *, relation, purpose, unit="row", idempotency_key=None):
            self.keys.append(idempotency_key)

    purse = Purse()
    for _ in range(2):
        begun(tmp_path / "run", purse).close()
    first, second = purse.keys
    assert first is not None
    assert first == second


def test_whoever_throws_checkpoints_and_claims_away_does_not_get_a_second_run_for_one_price(tmp_path):
    with ledger(tmp_path / "a.ledger", "patients") as book:
        interrupted(tmp_path / "run", book)
        for path in (tmp_path / "run").glob("step-*"):
            path.unlink()
        (tmp_path / "run" / "claims.json").unlink()
        with pytest.raises(Refused, match="claims"):
            begun(tmp_path / "run", book)


def test_a_run_that_died_between_its_first_two_files_begins(tmp_path):
    begun(tmp_path / "run").close()
    (tmp_path / "run" / "run.json").unlink()
    with begun(tmp_path / "run") as private:
        assert private.spent.steps == 0


def test_a_folder_that_is_begun_anew_is_charged_again(tmp_path):
    with ledger(tmp_path / "a.ledger", "patients") as book:
        for count in (1, 2):
            interrupted(tmp_path / "run", book)
            for path in (tmp_path / "run").iterdir():
                path.unlink()
            assert charges(book) == count


def test_a_copy_of_a_folder_does_not_draw_steps_that_the_original_draws_too(tmp_path):
    interrupted(tmp_path / "run", None)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with pytest.raises(Refused, match="copy"):
        begun(tmp_path / "copy")
    (tmp_path / "run").rename(tmp_path / "moved")
    with begun(tmp_path / "moved") as private:
        assert private.fit(progress=False).finished


def test_of_a_folder_and_its_copy_the_ledger_lets_one_go_on(tmp_path):
    with ledger(tmp_path / "a.ledger", "patients") as book:
        interrupted(tmp_path / "run", book)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        with begun(tmp_path / "copy", book) as private:
            assert private.fit(progress=False).finished
        with pytest.raises(Refused, match="an older state, or a copy"):
            begun(tmp_path / "run", book)
        assert charges(book) == 1
