"""Approvals by two people in a real browser: one asks, the other looks and decides."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from server_world import MANY, once_known, prepare
from system_parts import needs_chromium

from discreet.query import read_policy
from discreet.server.accounts import AccountRole
from discreet.server.approvals import ApprovalLimits
from discreet.server.listener import ServerSettings, opened_server, web_app

pytestmark = [needs_chromium, pytest.mark.long]
SHOTS = os.environ.get("DISCREET_SCREENSHOTS")  # a folder, for whoever wants to look


@contextmanager
def listening(folder, **more):
    """A server that listens on loopback, with a limit, an analyst and two custodians."""
    import uvicorn

    prepare(folder)
    settings = ServerSettings(state=folder / "server.db", answer_after={"one": 300.0}, **more)
    bound = socket.create_server(("127.0.0.1", 0))
    with opened_server([read_policy(folder / "one.toml")], settings, limits=MANY, until=once_known) as server:
        app = web_app(server, settings, MANY)
        web = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
        server.jobs.start()
        thread.start()
        people = {"ana": AccountRole.ANALYST, "cem": AccountRole.CUSTODIAN, "dea": AccountRole.CUSTODIAN}
        invited = {name: server.accounts.add(name, role, ["one"], by="test") for name, role in people.items()}
        try:
            yield server, f"http://127.0.0.1:{bound.getsockname()[1]}", invited
        finally:
            web.should_exit = True
            thread.join(30)


def visiting(chromium, address, invitation, told, **more):
    """Somebody with a browser of their own; what it complains about is kept."""
    page = chromium.new_context(**more).new_page()
    page.on("console", lambda message: told.append(message.text))
    page.goto(f"{address}/login#{invitation}")
    page.fill("#invitation", invitation)
    page.click("text=Sign in with it")
    page.wait_for_url("**/account")
    return page


def seen(page, name):
    """Look for what bars somebody from using a page, and for what sticks out of it; and take a picture if asked for."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], name
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], name
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def ask(page, address, amount):
    page.goto(f"{address}/ask")
    page.fill("[name=amount]", amount)
    page.click("button[value=release]")
    page.wait_for_selector("text=Waiting for an approval")


def test_two_people_approve_and_decline(tmp_path, chromium):
    told, limits = [], ApprovalLimits.read(["one=0.5"], [])
    with listening(tmp_path, approvals=limits) as (server, address, invited):
        ana = visiting(chromium, address, invited["ana"], told)
        narrow = {"viewport": {"width": 360, "height": 800}, "color_scheme": "dark"}
        cem = visiting(chromium, address, invited["cem"], told, **narrow)
        ask(ana, address, "0.75")
        seen(ana, "awaiting")
        ana.click("text=See what they see")
        assert ana.locator("button[value=approve]").count() == 0
        seen(ana, "own")
        cem.goto(f"{address}/approvals")
        seen(cem, "approvals")
        cem.click("table a")
        seen(cem, "approval")
        assert "What attacks find on made-up rows" in cem.inner_text("main")
        assert "in at most" in cem.inner_text("main")
        assert server.shelf["one"].session.spent.charges == 0
        cem.check("[name=looked]")
        cem.click("button[value=approve]")
        cem.wait_for_selector("h1:text('Approved')")
        ana.click("text=The release")
        ana.wait_for_selector("table.answer", timeout=240_000)
        ask(ana, address, "0.8")
        ana.click("text=See what they see")
        dea = visiting(chromium, address, invited["dea"], told)
        dea.goto(ana.url)
        seen(dea, "approval-wide")
        dea.fill("#reason", "The same was released an hour ago.")
        dea.click("button[value=decline]")
        dea.wait_for_selector("h1:text('Declined')")
        ana.reload()
        assert "an hour ago" in ana.inner_text("main")
        ana.goto(f"{address}/approvals")
        seen(ana, "approvals-wide")
        assert server.shelf["one"].session.spent.charges == 1
        for page in (ana, cem, dea):
            page.context.close()
    assert told == []


def test_who_asked_has_no_button_and_its_form_is_refused(tmp_path, chromium):
    """A custodian asks: they are shown no way to approve it, and sending the form by hand does not work either."""
    told, limits = [], ApprovalLimits.read(["one=0"], [])
    with listening(tmp_path, approvals=limits) as (server, address, invited):
        cem = visiting(chromium, address, invited["cem"], told)
        ask(cem, address, "0.1")
        cem.click("text=See what they see")
        assert cem.locator("button[value=approve]").count() == 0
        cem.evaluate("document.querySelector('button[value=withdraw]').value = 'approve'")
        cem.evaluate(
            "document.querySelector('.verdict').append(Object.assign(document.createElement('input'), "
            "{name: 'looked', value: 'yes'}))"
        )
        cem.click(".verdict button")
        cem.wait_for_selector("text=cannot approve")
        assert server.shelf["one"].session.spent.charges == 0
        cem.context.close()
    assert [text for text in told if "403" not in text] == []


def test_a_custodian_adds_a_table_and_looks_at_an_exact_result(tmp_path, chromium):
    """Draft, difference, save, ask, look; at the width of a phone, in the dark, by what the pages offer."""
    told = []
    with listening(tmp_path, data_folder=tmp_path, exact_looks=True) as (_, address, invited):
        (tmp_path / "fresh.csv").write_bytes((tmp_path / "visits.csv").read_bytes())
        narrow = {"viewport": {"width": 360, "height": 800}, "color_scheme": "dark"}
        cem = visiting(chromium, address, invited["cem"], told, **narrow)
        cem.goto(f"{address}/data")
        seen(cem, "data")
        cem.select_option("#table", "fresh.csv")
        for name, said in (("dataset", "fresh"), ("unit", "patient"), ("epsilon", "3")):
            cem.fill(f"#{name}", said)
        cem.click("text=Draft a policy")
        seen(cem, "draft")
        cem.fill("#text", cem.input_value("#text").replace("high = 100", "high = 120"))
        cem.click("button[value=check]")
        seen(cem, "difference")
        cem.click("button[value=save]")
        cem.wait_for_url("**/data/fresh?saved=yes")
        cem.set_viewport_size({"width": 1200, "height": 800})
        seen(cem, "policy")
        cem.goto(f"{address}/ask?dataset=fresh")
        cem.click("button[value=release]")
        cem.wait_for_selector("table.answer", timeout=240_000)
        cem.click("text=look at the exact result")
        seen(cem, "exact-before")
        cem.fill("#dataset", "fresh")
        cem.click(".verdict button")
        cem.wait_for_selector("table.exact")
        seen(cem, "exact")
        assert "not covered by the guarantee" in cem.inner_text("main")
        cem.context.close()
    assert told == []
