"""Every page in a real browser: light and dark, wide and narrow, by keyboard, and by axe-core; and the editor.

A page that is added is looked at by itself: all addresses that answer with HTML are opened. One with another
parameter than a data set or a release is given its value in `PLACES`.
"""

from __future__ import annotations

import contextlib
import re
import threading
from importlib.resources import files
from pathlib import Path

import pytest
from server_world import GROUPED, SAVE, listening, once_known, prepare, running
from system_parts import needs_chromium

from discreet.server.approvals import ApprovalLimits
from discreet.server.pages.site import page_routes

pytestmark = [needs_chromium, pytest.mark.long]
GRAVE = ("serious", "critical")
# What stands for the parameter of an address, where it is not the data set or the release of the site.
PLACES = {"/approvals/{id}": lambda world: f"/approvals/{world.waiting}", "/static/{name}": lambda world: None}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server with three data sets, a release of somebody and saved questions."""
    folder = tmp_path_factory.mktemp("site")
    prepare(folder)
    limits = ApprovalLimits.read(["one=1"], [])
    with running(folder, approvals=limits) as world, listening(world) as address:
        analyst = world.client("analyst")
        world.number = analyst.post("/v1/datasets/one/releases", json=GROUPED).json()["id"]
        world.waiting = analyst.post("/v1/datasets/one/releases?wait=0", json=GROUPED | {"epsilon": "2"}).json()["id"]
        analyst.post("/v1/datasets/one/questions", json=SAVE | {"title": "How many in all"})
        world.address = address
        yield world


@contextlib.contextmanager
def visiting(site, chromium, role, **more):
    """Somebody who is signed in, and what the console of their browser said."""
    invitation = site.server.accounts.invite(role, by="test")
    context = chromium.new_context(bypass_csp=True, **more)  # So that axe-core can be put in; our scripts are no other.
    page, told = context.new_page(), []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(f"{site.address}/login")
    page.fill("#invitation", invitation)
    page.click("text=Sign in with it")
    page.wait_for_url("**/account")
    try:
        yield page, told
    finally:
        context.close()


def axe():
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def findings(page):
    """Serious and critical findings of axe-core: the rule, and where."""
    page.evaluate(axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(one["id"], [node["html"][:160] for node in one["nodes"]][:3]) for one in found if one["impact"] in GRAVE]


def check_look(page, width):
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
    assert findings(page) == [], page.url
    assert page.locator("h1").count() == 1, page.url
    assert page.locator("main").count() == 1, page.url


def addresses(site):
    """All pages that an owner can open."""
    for route in page_routes(site.server):
        if "GET" in route.methods and not route.path.endswith((".toml", ".ipynb")):  # Files are no pages.
            place = PLACES.get(route.path, lambda world, path=route.path: path.format(id=world.number, dataset="one"))
            if place(site) is not None:
                yield place(site)


LOOKS = [("dark", 360), ("light", 1200), ("light", 360), ("dark", 1200)]


def is_page(answer):
    """Whether somebody is shown a page there: who may is in test_server_accounts.py, and files are downloaded."""
    return answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")


def look_at_all(site, chromium, role, scheme, width, places):
    client = site.browser(role)
    seen = [place for place in places if is_page(client.get(place))]
    with visiting(site, chromium, role, color_scheme=scheme, viewport={"width": width, "height": 800}) as (page, told):
        for place in seen:
            page.goto(site.address + place)
            page.wait_for_load_state("networkidle")
            check_look(page, width)
            assert told == [], place
    return seen


def test_pages_have_no_grave_finding_no_console_message_and_fit_a_phone(site, chromium):
    """One look at those of asking; all of them in all looks below."""
    scheme, width = LOOKS[0]
    places = ["/ask", "/budget", "/questions", f"/releases/{site.number}", "/account", "/problems"]
    assert look_at_all(site, chromium, "analyst", scheme, width, places) == places


@pytest.mark.slow
@pytest.mark.parametrize("role", ["owner", "custodian", "analyst", "auditor", "reader"])
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_every_page_has_no_grave_finding_no_console_message_and_fits(site, chromium, role, scheme, width):
    seen = look_at_all(site, chromium, role, scheme, width, list(addresses(site)))
    assert len(seen) >= 4
    if role == "owner":
        assert {"/ask", "/budget", "/questions", "/account", "/problems", f"/releases/{site.number}"} <= set(seen)


@pytest.mark.parametrize(
    "planted",
    [
        "<h1>t</h1><main></main><p style='color:#999;background:#aaa'>pale letters</p>",
        "<h1>t</h1><main></main><div style='width:2000px'>wide</div>",
        "<h1>t</h1><main></main><input>",
    ],
)
def test_a_planted_mistake_of_a_page_is_found(chromium, planted):
    page = chromium.new_page(viewport={"width": 1200, "height": 800})
    page.set_content(f"<html lang=en><title>t</title>{planted}")
    with pytest.raises(AssertionError):
        check_look(page, 1200)
    page.close()


def test_every_role_has_the_links_that_it_may_follow(site):
    for role in ("owner", "analyst", "auditor", "reader"):
        client = site.browser(role)
        bar = client.get("/account").text.split("<nav")[1].split("</nav>")[0]
        links = re.findall(r'href="(/[a-z]*)"', bar)
        assert links
        for link in links:
            assert client.get(link).status_code == 200, (role, link)
    assert "/ask" not in re.findall(r'href="(/[a-z]*)"', bar)  # A reader's.
    assert "<nav" in site.client().get("/login").text or "/ask" not in site.client().get("/login").text


def test_a_page_that_waits_shows_the_answer_by_itself(tmp_path, chromium):
    """It asks again, and is loaded anew only when it says something else; without scripts the browser reloads it."""
    prepare(tmp_path)
    gate = threading.Event()

    def until(moment, known):
        assert gate.wait(240)
        once_known(moment, known)

    with contextlib.ExitStack() as opened:
        world = opened.enter_context(running(tmp_path, names=("one",), until=until))
        world.address = address = opened.enter_context(listening(world))
        opened.callback(gate.set)
        number = world.client("analyst").post("/v1/datasets/one/releases?wait=0", json=GROUPED).json()["id"]
        with visiting(world, chromium, "analyst") as (page, told):
            page.goto(f"{address}/releases/{number}")
            assert "Being answered" in page.inner_text("h1")
            check_look(page, 1280)
            assert 'http-equiv="refresh"' in page.locator("noscript").first.inner_html()
            gate.set()
            page.wait_for_selector("table.answer", timeout=240_000)
            assert told == []


# --- by keyboard ---


def tab_to(page, wanted, most=90):
    """Press Tab until something has the focus, as somebody without a mouse does."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("one => document.activeElement?.matches(one)", wanted):
            return
    raise AssertionError(f"{wanted} is not reached")


