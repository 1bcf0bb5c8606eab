"""The benchmarks of people and of quantiles run at toy size, and their goals are missed by what is slow or wrong."""

from __future__ import annotations

import json
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from benchmarks import (
    bench_people_regression,
    bench_quantile_intervals,
    bench_quantiles_at_once,
    bench_totals,
    bench_units,
    interval_columns,
)
from benchmarks.__main__ import TOPICS
from benchmarks.peers import (
    discreet_people_regression,
    discreet_quantile_intervals,
    discreet_quantiles_at_once,
    discreet_totals,
    discreet_units,
)
from benchmarks.results import Results
from discreet.mechanisms import QuantileInterval


@pytest.fixture
def printed(monkeypatch, capsys):
    """Run a script as a quick one, and read its rows."""

    def run(main, *words):
        monkeypatch.setattr(sys, "argv", ["script", *map(str, words), "--quick"])
        main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def results(rows):
    return Results("one", True, "", {}, {}, rows)


class TestUnits:
    def test_all_ways_are_timed(self, printed, monkeypatch):
        monkeypatch.setattr(discreet_units, "ASKED", 20_000)
        monkeypatch.setattr(discreet_units, "SCANNED", 40_000)
        rows = printed(discreet_units.main)
        questions, families = bench_units.tables(results(rows))
        assert len(questions.rows) == 3 * len(discreet_units.QUESTIONS)
        assert len(families.rows) == 2 * 3
        assert all(float(row["cpu"]) > 0 for row in rows)
        assert "–" not in {cell for table in (questions, families) for row in table.rows for cell in row}

    @pytest.mark.parametrize(("both", "said"), [(1.4, "yes"), (1.5, "NO")])
    def test_a_second_unit_that_takes_longer_misses_the_goal(self, both, said):
        rows = [
            {"job": "count", "way": way, "rows": 10, "cpu": time, "wall": time, "median": time}
            for way, time in (("household", 1.0), ("person", 2.0), ("both", both))
        ]
        questions, _ = bench_units.tables(results(rows))
        assert questions.rows[-1][-1] == f"≤ 1.4×, CPU: {said}, ≤ 1.4×, wall: {said}"


@pytest.fixture
def column(monkeypatch):
    """A column of days whose median is 4, of which each sample has 2,000."""
    days = np.repeat(np.arange(1, 9), 250).astype(float)
    made = interval_columns.RealColumn("days", "0", "30", "1", lambda folder: days)
    monkeypatch.setattr(discreet_quantile_intervals, "COLUMNS", (made,))
    monkeypatch.setattr(discreet_quantile_intervals, "SIZES", (2_000,))
    monkeypatch.setattr(discreet_quantile_intervals, "QUANTILES", ("0.5",))
    monkeypatch.setattr(discreet_quantile_intervals, "EPSILONS", ("1",))
    return made


class TestQuantilesAtOnce:
    @pytest.mark.long
    def test_every_way_is_asked(self, printed, monkeypatch):
        monkeypatch.setattr(discreet_quantiles_at_once, "SIZE", 500)
        monkeypatch.setattr(discreet_quantiles_at_once, "EPSILONS", ("2",))
        rows = printed(discreet_quantiles_at_once.main, "even", 20)
        assert len(rows) == 6
        assert {row["steps"] for row in rows} == {1}  # all at once, in SQL too
        assert set(bench_quantiles_at_once.COLUMNS) == set(discreet_quantiles_at_once.COLUMNS)
        shown = bench_quantiles_at_once.table(results(rows))
        assert len(shown.rows) == 6

    def test_errors_are_of_ranks_and_of_values(self):
        grid = dp.mechanisms.Grid.between(0, 100, step="0.5")
        ordered = np.repeat(np.arange(10), 100)  # deciles are 0 to 8, in steps of a half, at the ends of their runs
        right = np.arange(9)
        assert discreet_quantiles_at_once.errors(grid, ordered, right) == (0, 0)
        assert discreet_quantiles_at_once.errors(grid, ordered, right + 2) == (100, 1)

    @pytest.mark.parametrize(("pure", "many", "verdicts"), [(True, 3.5, "yes"), (True, 3.6, "NO"), (False, 2.6, "NO")])
    def test_nine_that_are_too_far_off_miss_the_goal(self, pure, many, verdicts):
        row = {"data": "even", "way": "one", "pure": pure, "epsilon": "1", "runs": 1}
        row |= {"ranks": many, "ranks_alone": 1.0, "off": 2.0, "off_alone": 1.0}
        assert [str(goal).endswith("yes") for goal in bench_quantiles_at_once.goals(row)] == [True, verdicts == "yes"]

    def test_what_one_never_misses_has_no_ratio(self):
        row = {"pure": True, "off": 0.0, "off_alone": 0.0, "ranks": 0.1, "ranks_alone": 0.0}
        assert [goal.reached for goal in bench_quantiles_at_once.goals(row)] == [True, False]
        assert np.isnan(bench_quantiles_at_once.ratio(row))


