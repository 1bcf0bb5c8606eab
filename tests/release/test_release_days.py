"""A series that protects each day of a person by itself is no part of what is promised to the person."""

from __future__ import annotations

import json
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plan_texts import plan_in

from discreet import Budget, Session
from discreet.ledger import look
from discreet.privacy import Composed, Relation, epsilon
from discreet.privacy.events import from_json
from discreet.release import publish
from discreet.release.plan import Period, ReleasePlan

JANUARY = Period(label="2026-01", first=date(2026, 1, 1), end=date(2026, 2, 1))
FEBRUARY = Period(label="2026-02", first=date(2026, 2, 1), end=date(2026, 3, 1))
SERIES = """\
[[running]]
name = "so_far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 31
person_day = true
epsilon = 1
[[invariants]]"""


def days_world(folder: Path, lifetime: int) -> ReleasePlan:
    rows = [
        {
            "patient": f"p{number}",
            "district": "Hill",
            "sex": "f",
            "cost": 1,
            "admitted": date(2026, 1, 1) + timedelta(days=number % 59),
            "urgent": False,
            "ward": "a",
        }
        for number in range(200)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "stays.parquet")
    return plan_in(folder, ("[[invariants]]", SERIES), ("epsilon = 40", f"epsilon = {lifetime}"))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(days_world(tmp_path_factory.mktemp("days"), 40), principal="ana", period=JANUARY)


def test_whoever_is_there_on_one_day_is_told_about_by_both(bundle: Path) -> None:
    """Why no sentence may say that the number of the release holds for everything in the bundle."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    facts = [manifest["guarantee"]["event"], manifest["running"]["so_far"]["event"]]
    both = Composed([from_json(json.dumps(event)) for event in facts])
    delta = Fraction(manifest["guarantee"]["delta"])
    assert epsilon(both, delta, relation=Relation.ADD_REMOVE) > manifest["guarantee"]["epsilon"] * 1.2


@pytest.mark.parametrize("name", ["README.txt", "guarantee.md", "report.html", "registry.json", "checklist.md"])
def test_every_promise_to_a_person_names_what_it_does_not_cover(bundle: Path, name: str) -> None:
    text = (bundle / name).read_text().replace("\\\\", "").replace("\\", "")
    assert "This does not cover so_far" in text


def test_the_formula_is_about_everything_but_the_series(bundle: Path) -> None:
    text = (bundle / "guarantee.md").read_text()
    assert "M is everything in this bundle that was computed from the data, but for `so_far`." in text
    assert "for neighbours that differ by the rows of one `patient` on one day" in text


def test_the_lifetime_budget_is_not_said_to_hold_it(bundle: Path) -> None:
    text = (bundle / "guarantee.md").read_text()
    lifetime = text.split("## Over the lifetime of the data")[1].split("##")[0].replace("\\", "")
    assert "so_far" in lifetime
    assert "from an account of its own" in lifetime


def test_a_series_goes_on_after_the_budget_of_people_was_raised(tmp_path: Path) -> None:
    """Its own account stays as it was opened; before, every later release of the plan was refused."""
    plan = days_world(tmp_path, 40)
    publish(plan, principal="ana", period=JANUARY)
    with Session.from_policy(plan.policy, principal="ana") as session:
        session.raise_budget(Budget(epsilon=50, delta=1e-5), reason="another year")
    later = days_world(tmp_path, 50)
    bundle = publish(later, principal="ana", period=FEBRUARY)
    assert len((bundle / "tables" / "so_far.csv").read_text().splitlines()) == 1 + 31
    book = look(later.policy.ledger)
    assert book.account("hospital by day").budget.epsilon == 40
    assert [entry.kind for entry in book.entries("hospital by day")].count("charge") == 1