def test_from_a_question_to_a_download_by_keyboard_alone(site, chromium):
    with visiting(site, chromium, "analyst", accept_downloads=True) as (page, told):
        page.goto(f"{site.address}/account")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        tab_to(page, 'a.button[href="/ask"]')
        page.keyboard.press("Enter")
        page.wait_for_url("**/ask")
        tab_to(page, "#sql")
        page.keyboard.press("Control+a")
        page.keyboard.type("SELECT clinic, COUNT(*) AS n FROM visits GROUP BY cli")
        page.wait_for_selector(".completions li")
        page.keyboard.press("Tab")
        assert page.input_value("#sql").endswith("GROUP BY clinic")
        page.locator("#strip b", has_text="ε = 0.1").wait_for()
        tab_to(page, "#amount")
        page.keyboard.press("Control+a")
        page.keyboard.type("0.2")
        page.locator("#strip b", has_text="ε = 0.2").wait_for()
        tab_to(page, "button[value=release]")
        page.keyboard.press("Enter")
        page.wait_for_selector("table.answer", timeout=240_000)
        assert page.locator("table.chart svg").count() >= 5
        tab_to(page, "a[href$='.csv']")
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        assert "n_plus_minus" in download.value.path().read_text()
        assert told == []


def test_enter_in_a_field_costs_nothing(site, chromium):
    """A form is sent by its first button: that is not the one which pays."""
    with visiting(site, chromium, "analyst") as (page, _):
        before = site.client("analyst").get("/v1/datasets/one/budget").json()["charges"]
        page.goto(f"{site.address}/ask")
        page.focus("#amount")
        page.keyboard.press("Enter")
        page.wait_for_selector("details.explained")
        assert site.client("analyst").get("/v1/datasets/one/budget").json()["charges"] == before


# --- the editor ---


def test_what_cannot_be_read_is_underlined_and_says_nothing_in_the_console(site, chromium):
    with visiting(site, chromium, "analyst") as (page, told):
        page.goto(f"{site.address}/ask")
        page.fill("#sql", "SELECT COUNT(*) AS n\nFROM nowhere")
        page.wait_for_selector(".painted .wrong")
        assert page.inner_text(".painted .wrong") == "nowhere"
        assert page.get_attribute("#sql", "aria-invalid") == "true"
        page.fill("#sql", "SELECT COUNT(*) AS n\nFROM visits")
        page.locator("#strip b").wait_for()
        assert page.locator(".painted .wrong").count() == 0
        page.fill("#sql", "SELECT COUNT(*) AS n FROM")
        page.wait_for_selector("#strip pre")
        page.click("button[value=price]")  # The server's page marks the same place.
        page.wait_for_selector(".trouble")
        assert page.locator(".painted .wrong").count() == 1
        assert [text for text in told if "422" not in text] == []  # The page itself is answered with 422.


