"""The pages in a real browser: the whole way of a question, also without JavaScript, and names that are scripts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from server_world import once_known
from system_parts import needs_chromium

from discreet.query import read_policy
from discreet.server.accounts import AccountRole
from discreet.server.http_limits import HttpLimits
from discreet.server.listener import ServerSettings, opened_server, web_app

pytestmark = [needs_chromium, pytest.mark.long]
ANSWER_AFTER = 300.0
SCRIPTS = [one for one in (files("discreet.server") / "static").iterdir() if one.name.endswith(".js")]
PAYLOADS = Path(__file__).with_name("payloads.txt").read_text(encoding="utf-8").splitlines()


@contextmanager
def listening(folder):
    """A server that listens on loopback, in a thread of its own."""
    import uvicorn

    policy = read_policy(folder / "policy.toml")
    settings = ServerSettings(state=folder / "server.db", answer_after={policy.dataset: ANSWER_AFTER})
    limits = HttpLimits(per_second=1e6, burst=10**6, sign_ins_per_second=1e6, sign_in_burst=10**6)
    bound = socket.create_server(("127.0.0.1", 0))
    with opened_server([policy], settings, limits=limits, until=once_known) as server:
        app = web_app(server, settings, limits)
        web = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
        server.jobs.start()
        thread.start()
        invitation = server.accounts.add("ana", AccountRole.ANALYST, [policy.dataset], by="test")
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}", invitation
        finally:
            web.should_exit = True
            thread.join(30)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A server whose columns, tables and groups are called like scripts."""
    folder = tmp_path_factory.mktemp("odd")
    named = {payload: pa.array([1, 2] * 50) for payload in PAYLOADS}
    table = pa.table({"who": pa.array(range(100)), "kind": pa.array((PAYLOADS * 3)[:100]), **named})
    parquet.write_table(table, folder / "odd.parquet")
    columns = "".join(f"{json.dumps(payload)} = {{ low = 0, high = 9 }}\n" for payload in PAYLOADS)
    (folder / "policy.toml").write_text(
        'dataset = "odd"\nledger = "odd.ledger"\nversion = "<script>window.hit=1</script>"\n'
        '[unit]\ncolumn = "row"\n[budget]\nepsilon = 100\n'
        '[tables."<b onclick=window.hit=1>t</b>"]\nsource = "odd.parquet"\n'
        '[tables."<b onclick=window.hit=1>t</b>".columns]\n'
        f"kind = {{ categories = {json.dumps(PAYLOADS)} }}\n{columns}"
    )
    with listening(folder) as found:
        yield found


def sign_in(page, address, invitation):
    page.goto(f"{address}/login#{invitation}")
    assert page.input_value("#invitation") == invitation
    assert "dsc_" not in page.url
    page.click("text=Sign in with it")
    page.wait_for_url("**/account")


def test_no_name_of_a_column_a_table_or_a_group_is_run(odd, chromium):
    """C37: forty payloads on every page that shows names, keys, questions and errors; none is executed or loaded."""
    address, invitation = odd
    page = chromium.new_page()
    asked, told = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: told.append("dialog"))
    page.on("console", lambda message: told.append(message.text) if "Security Policy" in message.text else None)
    sign_in(page, address, invitation)
    sql = (
        'SELECT kind, COUNT(*) AS "<img src=x onerror=window.hit=1>" FROM "<b onclick=window.hit=1>t</b>" GROUP BY kind'
    )
    page.goto(f"{address}/ask")
    page.fill("#sql", sql)
    page.locator("#strip dt", has_text="onerror").wait_for()
    check(page)
    page.click("button[value=dummy]")
    page.wait_for_selector("table.answer")
    check(page)
    page.click("button[value=release]")
    page.wait_for_selector("table.answer")
    shown = page.inner_text("table.answer")
    assert len(PAYLOADS) >= 40
    assert [payload for payload in PAYLOADS if payload[:50] not in shown] == []  # As text they are there.
    check(page)
    link = page.url
    page.goto(f"{address}/budget")
    check(page)
    for payload in PAYLOADS[:12]:
        page.goto(f"{address}/ask")
        page.fill("#sql", f'SELECT "{payload}" FROM nowhere')
        page.click("button[value=price]")
        page.wait_for_selector(".trouble")
        check(page)
    page.goto(link)
    check(page)
    assert [url for url in asked if not url.startswith(address)] == []
    assert told == []
    page.close()


