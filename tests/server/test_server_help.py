"""Help: every problem has a cause and a way out, every link to one works, and what is not there is a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from discreet.server.pages.help_pages import PROBLEM_HELP, met_refusals
from discreet.server.problems import KINDS_OF_PROBLEMS, Problem

ROLES = ("owner", "custodian", "analyst", "auditor", "reader")


class Ids(HTMLParser):
    """The ids of a page, in order."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name == "id"]


def test_every_problem_has_a_cause_and_a_way_out():
    assert set(PROBLEM_HELP) == set(KINDS_OF_PROBLEMS)
    assert all(cause and way_out for cause, way_out in PROBLEM_HELP.values())


def test_the_address_of_every_problem_leads_to_its_entry(world):
    """RFC 9457: `type` points to /problems#code, for nobody too; /help has the same entries."""
    public, page = world.client().get("/problems"), world.browser("reader").get("/help")
    assert public.status_code == page.status_code == 200
    for code in KINDS_OF_PROBLEMS:
        assert Problem(code).document()["type"] == f"/problems#{code}"
        assert code in Ids(public.text).found
        assert code in Ids(page.text).found
    for text in (public.text, page.text):
        found = Ids(text).found
        assert len(found) == len(set(found))


@pytest.mark.parametrize("role", ROLES)
def test_help_is_for_everybody_who_is_signed_in(world, role):
    assert world.browser(role).get("/help").status_code == 200


def test_help_is_not_for_nobody(world):
    assert world.client().get("/help").status_code == 303


def test_refusals_are_those_of_the_library():
    """Every sample is refused, and says what is wrong; most say why or what to do instead."""
    from discreet.server.pages.help_pages import _SAMPLES

    found = met_refusals()
    assert [one["about"] for one in found] == [about for about, _, _ in _SAMPLES]
    assert all(one["problem"] for one in found)
    assert sum(bool(one["way_out"]) for one in found) >= 10


@pytest.mark.parametrize(
    ("words", "there", "gone"),
    [
        ("budget", "budget-exceeded", "wrong-host"),
        ("IDEMPOTENCY key", "key-used", "too-large"),
        ("zzzz", None, "refused"),
    ],
)
def test_a_search_shows_what_has_every_word(world, words, there, gone):
    for path, who in (("/help", world.browser("analyst")), ("/problems", world.client())):
        ids = Ids(who.get(path, params={"q": words}).text).found
        assert there is None or there in ids
        assert gone not in ids


def test_what_is_searched_for_is_shown_as_text(world):
    page = world.browser("analyst").get("/help", params={"q": '"><script>window.hit=1</script>'})
    assert "<script>window" not in page.text
    assert page.status_code == 200


@pytest.mark.parametrize("path", ["/nowhere", "/ask/else", "/build/else", "/static/none.js", "/releases/x/y", "/HELP"])
def test_what_is_not_there_is_a_page_for_a_browser_and_a_problem_for_a_program(world, path):
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for who, links in ((world.client(), False), (world.browser("analyst"), True)):
        page = who.get(path, headers=browser)
        assert page.status_code == 404
        assert page.headers["content-type"].startswith("text/html")
        assert "Back to the start" in page.text
        assert ('href="/ask"' in page.text) == links or path.startswith("/static")
    if not path.startswith("/static"):
        told = world.client().get(path, headers={"accept": "application/json"})
        assert told.status_code == 404
        assert told.json()["code"] == "not-found"


def test_the_api_answers_programs_whatever_they_accept(world):
    told = world.client("analyst").get("/v1/nowhere", headers={"accept": "text/html"})
    assert told.json()["code"] == "not-found"


def test_another_method_is_a_page_too(world):
    page = world.client().post("/help", headers={"accept": "text/html"})
    assert page.status_code == 405
    assert re.search("<h1>This address takes another method</h1>", page.text)
    assert "GET" in page.headers["allow"]