class TestQuantileIntervals:
    def test_every_way_is_asked(self, printed, column):
        rows = printed(discreet_quantile_intervals.main, 0, ".")
        assert {row["way"] for row in rows} == set(interval_columns.WAYS)
        assert sum(row["covered"] for row in rows) >= 90  # of 120; fewer have a chance of 1e-13 where 95 % cover
        by_way, _, _ = bench_quantile_intervals.tables(results(rows))
        assert [row[1] for row in by_way.rows] == ["1", "1", "1", "1", "4"]

    def test_mechanisms_are_those_of_one_call(self, column):
        values = column.sample(None, 500)
        made = dict(discreet_quantile_intervals.one_call(column, values, "0.5", "1"))
        asked = {"bounds": (0, 30), "step": 1, "epsilon": 1, "confidence": 0.95}
        account = dp.ledger.Account("days", "row", dp.Relation.REPLACE_ONE, dp.Budget(rho=1))
        ledger = dp.ledger.Ledger.open("memory", account)
        for way, relation, session in (
            ("dp.quantile", dp.Relation.ADD_REMOVE, None),
            ("dp.quantile, composed", dp.Relation.REPLACE_ONE, ledger),
        ):
            release = dp.quantile(values, 0.5, relation=relation, session=session, **asked)
            assert release.event == made[way][0].event

    def test_the_oracle_knows_a_value_that_all_share_and_not_one_of_many(self):
        grid = dp.mechanisms.Grid.between(0, 1000, step=1)
        asked = QuantileInterval(
            quantile=Fraction(1, 2), epsilon=Fraction(1), grid=grid, relation=dp.Relation.ADD_REMOVE, flips=True
        )
        spread = np.arange(1000, dtype=float)
        assert discreet_quantile_intervals.oracle(asked, np.full(1000, 7.0), whole=False) == 1
        with_part, with_all = (
            discreet_quantile_intervals.oracle(asked, spread, whole=whole) for whole in (False, True)
        )
        assert 1 < with_all < with_part < 100

    @pytest.mark.parametrize(
        ("change", "verdicts"),
        [({}, [True, True]), ({"covered": 284}, [False, True]), ({"points": 9.0}, [True, False])],
    )
    def test_what_covers_too_seldom_or_is_too_wide_misses_its_goal(self, change, verdicts):
        row = {"size": 1000, "epsilon": "1", "covered": 285, "runs": 300, "points": 8.0, "oracle": 4} | change
        assert [goal.reached for goal in bench_quantile_intervals.goals([row])] == verdicts

    def test_widths_are_judged_where_there_are_rows_enough(self):
        row = {"size": 1000, "epsilon": "0.1", "covered": 300, "runs": 300, "points": 80.0, "oracle": 4}
        assert bench_quantile_intervals.goals([row])[1].reached


class TestTotals:
    def test_totals_cover_and_families_agree(self, printed, monkeypatch):
        monkeypatch.setattr(discreet_totals, "HOMES", 5_000)
        rows = printed(discreet_totals.main)
        coverage, families = bench_totals.tables(results(rows))
        assert len(coverage.rows) == 2 * 2 * 4
        assert all(row["covered"] >= 20 for row in rows if row["job"] == "coverage")  # of 40
        assert families.rows[0][3] != families.rows[0][4]
        assert families.rows[1][3] == families.rows[1][4]
        assert families.remarks[0] == "tables of a family have one total: yes"

    def test_what_is_there_is_counted_by_hand(self):
        table = pa.table({"home": [1, 1, 1, 2, 2], "sex": ["m", "m", "f", "f", "m"], "age": [1, 2, 3, 4, 5]})
        unit = dp.Unit("home", 1, 1, rows_at_most=3)
        asked = discreet_totals.Asked("homes", table, unit, {}, "sex", "age")
        assert discreet_totals.truth(asked) == {"units": 0.0, "rows": 2 / 5, "all rows": 5.0, "sum": 15.0}
        assert discreet_totals.largest(asked) == 3

    @pytest.mark.parametrize(("what", "verdicts"), [("sum", [False, True]), ("units", [True, False])])
    def test_a_total_that_is_seldom_held_misses_the_goal(self, what, verdicts):
        kinds = ("units", "rows", "all rows", "sum")
        rows = [{"what": one, "covered": 375 if one == what else 376, "releases": 400} for one in kinds]
        assert [goal.reached for goal in bench_totals.goals(rows)] == verdicts


class TestPeopleRegression:
    def test_a_cell_is_fitted_for_people_and_for_one_row_of_each(self, printed, tmp_path, monkeypatch):
        drawn = np.random.default_rng(1)
        columns = {
            name: drawn.integers(low, high + 1, 600)
            for name, (low, high) in discreet_people_regression.FEATURES.items()
        }
        (tmp_path / "diabetes130").mkdir()
        stays = pa.table(columns | {"patient_nbr": drawn.integers(0, 300, 600)})
        pq.write_table(stays, tmp_path / "diabetes130" / "diabetic_data.parquet")
        monkeypatch.setattr(discreet_people_regression, "PEOPLE", 200)
        [row] = printed(discreet_people_regression.main, 0.3, 2, 100, tmp_path)
        assert row["runs"] == 2
        assert len(row["error"]) == len(row["error_alone"]) == len(row["held"]) == 5
        assert len(bench_people_regression.table(results([row])).rows) == 1

    @pytest.mark.parametrize(
        ("change", "verdicts"),
        [({}, [True, True]), ({"held": [300, 270]}, [False, True]), ({"error": [1.0, 1.4]}, [True, False])],
    )
    def test_what_covers_too_seldom_or_errs_more_misses_its_goal(self, change, verdicts):
        row = {"runs": 310, "bounded": 300, "held": [285, 290], "error": [1.0, 1.2], "error_alone": [1.0, 1.0]}
        assert [goal.reached for goal in bench_people_regression.goals(row | change)] == verdicts

    def test_runs_without_an_interval_are_told_apart(self):
        row = {"correlation": 0.3, "epsilon": "1", "runs": 310, "bounded": 300, "held": [285], "error": [1.0]}
        line = bench_people_regression.table(results([row | {"error_alone": [1.0]}])).rows[0]
        assert line[3:5] == ("10", "95.0 to 95.0")

    def test_the_command_line_may_say_how_many_runs(self):
        assert {name for name, topic in TOPICS.items() if topic.counts_runs} == {
            "people_regression",
            "quantiles_at_once",
            "synth_tables",
        }
