"""Plans that protect two units, one within the other: both are priced, charged, told and verified."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import discreet as dp
from discreet.cli.app import app

PLAN = """
name = "census"
title = "Persons by sex"
dataset = "census"
ledger = "census.ledger"
version = "2026"

[unit]
column = "home"
max_inner = 4

[unit.inner]
column = ["home", "person"]
name = "person"
budget = { epsilon = 1.5 }

[budget]
epsilon = 4

[tables.census]
source = "census.csv"

[tables.census.columns]
sex = { categories = ["f", "m"] }

[release]
epsilon = 1

[[publish]]
name = "persons"
sql = "SELECT sex, COUNT(*) AS persons FROM census GROUP BY sex"
expected = { "*" = 100 }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people = [f"{number % 70},{number // 70},{'fm'[number % 2]}" for number in range(200)]
    Path("census.csv").write_text("\n".join(["home,person,sex", *people]))
    Path("plan.toml").write_text(PLAN)
    return tmp_path


def edited(**changes: tuple[str, str]) -> Any:
    text = PLAN
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    Path("plan.toml").write_text(text)
    return dp.release.read_release_plan("plan.toml")


def test_both_are_priced_charged_and_told(home: Path) -> None:
    plan = dp.release.read_release_plan("plan.toml")
    dp.release.check(plan)
    priced = dp.release.price(plan)
    (nested,) = priced.nested
    assert dp.privacy.epsilon(nested, 0, relation="add-remove") == pytest.approx(0.5)
    assert priced.lifetime == 3  # Of 4 at 1 for homes, and of 1.5 at 0.5 for persons.
    assert "For one person it costs ε = 0.5, pure, of a budget of its own: ε = 1.5, pure." in str(priced)
    bundle = dp.release.publish(plan, principal="office")
    for name in ("guarantee.md", "README.txt", "report.html", "registry.json"):
        told = (bundle / name).read_text(encoding="utf-8").replace("&nbsp;", " ").replace("\u00a0", " ")
        assert "Every home is protected" in told, name
        assert "every person has a promise of its own" in told, name
        assert "ε = 0.5" in told or name == "report.html"  # There it is put together by the page.
    assert dp.release.verify_bundle(bundle, ledger="census.ledger").ok
    page = (bundle / "report.html").read_text(encoding="utf-8").replace("&nbsp;", " ").replace("\u00a0", " ")
    assert "<b>Every home, and every person in it</b>" in page
    assert "a coin: 50 %. For one person: at most 61.1 %" in page
    assert "in this bundle, for one home; for one person ε = 0.5. The lifetime" in page
    registry = (bundle / "registry.json").read_text(encoding="utf-8")
    assert "home-level and person-level, over all rows and tables" in registry
    assert "; and person (who shares" in (bundle / "checklist.md").read_text(encoding="utf-8")
    told = dp.release.series(plan, today=date(2027, 1, 1))
    assert 'by the lifetime budget of ["home", "person"]' in str(told)
    with dp.Session.from_policy(plan.policy, principal="office") as session:
        ((_, spent, left),) = session.ledger.nested_left()
        assert (spent.epsilon, left.more, session.spent.epsilon) == (dp.Budget(epsilon="0.5").epsilon, 2, 1)


def test_what_a_bundle_means_is_told_of_both(home: Path) -> None:
    bundle = dp.release.publish(dp.release.read_release_plan("plan.toml"), principal="office")
    told = CliRunner().invoke(app, ["explain-epsilon", "--bundle", str(bundle)]).stdout
    assert "ε = 1 for one home; ε = 0.5 for one person: how far" in " ".join(told.split())
    own = (
        "every person has a promise of its own, ε = 0.5: whether one is in the data, a guess is right in at most 61.1 %"
    )
    assert own in " ".join(told.split())
    assert "Is one home in the data or not?" in told


def test_a_bundle_that_bills_a_person_once_is_not_verified(home: Path) -> None:
    """A smaller ε, another event or none at all for persons: each is seen without and with the ledger."""
    bundle = dp.release.publish(dp.release.read_release_plan("plan.toml"), principal="office")
    written = (bundle / "manifest.json").read_text()
    for change in ("epsilon", "event", "nested"):
        manifest = json.loads(written)
        guarantee = manifest["guarantee"]
        if change == "epsilon":
            guarantee["nested"][0]["epsilon"] /= 2
        elif change == "event":
            guarantee["nested"][0]["event"]["sensitivity"] = 1
        else:
            del guarantee["nested"]
        (bundle / "manifest.json").write_text(json.dumps(manifest))
        found = dp.release.verify_bundle(bundle, ledger="census.ledger")
        assert not found.ok
        assert any(word in str(found) for word in ("smaller ε for one", "within", "another unit")), str(found)


