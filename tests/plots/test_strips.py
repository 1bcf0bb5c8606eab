"""Strips and pictures for a page: in scale, in the colours of the page, and nothing but drawing."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import plots
from discreet.errors import InvalidParameter
from discreet.pages.svg import Scale, box, span_of

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


def drawn(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def lines(svg: str) -> list[tuple[float, float, str]]:
    """Where every line begins and ends, in per cent, and its colour."""
    found = drawn(svg).iter("line")
    return [(float(e.attrib["x1"][:-1]), float(e.attrib["x2"][:-1]), e.attrib["stroke"]) for e in found]


class TestScale:
    @given(st.lists(NUMBERS, max_size=20))
    def test_zero_and_all_values_lie_on_it_for_all_values(self, values):
        scale = plots.scale_for(values)
        for value in (0.0, *values):
            assert 0 <= float(scale.place(value)[:-1]) <= 100

    @given(st.lists(NUMBERS, max_size=20))
    def test_ticks_are_few_and_on_it_for_all_values(self, values):
        scale = plots.scale_for(values)
        assert 1 <= len(scale.ticks) <= 7
        assert all(scale.low - 1e-6 * abs(scale.low) <= tick <= scale.high * (1 + 1e-6) for tick in scale.ticks)

    @pytest.mark.parametrize(
        ("highest", "ticks"),
        [(10, [0, 2, 4, 6, 8, 10]), (1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (3000, [0, 1000, 2000, 3000]), (1, None)],
    )
    def test_ticks_are_round(self, highest, ticks):
        found = plots.scale_for([highest]).ticks
        assert ticks is None or found == pytest.approx(ticks)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_what_cannot_be_drawn_is_refused(self, bad):
        with pytest.raises(InvalidParameter):
            plots.scale_for([1.0, bad])


class TestBox:
    @given(st.lists(NUMBERS, min_size=5, max_size=5))
    def test_five_numbers_lie_where_they_are_for_all_values(self, values):
        five = sorted(values)
        scale = span_of(five)
        line, left, right, half, middle = lines(box(scale, five, grid=False))
        places = [float(scale.place(number)[:-1]) for number in five]
        assert all(1 <= place <= 99 for place in places)
        assert line[:2] == (places[0], places[4])
        assert (left[0], right[0]) == (places[0], places[4])
        assert half[:2] == (places[1], places[3])
        assert middle[:2] == (places[2], places[2])

    def test_it_has_the_colours_of_the_page_and_needs_no_zero(self):
        svg = box(span_of([1990, 2000, 2010, 2015, 2020]), [1990, 2000, 2010, 2015, 2020])
        assert {colour for *_, colour in lines(svg)} == {"var(--grid)", "var(--ink)", "var(--bar)"}
        assert span_of([1990, 2020]).low == 1990
        assert span_of([1e17]).high > 1e17
        for wrong in ([], [math.nan]):
            with pytest.raises(InvalidParameter):
                span_of(wrong)


class TestStrip:
    def test_a_bar_goes_from_zero_to_its_value(self):
        scale = Scale(0.0, 10.0)
        (bar,) = lines(plots.strip(scale, 5.0, grid=False))
        assert bar == (1.5, 50.0, "var(--bar)")

    def test_a_bar_below_zero_goes_the_other_way(self):
        scale = Scale(-10.0, 10.0)
        (bar,) = lines(plots.strip(scale, -10.0, grid=False, accent=True))
        assert bar == (50.0, 1.5, "var(--accent)")

    def test_ends_are_where_they_are(self):
        scale = Scale(0.0, 100.0)
        _, across, left, right = lines(plots.strip(scale, 50.0, low=25.0, high=75.0, grid=False))
        assert across[:2] == (25.75, 74.25)
        assert left[:2] == (25.75, 25.75)
        assert right[:2] == (74.25, 74.25)

    def test_a_mark_stands_below_its_value(self):
        svg = drawn(plots.strip(Scale(0.0, 100.0), 50.0, mark=75.0))
        (mark,) = svg.iter("svg") if svg.tag != "svg" else [e for e in svg if e.tag == "svg"]
        assert mark.attrib["x"] == "74.25%"

    def test_colours_are_those_of_the_page(self):
        svg = plots.strip(Scale(-5.0, 10.0), 3.0, low=1.0, high=5.0, mark=3.0)
        assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= {
            "var(--bar)", "var(--ink)", "var(--quiet)", "var(--grid)", "var(--accent)",
        }  # fmt: skip
        assert "style" not in svg
        assert "id=" not in svg

    def test_nobody_has_it_read_out(self):
        assert drawn(plots.strip(Scale(0.0, 1.0), 0.5)).attrib["aria-hidden"] == "true"


class TestRuler:
    @pytest.mark.parametrize(
        ("highest", "texts"),
        [(3000.0, ["0", "1,000", "2,000", "3,000"]), (30e6, ["0", "10 m", "20 m", "30 m"]), (2e9, ["0", "500 m"]),
         (0.3, ["0", "0.1", "0.2", "0.3"])],
    )  # fmt: skip
    def test_numbers_are_written_for_people(self, highest, texts):
        found = [text.text for text in drawn(plots.ruler(plots.scale_for([highest]))).iter("text")]
        assert found[: len(texts)] == texts

    def test_numbers_at_the_ends_stay_inside(self):
        anchors = [e.attrib["text-anchor"] for e in drawn(plots.ruler(Scale(0.0, 10.0))).iter("text")]
        assert (anchors[0], anchors[-1]) == ("start", "end")
        assert set(anchors[1:-1]) == {"middle"}


class TestHundred:
    @pytest.mark.parametrize("after", [50, 63, 100])
    def test_dots_are_a_hundred_in_three_looks(self, after):
        dots = [dot.attrib["fill"] for dot in drawn(plots.hundred(after, name="x")).iter("circle")]
        assert dots == ["var(--quiet)"] * 50 + ["var(--accent)"] * (after - 50) + ["none"] * (100 - after)

    def test_it_tells_its_story_in_words(self):
        svg = drawn(plots.hundred(63, name="guess-1"))
        title = svg.find("title")
        assert title is not None
        assert title.attrib["id"] == svg.attrib["aria-labelledby"] == "guess-1-told"
        assert "at most 13 more" in (title.text or "")

    @pytest.mark.parametrize("bad", [49, 101])
    def test_nonsense_is_refused(self, bad):
        with pytest.raises(InvalidParameter):
            plots.hundred(bad, name="x")

    @pytest.mark.parametrize("bad", ["", 'a"b', "a b", "<x>", "ä"])
    def test_a_name_that_is_no_word_is_refused(self, bad):
        with pytest.raises(InvalidParameter):
            plots.hundred(60, name=bad)


class TestCaught:
    def test_the_curve_goes_through_its_points(self):
        svg = drawn(plots.caught([0.0, 0.5, 1.0], [0.2, 0.8, 1.0], name="x"))
        curve = next(e.attrib["points"] for e in svg.iter("polyline") if e.attrib.get("stroke") == "var(--accent)")
        points = [tuple(map(float, pair.split(","))) for pair in curve.split()]
        assert points[1][0] - points[0][0] == pytest.approx(115)
        assert points[0][1] - points[1][1] == pytest.approx(0.6 * 230)

    @pytest.mark.parametrize(
        ("alarms", "found"), [([0.0], [1.0]), ([0.0, 1.0], [1.0]), ([0.0, 2.0], [0.0, 1.0]), ([0.0, 1.0], [-0.1, 1.0])]
    )
    def test_nonsense_is_refused(self, alarms, found):
        with pytest.raises(InvalidParameter):
            plots.caught(alarms, found, name="x")


class TestCourse:
    def test_the_line_goes_through_its_values(self):
        svg = drawn(plots.course(["a", "b", "c"], [0.0, 5.0, 10.0], [0.0, 4.0, 9.0], [1.0, 6.0, 10.0], name="x"))
        line = next(svg.iter("polyline")).attrib["points"]
        assert line == "0.0,1000.0 500.0,500.0 1000.0,0.0"

    def test_a_single_day_is_a_level_line(self):
        svg = drawn(plots.course(["a"], [5.0], [4.0], [10.0], name="x"))
        assert next(svg.iter("polyline")).attrib["points"] == "0.0,500.0 1000.0,500.0"

    def test_it_tells_its_story_in_words(self):
        svg = drawn(plots.course(["<a>", "b"], [1.0, 2.0], [0.0, 1.0], [2.0, 3.0], name="x"))
        title = svg.find("title")
        assert title is not None
        assert (title.text or "").startswith("2 days from <a> to b")

    @pytest.mark.parametrize("name", ["", "a b", '"'])
    def test_a_name_that_is_no_word_is_refused(self, name):
        with pytest.raises(InvalidParameter):
            plots.course(["a"], [1.0], [1.0], [1.0], name=name)

    @pytest.mark.parametrize("values", [[], [1.0, 2.0], [math.nan]])
    def test_nonsense_is_refused(self, values):
        with pytest.raises(InvalidParameter):
            plots.course(["a"], values, [1.0], [1.0], name="x")
