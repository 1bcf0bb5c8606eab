"""Laws of codes: labels are shown and change no question, texts keep their zeros, and nobody adds codes up."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.query.release_table import ReleaseTable

ROWS = 400
LABELS = {1: "male", 2: "<b>female</b>"}
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def people() -> pa.Table:
    """400 people, of whom 300 have the second code."""
    return pa.table(
        {
            "id": list(range(ROWS)),
            "sex": [1 if place % 4 == 0 else 2 for place in range(ROWS)],
            "age": [20 + place % 50 for place in range(ROWS)],
        }
    )


def opened(table: object, *, ledger: str | Path = "memory", **columns: dp.query.Declared) -> dp.Session:
    return dp.Session(
        {"people": table},
        unit="row" if isinstance(table, (str, Path)) else dp.Unit("id"),
        budget=dp.Budget(epsilon=1000),
        columns=columns,
        ledger=ledger,
        dataset="people",
        principal="ana",
        version="1",
    )


class TestLabels:
    def test_answers_show_them_beside_the_codes_and_keep_the_codes(self) -> None:
        with opened(people(), sex=dp.categories([1, 2], labels=LABELS)) as session:
            table = session.sql(BY_SEX, epsilon=100).release()
            assert "male (1)" in repr(table)
            assert "&lt;b&gt;female&lt;/b&gt; (2)" in table._repr_html_()
            assert "one of male (1), <b>female</b> (2)" in str(session.describe())
        assert table.to_pandas()["sex"].tolist() == [1, 2]
        assert "male" not in table.to_csv()
        assert [row["sex"] for row in table] == [1, 2]

    def test_they_follow_a_column_through_sub_queries_and_not_what_is_computed(self) -> None:
        below = "(SELECT id, sex AS s, age + 1 AS a FROM people WHERE age > 3) AS q"
        with opened(people(), sex=dp.categories([1, 2], labels=LABELS), age=dp.between(0, 120)) as session:
            renamed = session.sql(f"SELECT s AS which, COUNT(*) AS n FROM {below} GROUP BY s", epsilon=1).dummy()
            computed = session.sql("SELECT sex + 1 AS s, COUNT(*) AS n FROM people GROUP BY sex + 1", epsilon=1).dummy()
            joint = session.batch({"a": session.sql(BY_SEX, epsilon=1)}, idempotency_key=None, purpose="test").release()
        assert "male (1)" in repr(renamed)
        assert "male" not in repr(computed)
        assert "male (1)" in repr(joint.tables["a"])

    def test_a_paid_answer_is_found_under_any_labels_and_shows_those_of_now(self, tmp_path: Path) -> None:
        said = (None, {1: "m"}, LABELS)
        answers, prints = [], set()
        for labels in said:
            with opened(people(), ledger=tmp_path / "l", sex=dp.categories([1, 2], labels=labels)) as session:
                plan = session.sql(BY_SEX, epsilon=1)
                prints.add(plan.fingerprint)
                answers.append(plan.release())
                spent = session.spent.charges
        assert spent == len(prints) == 1
        assert len({answer.to_json() for answer in answers}) == 1
        assert "(1)" not in repr(answers[0])
        assert "m (1)" in repr(answers[1])
        assert "male (1)" in repr(answers[2])

    def test_what_is_stored_has_no_labels(self) -> None:
        with opened(people(), sex=dp.categories([1, 2], labels=LABELS)) as session:
            table = session.sql(BY_SEX, epsilon=1).dummy()
        assert "male" not in table.to_json()
        assert ReleaseTable.from_json(table.to_json()).to_json() == table.to_json()

    @pytest.mark.parametrize(
        "labels",
        [{3: "other"}, {1: ""}, {1: "a\x1b[2J"}, {1: "two\nlines"}, {1: 7}, {1: "x" * 201}, ["male"], {True: "male"}],
    )
    def test_what_is_no_label_of_a_category_is_refused(self, labels: object) -> None:
        with pytest.raises(InvalidParameter) as refused:
            dp.categories([1, 2], labels=labels)  # type: ignore[arg-type]
        assert "\x1b" not in str(refused.value)


class TestAmounts:
    """Sums, means, spreads and quantiles are of amounts: neither of codes nor of whoever is protected."""

    CODES = (
        "SUM(x)",
        "AVG(x)",
        "MEDIAN(x)",
        "VARIANCE(x)",
        "STDDEV_POP(x)",
        "CORR(x, age)",
        "COVAR_POP(age, x)",
        "QUANTILE(x, 0.9)",
        "SUM(x) FILTER (WHERE age > 30)",
    )
    MORE = ("SUM(CASE WHEN age > 30 THEN x END)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)")

    @pytest.mark.parametrize("asked", [*CODES, *MORE])
    @pytest.mark.parametrize(("column", "why"), [("sex", "declared as categories"), ("id", "tells units apart")])
    def test_they_are_refused_of_codes_and_of_units(self, asked: str, column: str, why: str) -> None:
        declared = {"sex": dp.categories([1, 2]), "age": dp.between(0, 120)}
        with opened(people(), **declared) as session, pytest.raises(Refused, match=why):
            session.sql(f"SELECT {asked.replace('x', column)} AS a FROM people", epsilon=1)

    @pytest.mark.parametrize("asked", ["COUNT(sex)", "COUNT(DISTINCT sex)", "MODE(sex)", "AVG(sex = 1)", "MAX(sex)"])
    def test_counts_of_codes_are_answered(self, asked: str) -> None:
        with opened(people(), sex=dp.categories([1, 2])) as session:
            assert len(session.sql(f"SELECT {asked} AS a FROM people", epsilon=1).dummy()) == 1

    def test_amounts_with_few_values_are_added_up(self) -> None:
        with opened(people(), sex=dp.between(1, 2, whole=True)) as session:
            assert float(session.sql("SELECT SUM(sex) AS a FROM people", epsilon=100).release()) == pytest.approx(
                700, abs=20
            )

    def test_columns_of_public_tables_are_no_codes(self) -> None:
        tables = {"people": people(), "sexes": dp.public(pa.table({"sex": [1, 2], "weight": [3, 5]}))}
        with dp.Session(
            tables,
            unit=dp.Unit("id"),
            budget=dp.Budget(epsilon=1),
            ledger="memory",
            dataset="p",
            principal="ana",
            columns={"sex": dp.categories([1, 2])},
        ) as session:
            plan = session.sql("SELECT SUM(weight) AS a FROM people JOIN sexes USING (sex)", epsilon=1)
        assert plan.cost == "ε = 1"


class TestLeadingZeros:
    """A text is compared as it is: "00100" is neither 100 nor "100"."""

    CODES = ("00100", "100", "00200")

    def table(self) -> dict[str, list[object]]:
        return {"id": list(range(600)), "area": [self.CODES[place % 3] for place in range(600)]}

    @pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "pandas", "polars"])
    def test_they_are_kept_in_every_form(self, form: str, tmp_path: Path) -> None:
        data = pa.table(self.table())
        forms = {
            "csv": lambda: self._written(pa.csv.write_csv, data, tmp_path / "people.csv"),
            "parquet": lambda: self._written(pa.parquet.write_table, data, tmp_path / "people.parquet"),
            "arrow": lambda: data,
            "pandas": lambda: pd.DataFrame(self.table()),
            "polars": lambda: pl.DataFrame(self.table()),
        }
        with opened(forms[form](), area=dp.categories(["00100", "00200"])) as session:
            table = session.sql("SELECT area, COUNT(*) AS n FROM people GROUP BY area", epsilon=100).release()
            some = session.sql("SELECT COUNT(*) AS n FROM people WHERE area = '00100'", epsilon=100).release()
        assert [row["area"] for row in table] == ["00100", "00200"]
        assert [float(row["n"]) for row in table] == pytest.approx([200, 200], abs=5)
        assert float(some) == pytest.approx(200, abs=5)

    @staticmethod
    def _written(write: object, data: pa.Table, path: Path) -> Path:
        write(data, path)  # type: ignore[operator]
        return path
