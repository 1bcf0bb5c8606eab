"""Drawings that stand by themselves in notebooks: complete, escaped, and with colours of their own."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from discreet.pages import svg

ROWS = [("a", 5.0, 2.0, 8.0), ("b", -7.0, -10.0, -4.0), ("<b>", 900.0, 897.0, 903.0)]


def test_error_bars_have_a_strip_a_name_and_an_interval_for_each_row_and_a_ruler_inside():
    drawn = ET.fromstring(svg.error_bars(ROWS, across="n"))
    inner = drawn.findall("svg")
    assert len(inner) == len(ROWS) + 1
    width, height = float(drawn.get("width", 0)), float(drawn.get("height", 0))
    for one in inner:
        assert float(one.get("x", 0)) + float(one.get("width", 0)) <= width
        assert float(one.get("y", 0)) + float(one.get("height", 0)) <= height
    assert [text.text for text in drawn.findall("text")] == ["a", "b", "<b>", "n"]
    bars = [strip.findall("svg/line[@stroke-width='1.5']") for strip in inner[:-1]]
    assert [len(lines) for lines in bars] == [3, 3, 3]  # The interval and both of its caps.


@pytest.mark.parametrize(
    ("share", "wide"), [(0.0, "0.0%"), (0.25, "25.0%"), (1.0, "100.0%"), (-1.0, "0.0%"), (2.0, "100.0%")]
)
def test_a_meter_is_as_full_as_its_share(share, wide):
    _, full = ET.fromstring(svg.meter(share, told="left")).findall("rect")
    assert full.get("width") == wide


@pytest.mark.parametrize("drawn", [svg.error_bars(ROWS, across="n"), svg.meter(0.5, told='"><b>')])
def test_colours_and_words_stand_with_the_drawing(drawn):
    used = set(re.findall(r"var\((--\w+)\)", drawn))
    assert used <= set(re.findall(r"(--\w+):", drawn))
    assert ET.fromstring(drawn).get("aria-label")
    assert "<b>" not in drawn
