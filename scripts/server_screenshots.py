"""Take the pictures of the server's pages for the documentation, from the demo: `python scripts/server_screenshots.py`.

They need Chromium and Playwright. Everything that is shown is of people who do not exist.
"""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.query import read_policy
from discreet.server.accounts import SCOPES, AccountRole
from discreet.server.approvals import ApprovalLimits
from discreet.server.listener import ServerSettings, demo_folder, opened_server, web_app

TARGET = Path(__file__).parents[1] / "docs" / "pictures"
LARGEST = 150_000  # bytes of a picture
DATASET = "northmere-stays"
BY_AGE = "SELECT age_group, COUNT(*) AS stays, AVG(nights) AS nights\nFROM stays\nGROUP BY age_group"
ASKED = (
    ("SELECT diagnosis, COUNT(*) AS n FROM stays GROUP BY diagnosis", "0.3"),
    ("SELECT sex, AVG(nights) AS nights FROM stays GROUP BY sex", "0.5"),
    ("SELECT COUNT(*) AS births FROM stays WHERE diagnosis = 'birth'", "0.1"),
    (BY_AGE, "1"),
)


@contextmanager
def demo() -> Iterator[tuple[str, Any]]:
    """Serve the demo on loopback, with three people and a limit above which a release waits."""
    import uvicorn

    bound = socket.create_server(("127.0.0.1", 0))
    with demo_folder() as folder:
        policy = read_policy(folder / "policy.toml")
        limits = ApprovalLimits.read([f"{DATASET}=1.5"], [])
        settings = ServerSettings(state=folder / "server.db", answer_after={DATASET: 2.0}, approvals=limits)
        with opened_server([policy], settings) as server:
            web = uvicorn.Server(uvicorn.Config(web_app(server, settings), log_config=None, lifespan="off", ws="none"))
            thread = threading.Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
            server.jobs.start()
            thread.start()
            try:
                yield f"http://127.0.0.1:{bound.getsockname()[1]}", server
            finally:
                web.should_exit = True
                thread.join(30)


def people(server: Any) -> None:
    server.accounts.add("owner", AccountRole.OWNER, (), by="demo")
    for name, role in (("ana", AccountRole.ANALYST), ("carol", AccountRole.CUSTODIAN)):
        server.accounts.add(name, role, [DATASET], by="demo")


def ask_all(address: str, server: Any) -> list[str]:
    """Release some questions and let one wait; returns the addresses of all."""
    import httpx

    said = {"scopes": SCOPES, "datasets": None, "cap": None, "seconds": 600.0, "by": "demo"}
    token = server.accounts.new_token("ana", **said)
    found = []
    with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=120) as client:
        for sql, epsilon in (*ASKED, (BY_AGE, "2")):
            asked = {"sql": sql, "epsilon": epsilon}
            answer = client.post(f"/v1/datasets/{DATASET}/releases", params={"wait": 30}, json=asked)
            found.append(answer.raise_for_status().json()["id"])
        for title, sql in (("Stays by age", BY_AGE), ("Births", ASKED[2][0])):
            saved = {"title": title, "shared": True, "question": {"sql": sql, "epsilon": "0.5"}}
            client.post(f"/v1/datasets/{DATASET}/questions", json=saved).raise_for_status()
    return found


def visitor(browser: Any, address: str, server: Any, name: str) -> Any:
    page = browser.new_context(viewport={"width": 1080, "height": 800}).new_page()
    page.goto(f"{address}/login#{server.accounts.invite(name, by='demo')}")
    page.click("text=Sign in with it")
    page.wait_for_url("**/account")
    return page


def take(page: Any, name: str, *, whole: bool = False) -> None:
    file = TARGET / f"server-{name}.png"
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file, full_page=whole)
    if file.stat().st_size > LARGEST:
        raise SystemExit(f"{file.name} has {file.stat().st_size:,} bytes, more than {LARGEST:,}")
    print(f"{file.name}: {file.stat().st_size:,} bytes")


def take_ask(page: Any, address: str) -> None:
    page.goto(f"{address}/ask")
    page.fill("#sql", BY_AGE.replace("GROUP BY", "WHERE diagnosis = 'cancer'\nGROUP BY"))
    page.fill("#amount", "0.5")
    page.locator("#strip b", has_text="0.5").wait_for()
    page.focus("#sql")
    for _ in range(len("\nGROUP BY age_group") + len("cancer'")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Control+Space")
    page.wait_for_selector(".completions li")
    take(page, "ask")


def take_build(page: Any, address: str) -> None:
    page.goto(f"{address}/build?step=1")
    for _ in range(2):
        page.click("main button:has-text('Go on')")
    page.select_option("#by1", index=1)
    page.click("main button:has-text('Go on')")
    page.wait_for_load_state("networkidle")
    take(page, "build")


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with demo() as (address, server), sync_playwright() as started:
        people(server)
        numbers = ask_all(address, server)
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        ana, carol = (visitor(browser, address, server, name) for name in ("ana", "carol"))
        take_ask(ana, address)
        take_build(ana, address)
        for page, name, path in (
            (ana, "answer", f"/releases/{numbers[3]}"),
            (carol, "budget", "/budget"),
            (carol, "approval", f"/approvals/{numbers[4]}"),
        ):
            page.goto(address + path)
            take(page, name)
        browser.close()


if __name__ == "__main__":
    main()
