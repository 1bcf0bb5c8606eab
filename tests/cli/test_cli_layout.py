"""What is laid out for a terminal: no word is cut, no line is too long, nothing is lost; a pipe gets plain lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from discreet.cli.layout import Meter, Styled, TextTable, meter_lines, styled_lines, table_lines

WIDTHS = [40, 60, 80, 120]
NAMES = ("self_employment_income_by_TEN", "wages", "SmoothSensitivityMechanism of a median", "Größe", "患者数")


def written(lines):
    return ["".join(text for text, _ in line) for line in lines]


def table(rows=6, **more):
    cells = [(NAMES[i % 5], f"{10**i:,}", f"a ± {i}, b ± {i}, and some more words", "holds") for i in range(rows)]
    return TextTable(head=("what", "number", "how exact", ""), rows=cells, right=frozenset({1}), **more)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bars", [{}, {1: [0, 0.01, 0.5, 0.99, 1, 2]}], ids=["plain", "bars"])
def test_tables_fit_and_keep_every_word(width, bars):
    shown = written(table_lines(table(bars=bars), width))
    assert max(map(cell_len, shown)) <= width
    words = " ".join(shown).split()
    for row in table().rows:
        assert all(word in words or f"{word}," in words for cell in row for word in cell.split())


@pytest.mark.parametrize("width", WIDTHS)
def test_a_number_stays_with_its_sign(width):
    shown = written(table_lines(table(), width))
    assert not any(re.search(r"±$|^\s*±", line) for line in shown)


def test_a_table_that_fits_is_one_line_for_each_row():
    assert len(written(table_lines(table(), 120))) == 2 + 6
    assert len(written(table_lines(table(), 60))) > 2 + 6


def test_a_table_that_cannot_fit_becomes_a_list_of_its_rows():
    assert written(table_lines(table(rows=1), 40)) == [
        "self_employment_income_by_TEN",
        "  number 1",
        "  how exact a ± 0, b ± 0, and some more",
        "    words · holds",
    ]


def test_short_cells_are_served_before_long_ones():
    long = TextTable(head=("when", "why"), rows=[("2026-11-17 11:35:15", "word " * 30)])
    assert "2026-11-17 11:35:15" in written(table_lines(long, 80))[2]


def test_a_head_without_names_is_not_shown():
    assert written(table_lines(TextTable(head=("", ""), rows=[("a", "b c")]), 80)) == ["a  b c"]


def test_without_a_terminal_a_row_is_a_line_and_there_are_no_bars():
    shown = written(table_lines(table(bars={1: [0.5] * 6}), None))
    assert len(shown) == 2 + 6
    assert not any("█" in line or "░" in line for line in shown)
    assert written(meter_lines(Meter(label="left", share=0.5, words="50 %"), None)) == ["left  50 %"]


@pytest.mark.parametrize(("share", "full"), [(-1, 0), (0, 0), (1e-9, 1), (0.5, 20), (1 - 1e-9, 39), (1, 40), (7, 40)])
def test_a_bar_is_empty_or_full_only_where_nothing_or_all_is_left(share, full):
    (line,) = written(meter_lines(Meter(label="left", share=share, words="some"), 80))
    assert (line.count("█"), line.count("░")) == (full, 40 - full)


@given(
    text=st.text(st.characters(categories=["L", "N", "Zs", "P"]) | st.just(" "), max_size=300),
    width=st.integers(20, 120),
)
def test_wrapping_cuts_no_word_for_all_texts(text, width):
    shown = written(styled_lines(Styled(text), width))
    assert " ".join(shown).split(" ") == text.split(" ") or " ".join(shown).split() == text.split()
    longest = max((cell_len(word) for word in re.split(r"(?<![±=≤≥≈×]) (?![±=≤≥≈×%]|s\b)", text)), default=0)
    assert all(cell_len(line) <= max(width, longest + width // 2) for line in shown)


def test_what_follows_stands_under_its_words():
    text = "· one two three four five six seven\nreleased   1: 2025 and many others there"
    assert written(styled_lines(Styled(text), 30)) == [
        "· one two three four five six",
        "  seven",
        "released   1: 2025 and many",
        "           others there",
    ]


@pytest.mark.parametrize("at", [4, 30, 90])
def test_what_points_at_a_letter_still_does_when_both_are_cut(at):
    sql = "    " + "".join(chr(ord("a") + i % 26) for i in range(100))
    above, below = written(styled_lines(Styled(f"{sql}\n{' ' * at}^"), 40))
    assert cell_len(above) <= 40
    assert above[below.index("^")] == sql[at]
    assert "…" in above


def test_labels_are_styled_where_a_line_begins_with_them():
    (line,) = styled_lines(Styled("  way out: say the way out:", labels={"way out:": "bold green"}), 80)
    assert ("way out:", "bold green") in line
    assert sum(style == "bold green" for _, style in line) == 1
