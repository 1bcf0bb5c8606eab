"""The built documentation: every link leads somewhere, nothing comes from another host, all of it fits the screen."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from system_parts import BROWSER_FLAGS, CHROMIUM, needs_chromium

from docs.inline_charts import COLOUR, inlined, variable
from docs.navigation import version
from scripts.check_site import dead_links

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STYLE = (DOCS / "theme" / "site.css").read_text(encoding="utf-8")
CHARTS = [*sorted((DOCS / "pictures").glob("*.svg")), *sorted((DOCS / "gallery").glob("*.svg"))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.long
def test_every_link_of_the_built_site_leads_somewhere(site):
    assert len(list(site.rglob("*.html"))) > 90
    assert dead_links(site) == []


DEAD = {
    "a file that was left out": '<a href="schema/plan.json">schema</a>',
    "a page that is not there": '<a href="nowhere.html">nowhere</a>',
    "a heading that is not there": '<a href="other.html#gone">gone</a>',
    "a heading of this page that is not there": '<a href="#gone">gone</a>',
    "a picture that is not there": '<img src="chart.svg" alt="a chart">',
    "a file beside the site": '<a href="../secret.txt">secret</a>',
    "a script from another host": '<script src="https://unpkg.com/mermaid"></script>',
    "letters from another host": '<link rel="stylesheet" href="https://fonts.googleapis.com/css">',
    "a style that loads": '<link rel="stylesheet" href="loads.css">',
}


@pytest.mark.parametrize("planted", DEAD)
def test_a_planted_dead_link_is_found(planted, tmp_path):
    (tmp_path / "secret.txt").write_text("beside the site")
    site = tmp_path / "site"
    site.mkdir()
    (site / "other.html").write_text('<h1 id="here">Here</h1><a href="https://example.org/">a link may lead away</a>')
    (site / "index.html").write_text('<a href="other.html#here">other</a> <a href="./">home</a> <a href="#">top</a>')
    assert dead_links(site) == []
    (site / "page.html").write_text(DEAD[planted])
    if planted == "a style that loads":
        (site / "loads.css").write_text('@import "https://fonts.googleapis.com/css";')
    assert len(dead_links(site)) == 1


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.stem)
def test_every_colour_of_a_chart_has_one_for_the_night(chart):
    colours = {found for _, found in COLOUR.findall(chart.read_text(encoding="utf-8"))}
    assert len(colours) > 3
    assert [colour for colour in colours if f"{variable(colour)}:" not in STYLE] == []


def test_a_chart_in_a_page_is_told_in_words_and_shares_no_name():
    drawing = (
        '<svg class="marks" width="9"><clipPath id="c"/><g clip-path="url(#c)" fill="#222222" stroke="white"/></svg>\n'
    )
    found = inlined(drawing, "Errors &amp; a &quot;bound&quot;", "means")
    assert found.startswith('<svg class="chart" role="img" aria-label=')
    assert "Errors &amp; a" in found.partition(">")[0]
    assert 'id="means-c"' in found
    assert "url(#means-c)" in found
    assert 'fill="var(--chart-222222, #222222)"' in found
    assert 'stroke="var(--chart-white, white)"' in found


@pytest.mark.long
def test_no_chart_is_left_behind_an_image(site):
    pages = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    assert sum(page.count('<svg class="chart"') for page in pages) == len(CHARTS)
    assert [
        found for page in pages for found in re.findall(r"<img [^>]*\.svg[^>]*>", page) if "logo" not in found
    ] == []


@pytest.mark.long
def test_the_site_names_the_version(site):
    assert f"Discreet {version(DOCS)}</title>" in (site / "index.html").read_text(encoding="utf-8")


WORDS = {
    "pip install": "quickstart.html",
    "household": "units.html",
    "delimiter": "session.html",
    "decimal comma": "session.html",
    "group by": "queries.html",
    "groupby": "session.html",
    "jupyter": "plots.html",
    "random forest": "learn/estimators.html",
    "windows": "units.html",
    "macos": "versions.html",
    "opacus": "benchmarks/training-speed.html",
}


@pytest.mark.long
@pytest.mark.parametrize("words", WORDS)
def test_words_that_people_type_lead_to_the_page_about_them(words, site):
    """The search of the site reads this index, of a page and of each of its sections."""
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    said = [
        entry for entry in entries if words in f"{entry['title']} {entry['text']}".lower().replace("forests", "forest")
    ]
    assert WORDS[words] in {entry["location"].partition("#")[0] for entry in said}


# --- in a browser ---

_WIDE = """() => {
  const cut = [...document.querySelectorAll('.md-typeset pre, .md-typeset pre code')]
    .filter(e => e.scrollWidth > e.clientWidth);
  const out = [...document.querySelectorAll('.md-content *')].filter(e => e.tagName.toLowerCase() == 'table'
    && !e.closest('.md-typeset__scrollwrap') && e.getBoundingClientRect().right > innerWidth);
  return [document.documentElement.scrollWidth > innerWidth, cut.map(e => e.textContent.slice(0, 60)), out.length];
}"""
_CHARTS = """() => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b };
  const ground = rgb(getComputedStyle(document.body).backgroundColor);
  const charts = [...document.querySelectorAll('svg.chart')];
  const letters = charts.flatMap(chart => [...chart.querySelectorAll('text')])
    .filter(text => text.textContent.trim() && !text.hasAttribute('stroke'));  // Halos have one.
  const contrast = letters.map(text => { const a = light(rgb(getComputedStyle(text).fill)), b = light(ground);
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) });
  const slabs = charts.map(chart => chart.querySelector('rect')).filter(card =>
    card.getAttribute('width') == card.ownerSVGElement.getAttribute('width')
    && getComputedStyle(card).fill != getComputedStyle(document.body).backgroundColor);
  return [charts.length, Math.min(...contrast), slabs.length, light(ground)];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_FLAGS)
        yield opened
        opened.close()


