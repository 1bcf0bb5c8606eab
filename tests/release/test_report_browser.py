"""The report in a real browser: it loads nothing, runs nothing, fits a phone, and can be read by day and by night.

Chromium is part of the system, not of the package: where it is missing, these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bundle_worlds as worlds
import pytest
from system_parts import BROWSER_FLAGS, CHROMIUM, needs_chromium

from discreet.release.bundle.bundle_writer import write_bundle

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    text = worlds.plan_text(title="Stays <script>alert(1)</script> & “more”", more=worlds.INVARIANT + worlds.SERIES)
    return write_bundle(worlds.release(folder, text), folder) / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_FLAGS)
        yield opened
        opened.close()


class Seen:
    """A page, and everything it said, asked for and refused while it was opened."""

    def __init__(self, browser: Any, path: Path, width: int, scheme: str) -> None:
        context = browser.new_context(viewport={"width": width, "height": 812}, color_scheme=scheme)
        self.page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture(scope="module", params=[(1280, "light"), (375, "light"), (375, "dark"), (1280, "dark")], ids=str)
def seen(request: pytest.FixtureRequest, browser: Any, report: Path) -> Iterator[Seen]:
    width, scheme = request.param
    opened = Seen(browser, report, width, scheme)
    yield opened
    opened.page.context.close()


def test_nothing_is_complained_about(seen: Seen) -> None:
    assert seen.said == []


def test_nothing_is_loaded_but_the_page_itself(seen: Seen, report: Path) -> None:
    assert seen.asked == [report.as_uri()]


def test_there_is_no_script(seen: Seen) -> None:
    found = seen.page.evaluate(
        "[document.scripts.length, document.querySelectorAll('iframe,object,embed,form,link,img').length,"
        " [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])"
        ".filter(a => a.name.startsWith('on') || a.name == 'style').length]"
    )
    assert found == [0, 0, 0]


def test_what_is_asked_to_run_does_not(seen: Seen) -> None:
    """The policy of the page holds: a script that somebody adds is refused."""
    seen.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s) }"
    )
    assert seen.page.evaluate("window.ran === undefined")
    seen.said.clear()


def test_nothing_is_wider_than_the_screen(seen: Seen) -> None:
    wide, room = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room
    cut = seen.page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert cut == []


def test_letters_have_contrast_enough(seen: Seen) -> None:
    """Every text, of the page and of its pictures, has at least the contrast of WCAG AA: 4.5 to 1."""
    poor = seen.page.evaluate(CONTRAST)
    assert poor == []


def test_poor_contrast_is_noticed(seen: Seen) -> None:
    seen.page.evaluate("document.querySelector('main p').style.color = '#787878'")  # 4.4 to 1 by day, 4.1 by night
    assert len(seen.page.evaluate(CONTRAST)) == 1
    seen.page.evaluate("document.querySelector('main p').removeAttribute('style')")


def test_letters_are_large_enough(seen: Seen) -> None:
    sizes = seen.page.evaluate(
        "[...document.querySelectorAll('body, body *')].filter(e => e.childNodes.length && "
        "[...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()))"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert len(sizes) > 100
    assert min(sizes) >= 12


def test_the_style_of_the_page_is_in_force(seen: Seen) -> None:
    """The policy names the style by its hash: one letter off, and the page would be bare."""
    assert seen.page.evaluate("getComputedStyle(document.querySelector('.card')).borderRadius") != "0px"


def test_every_table_has_its_bars(seen: Seen) -> None:
    bars = seen.page.evaluate("[...document.querySelectorAll('article')].map(a => a.querySelectorAll('svg').length)")
    assert len(bars) == len(worlds.TABLES) + 1
    assert min(bars) >= 1


def test_pictures_tell_their_story_in_words(seen: Seen) -> None:
    told = seen.page.evaluate(
        "[...document.querySelectorAll('svg[role=img]')].map(s => "
        "document.getElementById(s.getAttribute('aria-labelledby'))?.textContent || '')"
    )
    assert len(told) == 3
    assert all(len(text) > 40 for text in told)
    others = "[...document.querySelectorAll('svg:not([role=img])')]"
    assert seen.page.evaluate(f"{others}.filter(s => !s.closest('[aria-hidden=true], [role=img]')).length") == 0


def test_no_identifier_is_there_twice_and_every_link_leads_somewhere(seen: Seen, report: Path) -> None:
    ids = seen.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)) > 10
    for link in seen.page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"):
        assert link[1:] in ids if link.startswith("#") else (report.parent / link).is_file()


def test_the_dark_page_is_dark_and_the_light_one_light(browser: Any, report: Path) -> None:
    shots, shades = [], []
    for scheme in ("light", "dark"):
        opened = Seen(browser, report, 800, scheme)
        shots.append(opened.page.screenshot())
        shades.append(
            opened.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        )
        opened.page.context.close()
    assert shots[0] != shots[1]
    assert min(shades[0]) > 200
    assert max(shades[1]) < 60


@pytest.mark.long
def test_the_page_can_be_printed(browser: Any, report: Path) -> None:
    opened = Seen(browser, report, 800, "dark")
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert opened.page.pdf(format="A4").startswith(b"%PDF")
    opened.page.context.close()


CONTRAST = """
() => {
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b };
  const rgb = s => (s.match(/[\\d.]+/g) || []).map(Number);
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length == 3 || c[3] === 1) return c.slice(0, 3) } return [255, 255, 255] };
  const texts = [...document.querySelectorAll('body *')].filter(e =>
    [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) && e.tagName.toLowerCase() != 'title');
  return texts.map(e => {
    const style = getComputedStyle(e), svg = e.tagName.toLowerCase() == 'text';
    const a = light(rgb(svg ? style.fill : style.color)), b = light(ground(e));
    return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 80)];
  }).filter(([ratio]) => !(ratio >= 4.5));
}
"""