def check(page):
    assert page.evaluate("window.hit") is None
    sources = page.evaluate("[...document.scripts].map(one => one.getAttribute('src'))")
    assert "/static/page.js" in sources
    assert set(sources) <= {f"/static/{one.name}" for one in SCRIPTS}  # Our own files, and nothing inline.
    assert page.evaluate("document.querySelectorAll('iframe,object,embed,[onerror],[onclick],[onload]').length") == 0


def test_a_planted_script_would_be_found(chromium):
    """The wrong neighbour: the same check on a page that does not escape."""
    page = chromium.new_page()
    page.set_content("<img src=x onerror=window.hit=1>")
    page.wait_for_function("window.hit === 1")
    with pytest.raises(AssertionError):
        check(page)
    page.close()


@pytest.mark.parametrize(
    ("javascript", "width", "scheme"), [(True, 1200, "light"), (False, 1200, "light"), (True, 360, "dark")]
)
def test_the_whole_way_of_a_question_on_the_page(tmp_path, chromium, javascript, width, scheme):
    """Sign in, see the price, try, release, look at the chart, download; with and without JavaScript, on a phone."""
    from server_world import prepare

    prepare(tmp_path)
    (tmp_path / "one.toml").rename(tmp_path / "policy.toml")
    view = {"width": width, "height": 800}
    context = chromium.new_context(java_script_enabled=javascript, viewport=view, color_scheme=scheme)
    with listening(tmp_path) as (address, invitation):
        page, told = context.new_page(), []
        page.on("console", lambda message: told.append(message.text))
        page.goto(f"{address}/login")
        page.fill("#invitation", invitation)
        page.click("text=Sign in with it")
        page.click("text=Ask a question")
        page.click("button[value=price]")
        assert "±" in page.inner_text("#strip")
        page.click("button[value=dummy]")
        assert "nothing was read" in page.inner_text("main")
        page.click("button[value=release]")
        page.wait_for_selector("table.answer", timeout=240_000)
        assert page.locator("table.chart svg").count() >= 5
        with page.expect_download() as download:
            page.click("text=CSV")
        assert "n_plus_minus" in download.value.path().read_text()
        link = page.url
        page.goto(f"{address}/budget")
        assert "1 charge" in page.inner_text("main")
        page.goto(link)
        assert "Released" in page.inner_text("h1")
        if javascript:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert told == []
    context.close()


def test_a_form_is_filled_by_keyboard_alone(odd, chromium):
    address, _ = odd
    page = chromium.new_page()
    page.goto(f"{address}/login")
    reached = []
    for _ in range(8):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert [
        name for name in ("name", "password", "Sign in", "invitation", "Sign in with it") if name not in reached
    ] == []
    page.close()


@pytest.mark.slow
def test_the_demo_is_one_command(chromium, tmp_path):
    """From the command to the first answer; how long it took is printed."""
    command = [sys.executable, "-m", "discreet", "serve", "--demo", "--port", "0", "--json"]
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            text = ""
            while not text.rstrip().endswith("}\n".strip()) or text.count("{") != text.count("}"):
                text += process.stdout.readline()
            started = json.loads(text)
            page = chromium.new_page()
            sign_in(page, started["address"], started["first_run_token"])
            page.click("text=Ask a question")
            page.click("button[value=release]")
            page.wait_for_selector("table.answer, .trouble", timeout=240_000)
            print(f"first answer after {time.monotonic() - begun:.1f} s")
            page.close()
        finally:
            process.terminate()
            process.wait(60)
    assert list(tmp_path.iterdir()) == []  # Everything was in a folder that is gone.
