"""Rows become whole numbers by a total rule, and only declared values come back, whatever the table holds."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synth_hostile import belongs, columns, hostile
from synth_toys import CANARY

import discreet as dp
from discreet.adaptive.bounded_memberships import kept_rows
from discreet.errors import InvalidParameter
from discreet.frames.column import Column
from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.domain_file import domain_document, domain_restored
from discreet.synth.domain.images import Images
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.source_tables import session_table, table_of
from discreet.synth.fitted_models import are_impossible


@settings(max_examples=60, deadline=None)
@given(declared=columns(), rows=st.lists(hostile, min_size=1, max_size=8))
def test_only_declared_values_come_back_for_all_tables(declared: Category | Numeric, rows: list[Any]) -> None:
    coder = Coder(Domain({"x": declared}))
    codes = coder.codes({"x": rows})
    assert codes.dtype == np.int32
    assert ((codes >= 0) & (codes < declared.size)).all()
    assert all(belongs(declared, value) for value in coder.decode(codes)["x"].objects())
    # A row is placed by itself: what stands beside it makes no difference.
    assert [int(code) for code in codes[:, 0]] == [int(coder.codes({"x": [row]})[0, 0]) for row in rows]
    if isinstance(declared, Numeric):
        steps, missing = coder.steps({"x": rows})
        assert ((steps >= 0) & (steps <= 65535)).all()
        again = coder.decode_steps(np.empty((len(rows), 0)), steps, missing)["x"]
        assert all(belongs(declared, value) for value in again.objects())


@settings(max_examples=25, deadline=None)
@given(declared=st.lists(columns(), min_size=1, max_size=3), data=st.data())
def test_all_cells_come_back_to_themselves_for_all_domains(declared: list[Category | Numeric], data: Any) -> None:
    domain = Domain({f"c{place}": column for place, column in enumerate(declared)})
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in domain.sizes)), min_size=1, max_size=9))
    codes, coder = np.array(rows, dtype=np.int32), Coder(domain)
    # One case is lawful: a label "other" that nobody declared is an undeclared value like any other.
    assert (coder.codes(coder.decode(codes)) == codes).all()
    assert domain_restored(domain_document(domain)) == domain


def test_values_that_nobody_declared_go_to_the_declared_cell() -> None:
    rows = ["a", CANARY, None, "A", 7]
    assert Category(["a", "b"], other=True, null=True).codes(Column(rows)).tolist() == [0, 2, 3, 2, 2]
    assert Category(["a", "b"], null=True).codes(Column(rows)).tolist() == [0, 2, 2, 2, 2]
    assert Category(["a", "b"]).codes(Column(rows)).tolist() == [0, 0, 0, 0, 0]
    assert Category(["b", "a"]).codes(Column(rows)).tolist() == [1, 0, 0, 0, 0]


def test_a_category_is_the_same_whatever_type_keeps_it() -> None:
    for rows in ([1, 3, 2], [1.0, 3.0, 2.0], ["1", "3", "2"], np.array([1, 3, 2], np.uint8), [Decimal(1), "3.0", 2]):
        assert Coder(Domain({"x": Category([3, 1])})).codes({"x": rows})[:, 0].tolist() == [1, 0, 0]
    assert Category(["1", "2"]).codes(Column(np.array([2.0, 1.0]))).tolist() == [1, 0]
    assert Category(["x", "2020-01-31"]).codes(Column([date(2020, 1, 31), "x"])).tolist() == [1, 0]
    assert Category([True, False]).codes(Column(["FALSE", "true", 0, 1.0])).tolist() == [1, 0, 1, 0]


def test_numbers_are_clamped_and_missing_ones_have_their_cell() -> None:
    rows = [-5, 0, 99, float("inf"), float("nan"), "x", None, "12.6"]
    with_null = Numeric(0, 100, whole=True, bins=4, null=True)
    assert with_null.codes(Column(rows)).tolist() == [0, 0, 3, 3, 4, 4, 4, 0]
    assert Numeric(0, 100, whole=True, bins=4).codes(Column(rows)).tolist() == [0, 0, 3, 3, 1, 1, 1, 0]


def test_whole_numbers_have_a_bin_each_where_there_are_few() -> None:
    assert Numeric(1, 5, whole=True).size == 5
    assert Numeric(0, 9, whole=True, bins=3).starts.tolist() == [0, 4, 7]
    assert Numeric(0, 10, whole=True, bins=[5, 7]).codes(Column([4, 5, 6, 7, 10])).tolist() == [0, 1, 1, 2, 2]
    assert Numeric(0, 1, bins=[Fraction(1, 3)]).codes(Column([0.2, 0.34])).tolist() == [0, 1]


def test_dates_are_days_whatever_type_keeps_them() -> None:
    column = Numeric.dates(date(2025, 1, 1), date(2025, 12, 31), bins=[date(2025, 7, 1)], null=True)
    rows = [date(2025, 1, 1), datetime(2025, 7, 1, 23), "2025-06-30T05:00", np.datetime64("1800-01-01"), date.max]
    assert column.codes(Column(rows)).tolist() == [0, 1, 0, 0, 1]
    assert column.codes(Column(["x", None, 3, pd.NaT, "2025-13-01", np.datetime64("NaT")])).tolist() == [2] * 6
    assert column.codes(Column(np.array(["2025-08-01", "NaT"], dtype="datetime64[ns]"))).tolist() == [1, 2]
    assert column.codes(Column(np.array([20_000, 20_300]))).tolist() == [2, 2]
    drawn = column.decode(np.array([0, 1, 2], dtype=np.int32)).objects()
    assert date(2025, 1, 1) <= drawn[0] < date(2025, 7, 1) <= drawn[1] <= date(2025, 12, 31)
    assert drawn[2] is None
    assert (column.label(int(column.starts[1])), column.size) == ("2025-07-01", 3)
    domain = Domain(
        {"d": column, "k": Category([1, 2])}, impossible=[{"d": (date(2025, 1, 1), date(2025, 3, 31)), "k": 2}]
    )
    assert domain_restored(domain_document(domain)) == domain
    assert domain.numbers == ()


def test_steps_give_whole_numbers_back_exactly() -> None:
    column = Numeric(-7, 65000, whole=True)
    rows = np.arange(-7, 65001)
    assert (column.from_steps(column.steps(Column(rows))).values == rows).all()


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "arrow", "csv", "parquet"])
def test_every_kind_of_table_has_the_same_codes(kind: str, tmp_path: Path) -> None:
    data = {"n": [1.5, None, 40.25, 3.0], "c": ["x", "y", CANARY, None], "k": [1, 2, 3, 2]}
    frame = pd.DataFrame(data)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    tables = {
        "dict": data, "pandas": frame, "polars": pl.DataFrame(data), "arrow": pa.table(data),
        "csv": tmp_path / "t.csv", "parquet": str(tmp_path / "t.parquet"),
    }  # fmt: skip
    domain = Domain(
        {"k": Category([1, 2]), "n": Numeric(0, 40, bins=4, null=True), "c": Category(["x", "y"], null=True)}
    )
    assert Coder(domain).codes(tables[kind]).tolist() == [[0, 0, 0], [1, 4, 1], [0, 3, 2], [1, 0, 2]]
    assert table_of(tables[kind]).names == ("n", "c", "k")


HOSTILE = {"c": [CANARY, None, 1.5], "k": ["x", None, 2.5], "t": ["01x", None, True], "n": ["abc", None, -1e300]}
PLAIN = {"c": ["x", "y", "x"], "k": [1, 2, 1], "t": [1, 2, 1], "n": [1, 31, 3]}
STRICT = Domain(
    {
        "c": Category(["x", "y"], null=True),
        "k": Category([2, 1], null=True),
        "t": Category(["02", "01"], null=True),
        "n": Numeric(0, 31, whole=True, null=True),
    }
)


def as_csv(data: dict[str, list[Any]], path: Path) -> Path:
    lines = [",".join("" if value is None else str(value) for value in row) for row in zip(*data.values(), strict=True)]
    path.write_text("\n".join([",".join(data), *lines]), encoding="utf-8")
    return path


@pytest.mark.parametrize("row", [0, 1, 2])
def test_one_row_never_changes_how_others_are_coded(row: int, tmp_path: Path) -> None:
    more = {name: [*values, HOSTILE[name][row]] for name, values in PLAIN.items()}
    wanted = [(0, 1, 1, 1), (1, 0, 0, 31), (0, 1, 1, 3)]
    assert [*map(tuple, Coder(STRICT).codes(PLAIN).tolist())] == wanted
    coded = Counter(wanted)
    kinds: dict[str, Any] = {
        "dict": lambda data: data,
        "pandas": pd.DataFrame,
        "read by pandas": lambda data: pd.read_csv(as_csv(data, tmp_path / "r.csv")),
        "polars": lambda data: pl.DataFrame(data, strict=False),
        "arrow": lambda data: pa.Table.from_pandas(pd.DataFrame({name: map(str, own) for name, own in data.items()})),
        "csv": lambda data: as_csv(data, tmp_path / "t.csv"),
    }
    for kind, make in kinds.items():  # rows of a file come in no order of their own: blocks are read side by side
        assert Counter(map(tuple, Coder(STRICT).codes(make(PLAIN)).tolist())) == coded, kind
        found = Counter(map(tuple, Coder(STRICT).codes(make(more)).tolist()))
        assert (found.total(), coded - found) == (4, Counter()), kind


def test_a_unit_brings_at_most_its_rows_and_loses_none_to_others() -> None:
    units = Column(np.array([5, 1, 5, 5, 2, 5]), np.array([False, False, False, False, True, False]))
    for _ in range(20):
        kept = kept_rows(units, 2).tolist()
        assert len(kept) == 3
        assert {1, 4} & set(kept) == {1}
    assert {tuple(kept_rows(units, 1).tolist()) for _ in range(200)} > {(0, 1), (1, 3)}
    assert kept_rows(Column(["a", "a", 1, 1.0, Decimal(1), None]), 1).size == 2


def test_rows_of_units_are_drawn_once_for_all_readings() -> None:
    data = {"u": [1] * 50, "n": list(range(50)), "c": [str(place) for place in range(50)]}
    domain = Domain({"n": Numeric(0, 65535, whole=True), "c": Category([str(place) for place in range(50)])})
    rows = TableRows(Coder(domain), table_of(data), "u", 3)
    assert rows.steps()[0][:, 0].tolist() == rows.categories()[:, 0].tolist() == rows.codes()[:, 1].tolist()


def test_impossible_rows_are_told_by_whole_cells() -> None:
    columns = {
        "age": Numeric(0, 100, whole=True, bins=5),
        "sex": Category(["f", "m"], null=True),
        "k": Category([1, 2]),
    }
    domain = Domain(columns, impossible=[{"age": (0, 15), "sex": ["m", None]}, {"age": 30, "k": 2}])
    rows = {"age": [15, 16, 15, 30, 31, 30], "sex": ["m", "m", "f", "f", "f", None], "k": [1, 1, 1, 2, 2, 1]}
    told = are_impossible(domain, {name: Column(values) for name, values in rows.items()})
    assert told.tolist() == [True, False, False, True, False, False]
    assert domain_restored(domain_document(domain)) == domain


@pytest.mark.parametrize(
    "make",
    [
        lambda: Category([]),
        lambda: Category("abc"),
        lambda: Category(["a", 1]),
        lambda: Category(["a", "a"]),
        lambda: Category(["e\u0301", "\u00e9"]),
        lambda: Category([1, True]),
        lambda: Category([1.5]),
        lambda: Category(["other"], other=True),
        lambda: Category([1], other=True),
        lambda: Category(["a"], null="no"),  # type: ignore[arg-type]
        lambda: Numeric(1, 1),
        lambda: Numeric(0, float("nan")),
        lambda: Numeric(0, 0.5, whole=True),
        lambda: Numeric(0, 1, bins=0),
        lambda: Numeric(0, 1, bins=True),
        lambda: Numeric(0, 1, bins=[0.5, 0.4]),
        lambda: Numeric(0, 1, bins=[0.0, 0.4]),
        lambda: Numeric(0, 1, bins="quantile"),  # type: ignore[arg-type]
        lambda: Numeric(0, 2**60),
        lambda: Domain({}),
        lambda: Domain({"": Category([1])}),
        lambda: Domain({"a": [1]}),  # type: ignore[dict-item]
        lambda: Domain({"a": Category([1])}, impossible=[{"b": 1}]),
        lambda: Domain({"a": Category([1])}, impossible=[{"a": 2}]),
        lambda: Domain({"a": Category([1])}, impossible=[{"a": 1}]),
        lambda: Domain({"a": Category([1])}, impossible={"a": 1}),  # type: ignore[dict-item]
        lambda: Images(0, 3, classes=[1]),
        lambda: Images(3, 3, classes=[1]).rows(np.zeros((2, 3, 3)), [1, 1]),
        lambda: Images(3, 3, classes=[1]).rows(np.zeros((2, 9), np.uint8), [1]),
        lambda: table_of([1, 2]),
        lambda: table_of({"a": [1], "b": [1, 2]}),
        lambda: table_of("no-such-file.csv"),
    ],
)
def test_nonsense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_pictures_are_clamped_and_labels_placed() -> None:
    pictures = np.array([[[300, -4], [7, 255]]], dtype=np.int64)
    rows = Images(2, 2, classes=["a", "b"]).rows(pictures, ["b"])
    assert rows.pixels().tolist() == [[255, 0, 7, 255]]
    assert rows.labels().tolist() == [1]
    assert CANARY not in repr(Images(2, 2, classes=["a"]).rows(pictures, [CANARY]))


@pytest.mark.parametrize(
    "column", [Category(["1", "2", "true"]), Numeric(0, 10), Category([False, True])], ids=["texts", "numbers", "truth"]
)
@pytest.mark.parametrize("other", [None, "X"])
def test_one_value_does_not_change_how_truth_values_of_a_frame_are_read(column: Any, other: Any) -> None:
    """One missing value or text makes the whole column of a frame one of objects."""

    def codes(values: list[Any]) -> list[int]:
        frame = pd.DataFrame({"x": values, "who": [f"p{place}" for place in range(len(values))]})
        with dp.Session(
            frame,
            unit=dp.Unit("who"),
            budget=dp.Budget(epsilon=1),
            columns={},
            ledger="memory",
            dataset="people",
            principal="me",
        ) as session:
            return Coder(Domain({"x": column})).codes(session_table(session, "people")).ravel().tolist()[:4]

    assert codes([True, False, True, False]) == codes([True, False, True, False, other])


# --- proposals, from what is public ---


PUBLIC = {
    "age": [3, 40, 88] * 20,
    "score": [0.013, 2.5, 7.9] * 20,
    "sex": ["f", "m", None] * 20,
    "name": [f"person {place}" for place in range(60)],
    "day": [date(2024, 3, 1), date(2025, 2, 2), date(2025, 1, 1)] * 20,
    "member": [True, False, True] * 20,
    "place": ["01234", "99999", "55555"] * 20,
}
PROPOSED = {
    "age": Numeric(0, 90, whole=True),
    "score": Numeric(0, 8),
    "sex": Category(["f", "m"], other=True, null=True),
    "day": Numeric.dates(date(2024, 1, 1), date(2025, 12, 31)),
    "member": Category([False, True]),
    "place": Category(["01234", "55555", "99999"], other=True),
}


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_domain_is_proposed_from_public_rows_whatever_holds_them(kind: Any) -> None:
    """Names are left out; bounds are round numbers beyond what is there, and whoever knows better says so."""
    assert Domain.propose(public_sample=kind(PUBLIC)).columns == PROPOSED
    said = Domain.propose(
        public_sample=kind(PUBLIC), bounds={"age": (0, 120), "day": (date(2020, 1, 1), date(2030, 1, 1))}
    )
    assert said.columns["age"] == Numeric(0, 120, whole=True)
    assert said.columns["day"] == Numeric.dates(date(2020, 1, 1), date(2030, 1, 1))
    many = {"town": [f"town {place % 70}" for place in range(200)], "few": [place % 5 for place in range(200)]}
    assert Domain.propose(public_sample=kind(many)).columns == {
        "town": Category.unlisted(),
        "few": Numeric(0, 5, whole=True, bins=6),
    }


def test_a_domain_is_proposed_from_a_schema_by_types_alone() -> None:
    types = {"age": "int64", "score": "double", "sex": "string", "member": "bool", "day": "date32"}
    bounds = {"age": (0, 9), "score": (0, 1), "day": (date(2025, 1, 1), date(2025, 12, 31))}
    whole = pa.schema([pa.field(name, pa.type_for_alias(kind), nullable=False) for name, kind in types.items()])
    for schema, null in ((types, True), (whole, False)):
        assert Domain.propose(schema=schema, bounds=bounds).columns == {
            "age": Numeric(0, 9, whole=True, bins=10, null=null),
            "score": Numeric(0, 1, null=null),
            "sex": Category.unlisted(null=null),
            "member": Category([False, True], null=null),
            "day": Numeric.dates(date(2025, 1, 1), date(2025, 12, 31), null=null),
        }


def test_a_domain_is_never_proposed_from_private_rows() -> None:
    columns = {"c": dp.categories(["a", "b"])}
    budget = dp.Budget(epsilon=1, delta=1e-6)
    table = pa.table({"c": ["a", CANARY]})
    session = dp.Session(table, unit="row", budget=budget, columns=columns, ledger="memory", dataset="d", principal="p")
    for private in (session, session_table(session, "d")):
        with pytest.raises(dp.Refused, match="never proposed from private rows") as refused:
            Domain.propose(public_sample=private)
        assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "one of them"),
        ({"schema": {"a": "bool"}, "public_sample": {"a": [1]}}, "one of them"),
        ({"schema": {"a": "int64"}}, "how far 'a' can go"),
        ({"schema": {"a": "wide"}}, "not known"),
        ({"schema": {"a": "binary"}}, "no synthetic table has"),
        ({"schema": 3}, "schema must be"),
        ({"public_sample": {"a": [1]}, "bounds": {"b": (0, 1)}}, "bounds must name"),
        ({"public_sample": {"a": [None]}}, "no column"),
        ({"public_sample": {"a": ["x", "y"]}, "bounds": {"a": (0, 1)}}, "numbers and dates"),
        ({"schema": {"a": "string"}, "bounds": {"a": (0, 1)}}, "numbers and dates"),
        ({"schema": {"a": "int64"}, "bounds": {"a": ("z", 1)}}, "low must be"),
        ({"schema": {"a": "int64"}, "bounds": {"a": (0, math.inf)}}, "finite"),
        ({"public_sample": {"a": [1, 2]}, "bounds": {"a": (None, 1)}}, "low must be"),
        ({"public_sample": {"a": [-1e308, 1e308]}}, "2\\^52"),
    ],
)
def test_what_cannot_be_proposed_is_said(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Domain.propose(**asked)
