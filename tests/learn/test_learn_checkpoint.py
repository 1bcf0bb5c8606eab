"""A run that is interrupted goes on where it was: same account, no step drawn again, never charged again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from private_runs import flat, model_of, rows, run, silenced
from torch import nn

from discreet.errors import BudgetExceeded, Refused
from discreet.learn.torch import DPAdamBC
from discreet.learn.training import AdaptiveClip
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy.relation import Relation


class Purse:
    """A payer that remembers, or has nothing."""

    def __init__(self, *, empty: bool = False) -> None:
        self.charges: list[tuple] = []
        self.empty = empty

    def charge(self, event, *, relation, purpose, unit="row", idempotency_key=None):
        if self.empty:
            raise BudgetExceeded(asked=event, left=0)
        self.charges.append((event, relation, purpose))


def interrupted(private, after: int) -> None:
    """Train some steps and let the run go without another word, as a crash would."""
    batches = private.batches()
    while private.steps_taken < after:
        private.step(private.losses(next(batches)))
    private.close()


class TestPaying:
    """The whole run is charged before a row is read."""

    def test_the_whole_run_is_charged_when_it_is_made(self):
        purse = Purse()
        private = run(session=purse, name="people")
        assert purse.charges == [(private.plan.event, Relation.ADD_REMOVE, "training: people")]
        private.fit(progress=False)
        assert len(purse.charges) == 1

    def test_no_row_is_read_before_the_charge(self):
        class Items:
            paid = False

            def __len__(self):
                assert self.paid
                return 40

            def __getitem__(self, index):
                assert self.paid
                return torch.zeros(4), 0

        data = Items()

        class Payer(Purse):
            def charge(self, event, *, relation, purpose, unit="row", idempotency_key=None):
                data.paid = True

        run(data=data, example=(torch.zeros(4), 0), session=Payer()).fit(progress=False)
        unpaid = Items()
        with pytest.raises(BudgetExceeded):
            run(data=unpaid, example=(torch.zeros(4), 0), session=Purse(empty=True))

    def test_who_cannot_pay_trains_nothing_and_leaves_the_folder_free(self, tmp_path):
        for _ in range(2):
            with pytest.raises(BudgetExceeded):
                run(session=Purse(empty=True), checkpoint=tmp_path)
        purse = Purse()
        run(session=purse, checkpoint=tmp_path).fit(progress=False)
        assert len(purse.charges) == 1

    def test_a_ledger_is_charged_once_however_often_the_run_begins(self, tmp_path):
        account = Account("people", budget=Budget(epsilon=50, delta=1e-3), unit="row", relation=Relation.ADD_REMOVE)
        with Ledger.open(tmp_path / "l.ledger", account) as ledger:
            for after in (2, 4, 5):
                private = run(steps=9, session=ledger, checkpoint=tmp_path / "run", checkpoint_every=1)
                interrupted(private, after)
                (tmp_path / "run" / "charged.json").unlink()  # As if killed between the charge and its note.
            assert sum(entry.kind == "charge" for entry in ledger.history()) == 1

    def test_a_payer_that_knows_keys_is_asked_each_time_whatever_the_folder_says(self, tmp_path):
        """The note in the folder is about some payer: another one was not charged for this run."""

        class Keyed(Purse):
            def charge(self, event, *, relation, purpose, unit="row", idempotency_key=None):
                if idempotency_key not in [charge[0] for charge in self.charges]:
                    self.charges.append((idempotency_key, event))

        first, other = Keyed(), Keyed()
        for payer in (first, first, other):
            private = run(session=payer, checkpoint=tmp_path)
            assert [charge[1] for charge in payer.charges] == [private.plan.event]
            private.close()
        assert (tmp_path / "charged.json").exists()


class TestGoingOn:
    """What a checkpoint brings back."""

    @pytest.mark.parametrize("kind", ["sgd", "adam", "corrected"])
    def test_a_run_that_is_closed_between_blocks_continues_as_if_nothing_had_been(self, tmp_path, kind):
        whole, parted = model_of(), model_of()

        def parts(model, **more):
            optimizer = {
                "sgd": lambda: torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9),
                "adam": lambda: torch.optim.Adam(model.parameters(), lr=0.1, betas=(0.8, 0.9)),
                "corrected": lambda: DPAdamBC(model.parameters(), lr=0.1),
            }[kind]()
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
            return silenced(run(model, steps=6, optimizer=optimizer, scheduler=schedule, ema=0.9, **more))

        straight = parts(whole).fit(progress=False)
        interrupted(parts(parted, checkpoint=tmp_path, checkpoint_every=3), 3)
        fresh = model_of()
        again = parts(fresh, checkpoint=tmp_path, checkpoint_every=3)
        assert again.steps_taken == 3
        assert torch.equal(flat(fresh), flat(parted))
        again.fit(progress=False)
        assert torch.allclose(flat(fresh), flat(whole), atol=1e-3)  # Sums are rounded in another random order.
        with straight.averaged() as one, again.averaged() as other:
            assert torch.allclose(flat(one), flat(other), atol=1e-3)
        assert again.spent == straight.spent
        assert (again.steps_taken, again.epsilon) == (6, straight.epsilon)

    def test_claimed_steps_that_no_checkpoint_holds_are_lost_and_stay_paid(self, tmp_path):
        interrupted(run(steps=10, checkpoint=tmp_path, checkpoint_every=4), 6)  # Claimed: 8. Held: 4.
        private = run(steps=10, checkpoint=tmp_path, checkpoint_every=4)
        assert (private.spent.steps, private.steps_taken) == (8, 4)
        assert private.spent.event == private.plan.after(8)
        private.fit(progress=False)
        assert (private.spent.steps, private.steps_taken) == (10, 6)
        assert private.spent.event == private.plan.event

    def test_a_saved_run_loses_only_what_was_claimed_ahead(self, tmp_path):
        private = run(steps=10, checkpoint=tmp_path, checkpoint_every=5)
        batches = private.batches()
        while private.steps_taken < 3:
            private.step(private.losses(next(batches)))
        private.save()
        private.close()
        again = run(steps=10, checkpoint=tmp_path, checkpoint_every=5)
        assert (again.spent.steps, again.steps_taken) == (5, 3)

    def test_a_finished_run_stays_finished(self, tmp_path):
        done = run(checkpoint=tmp_path).fit(progress=False)
        done.close()
        model, purse = model_of(), Purse()
        again = run(model, checkpoint=tmp_path).fit(progress=False)
        assert again.finished
        assert torch.equal(flat(model), flat(done.model))
        assert purse.charges == []

    def test_an_adaptive_clip_goes_on_from_where_it_was(self, tmp_path):
        clip = AdaptiveClip(1, quantile="0.4999", count_noise=5)  # At 0.5 a noisy count of 0 would move nothing.
        told = []
        interrupted(run(steps=6, clip=clip, checkpoint=tmp_path, checkpoint_every=3, callback=told.append), 3)
        again = run(steps=6, clip=clip, checkpoint=tmp_path, checkpoint_every=3, callback=told.append)
        found = again._parts.followed.current
        assert found == again._parts.sums.threshold != 1
        again.fit(progress=False)
        assert told[3].clip == found
        assert told[2].clip != found

    def test_interrupting_fit_keeps_the_step_that_was_done(self, tmp_path):
        def stop(done):
            if done.step == 2:
                raise KeyboardInterrupt

        private = run(steps=6, checkpoint=tmp_path, checkpoint_every=6, callback=stop)
        with pytest.raises(KeyboardInterrupt):
            private.fit(progress=False)
        private.close()
        assert run(steps=6, checkpoint=tmp_path, checkpoint_every=6).steps_taken == 2


class TestAnotherRun:
    """A folder is one run."""

    @pytest.mark.parametrize(
        ("changed", "named"),
        [
            ({"steps": 4}, "plan"), ({"noise_multiplier": 2}, "plan"), ({"clip": 2}, "plan"),
            ({"public_rows": 41}, "plan"),
            ({"model": nn.Linear(4, 2)}, "model"), ({"name": "others"}, "name"),
            ({"augment": lambda batch: [batch, batch]}, "views"),
        ],
    )  # fmt: skip
    def test_what_differs_is_refused_by_name(self, tmp_path, changed, named):
        run(checkpoint=tmp_path, name="people").close()
        with pytest.raises(Refused, match=named):
            run(**({"checkpoint": tmp_path, "name": "people"} | changed))

    def test_two_at_once_are_refused(self, tmp_path):
        first = run(checkpoint=tmp_path)
        with pytest.raises(Refused, match="another process"):
            run(checkpoint=tmp_path)
        assert first.fit(progress=False).finished

    def test_an_average_that_is_not_there_is_missed(self, tmp_path):
        run(checkpoint=tmp_path, ema=0.9).fit(progress=False).close()
        with pytest.raises(Refused, match="average"):
            run(checkpoint=tmp_path)
        run(checkpoint=tmp_path, ema=0.9)  # The refused attempt let go of the folder.


def test_nothing_in_the_folder_tells_about_rows(tmp_path):
    """Runs on other rows, other numbers of rows and none leave the same files of the same sizes."""
    (x, y), found = rows(40), []
    for place, data in enumerate([(x, y), rows(77), (9 * x, y), (x[:0], y[:0])]):
        folder = tmp_path / str(place)
        run(data=data, checkpoint=folder).fit(progress=False)
        found.append({path.name: len(path.read_bytes()) for path in folder.iterdir()})
        texts = [json.loads((folder / name).read_text()) for name in ("run.json", "claims.json")]
        assert texts[0].keys() == {"format", "run", "place", "plan", "model", "name", "views"}
        assert texts[1].keys() == {"run", "claimed"}
    assert all(files == found[0] for files in found)


def killed(*words: str) -> str:
    """Run the killing of runs in a process of its own, and return what it says."""
    script = Path(__file__).with_name("killed_runs.py")
    found = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, timeout=3000)
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout


def check_killed(told: dict) -> None:
    assert told["twice"] == 0
    assert told["charges"] == 1
    assert told["same_account"]
    assert told["lost"] <= told["most_lost"]


@pytest.mark.long
@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_anywhere_draws_no_step_twice_and_is_charged_once(kills):
    told = json.loads(killed(str(kills)))
    check_killed(told["ours"])
    assert told["ours"]["lost"] > 0  # Some kills came after a claim.
    assert told["wrong"]["twice"] > 0  # Claimed after the fact, the same kills make it draw steps again.


@pytest.mark.soak
def test_ten_epochs_of_the_network_killed_at_random_give_the_same_account_and_no_step_twice(capsys):
    told = json.loads(killed("network"))
    with capsys.disabled():
        print(f"\n10 epochs of the 26,010-parameter network: {told}")
    assert told["kills"] >= 5
    check_killed(told)