_FOUND = "[...document.querySelectorAll('.md-search-result__item > a')].slice(0, 6).map(link => link.pathname)"


@pytest.mark.long
@needs_chromium
def test_a_site_on_a_disk_finds_the_words_that_people_type(site, browser):
    """Browsers start no worker there (`theme/disk_search.js`). The page is among the first six results."""
    from playwright.sync_api import TimeoutError as NotFound

    view = browser.new_page(viewport={"width": 1280, "height": 900})
    view.goto((site / "index.html").as_uri())
    view.click(".md-search__input")
    missed = {}
    for words, page in WORDS.items():
        view.fill(".md-search__input", "")
        view.type(".md-search__input", words)
        try:
            view.wait_for_function(f"page => {_FOUND}.some(link => link.endsWith('/' + page))", arg=page)
        except NotFound:
            missed[words] = view.evaluate(_FOUND)
    view.close()
    assert missed == {}


@pytest.mark.slow
@needs_chromium
def test_nothing_is_cut_or_wider_than_the_screen_on_any_page(site, browser):
    """Code fits its column at 1,280 pixels; on a phone only tables and printed columns are moved sideways."""
    view = browser.new_page(viewport={"width": 1280, "height": 900})
    faults = []
    for page in sorted(site.rglob("*.html")):
        view.set_viewport_size({"width": 1280, "height": 900})
        view.goto(page.as_uri())
        wide, cut, tables = view.evaluate(_WIDE)
        view.set_viewport_size({"width": 390, "height": 844})
        phone_wide, _, phone_tables = view.evaluate(_WIDE)
        if wide or cut or tables or phone_wide or phone_tables:
            faults.append((page.relative_to(site).as_posix(), wide, cut, tables, phone_wide, phone_tables))
    view.close()
    assert faults == []


@pytest.mark.slow
@needs_chromium
def test_no_page_of_benchmarks_is_longer_than_fifteen_screens(site, browser):
    view = browser.new_page(viewport={"width": 1280, "height": 900})
    heights = {}
    for page in sorted((site / "benchmarks").glob("*.html")):
        view.goto(page.as_uri())
        heights[page.stem] = view.evaluate("document.documentElement.scrollHeight") / 900
    view.close()
    assert len(heights) > 20
    assert {name: screens for name, screens in heights.items() if screens > 15} == {}


@pytest.mark.long
@needs_chromium
def test_code_that_is_not_wrapped_is_noticed(site, browser):
    view = browser.new_page(viewport={"width": 1280, "height": 900})
    view.goto((site / "session.html").as_uri())
    assert view.evaluate(_WIDE) == [False, [], 0]
    view.add_style_tag(content=".md-typeset pre > code { white-space: pre !important; font-size: 2em !important; }")
    assert view.evaluate(_WIDE)[1] != []
    view.close()


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("page", ["gallery.html", "attacks.html", "design.html", "plots.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_of_charts_have_contrast_enough_by_day_and_by_night(site, browser, page, scheme):
    view = browser.new_page(color_scheme=scheme)
    view.goto((site / page).as_uri())
    charts, contrast, slabs, ground = view.evaluate(_CHARTS)
    view.close()
    assert charts > 0
    assert contrast >= 4.5
    assert slabs == 0
    assert (ground > 0.9) == (scheme == "light")
