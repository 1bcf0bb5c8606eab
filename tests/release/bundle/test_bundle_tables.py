"""The files of a table say what was released, to the last digit, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime
from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.formatting import decimal_text
from discreet.privacy import Laplace, Relation
from discreet.query import ReleaseTable
from discreet.query.answer_columns import AnswerColumn
from discreet.release.bundle.dictionary import Role, fields_of
from discreet.release.bundle.table_files import arrow_table, csv_bytes, parquet_bytes
from discreet.schema.columns import Kind

FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "－1", "＋1", "＠x", "'quoted", "'=1",
    '=HYPERLINK("http://x","y")', "=cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0",
]  # fmt: skip
HARMLESS = ["plain", "", " ", "a,b", 'say "hi"', "two\nlines", "NULL", "1,000", "ünï", "a=b", "x-1", "0123", "true"]


def table_of(keys: list[object], values: list[Fraction], *, kind: Kind = Kind.TEXT) -> ReleaseTable:
    """A released table with one key and one measured column."""
    low, high = (tuple(value + side for value in values) for side in (-3, 3))
    return ReleaseTable(
        columns=(
            AnswerColumn(name="key", kind=kind, values=tuple(keys), measured=False),
            AnswerColumn(
                name="n", kind=Kind.REAL, values=tuple(values), low=low, high=high, limits=(Fraction(0), None)
            ),
        ),
        rows_shown=len(keys),
        notes=(),
        event=Laplace(1),
        relation=Relation.ADD_REMOVE,
        cost="ε = 1",
        confidence=Fraction(95, 100),
    )


def read(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


class TestDecimals:
    @given(st.integers(-(10**40), 10**40), st.integers(0, 30))
    def test_what_ends_is_written_in_full_for_all_decimals(self, digits, places):
        number = Fraction(digits, 10**places)
        assert Fraction(decimal_text(number)) == number

    @given(st.fractions())
    def test_what_does_not_end_is_off_by_less_than_a_double_for_all_fractions(self, number):
        assert abs(Fraction(decimal_text(number)) - number) <= abs(number) / 10**16

    @given(st.fractions())
    def test_ends_are_rounded_outwards_for_all_fractions(self, number):
        assert Fraction(decimal_text(number, way=-1)) <= number <= Fraction(decimal_text(number, way=1))

    @pytest.mark.parametrize(
        ("number", "text"),
        [(0, "0"), (-5, "-5"), (Fraction(1, 2), "0.5"), (Fraction(-1, 8), "-0.125"), (1200, "1200"),
         (Fraction(1, 3), "0.33333333333333333"), (Fraction(200, 3), "66.666666666666667"), (10**9, "1000000000")],
    )  # fmt: skip
    def test_numbers_look_like_numbers(self, number, text):
        assert decimal_text(number) == text


class TestCsv:
    @pytest.mark.parametrize("key", FORMULAS)
    def test_no_field_begins_like_a_formula(self, key):
        content = csv_bytes(fields_of(table_of([key], [Fraction(1)]), {}))
        (row,) = read(content)
        assert row["key"].startswith("'")
        assert row["key"][1:] == key

    @pytest.mark.parametrize("key", HARMLESS)
    def test_other_texts_are_as_they_were(self, key):
        (row,) = read(csv_bytes(fields_of(table_of([key], [Fraction(1)]), {})))
        assert row["key"] == key

    @given(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, unique=True)
    )
    def test_every_text_can_be_read_back_for_all_texts(self, keys):
        rows = read(csv_bytes(fields_of(table_of(list(keys), [Fraction(1)] * len(keys)), {})))
        assert [row["key"].removeprefix("'") if row["key"].startswith("'") else row["key"] for row in rows] == keys

    def test_missing_is_nothing_and_an_empty_text_is_quoted(self):
        content = csv_bytes(fields_of(table_of([None, ""], [Fraction(1), Fraction(2)]), {}))
        assert content == b'"key","n","n_low","n_high"\n,1,0,4\n"",2,0,5\n'

    def test_kinds_are_written_plainly(self):
        keys = [True, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), 7, Fraction(1, 4), 0.1]
        rows = read(csv_bytes(fields_of(table_of(keys, [Fraction(0)] * 6), {})))
        assert [row["key"] for row in rows] == ["true", "2026-01-02", "2026-01-02 03:04:05", "7", "0.25", "0.1"]

    def test_negative_numbers_stay_numbers(self):
        (row,) = read(csv_bytes(fields_of(table_of(["a"], [Fraction(-12)]), {})))
        assert row["n"] == "-12"

    def test_other_programs_read_the_same(self, written):
        import duckdb

        for path in sorted((written / "tables").glob("*.csv")):
            table = pq.read_table(path.with_suffix(".parquet"))
            there = duckdb.sql(f"SELECT * FROM read_csv('{path}')").fetchall()
            for row, expected in zip(there, table.to_pylist(), strict=True):
                for one, other in zip(row, expected.values(), strict=True):
                    assert one == (other if isinstance(other, str) else pytest.approx(other, rel=1e-12))


class TestLayout:
    def test_a_measured_column_comes_with_ends_and_noise(self):
        fields = fields_of(table_of(["a"], [Fraction(1)]), {"n": Fraction(3, 2)})
        assert [(field.name, field.role) for field in fields] == [
            ("key", Role.KEY),
            ("n", Role.VALUE),
            ("n_low", Role.LOW),
            ("n_high", Role.HIGH),
            ("n_noise_sd", Role.NOISE),
        ]

    def test_ends_lie_where_the_exact_answer_can(self):
        fields = {field.name: field for field in fields_of(table_of(["a"], [Fraction(1)]), {})}
        assert (fields["n_low"].values, fields["n_high"].values) == ([0], [4])

    def test_two_columns_never_share_a_name(self):
        table = table_of(["a"], [Fraction(1)])
        extra = AnswerColumn(name="n_low", kind=Kind.REAL, values=(Fraction(9),), no_interval="not public")
        table = ReleaseTable(
            columns=(*table.columns, extra), rows_shown=1, notes=(), event=table.event, relation=table.relation,
            cost="", confidence=table.confidence,
        )  # fmt: skip
        names = [field.name for field in fields_of(table, {"n": Fraction(1), "n_low": Fraction(1)})]
        assert names == ["key", "n", "n_low_", "n_high", "n_noise_sd", "n_low", "n_low_noise_sd"]


class TestParquet:
    def test_types_follow_from_the_question(self, published):
        table = next(table for table in published.tables if table.plan.name == "by_district")
        types = {field.name: str(field.type) for field in arrow_table(fields_of(table.raw, table.deviations)).schema}
        assert types == {
            "district": "string", "stays": "int64", "stays_low": "int64", "stays_high": "int64",
            "stays_noise_sd": "double", "cost": "double", "cost_low": "double", "cost_high": "double",
        }  # fmt: skip

    def test_raw_and_tidy_have_the_same_types(self, written):
        for path in (written / "tables").glob("*.tidy.parquet"):
            tidy = {field.name: field.type for field in pq.read_schema(path)}
            raw = {field.name: field.type for field in pq.read_schema(str(path).replace(".tidy", ""))}
            assert tidy.items() <= raw.items()

    def test_texts_are_as_they_were(self):
        table = arrow_table(fields_of(table_of([*FORMULAS, None], [Fraction(1)] * (len(FORMULAS) + 1)), {}))
        assert table["key"].to_pylist() == [*FORMULAS, None]

    def test_a_file_says_what_it_is(self):
        content = parquet_bytes(fields_of(table_of(["a"], [Fraction(1)]), {}), {"values": "raw"})
        assert pq.read_schema(io.BytesIO(content)).metadata[b"values"] == b"raw"


def test_every_number_is_kept_exactly(written, published):
    stored = json.loads((written / "tables.json").read_text())["tables"]
    for table in published.tables:
        again = ReleaseTable.from_json(json.dumps(stored[table.plan.name]["raw"]))
        assert again.to_json() == table.raw.to_json()
        assert {
            name: Fraction(text) for name, text in stored[table.plan.name]["deviations"].items()
        } == table.deviations
