"""The demo: it tells the truth about both kinds of tables, and can be run again without a charge."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console
from system_parts import BROWSER_FLAGS, CHROMIUM, needs_chromium

from discreet import data
from discreet.errors import Refused
from discreet.lab.demo import demo_run
from discreet.lab.demo.demo_run import attack_page, main
from discreet.lab.demo.narration import DemoResult
from discreet.ledger import look
from discreet.release import verify_bundle

FALSE_ALARM = 1e-9


@dataclass(frozen=True)
class Ran:
    result: DemoResult
    text: str
    files: dict[str, bytes]


def ran(folder: Path) -> Ran:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    result = demo_run.run(folder, console=console)
    files = {
        path.relative_to(result.bundle).as_posix(): path.read_bytes()
        for path in result.bundle.rglob("*")
        if path.is_file()
    }
    return Ran(result, console.file.getvalue(), files)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(tmp_path_factory.mktemp("demo") / "new" / "folder")


@pytest.fixture(scope="module")
def again(first: Ran) -> Ran:
    return ran(first.result.folder)


@pytest.mark.long
def test_the_list_is_named_and_the_story_says_so(first):
    assert first.result.linkage.named.hits == 10_696
    assert "10,696 stays (56 %) fit exactly one voter" in first.text
    assert first.result.linkage.sample[0]["name"] in first.text


def test_exact_tables_give_people_away_and_private_ones_do_not(first):
    exact, private = first.result.exact, first.result.private
    assert exact.named.hits == exact.named.of == private.named.of == 31
    assert private.fresh.of == private.fresh_without.of > 1000
    assert private.fresh.interval(FALSE_ALARM)[0] <= private.fresh_without.interval(FALSE_ALARM)[1]
    assert private.fresh.interval(FALSE_ALARM)[0] <= private.ceiling < 0.4
    assert exact.named.interval(FALSE_ALARM)[0] > private.ceiling


def test_the_release_costs_what_it_says_and_is_in_the_ledger(first):
    assert 0.9 < first.result.epsilon <= 1
    assert first.result.charged
    (charge,) = (entry for entry in look(ledger(first)).entries() if entry.kind == "charge")
    assert "release/stays/2025" in json.dumps(charge.content)
    assert verify_bundle(first.result.bundle, ledger=ledger(first)).ok


def ledger(run: Ran) -> Path:
    return run.result.folder / "northmere.ledger"


@pytest.mark.long
def test_run_again_it_charges_nothing_and_publishes_the_same(first, again):
    assert not again.result.charged
    assert again.files == first.files
    assert "nothing is charged" in again.text
    assert "nothing is charged" not in first.text
    assert len([entry for entry in look(ledger(again)).entries() if entry.kind == "charge"]) == 1


def test_the_story_needs_no_word_that_is_not_explained_and_fits_a_screen_or_two(first):
    assert 40 < len(first.text.splitlines()) < 75
    assert max(map(len, first.text.splitlines())) <= 100
    assert "\x1b" not in first.text
    for word in ("δ", "ρ", "Gaussian", "quasi-identifier", "sensitivity"):
        assert word not in first.text
    unbroken = "".join(first.text.split())  # A long path goes on in the next line.
    assert str(first.result.report).rpartition("/")[2] in unbroken
    assert "attack-report.html" in unbroken


def test_colours_are_left_out_where_they_are_not_wanted(monkeypatch):
    from discreet.lab.demo.narration import Teller

    monkeypatch.setenv("NO_COLOR", "1")
    plain = Console(file=io.StringIO(), force_terminal=True)
    Teller(plain).step("opened", charged=True)
    assert "\x1b[32m" not in plain.file.getvalue()
    monkeypatch.delenv("NO_COLOR")
    coloured = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    Teller(coloured).step("opened", charged=True)
    assert "\x1b[32m" in coloured.file.getvalue()


def test_the_page_of_the_attacks_is_no_part_of_the_bundle(first):
    page = first.result.attack_report.read_text(encoding="utf-8")
    assert first.result.attack_report.parent == first.result.folder
    assert not any("attack" in name for name in first.files)
    person = first.result.people[0]
    assert person.name in page
    assert not any(person.name.encode() in content for content in first.files.values())
    assert "Not to be published" in page


def test_the_page_loads_nothing_and_runs_nothing(first):
    page = attack_page(first.result)
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|\bon\w+=|javascript:|https?://", page)
    assert page.count("<svg") >= 10


@pytest.mark.long
@needs_chromium
def test_a_browser_opens_the_page_on_a_phone_without_a_complaint(first):
    from playwright.sync_api import sync_playwright

    said: list[str] = []
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM, args=BROWSER_FLAGS).new_page(
            viewport={"width": 375, "height": 812}
        )
        page.on("console", lambda message: said.append(message.text))
        page.goto(first.result.attack_report.resolve().as_uri())
        width = page.evaluate("document.documentElement.scrollWidth")
    assert said == []
    assert width <= 375


def test_figures_can_be_had_as_json(first):
    figures = json.loads(str(first.result))
    assert figures["exact_tables"]["right"] == 31
    assert figures["private_tables"]["drawn_anew"]["of"] == first.result.private.fresh.of
    assert figures["stays_named"] == 10_696


def test_everybody_who_is_given_away_is_in_the_difference_of_two_shown_numbers(first):
    assert len(first.result.people) == 31
    for person in first.result.people:
        more, fewer = person.exact
        assert more - fewer == 1
        assert fewer >= 5


def test_files_of_somebody_else_are_left_alone(tmp_path, capsys):
    (tmp_path / "plan.toml").write_text("mine")
    with pytest.raises(Refused, match=r"plan\.toml already"):
        demo_run.run(tmp_path)
    assert (tmp_path / "plan.toml").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    assert main([str(tmp_path / "file")]) == 3
    assert "way out" in capsys.readouterr().err


def test_the_command_line_takes_one_folder(capsys):
    assert main(["a", "b"]) == 2
    assert main(["--help"]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_data_of_the_demo_are_those_that_are_bundled(first):
    with data.folder("hospital") as folder:
        for name in ("stays.parquet", "voters.parquet", "plan.toml"):
            assert (first.result.folder / name).read_bytes() == (folder / name).read_bytes()
