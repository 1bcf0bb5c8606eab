from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from chart_reading import layers, lines, points, spec

from discreet import plots
from discreet.errors import InvalidParameter
from discreet.plots import chart_files
from discreet.plots.chart_files import MOST
from discreet.plots.charts import ChartAxis, ChartFrame, place

EPSILONS = np.linspace(0, 3, 40)
PROFILES = {
    "Laplace": (EPSILONS, np.clip(1 - np.exp((EPSILONS - 1) / 2), 0, 1)),
    "steep": (EPSILONS, 0.2 * np.exp(-3 * EPSILONS)),
    "flat": (EPSILONS, 0.2 * np.exp(-EPSILONS)),
}
RATES = np.linspace(0, 1, 21)
TRADEOFFS = {"half": (RATES, (1 - RATES) / 2), "all": (RATES, 1 - RATES)}
WIDTHS = {"Laplace": ([0.01, 0.1, 1, 10], [300, 30, 3, 0]), "Gaussian": ([0.01, 10], [600, 2])}
CHARTS = {
    "profile": cache(lambda: plots.profile(PROFILES)),
    "tradeoff": cache(lambda: plots.tradeoff(TRADEOFFS)),
    "accuracy": cache(lambda: plots.accuracy(WIDTHS, unit="euros")),
    "shifts": cache(lambda: plots.shifts({"mean": ([0, 500], [0, 60]), "median": ([0, 500], [0, 9])}, unit="euros")),
    "lines": cache(
        lambda: plots.lines({"a": ([0, 9], [1, 50])}, across="rows (number)", up="noise (euros)", log_y=True)
    ),
}


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_every_curve_has_its_own_colour_and_its_own_dash(make):
    encoding = lines(make())[0]["encoding"]
    for channel in ("color", "strokeDash"):
        scale = encoding[channel]["scale"]
        assert len(scale["domain"]) == len(scale["range"]) == len({str(value) for value in scale["range"]})


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_axes_say_what_they_measure(make):
    encoding = lines(make())[0]["encoding"]
    titles = [encoding[side]["axis"]["title"] for side in "xy"]
    assert all("(" in title for title in titles), "a unit or an explanation in brackets"


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_a_screen_reader_hears_what_is_drawn(make):
    described = spec(make())["description"]
    assert all(str(name) in described for name in lines(make())[0]["encoding"]["color"]["scale"]["domain"])


def test_profile_is_logarithmic_in_delta_only():
    encoding = lines(plots.profile(PROFILES))[0]["encoding"]
    assert [encoding[side]["scale"]["type"] for side in "xy"] == ["linear", "log"]
    assert encoding["y"]["scale"]["domain"] == [pytest.approx(1e-5), 1.0]


def test_a_delta_of_zero_leaves_the_profile_through_its_lower_edge():
    chart = plots.profile(PROFILES)
    lowest = lines(chart)[0]["encoding"]["y"]["scale"]["domain"][0]
    assert points(chart, "Laplace")[-1][1] < lowest
    assert lines(chart)[0]["mark"]["clip"] is True


def test_tradeoff_draws_the_line_of_guessing():
    drawn = [rows for _, rows in layers(plots.tradeoff(TRADEOFFS))]
    assert [{"x": 0, "y": 1}, {"x": 1, "y": 0}] in drawn


def test_accuracy_is_logarithmic_twice_and_names_the_unit():
    encoding = lines(plots.accuracy(WIDTHS, unit="euros"))[0]["encoding"]
    assert [encoding[side]["scale"]["type"] for side in "xy"] == ["log", "log"]
    assert "euros" in encoding["y"]["axis"]["title"]


def test_accuracy_leaves_out_a_half_width_of_zero():
    assert points(plots.accuracy(WIDTHS), "Laplace") == [(0.01, 300), (0.1, 30), (1, 3)]


def test_shifts_start_at_zero_and_are_written_in_full():
    encoding = lines(CHARTS["shifts"]())[0]["encoding"]
    assert [encoding[side]["scale"]["domain"] for side in "xy"] == [[0, 500], [0, pytest.approx(63)]]
    assert [encoding[side]["axis"]["format"] for side in "xy"] == [",~f"] * 2  # "~g" would say 5e+2.
    assert "euros" in encoding["y"]["axis"]["title"]


def test_shifts_of_nothing_are_drawn_and_no_rows_are_refused():
    assert points(plots.shifts({"mean": ([0, 5], [0, 0])}), "mean") == [(0, 0), (5, 0)]
    with pytest.raises(InvalidParameter, match="rows"):
        plots.shifts({"mean": ([0, 0], [0, 1])})


@pytest.mark.parametrize("log_x", [False, True])
@pytest.mark.parametrize("log_y", [False, True])
def test_lines_have_the_axes_that_were_asked_for(log_x, log_y):
    drawn = plots.lines({"a": ([1, 100], [2, 40])}, across="rows", up="noise", log_x=log_x, log_y=log_y)
    encoding = lines(drawn)[0]["encoding"]
    for side, log, name in (("x", log_x, "rows"), ("y", log_y, "noise")):
        assert encoding[side]["scale"]["type"] == ("log" if log else "linear")
        assert (encoding[side]["scale"]["domain"][0] > 0) == log, "an axis that is not logarithmic begins at 0"
        assert encoding[side]["axis"]["title"] == name
    assert points(drawn, "a") == [(1, 2), (100, 40)]


