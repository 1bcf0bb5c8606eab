"""The wizard, the lab and help in a real browser: with and without JavaScript, on a phone, and by keyboard alone."""

# ruff: noqa: F811 - fixtures of other files are taken by their names.
from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from system_parts import needs_chromium
from test_server_browser import PAYLOADS, odd, sign_in  # noqa: F401
from test_server_pages_browser import check_look, site, tab_to, visiting  # noqa: F401

from discreet.cli.command_runner import run

pytestmark = [needs_chromium, pytest.mark.long]


def executed(text, token, monkeypatch):
    """Run the code cells of a notebook as it stands, and return its names."""
    nbformat = pytest.importorskip("nbformat")
    read = nbformat.reads(text, as_version=4)
    nbformat.validate(read)
    monkeypatch.setenv("DISCREET_TOKEN", token)
    names = {}
    for cell in read.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, "cell", "exec"), names)
    names["server"].close()
    return names


@pytest.mark.parametrize(
    ("javascript", "width", "scheme"), [(False, 1200, "light"), (True, 360, "dark")], ids=["plain", "phone"]
)
def test_from_data_to_release_and_what_is_taken_away(
    site,
    chromium,
    javascript,
    width,
    scheme,
    tmp_path,
    monkeypatch,
):
    view = {"java_script_enabled": javascript, "color_scheme": scheme, "viewport": {"width": width, "height": 800}}

    def look(page):
        if javascript:
            check_look(page, width)

    with visiting(site, chromium, "analyst", **view) as (page, told):
        page.goto(f"{site.address}/build?step=1")
        look(page)
        page.click("main button")
        assert "Who is protected?" in page.inner_text("main")
        look(page)
        page.click("main button")
        page.select_option("#by1", "each:clinic")
        page.select_option("#by2", "50:age")
        page.select_option("#measure", "count")
        look(page)
        page.click("main button")
        page.select_option("#way", "error")
        page.fill("#amount", "12")
        if javascript:
            page.locator("#told dd", has_text="± 12").wait_for()
        else:
            page.click("text=Show the price")
            assert "± 12" in page.inner_text("#told")
        look(page)
        page.click("text=Try it on simulated data")
        page.wait_for_selector("table.answer")
        assert "nothing was read" in page.inner_text("main")
        assert page.locator("table.chart svg").count() >= 5
        look(page)
        page.click("text=Release for")
        page.wait_for_selector("text=Permanent link", timeout=240_000)
        page.wait_for_selector("table.answer", timeout=240_000)
        look(page)
        for name in ("plan.toml", "question.ipynb"):
            with page.expect_download() as download:
                page.click(f"text={name}")
            assert download.value.suggested_filename == name
            download.value.save_as(tmp_path / name)
        assert told == []
    assert run(["plan", "check", str(tmp_path / "plan.toml")]) == 0
    charged = site.server.shelf["one"].session.spent.charges
    names = executed((tmp_path / "question.ipynb").read_text(), site.tokens["analyst"], monkeypatch)
    assert names["answer"].names == ("clinic", "age", "count")
    assert site.server.shelf["one"].session.spent.charges == charged  # It fetched what was paid for.


def test_a_notebook_of_what_was_not_released_pays_nothing_unless_somebody_says_so(site, tmp_path, monkeypatch):
    browser = site.browser("analyst")
    said = "dataset=one&table=visits&by1=each:clinic&measure=count&way=epsilon&amount=0.125"
    text = browser.get(f"/build/notebook.ipynb?{said}", headers={"host": site.address.partition("//")[2]}).text
    spent = site.server.shelf["one"].session.spent.charges
    assert executed(text, site.tokens["analyst"], monkeypatch)["answer"].names == ("clinic", "count")
    assert site.server.shelf["one"].session.spent.charges == spent
    paid = json.dumps(json.loads(text)).replace("PAY = False", "PAY = True")
    executed(paid, site.tokens["analyst"], monkeypatch)
    assert site.server.shelf["one"].session.spent.charges == spent + 1


def test_the_wizard_by_keyboard_alone(site, chromium):
    with visiting(site, chromium, "analyst") as (page, told):
        page.goto(f"{site.address}/account")
        tab_to(page, 'nav a[href="/build"]')
        page.keyboard.press("Enter")
        page.locator("h2", has_text="Who is protected?").wait_for()  # There is one data set, and nothing to choose.
        tab_to(page, "main form button")
        page.keyboard.press("Enter")
        page.locator("h2", has_text="What do you want to know?").wait_for()
        tab_to(page, "#by1")
        page.keyboard.type("clinic")
        tab_to(page, "main form button")
        page.keyboard.press("Enter")
        page.locator("h2", has_text="How accurate").wait_for()
        tab_to(page, "#amount")
        page.keyboard.press("Control+a")
        page.keyboard.type("0.25")
        page.locator("#told b", has_text="ε = 0.25").wait_for()
        tab_to(page, "button[value='5']")
        page.keyboard.press("Enter")
        page.wait_for_selector("table.answer")
        tab_to(page, "main form button")
        assert "Release for ε = 0.25" in page.evaluate("document.activeElement.textContent")
        assert told == []


def test_no_name_is_run_in_the_wizard(odd, chromium):
    """C37: forty payloads as columns, table and categories, on every step."""
    address, invitation = odd
    page = chromium.new_page()
    sign_in(page, address, invitation)
    table = quote("<b onclick=window.hit=1>t</b>")
    for step in range(1, 7):
        for by in (f"1:{PAYLOADS[step]}", "each:kind"):
            said = f"dataset=odd&table={table}&by1={quote(by)}&only=3:kind&measure={quote('sum:' + PAYLOADS[step])}"
            page.goto(f"{address}/build?{said}&step={step}&way=epsilon&amount=1")
            assert page.locator(".trouble").count() == 0
            assert page.evaluate("window.hit") is None
            assert (
                page.evaluate("document.querySelectorAll('iframe,object,embed,[onerror],[onclick],[onload]').length")
                == 0
            )
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1200, "light")])
def test_the_lab_and_help_look_right_and_move(site, chromium, width, scheme):
    view = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    with visiting(site, chromium, "reader", **view) as (page, told):
        page.goto(f"{site.address}/lab")
        check_look(page, width)
        before = page.inner_text("[data-bar='3']"), page.get_attribute("tr:nth-child(4) .after", "width")
        tab_to(page, "#place")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#epsilon") == "1.6"
        after = page.inner_text("[data-bar='3']"), page.get_attribute("tr:nth-child(4) .after", "width")
        assert float(after[1]) > float(before[1])
        assert float(after[0].split()[0]) > float(before[0].split()[0])
        page.goto(f"{site.address}/lab/attacks")
        check_look(page, width)
        tab_to(page, "#place")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**/lab/attacks?place=1")
        assert "ε = 0.3" in page.inner_text("main")
        page.goto(f"{site.address}/help")
        check_look(page, width)
        entries = page.locator(".entry:visible").count()
        page.fill("#q", "idempotency")
        assert 0 < page.locator(".entry:visible").count() < entries
        page.goto(f"{site.address}/problems#key-used")
        check_look(page, width)
        assert page.evaluate("document.querySelector(':target').id") == "key-used"
        assert told == []
        page.goto(f"{site.address}/nowhere")
        check_look(page, width)
        told.clear()  # The browser itself tells that it got a 404.
