"""A session pays for training like for any question, and the example that people start from does what it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from private_runs import rows, run

import discreet as dp

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_privately.py"


def session(folder: Path, unit) -> dp.Session:
    (folder / "people.csv").write_text("person,age\n1,30\n2,40\n")
    return dp.Session(
        folder / "people.csv", unit=unit, budget=dp.Budget(epsilon=30, delta=1e-3), columns={"age": dp.between(0, 120)},
        ledger=folder / "people.ledger", dataset="people", principal="ana",
    )  # fmt: skip


def test_a_session_pays_for_the_whole_run_once(tmp_path):
    with session(tmp_path, "row") as payer:
        before = payer.spent
        private = run(session=payer, checkpoint=tmp_path / "run", noise_multiplier=4)
        assert payer.spent != before
        after = payer.spent
        private.fit(progress=False)
        private.close()
        run(session=payer, checkpoint=tmp_path / "run", noise_multiplier=4).close()
        assert payer.spent == after


def test_a_session_that_protects_people_with_many_rows_does_not_pay_for_rows(tmp_path):
    with (
        session(tmp_path, dp.Unit("person", max_groups=1, max_rows_per_group=1)) as payer,
        pytest.raises(dp.Refused, match="many of them"),
    ):
        run(session=payer, data=rows(4), noise_multiplier=4)


@pytest.mark.long
def test_the_example_trains_exports_and_goes_on(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("train_privately", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(tmp_path)
    told = capsys.readouterr().out
    assert "ε = 2 at δ = 1e-05 after 100 steps" in told
    assert "These weights are differentially private" in told
    assert int(told.split("right about ")[1].split("%")[0]) > 70
    weights = (tmp_path / "groups.safetensors").read_bytes()
    example.main(tmp_path)  # A run that is done stays as it is, and is not charged again.
    assert (tmp_path / "groups.safetensors").read_bytes() == weights
    left = [line for line in (told + capsys.readouterr().out).splitlines() if "left in the ledger" in line]
    assert len(left) == 2
    assert left[0] == left[1]
