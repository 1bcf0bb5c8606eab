"""Tables of answers: exact, the same when written twice, and harmless wherever they are shown."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from system_parts import BROWSER_FLAGS, CHROMIUM, needs_chromium

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.formatting import csv_quoted
from discreet.privacy.events import Composed, DiscreteLaplace, Gaussian
from discreet.privacy.relation import Relation
from discreet.query.answer_columns import AnswerColumn, Cell, ExactNumbers
from discreet.query.release_table import ReleaseTable
from discreet.schema.columns import Kind

HUGE = 1 << 80


def counts(*values: int, reach: int = 3, name: str = "n") -> AnswerColumn:
    numbers = ExactNumbers(np.array(values, dtype=np.int64))
    return AnswerColumn(
        name=name,
        kind=Kind.INTEGER,
        values=numbers,
        low=numbers.plus(Fraction(-reach)),
        high=numbers.plus(Fraction(reach)),
        limits=(Fraction(0), None),
        grain=Fraction(1),
    )


def keys(*values: Any, name: str = "key", kind: Kind = Kind.TEXT) -> AnswerColumn:
    return AnswerColumn(name=name, kind=kind, values=values, measured=False)


def table(*columns: AnswerColumn, notes: tuple[str, ...] = ("a note",)) -> ReleaseTable:
    return ReleaseTable(
        columns=columns,
        rows_shown=len(columns[0]),
        notes=notes,
        event=Composed([DiscreteLaplace(scale=Fraction(7, 3), sensitivity=2), Gaussian(variance=3)]),
        relation=Relation.ADD_REMOVE,
        cost="ε = 1",
        confidence=Fraction(95, 100),
    )


def everything() -> ReleaseTable:
    """A table with a column of every kind."""
    means = ExactNumbers(np.array([7, -5, 11]), np.array([3, 1, 7], dtype=np.int64), Fraction(1, 3), Fraction(1, 2))
    wide = ExactNumbers(np.array([HUGE, -HUGE, 1], dtype=object), step=Fraction(1, 7))
    return table(
        keys("a", None, "ü<b>", name="text"),
        keys(date(2020, 2, 29), date(1969, 1, 1), None, name="day", kind=Kind.DATE),
        keys(datetime(2020, 2, 29, 1, 2, 3, 456789), None, datetime(1, 1, 1), name="time", kind=Kind.TIMESTAMP),
        keys(True, False, None, name="flag", kind=Kind.BOOLEAN),
        keys(1, -5, HUGE, name="whole", kind=Kind.INTEGER),
        counts(5, -7, 1_000_000),
        AnswerColumn(
            name="mean", kind=Kind.REAL, values=means, low=means.plus(Fraction(-1, 9)), high=means.plus(Fraction(1, 9))
        ),
        AnswerColumn(name="wide", kind=Kind.REAL, values=wide, no_interval="there is none"),
        AnswerColumn(
            name="box",
            kind=Kind.REAL,
            values=(Fraction(1, 3), None, Fraction(2)),
            low=(Fraction(0), None, None),
            high=(ONE, None, None),
        ),
    )


ONE = Fraction(1)


def test_a_table_is_written_exactly_and_the_same_again() -> None:
    first = everything()
    text = first.to_json()
    again = ReleaseTable.from_json(text)
    assert again.to_json() == text
    assert again.rows == first.rows
    assert (again.event, again.relation, again.notes, again.cost) == (first.event, first.relation, first.notes, "ε = 1")
    assert str(again) == str(first)
    assert again.tidy.to_json() == first.tidy.to_json()
    assert "." not in "".join(json.dumps(part["values"]) for part in json.loads(text)["columns"][5:])  # No float.


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1}', "null", "x" * 10])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        ReleaseTable.from_json(text)


def test_a_table_with_columns_of_different_lengths_is_refused() -> None:
    document = json.loads(table(counts(1, 2)).to_json())
    document["rows"] = 3
    with pytest.raises(InvalidParameter):
        ReleaseTable.from_json(json.dumps(document))


def test_cells_rows_and_columns() -> None:
    found = everything()
    assert len(found) == 3
    assert found[0]["n"] == Cell(Fraction(5), Fraction(3), Fraction(2), Fraction(8))
    assert found[1]["n"] == Cell(Fraction(-7), Fraction(3), Fraction(0), Fraction(0))  # Ends are where answers can be.
    assert found[-1]["whole"] == HUGE
    assert found["mean"][0].value == Fraction(1, 2) + Fraction(7, 9)
    assert found[1]["box"] == Cell(None)
    assert found[0]["wide"].plus_minus is None
    assert [row["text"] for row in found] == ["a", None, "ü<b>"]
    with pytest.raises(IndexError):
        _ = found[3]
    with pytest.raises(InvalidParameter, match="text, day"):
        _ = found["nothing"]


def test_tidy_values_could_be_exact_answers_and_raw_ones_stay() -> None:
    found = table(counts(5, -7))
    assert [row["n"].value for row in found.tidy] == [5, 0]
    assert [row["n"].value for row in found] == [5, -7]
    halves = AnswerColumn(
        name="s", kind=Kind.REAL, values=ExactNumbers(np.array([3, 5]), step=Fraction(1, 2)), grain=ONE
    )
    assert [row["s"].value for row in table(halves).tidy] == [2, 2]
    assert found.tidy.is_tidy


def test_a_single_value_is_there_for_the_asking() -> None:
    assert table(counts(5)).single().value == 5
    assert (float(table(counts(5))), int(table(counts(5))), table(counts(5)).estimate) == (5.0, 5, 5)
    for several in (table(counts(5, 6)), table(counts(5), counts(6, name="m"))):
        with pytest.raises(InvalidParameter):
            several.single()
        with pytest.raises(InvalidParameter):
            _ = several.estimate
        for number in (float, int):
            with pytest.raises(TypeError, match="more than one value"):
                number(several)


def test_data_frames_have_errors_beside_values() -> None:
    found = everything()
    frame = found.to_pandas()
    assert list(frame["n"]) == [5, -7, 1_000_000]
    assert list(frame["n_low"]) == [2, 0, 999_997]
    assert frame["n"].dtype == np.int64
    assert frame["mean"].iloc[0] == pytest.approx(0.5 + 7 / 9)
    polars = found.to_polars()
    assert polars["text"].to_list() == ["a", None, "ü<b>"]
    assert polars["day"].to_list()[0] == date(2020, 2, 29)
    assert polars["box"].to_list() == [pytest.approx(1 / 3), None, 2.0]
    arrow = found.to_arrow()
    assert arrow.num_rows == 3
    assert arrow.column("time").to_pylist()[0] == datetime(2020, 2, 29, 1, 2, 3, 456789)
    empty = table(keys(), counts())
    assert empty.to_arrow().num_rows == len(empty) == 0


def test_types_follow_from_the_question_and_not_from_the_values() -> None:
    """An empty table, one whose means happen to be whole, and one of NULLs look like every other."""
    full = everything()
    document = json.loads(full.to_json())
    document["rows"] = 0
    for column in document["columns"]:
        for part in ("values", "low", "high"):
            if isinstance(column[part], dict):
                column[part] |= {"over": [], "under": None if column[part]["under"] is None else []}
            elif column[part] is not None:
                column[part] = []
    empty = ReleaseTable.from_json(json.dumps(document))
    assert empty.to_arrow().schema == full.to_arrow().schema
    whole = AnswerColumn(name="mean", kind=Kind.REAL, values=ExactNumbers(np.array([4]), np.array([2])))
    assert str(table(whole).to_arrow().schema.field("mean").type) == "double"


def test_a_long_column_is_exported_as_its_cells_are() -> None:
    found = everything()
    frame = found.to_polars()
    for name in ("n", "mean"):
        cells = [row[name] for row in found]
        for part in ("plus_minus", "low", "high"):
            expected = [float(getattr(cell, part)) for cell in cells]
            assert frame[f"{name}_{part}"].to_list() == pytest.approx(expected)


def test_names_that_would_collide_are_kept_apart() -> None:
    names = table(counts(1), counts(2, name="n_low")).to_arrow().column_names
    assert len(set(names)) == len(names) == 8


def test_text_is_aligned_and_carries_notes() -> None:
    lines = str(table(keys("a", "long"), counts(5, -7))).splitlines()
    assert lines == [
        "key        n",
        "────  ──────",
        "a      5 ± 3",
        "long  -7 ± 3",
        "± at 95 %, ε = 1, add-remove",
        "· a note",
    ]
    assert "no ±: there is none" in str(everything())
    assert "… 5 more rows" in str(table(counts(*range(35))))


def test_nothing_that_is_shown_can_break_out() -> None:
    wicked = "<script>alert(1)</script>\x1b[31m\n"
    found = table(keys(wicked, name=wicked), counts(1, name='"><img src=x>'), notes=(wicked,))
    html = found._repr_html_()
    assert "<script>" not in html
    assert "<img" not in html
    assert "\x1b" not in str(found).split("·")[0]
    assert all(wicked not in line for line in str(found).split("·")[0].splitlines())


def test_a_plot_has_a_bar_for_each_row_and_labels_are_no_code() -> None:
    wicked = "</script><script>alert(1)</script>"
    chart = table(keys("a", wicked), counts(5, 9)).plot().to_json()
    assert "</script>" not in chart
    (rows,) = json.loads(chart)["datasets"].values()
    assert rows[1] == {"row": 1, "value": 9.0, "low": 6.0, "high": 12.0}
    with pytest.raises(InvalidParameter, match="rows"):
        table(counts(*range(100))).plot()
    with pytest.raises(InvalidParameter, match="error bars"):
        table(keys("a")).plot()


def test_a_summary_is_drawn_as_box_plots_by_its_name() -> None:
    """One row a group, NULL left out; columns that are only named like a summary and cross are no box."""
    ends = ("_q05", "_q25", "_q50", "_q75", "_q95")
    none = {"low": None, "high": None}
    five = [replace(counts(place, 2 * place, 9 - place, name=f"age{end}"), **none) for place, end in enumerate(ends)]
    names = keys("a", "a", "b")
    made = table(names, *five)
    for chart in (made.plot("age"), made.plot()):
        (rows,) = json.loads(chart.to_json())["datasets"].values()
        assert rows == [
            {"row": 0, "q05": 0, "q25": 1, "q50": 2, "q75": 3, "q95": 4},
            {"row": 1, "q05": 0, "q25": 2, "q50": 4, "q75": 6, "q95": 8},
        ]
    assert "value" in table(names, counts(1, 2, 3), *five).plot().to_json()  # What has error bars is drawn first.
    with pytest.raises(InvalidParameter, match="no column"):
        table(names, *five[1:]).plot("age")
    with pytest.raises(InvalidParameter, match="values to draw"):
        table(keys("b"), *(replace(one, values=(None,)) for one in five)).plot("age")
    for wrong in ([["a"], [[1, 2, 3, 5, 4]]], [["a"], [[1, 2, 3]]], [[], []], [["a"], [[1, 2, 3, 4, float("inf")]]]):
        with pytest.raises(InvalidParameter):
            dp.plots.boxes(*wrong, across="age")


def test_numbers_are_exact_and_compact() -> None:
    numbers = ExactNumbers(np.array([1, 2]), np.array([3, 4]), Fraction(1, 5), Fraction(-1))
    assert [numbers[row] for row in range(2)] == [Fraction(1, 15) - 1, Fraction(1, 10) - 1]
    assert numbers.floats().tolist() == pytest.approx([1 / 15 - 1, 0.1 - 1])
    assert numbers.integers() is None
    whole = ExactNumbers(np.array([3, HUGE], dtype=object), step=Fraction(2))
    assert whole.integers() is None
    assert ExactNumbers(np.array([3, 4]), step=Fraction(2), offset=ONE).integers().tolist() == [7, 9]  # type: ignore[union-attr]


def released() -> dp.query.ReleaseTable:
    names = {"city": ["=1+1", "Bern", "-x"] * 300}
    with dp.Session(
        pa.table(names),
        unit="row",
        budget=dp.Budget(epsilon=10**4),
        ledger="memory",
        dataset="people",
        principal="me",
        columns={"city": dp.categories(["=1+1", "Bern", "-x"])},
    ) as session:
        return session.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=100).release()


def test_a_table_is_lists_by_name() -> None:
    found = released().to_dict()
    assert found["city"] == ["=1+1", "Bern", "-x"]
    assert found["n"] == [300, 300, 300]
    assert found.keys() == {"city", "n", "n_plus_minus", "n_low", "n_high"}


def test_csv_has_a_header_and_no_formulas(tmp_path: Path) -> None:
    table, file = released(), tmp_path / "table.csv"
    written = table.to_csv(file)
    assert file.read_bytes() == written.encode() == table.to_csv().encode()
    header, first, *_ = written.splitlines()
    assert header == '"city","n","n_plus_minus","n_low","n_high"'
    assert first.startswith('"\'=1+1",300,')
    assert [row["city"] for row in csv.DictReader(io.StringIO(written))] == ["'=1+1", "Bern", "'-x"]


@pytest.mark.parametrize("before", ["", " ", "\xa0", "\x0b", "\u200b", "\x00", "\ufeff", "\t "])
def test_no_sign_before_a_formula_hides_it(before: str) -> None:
    assert csv_quoted(before + "=1+1") == "\"'" + before + '=1+1"'
    assert csv_quoted(before + "Bern") == ('"' if before != "\t " else "\"'") + before + 'Bern"'


def test_rows_are_sorted_by_any_column_and_keep_their_errors() -> None:
    answer = table(keys("b", None, "a"), counts(5, 70, 6))
    assert [row["key"] for row in answer.sort_by("key").rows] == ["a", "b", None]
    assert [row["key"] for row in answer.sort_by("key", descending=True)] == ["b", "a", None]
    largest = answer.sort_by("n", descending=True)
    assert largest.rows == [answer[1], answer[2], answer[0]]
    assert (largest.event, largest.cost, largest.notes) == (answer.event, answer.cost, answer.notes)
    assert ReleaseTable.from_json(largest.to_json()).to_json() == largest.to_json()
    with pytest.raises(InvalidParameter, match="there are key, n"):
        answer.sort_by("m")


def test_a_head_sorts_by_words_that_no_name_can_change() -> None:
    hostile = "');alert(1);//\"><script>alert(2)</script>"
    shown = table(keys(hostile, name=hostile), counts(5))._repr_html_()
    plain = table(keys("a", name="b"), counts(5))._repr_html_()
    heads = [re.findall(r'onclick="([^"]*)"', each) for each in (shown, plain)]
    assert heads[0] == heads[1]
    assert len(heads[0]) == 2
    assert "<script" not in shown
    assert shown.count("alert(1)") == 2  # The name and the value, as text.


@needs_chromium
def test_a_click_sorts_and_heads_stand_above_their_cells(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    page, answer = tmp_path / "shown.html", table(keys("b", None, "a"), counts(900, 1008, -7))
    page.write_text(f'<meta charset="utf-8"><style>td,th{{text-align:right}}</style>{answer._repr_html_()}')
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_FLAGS)
        shown = browser.new_page()
        shown.goto(page.as_uri())
        sides = "cells => cells.map(one => getComputedStyle(one).textAlign)"
        assert shown.eval_on_selector_all("th, tr:first-child td", sides) == ["left", "right"] * 2
        found = [shown.locator("tbody td:last-child").all_inner_texts()]
        for head in ("n", "n", "key"):
            shown.locator("th", has_text=re.compile(f"^{head}$")).click()
            found.append(shown.locator("tbody td:last-child").all_inner_texts())
        browser.close()
    up = ["-7 ± 3", "900 ± 3", "1,008 ± 3"]
    assert found[1:3] == [up, up[::-1]]
    assert found[0] == ["900 ± 3", "1,008 ± 3", "-7 ± 3"]
    assert found[3] != found[2]


def test_cells_and_columns_show_themselves_and_take_a_format() -> None:
    column = counts(1250, *range(8))
    assert repr(column[0]) == str(column[0]) == "1,250 ± 3"
    assert repr(column) == f"n: 1,250 ± 3, {', '.join(f'{n} ± 3' for n in range(7))}, … 1 more"
    assert f"{column[0]:.2f}" == "1250.00"
    assert f"{Cell(None):.2f}" == str(Cell(None))  # Such as the mean of a group that may be empty.
    assert f"{column[0]}" == "1,250 ± 3"
    assert column[0].interval() == (1247, 1253)
    assert Cell("a").interval() is None


def test_a_picture_of_counts_holds_every_point_in_its_bar_and_says_by_what() -> None:
    """A count below 0 has its own interval, not the one that is cut at 0; counts begin at 0, and keys are named."""
    chart = table(keys("a", "b"), counts(-5, 9)).plot()
    drawn = json.loads(chart.to_json())
    (bars,) = drawn["datasets"].values()
    assert [(row["low"], row["value"], row["high"]) for row in bars] == [(-8, -5, -2), (6, 9, 12)]
    first = drawn["layer"][0]["encoding"]
    assert first["x"]["scale"]["zero"] is True
    assert first["y"]["title"] == table(keys("a")).names[0]
    assert repr(chart) == f"OfflineChart(n with error bars, by {table(keys('a')).names[0]})"