@pytest.mark.parametrize(("axis", "curve"), [("log_x", ([0, 1], [1, 1])), ("log_y", ([1, 2], [1, 0]))])
def test_a_logarithmic_axis_refuses_zero(axis, curve):
    plots.lines({"a": curve}, across="x", up="y")
    with pytest.raises(InvalidParameter, match="no 0"):
        plots.lines({"a": curve}, across="x", up="y", **{axis: True})


def test_a_curve_is_drawn_in_the_order_of_x():
    chart = plots.profile({"shuffled": ([2, 0, 1], [0.01, 1, 0.1])})
    assert points(chart, "shuffled") == [(0, 1), (1, 0.1), (2, 0.01)]


def test_labels_stand_inside_and_do_not_touch():
    frame = ChartFrame(
        x=ChartAxis(low=0, high=3, pixels=460), y=ChartAxis(low=1e-5, high=1, pixels=320, log=True, upward=True)
    )
    labels = place({name: (x, np.maximum(y, 1e-7)) for name, (x, y) in PROFILES.items()}, frame)
    assert [label.text for label in labels] == list(PROFILES)
    assert not any(a.overlap(b) for a in labels for b in labels if a is not b)
    for label in labels:
        wide, high = label.half
        assert wide <= label.x <= 460 - wide
        assert high <= label.y <= 320 - high


def test_a_label_hides_no_curve_where_there_is_room():
    frame = ChartFrame(x=ChartAxis(low=0, high=1, pixels=400), y=ChartAxis(low=0, high=1, pixels=300, upward=True))
    curves = {"one": (RATES, 0.8 + 0 * RATES), "two": (RATES, 0.3 + 0 * RATES)}
    for label in place(curves, frame):
        for x, y in curves.values():
            assert label.covered(*frame.inside(x, y)) == 0


@pytest.mark.parametrize("slope", [0.1, 0.4, 0.8])
def test_labels_of_falling_lines_hide_nothing(slope):
    frame = ChartFrame(x=ChartAxis(low=0, high=1, pixels=460), y=ChartAxis(low=0, high=1, pixels=320, upward=True))
    curves = {"Laplace": (RATES, 0.85 - slope * RATES), "Gaussian, δ = 1e-6": (RATES, 0.99 - slope * RATES)}
    for label in place(curves, frame):
        for x, y in curves.values():
            assert label.covered(*frame.inside(x, y)) == 0


@pytest.mark.parametrize("pixel", [0.0, 17.0, 320.0])
@pytest.mark.parametrize("log", [False, True])
def test_an_axis_finds_back_what_it_places(pixel, log):
    axis = ChartAxis(low=1e-6, high=1.0, pixels=320, log=log, upward=True)
    assert axis.pixel(np.array([axis.value(pixel)]))[0] == pytest.approx(pixel)


def contrast_with_white(colour: str) -> float:
    """The ratio of relative luminances of the web content accessibility guidelines."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


@pytest.mark.parametrize("ink", [*chart_files.INKS, chart_files.QUIET])
def test_letters_are_dark_enough_to_read(ink):
    assert contrast_with_white(ink) >= 3


BAD_CURVES: dict[str, Any] = {
    "nothing": {},
    "a list": [([0, 1], [1, 0])],
    "a name that is no text": {1: ([0, 1], [1, 0])},
    "an empty name": {"": ([0, 1], [1, 0])},
    "one sequence": {"a": [0, 1]},
    "three sequences": {"a": ([0, 1], [1, 0], [0, 0])},
    "lengths that differ": {"a": ([0, 1, 2], [1, 0])},
    "one point": {"a": ([1], [1])},
    "no numbers": {"a": (["x", "y"], [1, 0])},
    "not a number": {"a": ([0, float("nan")], [1, 0])},
    "infinity": {"a": ([0, float("inf")], [1, 0])},
    "negative numbers": {"a": ([0, 1], [1, -0.5])},
    "a table": {"a": ([[0, 1], [1, 2]], [[0, 1], [1, 2]])},
    "too many curves": {str(i): ([0, 1], [1, 0]) for i in range(MOST + 1)},
}


@pytest.mark.parametrize("draw", [plots.profile, plots.tradeoff, plots.accuracy])
@pytest.mark.parametrize("curves", BAD_CURVES.values(), ids=BAD_CURVES)
def test_what_cannot_be_drawn_is_refused(draw, curves):
    with pytest.raises(InvalidParameter):
        draw(curves)


@pytest.mark.parametrize(
    ("draw", "curves"),
    [
        (plots.profile, {"a": ([0, 1], [2, 1])}),
        (plots.profile, {"a": ([0, 0], [1, 1])}),
        (plots.tradeoff, {"a": ([0, 2], [1, 0])}),
        (plots.tradeoff, {"a": ([0, 1], [3, 0])}),
        (plots.accuracy, {"a": ([0, 1], [0, 0])}),
    ],
)
def test_values_outside_their_range_are_refused(draw, curves):
    with pytest.raises(InvalidParameter):
        draw(curves)