def test_the_budget_of_each_is_shown(home: Path) -> None:
    dp.release.publish(dp.release.read_release_plan("plan.toml"), principal="office")
    shown = " ".join(CliRunner().invoke(app, ["budget", "--policy", "plan.toml"]).output.split())
    assert "ε = 4, pure for one home (add-remove), and ε = 1.5, pure for one" in shown
    assert "left: 2 more like it" in shown


def test_both_are_told_by_name_before_a_release_and_in_the_history(home: Path) -> None:
    ran = CliRunner().invoke(app, ["release", "plan.toml", "--max-epsilon", "1", "--principal", "me"])
    assert "price: ε = 1 for one home; ε = 0.5 for one person" in ran.stderr
    assert "For one person: spent: " in ran.stderr
    history = CliRunner().invoke(app, ["ledger", "history", "--policy", "plan.toml"]).stdout
    assert "ε = 1 for one home" in history
    assert "ε = 0.5 for one person" in history
    assert "[" not in history + CliRunner().invoke(app, ["budget", "--policy", "plan.toml"]).stdout
    shell = CliRunner().invoke(app, ["shell", "--policy", "plan.toml", "--epsilon", "0.5"], input="\\budget\n").stdout
    assert "ε = 4, pure for one home (add-remove), and ε = 1.5, pure for one person" in shell


def test_what_the_smaller_budget_does_not_hold_is_refused(home: Path) -> None:
    plan = edited(budget=("budget = { epsilon = 1.5 }", "budget = { epsilon = 0.3 }"))
    with pytest.raises(dp.Refused, match="does not hold one release"):
        dp.release.check(plan)
    with pytest.raises(dp.BudgetExceeded):
        dp.release.publish(plan, principal="office")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("max_inner = 4", "", "max_inner in .unit. go together"),
        ('["home", "person"]', '"person"', "must name all columns of the outer one"),
        ("max_inner = 4", "max_inner = 4\nmax_groups = 2", "leave max_groups"),
        ("budget = { epsilon = 1.5 }", "", "unit.inner.budget"),
    ],
)
def test_mistakes_in_a_plan_are_told(home: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(dp.InvalidParameter, match=says):
        edited(change=(old, new))


def test_one_table_can_have_a_limit_of_its_own(home: Path) -> None:
    plan = edited(change=("expected =", "max_inner = 2\nexpected ="))
    assert dp.release.price(plan).tables[0].priced.stage.max_inner == 2


def test_a_kept_share_is_refused(home: Path) -> None:
    plan = edited(change=("expected =", "kept_share = 0.1\nexpected ="))
    with pytest.raises(dp.Refused, match="the kept share is measured for one unit"):
        dp.release.price(plan)


def test_series_are_refused(home: Path) -> None:
    """They follow one unit over days."""
    days = 'name = "so_far"\nfrom = "census"\nday = "at"\nfirst = 2026-01-01\ndays = 9\nepsilon = 1'
    plan = edited(
        column=("[release]", "at = { low = 2026-01-01, high = 2027-01-01 }\n\n[release]"),
        series=("[[publish]]", f"[[running]]\n{days}\n\n[[publish]]"),
    )
    with pytest.raises(dp.Refused, match="protects a second one"):
        dp.release.price(plan)


def test_made_up_rows_show_what_a_bundle_looks_like(home: Path) -> None:
    folder = dp.release.dummy(dp.release.read_release_plan("plan.toml"), "try")
    assert "every person has a promise of its own" in (folder / "guarantee.md").read_text(encoding="utf-8")


def test_the_inner_budget_is_raised_from_the_command_line(home: Path) -> None:
    """The section to write is told; a bundle from before says that it was raised since, and of whom."""
    plan = dp.release.read_release_plan("plan.toml")
    bundle = dp.release.publish(plan, principal="ana")
    raising = ["budget", "raise", "--policy", "plan.toml", "--unit", "person", "--reason", "more", "--epsilon", "3"]
    went = CliRunner().invoke(app, raising)
    assert went.exit_code == 0, went.output
    assert "[unit.inner.budget]\n  epsilon = 3" in went.stderr
    Path("plan.toml").write_text(PLAN.replace("epsilon = 1.5", "epsilon = 3"))
    changed = dp.release.read_release_plan("plan.toml")
    found = dp.release.verify_bundle(bundle, ledger=changed.policy.ledger)
    assert not found.problems
    assert 'the lifetime budget of ["home", "person"] was raised since, to ε = 3, pure' in str(found)
