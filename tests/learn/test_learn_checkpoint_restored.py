"""No state of a run's folder, old, copied or brought back, draws noise for a step that was paid once and drawn."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from private_runs import flat, run

import discreet as dp
from discreet.errors import Refused
from discreet.learn.torch import PrivateTraining
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy.relation import Relation

STEPS = 20


def ledger(folder: Path, name: str = "people") -> Ledger:
    account = Account(name, budget=Budget(epsilon=100, delta=1e-2), unit="row", relation=Relation.ADD_REMOVE)
    return Ledger.open(folder / f"{name}.ledger", account)


class Journal:
    """Counts how often noise was drawn for each step, in whichever copy of a run."""

    def __init__(self) -> None:
        self.drawn: Counter[int] = Counter()

    def watch(self, private: PrivateTraining) -> PrivateTraining:
        inner, journal = private._parts.noise, self

        class Watched:
            def released(self, total, unit):
                journal.drawn[private._standing.begun] += 1
                return inner.released(total, unit)

            def close(self):
                inner.close()

        private._parts = replace(private._parts, noise=Watched())
        return private


def begun(folder: Path, session, journal: Journal, **more) -> PrivateTraining:
    chosen = {"steps": STEPS, "checkpoint_every": 3, "checkpoint": folder, "session": session}
    return journal.watch(run(**(chosen | more)))


def trained(private: PrivateTraining, steps: int) -> None:
    """Train until so many steps are taken, and leave as a crash would."""
    batches = private.batches()
    while private.steps_taken < steps:
        private.step(private.losses(next(batches)))
    private.close()


def by_removing(backup: Path, folder: Path) -> None:
    """As backups are brought back: ext4 gives the new folder the number of the one that is gone."""
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)


def by_replacing_files(backup: Path, folder: Path) -> None:
    """The folder stays, and its number too, on every file system."""
    number = folder.stat().st_ino
    for path in folder.iterdir():
        path.unlink()
    for path in backup.iterdir():
        shutil.copy2(path, folder)
    assert folder.stat().st_ino == number


def by_copying_over(backup: Path, folder: Path) -> None:
    """All files keep their numbers and get content and times of old; when they were last changed no copy can set."""
    numbers = {path.name: path.stat().st_ino for path in folder.iterdir()}
    for path in backup.iterdir():
        shutil.copy2(path, folder)
    assert all((folder / name).stat().st_ino == number for name, number in numbers.items())


def by_writing_over(backup: Path, folder: Path) -> None:
    """As a synchronising program does: files that are there get their old content."""
    for path in backup.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())


def only_claims(backup: Path, folder: Path) -> None:
    shutil.copy2(backup / "claims.json", folder)


WHOLE = [by_removing, by_replacing_files, by_copying_over]
ALL = [*WHOLE, by_writing_over, only_claims]


@pytest.mark.parametrize("bring_back", ALL)
@pytest.mark.parametrize("far", [9, STEPS])
def test_an_older_state_is_refused_by_the_ledger_however_it_is_brought_back(tmp_path, bring_back, far):
    journal, folder, backup = Journal(), tmp_path / "run", tmp_path / "backup"
    with ledger(tmp_path) as book:
        trained(begun(folder, book, journal), 6)
        shutil.copytree(folder, backup)
        trained(begun(folder, book, journal), far)
        for _ in range(4):
            bring_back(backup, folder)
            with pytest.raises(Refused, match="an older state, or a copy"):
                begun(folder, book, journal)
        assert max(journal.drawn.values()) == 1
        assert sum(entry.kind == "charge" for entry in book.history()) == 1
        book.verify()


@pytest.mark.parametrize("bring_back", WHOLE)
def test_without_a_ledger_a_folder_that_is_brought_back_whole_is_refused(tmp_path, bring_back):
    journal, folder, backup = Journal(), tmp_path / "run", tmp_path / "backup"
    trained(begun(folder, None, journal), 6)
    shutil.copytree(folder, backup)
    trained(begun(folder, None, journal), 9)
    bring_back(backup, folder)
    with pytest.raises(Refused, match="brought back"):
        begun(folder, None, journal)
    assert max(journal.drawn.values()) == 1


def test_two_copies_that_train_at_once_never_draw_the_same_step(tmp_path):
    journal = Journal()
    with ledger(tmp_path) as book:
        trained(begun(tmp_path / "run", book, journal), 6)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        with begun(tmp_path / "run", book, journal) as one, begun(tmp_path / "copy", book, journal) as other:
            first, second = one.batches(), other.batches()
            one.step(one.losses(next(first)))
            for _ in range(2):
                with pytest.raises(Refused, match="another copy of its folder"):
                    next(second)
                second = other.batches()
            other.close()
            one.fit(progress=False)
        assert max(journal.drawn.values()) == 1


def test_a_folder_that_is_up_to_date_may_be_moved_to_another_disk(tmp_path):
    journal = Journal()
    with ledger(tmp_path) as book:
        trained(begun(tmp_path / "run", book, journal), 6)
        shutil.copytree(tmp_path / "run", tmp_path / "elsewhere")
        shutil.rmtree(tmp_path / "run")
        with begun(tmp_path / "elsewhere", book, journal) as private:
            assert private.steps_taken == 6
            private.fit(progress=False)
    assert journal.drawn == Counter(range(1, STEPS + 1))


def test_a_run_whose_steps_a_ledger_knows_does_not_go_on_without_it(tmp_path):
    journal = Journal()
    with ledger(tmp_path) as book:
        trained(begun(tmp_path / "run", book, journal), 6)
        with pytest.raises(Refused, match="claimed in a ledger"):
            begun(tmp_path / "run", None, journal)
        with begun(tmp_path / "run", book, journal) as private:
            private.fit(progress=False)
            model = private.model
    with begun(tmp_path / "run", None, journal) as done:  # Nothing is left to draw.
        assert done.finished
        assert torch.equal(flat(done.model), flat(model))


def test_nothing_is_drawn_when_the_ledger_cannot_keep_the_claim(tmp_path):
    journal, book = Journal(), ledger(tmp_path)
    private = begun(tmp_path / "run", book, journal, checkpoint_every=2)
    batches = private.batches()
    while private.steps_taken < 2:
        private.step(private.losses(next(batches)))
    book.close()
    for _ in range(3):
        with pytest.raises(Refused, match="closed"):
            next(private.batches())
    private.close()
    assert journal.drawn == Counter([1, 2])
    with ledger(tmp_path) as again, begun(tmp_path / "run", again, journal, checkpoint_every=2) as found:
        found.fit(progress=False)
        assert found.steps_taken == STEPS - 2  # What was claimed in the folder alone is lost.
    assert max(journal.drawn.values()) == 1


def test_what_the_ledger_knows_counts_where_the_folder_says_less(tmp_path):
    journal, folder = Journal(), tmp_path / "run"
    with ledger(tmp_path) as book:
        trained(begun(folder, book, journal), 7)
        claims = json.loads((folder / "claims.json").read_text())
        (folder / "claims.json").write_text(json.dumps(claims | {"claimed": 3}))
        begun(folder, book, journal).fit(progress=False).close()
    assert max(journal.drawn.values()) == 1


def test_claims_in_a_session_are_entries_and_as_many_as_blocks(tmp_path):
    (tmp_path / "people.csv").write_text("age\n30\n40\n")
    with dp.Session(
        tmp_path / "people.csv", unit="row", budget=dp.Budget(epsilon=30, delta=1e-3),
        columns={"age": dp.between(0, 120)}, ledger=tmp_path / "people.ledger", dataset="people", principal="ana",
    ) as session:  # fmt: skip
        begun(tmp_path / "run", session, Journal(), noise_multiplier=4).fit(progress=False).close()
        parts = [entry for entry in session.history() if entry.kind == "part"]
        assert len(parts) == -(-STEPS // 3)
        session.ledger.verify()


def earlier_release(folder: Path, book: Ledger, claimed: int) -> None:
    """Bring a folder and a ledger to what the release before would have written."""
    private = run(steps=STEPS, checkpoint=folder, checkpoint_every=3)
    trained(private, claimed)
    written = json.loads((folder / "run.json").read_text())
    written |= {"format": 1, "place": f"{folder.stat().st_ino:020}"}
    (folder / "run.json").write_text(json.dumps(written))
    key = f"training run {written['run']}"
    book.charge(private.plan.event, relation=Relation.ADD_REMOVE, purpose="training: training", idempotency_key=key)


def test_a_run_of_an_earlier_release_goes_on_once_and_claims_all_that_is_left(tmp_path):
    journal, folder, backup = Journal(), tmp_path / "run", tmp_path / "backup"
    with ledger(tmp_path) as book:
        earlier_release(folder, book, 6)
        shutil.copytree(folder, backup)
        with begun(folder, book, journal) as private:
            assert private.steps_taken == 6
        trained(begun(folder, book, journal), 9)
        with begun(folder, book, journal) as again:  # The checkpoint after step 9 is there; all steps are spent.
            assert (again.steps_taken, again.spent.steps) == (9, STEPS)
        by_replacing_files(backup, folder)
        with pytest.raises(Refused, match="an older state, or a copy"):
            begun(folder, book, journal)
        assert sum(entry.kind == "charge" for entry in book.history()) == 1
    assert max(journal.drawn.values()) == 1


def test_a_copy_of_a_run_of_an_earlier_release_is_refused(tmp_path):
    with ledger(tmp_path) as book:
        earlier_release(tmp_path / "run", book, 6)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        with pytest.raises(Refused, match="copy of a run's folder"):
            begun(tmp_path / "copy", book, Journal())


def test_a_run_of_an_unknown_format_is_refused(tmp_path):
    run(checkpoint=tmp_path).close()
    written = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(written | {"format": 3}))
    with pytest.raises(Refused, match="format"):
        run(checkpoint=tmp_path)
