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


def of_people(name: str, **chosen: object):
    """A run on forty people with ids of this name."""
    unit = {name: list(range(40))}
    return run(unit=unit, max_rows=2, public_rows=None, public_units=40, noise_multiplier=4, **chosen)


def test_a_session_that_protects_people_pays_for_people_by_the_name_of_their_column(tmp_path):
    with session(tmp_path, dp.Unit("person", name="somebody")) as payer:
        before = payer.spent
        with pytest.raises(dp.Refused, match="everybody who shares visit"):
            of_people("visit", session=payer)
        assert payer.spent == before
        of_people("person", session=payer, checkpoint=tmp_path / "run").fit(progress=False).close()
        after = payer.spent
        assert after != before
        of_people("person", session=payer, checkpoint=tmp_path / "run").close()
        assert payer.spent == after


CHAIN = dp.Chain(dp.Unit("household"), dp.Unit(["household", "person"]), max_inner=5)
DAY = dp.Unit("person", window="day", time="at")


@pytest.mark.parametrize(("unit", "budget"), [(CHAIN, [dp.Budget(epsilon=30, delta=1e-3)] * 2), (DAY, None)])
def test_a_session_of_several_promises_or_of_windows_does_not_pay_for_training(tmp_path, unit, budget):
    (tmp_path / "people.csv").write_text("household,person,at,age\n1,1,2026-01-01,30\n1,2,2026-01-01,40\n")
    with dp.Session(
        tmp_path / "people.csv", unit=unit, budget=budget or dp.Budget(epsilon=30, delta=1e-3), ledger="memory",
        columns={"age": dp.between(0, 120), "at": dp.between("2026-01-01", "2026-12-31")}, dataset="people",
        principal="ana",
    ) as payer:  # fmt: skip
        before = payer.spent
        for ids in ({"person": [1] * 40}, {"household": [1] * 40, "person": [1] * 40}, {"household": [1] * 40}):
            with pytest.raises(dp.Refused, match=r"protects|promises"):
                run(session=payer, unit=ids, max_rows=2, public_rows=None, public_units=40)
        assert payer.spent == before


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
