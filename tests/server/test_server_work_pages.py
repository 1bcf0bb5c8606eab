"""The pages of releases: from a plan to a verified bundle and its report, in a browser; and names that are scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from server_world import form_token, listening, running
from system_parts import BROWSER_FLAGS, CHROMIUM, needs_chromium
from test_server_pages_browser import check_look, visiting
from test_server_work import PUBLISH, prepared

pytestmark = pytest.mark.long
PAYLOADS = Path(__file__).with_name("payloads.txt").read_text(encoding="utf-8").splitlines()


@needs_chromium
def test_from_a_plan_to_a_report_without_a_script_and_without_a_message(tmp_path):
    from playwright.sync_api import sync_playwright

    plan = prepared(tmp_path)
    looks = {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}, "java_script_enabled": True}
    with (
        sync_playwright() as started,
        running(tmp_path, names=("one",), plans=(plan,)) as site,
        listening(site) as there,
    ):
        site.address = there
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=BROWSER_FLAGS)
        with visiting(site, chromium, "custodian", **looks) as (page, told):
            page.goto(f"{there}/releases")
            check_look(page, 360)
            page.click("text=Price and release")
            assert page.locator(".strip b").first.inner_text() == "ε = 0.5"
            check_look(page, 360)
            page.click("button[value=release]")
            page.wait_for_selector("text=Open the report")
            page.click("text=Verify the bundle")
            assert page.locator(".state.good").inner_text() == "verified"
            check_look(page, 360)
            address = page.locator("text=Open the report").evaluate("link => link.href")
            held = chromium.new_context(storage_state=page.context.storage_state())  # where policies hold
            report = held.new_page()
            report.on("console", lambda message: told.append(message.text))
            report.goto(address)
            assert "Visits by clinic" in report.locator("h1").inner_text()
            assert report.evaluate("window.origin") == "null"  # a sandbox
            assert report.evaluate("getComputedStyle(document.querySelector('h1')).fontFamily") != "Times"  # styled
            held.close()
            for kind in ("profile", "synth", "train", "plan"):
                page.goto(f"{there}/releases/new/{kind}")
                check_look(page, 360)
            assert told == []
        chromium.close()


def test_forms_do_the_same_as_the_api(tmp_path):
    plan = prepared(tmp_path)
    with running(tmp_path, names=("one",), plans=(plan,)) as world:
        client = world.browser("custodian")
        page = client.get("/releases/new/profile")
        said = {"form_token": form_token(page), "dataset": "one", "once": "1", "epsilon": "0.5", "delta": "1e-6"}
        assert "ε = 0.5" in client.post("/releases/new/profile", data=said | {"action": "price"}).text
        tried = client.post("/releases/new/profile", data=said | {"action": "dummy"})
        assert tried.headers["content-security-policy"].startswith("sandbox")
        wrong = client.post("/releases/new/profile", data=said | {"action": "price", "epsilon": "x"})
        assert (wrong.status_code, "trouble" in wrong.text) == (422, True)
        for _ in range(2):  # A form that is sent twice is paid once.
            sent = client.post("/releases/new/profile", data=said | {"action": "release"})
        assert client.get(sent.headers["location"]).text.count("profile.json") == 2
        assert world.client("custodian").get("/v1/datasets/one/budget").json()["charges"] == 1
        listed = client.get("/releases").text
        assert "profile of visits" in listed
        assert client.get("/releases", params={"after": "0" * 32}).status_code in (200, 404)
        refused = client.post("/releases/new/plan", data=said | {"action": "price", "toml": "nothing"})
        assert refused.status_code == 422


def test_no_name_of_a_column_or_a_plan_is_run(tmp_path):
    named = {payload: pa.array([1.0, 2.0] * 20) for payload in PAYLOADS}
    parquet.write_table(pa.table(named), tmp_path / "odd.parquet")
    columns = "".join(f"{json.dumps(payload)} = {{ low = 0.0, high = 9.0 }}\n" for payload in PAYLOADS)
    policy = (
        'dataset = "odd"\nledger = "odd.ledger"\n[unit]\ncolumn = "row"\n[budget]\nepsilon = 100\ndelta = 1e-5\n'
        f'[tables.odd]\nsource = "odd.parquet"\n[tables.odd.columns]\n{columns}'
    )
    title = "<script>window.hit=1</script>"
    published = PUBLISH.replace(
        "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", "SELECT COUNT(*) AS n FROM odd"
    )
    (tmp_path / "odd.toml").write_text(policy)
    (tmp_path / "plan.toml").write_text(f'name = "odd"\ntitle = "{title}"\n{policy}{published}')
    with running(tmp_path, names=("odd",), plans=(tmp_path / "plan.toml",)) as world:
        client = world.browser("owner")
        said = {"form_token": form_token(client.get("/account")), "action": "price", "epsilon": "1", "delta": "1e-6"}
        texts = [client.get("/releases").text]
        for kind in ("profile", "synth", "train"):
            texts.append(client.get(f"/releases/new/{kind}").text)
            texts.append(client.post(f"/releases/new/{kind}", data=said | {f"feature:{title}": "yes"}).text)
        texts.append(client.post("/releases/new/plan", data=said | {"plan": "odd"}).text)
        for text in texts:
            assert title not in text
            assert not [payload for payload in PAYLOADS if "<" in payload and payload in text]
