"""The gallery quotes what its script computes, and shows what the script draws."""

from __future__ import annotations

import json
import re

import pytest

import discreet as dp
from docs.exhibits.regressions import errors
from docs.make_gallery import EXHIBITS, FIGURES, PAGE, PICTURES, TEXT, page, short

KNOWN: dict[str, dict[str, float]] = json.loads(FIGURES.read_text())
TEXT_ON_FILE = PAGE.read_text()

QUICK = {"exponential", "proposed", "mode", "partitions", "triangles", "outliers"}
MEASURED = {"regression"}
COMPUTED = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in EXHIBITS if name not in MEASURED
]


def test_the_page_quotes_the_figures():
    assert page(KNOWN) == TEXT_ON_FILE


def test_every_exhibit_has_its_figures_and_every_figure_is_quoted():
    assert list(KNOWN) == list(EXHIBITS)
    quoted = re.findall(r"\{(\w+)\[(\w+)\]\}", TEXT.read_text())
    assert {name: {key for where, key in quoted if where == name} for name in EXHIBITS} == {
        name: set(figures) for name, figures in KNOWN.items()
    }


def test_every_exhibit_is_shown_once_with_words_for_those_who_do_not_see_it():
    assert re.findall(r"!\[[^]]{40,}\]\(gallery/(\w+)\.svg\)", TEXT_ON_FILE) == list(EXHIBITS)
    assert {path.stem for path in PICTURES.glob("*.svg")} == set(EXHIBITS)
    assert TEXT_ON_FILE.count("**Wins**") == TEXT_ON_FILE.count("**Loses**") == len(EXHIBITS)


@pytest.mark.parametrize("name", COMPUTED)
def test_the_figures_are_those_of_the_script(name):
    """If a mechanism has become better, `python -m docs.make_gallery` renews the page."""
    made = EXHIBITS[name]()
    assert made.figures == pytest.approx(KNOWN[name], rel=1e-6)
    drawn = (PICTURES / f"{name}.svg").read_text()
    curves = made.chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert all(f">{curve}<" in drawn for curve in curves), "the picture on file has these lines"


@pytest.mark.long
@pytest.mark.statistical
def test_the_measured_errors_of_regressions_follow_what_is_quoted():
    """Of fifteen releases eight would have to be five times better or worse; and another method is surely rejected."""
    quoted, found = KNOWN["regression"], errors(10)
    for name in ("refined", "noisy", "adassp"):
        assert quoted[f"{name}_at_ten"] / 5 <= found[name] <= 5 * quoted[f"{name}_at_ten"]
    assert min(found["noisy"], found["adassp"]) > 5 * quoted["refined_at_ten"]


def test_every_mechanism_that_is_named_exists():
    for path in re.findall(r"`(?:dp\.)?((?:adaptive|mechanisms|robust)\.\w+)", TEXT_ON_FILE):
        part, name = path.split(".")
        assert name in getattr(dp, part).__all__


@pytest.mark.parametrize(("value", "text"), [(0.01234, "0.0123"), (12.0, "12"), (468.75, "469"), (25_000.4, "25,000")])
def test_figures_have_three_digits(value, text):
    assert short(value) == text


REPLACE_ONE = dp.Relation.REPLACE_ONE
COMPARED = {
    "docs/choosing.md": lambda: dp.compare(
        "median",
        relation=REPLACE_ONE,
        epsilon=1,
        delta="1e-6",
        public_rows=1000,
        bounds=(0, 10**6),
        step=1,
        expected=dp.Expected.lognormal(30_000, 2),
    ),
    "README.md": lambda: dp.compare(
        "mean",
        bounds=(0, 10**4),
        epsilon=2,
        public_rows=2000,
        relation=REPLACE_ONE,
        expected=dp.Expected.normal(45, 15),
    ),
}


@pytest.mark.parametrize("name", COMPARED)
def test_the_comparison_on_a_page_is_what_is_printed(name):
    assert f"```\n{COMPARED[name]()}\n```" in (PAGE.parent.parent / name).read_text()