def test_names_values_and_words_are_completed(site, chromium):
    with visiting(site, chromium, "analyst") as (page, told):
        page.goto(f"{site.address}/ask")

        def complete(text, *keys):
            page.fill("#sql", "")
            page.focus("#sql")
            page.keyboard.type(text)
            for key in keys:
                page.keyboard.press(key)
            return page.input_value("#sql")

        assert complete("SELECT COUNT(*) FROM vi", "Tab") == "SELECT COUNT(*) FROM visits"
        assert complete("SELECT COUNT(*) FROM visits WHERE clinic = ", "Control+Space", "ArrowDown", "Enter").endswith(
            "clinic = 'Hillside'"
        )
        assert complete("SELECT COUNT(*) FROM visits WHERE clinic = 'ol", "Tab").endswith("= 'Old Mill'")
        assert complete("SELECT med", "Control+Space", "Enter") == "SELECT MEDIAN"
        assert complete("SELECT cli", "Escape", "Enter") == "SELECT cli\n"
        assert complete("SELECT cli", "Enter") == "SELECT cli\n"  # Nothing was chosen.
        page.keyboard.press("Control+Space")
        assert page.get_attribute("#sql", "aria-activedescendant") == "completion-0"
        assert page.get_attribute("#completion-0", "role") == "option"
        assert findings(page) == []
        page.keyboard.press("Escape")
        page.click("aside button.name:has-text('age')")
        assert page.input_value("#sql").endswith("age")
        page.keyboard.press("Control+z")
        assert not page.input_value("#sql").endswith("age")
        assert told == []


def test_a_long_question_is_painted_where_it_is_written(site, chromium):
    """Twenty thousand letters, tabs, signs of other scripts and an open quote: the copy keeps the size of the text."""
    listed = ", ".join(f"'{number} 漢字 é\t{number}'" for number in range(900))
    sql = f"SELECT COUNT(*) AS n FROM visits\nWHERE clinic IN ({listed})"[:20_000]
    with visiting(site, chromium, "analyst") as (page, told):
        page.goto(f"{site.address}/ask")
        page.fill("#sql", sql)
        assert page.evaluate("document.querySelector('.painted').textContent") == sql + "\n"
        page.evaluate("document.querySelector('#sql').scrollTop = 1e6")
        page.wait_for_function("document.querySelector('.painted').scrollTop > 100")
        sizes = "[...document.querySelectorAll('#sql, .painted')].map(one => [one.scrollHeight, one.scrollTop])"
        (high, top), (other_high, other_top) = page.evaluate(sizes)
        assert abs(high - other_high) <= 2
        assert abs(top - other_top) <= 2
        taken = page.evaluate(
            "() => { const area = document.querySelector('#sql'), begun = performance.now();"
            " for (let i = 0; i < 5; i++) area.dispatchEvent(new Event('input', {bubbles: true}));"
            " return (performance.now() - begun) / 5 }"
        )
        assert taken < 30_000  # Milliseconds: about ten, and minutes if it looked at every pair of letters.
        page.wait_for_timeout(100)
        assert told == []


def test_titles_of_saved_questions_are_texts(site, chromium):
    payloads = Path(__file__).with_name("payloads.txt").read_text(encoding="utf-8").splitlines()
    for payload in payloads:
        said = {"title": payload[:120], "shared": True, "question": GROUPED | {"sql": f"SELECT '{payload}'"}}
        assert site.client("owner").post("/v1/datasets/one/questions", json=said).status_code == 200
    with visiting(site, chromium, "analyst") as (page, told):
        for place in ("/questions", "/ask"):
            page.goto(site.address + place)
            assert page.evaluate("window.hit") is None
            outside = "document.querySelectorAll('iframe,object,embed,[onerror],[onclick],[onload]').length"
            assert page.evaluate(outside) == 0
        page.goto(f"{site.address}/questions")
        shown = page.inner_text("main")
        assert [one for one in payloads if " ".join(one[:50].split()) not in " ".join(shown.split())] == []
        assert told == []


def test_scripts_are_ours_and_set_text_as_text():
    """No script has a way to turn a text into markup or code."""
    for one in (files("discreet.server") / "static").iterdir():
        if one.name.endswith(".js"):
            text = one.read_text(encoding="utf-8")
            for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "://"):
                assert way not in text.replace("location.protocol", ""), (one.name, way)
