"""Notebooks show a chart without a network, in light and dark, and nothing in it can become anything but a drawing."""

from __future__ import annotations

import base64
import inspect
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import altair as alt
import pytest

from discreet import plots
from discreet.plots import chart_files
from discreet.plots.chart_files import svg_of
from discreet.plots.offline_chart import OfflineChart

HOSTILE = "</text><script>alert(1)</script><a href='javascript:x'>&\"]; datum.value //"
CURVE = {HOSTILE: ([0.1, 1], [0.9, 0.5]), "other": ([0.1, 1], [0.8, 0.4])}
ROWS = ([HOSTILE, "other"], [1, 2], [0, 1], [2, 3])
DRAWN: dict[str, Any] = {
    "profile": lambda: plots.profile(CURVE, title=HOSTILE),
    "tradeoff": lambda: plots.tradeoff(CURVE, title=HOSTILE),
    "accuracy": lambda: plots.accuracy(CURVE, unit=HOSTILE),
    "shifts": lambda: plots.shifts(CURVE, what=HOSTILE),
    "neighbours": lambda: plots.neighbours(CURVE, across=HOSTILE, title=HOSTILE),
    "lines": lambda: plots.lines(CURVE, across=HOSTILE, up=HOSTILE),
    "boxes": lambda: plots.boxes([HOSTILE], [[1, 2, 3, 4, 5]], across=HOSTILE, title=HOSTILE),
    "error_bars": lambda: plots.error_bars(*ROWS, across=HOSTILE, title=HOSTILE),
    "shares": lambda: plots.shares(ROWS[0], {HOSTILE: [0.2, 0.5], "rest": [0.8, 0.5]}, across=HOSTILE),
}
CHART = plots.profile({"steep": ([0, 1, 2], [0.5, 0.01, 1e-4]), "flat": ([0, 1, 2], [0.5, 0.2, 0.1])})


def colours(drawn: str) -> set[str]:
    """Return the colours of a drawing by what its parts say, not by its style."""
    return set(re.findall(r'(?:fill|stroke)="([^"]*)"', re.sub(r"<style>.*?</style>", "", drawn))) - {"none"}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_chart_of_the_package_is_tried_here():
    functions = {name: getattr(plots, name) for name in plots.__all__ if inspect.isfunction(getattr(plots, name))}
    charts = {
        name for name, draw in functions.items() if "LayerChart" in str(inspect.signature(draw).return_annotation)
    }
    assert charts == DRAWN.keys()


@pytest.mark.long
@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_a_notebook_gets_pictures_that_load_and_run_nothing(draw):
    shown = draw()._repr_mimebundle_()
    assert shown.keys() == {"image/svg+xml", "image/png", "text/plain"}
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    parts = list(ElementTree.fromstring(shown["image/svg+xml"]).iter())  # It is well-formed, or this fails.
    assert {part.tag.partition("}")[2] for part in parts} <= {
        "svg", "style", "g", "path", "rect", "line", "text", "clipPath", "defs"
    }  # fmt: skip
    assert not [name for part in parts for name in part.attrib if name.startswith("on") or name.endswith("href")]
    assert set(re.findall(r"https?://[^\s\"]+", shown["image/svg+xml"])) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


@pytest.mark.long
@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_every_colour_has_one_for_the_dark(draw):
    drawn = svg_of(draw().to_json(indent=None))
    assert colours(drawn) <= chart_files.DARK.keys()
    style = re.findall(r"<style>(.*?)</style>", drawn)
    assert len(style) == 1
    assert style[0].startswith("@media(prefers-color-scheme:dark){.chart-")
    for colour in colours(drawn):
        assert f'="{colour}"]' in style[0]


@pytest.mark.parametrize("light", [*chart_files.COLOURS, *chart_files.INKS, chart_files.QUIET, "black", "#222222"])
def test_letters_and_lines_are_bright_enough_in_the_dark(light):
    paper, ink = luminance(chart_files.DARK["white"]), luminance(chart_files.DARK[light])
    assert (ink + 0.05) / (paper + 0.05) >= 4.5


def test_two_charts_of_one_page_share_no_name_and_no_style():
    wide = CHART.properties(width=700)
    first, second = (svg_of(chart.to_json(indent=None)) for chart in (CHART, wide))
    names = [set(re.findall(r'id="([^"]*)"', drawn)) for drawn in (first, second)]
    assert all(names)
    assert not names[0] & names[1]
    for drawn, own in zip((first, second), names, strict=True):
        assert set(re.findall(r"url\(#([^)]*)\)", drawn)) == own
        marked = re.search(r'class="marks (chart-\w+)"', drawn)
        assert marked is not None
        assert set(re.findall(r"\.(chart-\w+) \[", drawn)) == {marked[1]}
    assert first == svg_of(CHART.to_json(indent=None))


def test_a_chart_that_was_changed_still_shows_itself():
    changed = CHART.properties(title="Mine", width=300)
    assert isinstance(changed, OfflineChart)
    assert "Mine" in changed._repr_mimebundle_()["image/svg+xml"]


def test_a_renderer_that_somebody_enabled_is_theirs():
    with alt.renderers.enable("mimetype"):
        assert "image/svg+xml" not in CHART._repr_mimebundle_()
    assert "image/svg+xml" in CHART._repr_mimebundle_()


@pytest.mark.long
def test_a_page_that_a_chart_saves_itself_needs_no_network(tmp_path):
    CHART.save(tmp_path / "chart.html")
    assert "src=" not in re.sub(r"<script[^>]*>.*?</script>", "", (tmp_path / "chart.html").read_text(), flags=re.S)
    CHART.save(str(tmp_path / "chart.json"))
    assert (tmp_path / "chart.json").exists()


def test_a_chart_says_in_a_terminal_what_it_shows():
    assert repr(CHART) == "OfflineChart(δ (probability) against privacy loss ε (nats): steep, flat)"
