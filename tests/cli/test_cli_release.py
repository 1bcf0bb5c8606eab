"""A plan from the command line: priced, agreed to, published once, and the same again whenever it is run again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from cli_folder import PLAN

from discreet.errors import InvalidParameter
from discreet.release.profiling import profile_plan as planning

MONTHLY = '[schedule]\nevery = "month"\nfirst = 2026-01-01\n'
RELEASE = ("release", "plan.toml", "--max-epsilon", "1")


def charges(discreet) -> int:
    return int(discreet("budget", "--policy", "plan.toml", "--json").json["charges"])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_release_is_charged_once_and_written_the_same_again(discreet, folder):
    first = discreet(*RELEASE, "--json").json
    before = contents(folder / "published")
    again = discreet("release", "plan.toml", "--json", "--period", "once")
    assert (again.code, again.err) == (0, "")
    assert again.json == first
    told = discreet("release", "plan.toml").err
    assert "nothing is due" not in told
    assert "nothing was charged; for another release, add [schedule], or give the plan another `name`" in told
    assert contents(folder / "published") == before
    assert charges(discreet) == 1
    assert Path(first["report"]).exists()


def test_nothing_is_published_without_a_yes(discreet, folder, monkeypatch):
    assert discreet("release", "plan.toml").code == 2
    assert discreet(*RELEASE[:-1], "0.9").code == 3
    monkeypatch.setattr("discreet.cli.spending.can_ask", lambda: True)
    assert discreet("release", "plan.toml", given="n\n").code == 3
    assert charges(discreet) == 0
    assert not (folder / "published").exists()
    assert discreet("release", "plan.toml", given="y\n").code == 0
    assert charges(discreet) == 1


def test_a_plan_that_changed_after_its_release_is_refused(discreet, folder):
    assert discreet(*RELEASE).code == 0
    (folder / "plan.toml").write_text(PLAN.replace('"COUNT(*)"', '"COUNT(age)"'))
    ran = discreet(*RELEASE)
    assert ran.code == 3
    assert charges(discreet) == 1


@pytest.mark.parametrize(
    ("right", "wrong"), [("Visits to clinics", "Visits"), ('dataset = "clinics"', 'dataset = "clinics"\nversion = "2"')]
)
def test_what_was_released_once_says_how_to_release_again(discreet, folder, right, wrong):
    assert discreet(*RELEASE).code == 0
    (folder / "plan.toml").write_text(PLAN.replace(right, wrong))
    ran = discreet(*RELEASE)
    assert (ran.code, charges(discreet)) == (3, 1)
    assert "add [schedule], or give the plan another `name`" in " ".join(ran.err.split())
    assert "nothing was charged" not in ran.err  # Nothing is announced before it was checked.
    (folder / "plan.toml").write_text(PLAN.replace(right, wrong).replace('name = "clinics"', 'name = "again"'))
    assert (discreet(*RELEASE).code, charges(discreet)) == (0, 2)


def test_a_raised_budget_makes_no_other_release_of_what_was_published(discreet, folder):
    assert discreet(*RELEASE).code == 0
    before = contents(folder / "published")
    raised = discreet("budget", "raise", "--policy", "plan.toml", "--epsilon", "5", "--reason", "more")
    assert raised.code == 0, raised.err
    (folder / "plan.toml").write_text(PLAN.replace("epsilon = 4", "epsilon = 5"))
    again = discreet(*RELEASE)
    assert (again.code, charges(discreet)) == (0, 1), again.err
    assert "was published before" in again.err
    assert contents(folder / "published") == before


def test_a_schedule_releases_what_is_due_the_oldest_first(discreet, folder, monkeypatch):
    monkeypatch.setattr("discreet.cli.release_support._today", lambda: date(2026, 4, 2))
    (folder / "plan.toml").write_text(PLAN.replace("[output]", f"{MONTHLY}\n[output]"))
    status = discreet("plan", "status", "plan.toml", "--json").json
    assert (status["due"], status["next"]) == (["2026-01", "2026-02", "2026-03"], "2026-01")
    first = discreet(*RELEASE)
    assert "clinics-2026-01" in first.out
    again = discreet(*RELEASE)  # At once, or from a timer: the same rows are not charged again by themselves.
    assert (again.code, charges(discreet)) == (0, 1)
    assert "the same rows would be charged again. If they have changed, say --period 2026-02" in again.err
    assert "clinics-2026-01" in again.out
    status = discreet("plan", "status", "plan.toml", "--json").json
    assert (status["due"], status["same_rows"], status["next"]) == (["2026-02", "2026-03"],) * 2 + ("2026-04",)
    assert discreet(*RELEASE, "--period", "2026-03", "--json").json["bundle"].endswith("clinics-2026-03")
    assert discreet("plan", "status", "plan.toml", "--json").json["gaps"] == ["2026-02"]
    assert "is not over" in discreet(*RELEASE, "--period", "2026-04").err
    assert "no period '2026-05'" in discreet(*RELEASE, "--period", "2026-05").err
    assert discreet(*RELEASE, "--period", "2026-02", "--json").json["bundle"].endswith("clinics-2026-02")
    nothing = discreet(*RELEASE)  # As a timer would run it: all is well.
    assert nothing.code == 0
    assert "nothing is due" in nothing.err
    assert "clinics-2026-03" in nothing.out
    assert charges(discreet) == 3


def test_a_new_version_of_the_data_or_a_column_lets_the_next_period_be_released(discreet, folder, monkeypatch):
    monkeypatch.setattr("discreet.cli.release_support._today", lambda: date(2026, 4, 2))
    plan = PLAN.replace("[output]", f"{MONTHLY}\n[output]")
    for number, (version, label) in enumerate([("1", "01"), ("1", "01"), ("2", "02"), ("3", "03")]):
        (folder / "plan.toml").write_text(f'version = "{version}"\n{plan}')
        assert discreet(*RELEASE, "--json").json["bundle"].endswith(f"clinics-2026-{label}"), number
    assert charges(discreet) == 3


def test_a_period_that_ended_after_the_last_release_is_due_by_itself(discreet, folder, monkeypatch):
    """As a timer goes on, month by month, whatever was missed before."""
    today = datetime.now(UTC).date()
    ahead = date(today.year + 1, 1, 2)
    monkeypatch.setattr("discreet.cli.release_support._today", lambda: today)
    yearly = f'[schedule]\nevery = "year"\nfirst = {today.year - 3}-01-01\n'
    (folder / "plan.toml").write_text(PLAN.replace("[output]", f"{yearly}\n[output]"))
    assert discreet(*RELEASE, "--json").json["bundle"].endswith(f"clinics-{today.year - 3}")
    monkeypatch.setattr("discreet.cli.release_support._today", lambda: ahead)
    assert discreet(*RELEASE, "--json").json["bundle"].endswith(f"clinics-{today.year}")
    assert charges(discreet) == 2


def test_before_the_first_period_has_ended_nothing_is_published(discreet, folder):
    later = '[schedule]\nevery = "year"\nfirst = 2999-01-01\n\n[output]'
    (folder / "plan.toml").write_text(PLAN.replace("[output]", later))
    ran = discreet(*RELEASE)
    assert ran.code == 3
    assert "2999 ends on 3000-01-01" in ran.err


def test_a_bundle_that_was_touched_is_not_verified(discreet, folder):
    bundle = discreet(*RELEASE, "--json").json["bundle"]
    verify = ("bundle", "verify", bundle, "--ledger", "clinics.ledger")
    assert discreet(*verify).code == 0
    page = Path(bundle) / "report.html"
    page.write_text(page.read_text() + " ")
    ran = discreet(*verify, "--json")
    assert ran.code == 3
    assert ran.json["ok"] is False
    assert "report.html" in str(ran.json["checks"])


def test_a_plan_is_a_policy_too(discreet):
    ran = discreet(
        "query", "SELECT COUNT(*) AS n FROM visits", "--policy", "plan.toml", "--epsilon", "0.5", "--max-epsilon", "1"
    )
    assert ran.code == 0
    assert discreet("budget", "--policy", "policy.toml", "--json").json["charges"] == 1  # One ledger for both.


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("epsilon = 1\n", "epsilon = -1\n"), ("measures =", "measurs ="), ('folder = "published"', "folder = 3")],
)
def test_a_mistake_in_a_plan_is_named_with_its_line(discreet, folder, right, wrong):
    text = PLAN.replace(right, wrong)
    (folder / "plan.toml").write_text(text)
    at = next(number for number, written in enumerate(text.splitlines(), 1) if written not in PLAN.splitlines())
    for command in (("plan", "check"), ("plan", "price"), ("release",)):
        ran = discreet(*command, "plan.toml")
        assert ran.code == 2
        assert f"plan.toml, line {at}" in ran.err


def test_a_profile_is_paid_once_and_written_again_for_nothing(discreet, folder):
    ask = ("profile", "visits.csv", "--unit", "row", "--epsilon", "1", "--number", "age", "--json")
    ask += ("--lifetime-epsilon", "1")
    assert discreet(*ask).code == 2
    assert discreet(*ask, "--max-epsilon", "0.5").code == 3
    first = discreet(*ask, "--max-epsilon", "1")
    assert first.code == 0, first.err
    assert Path(first.json["report"]).exists()
    again = discreet(*ask)
    assert again.code == 0
    assert again.json == first.json
    assert discreet("profile", "visits.csv", "--epsilon", "1").code == 2  # Whom to protect is never guessed.
    assert discreet("profile", "policy.toml", "--epsilon", "1", "--unit", "row").code == 2


RUNNING = """
[[running]]
name = "so_far"
from = "visits"
day = "day"
first = 2026-01-01
days = 31
rho = 0.01
"""


def test_the_price_that_is_agreed_to_has_the_series_that_begin_in_it(discreet, folder, monkeypatch):
    """Paid once for all its days: the next period costs less."""
    monkeypatch.setattr("discreet.cli.release_support._today", lambda: date(2026, 3, 2))
    head, *rows = (folder / "visits.csv").read_text().splitlines()
    (folder / "visits.csv").write_text("\n".join([f"{head},day", *(f"{row},2026-01-05" for row in rows)]))
    plan = PLAN.replace("epsilon = 4", "epsilon = 9\ndelta = 1e-5").replace("epsilon = 3", "epsilon = 9\ndelta = 1e-5")
    plan = plan.replace("epsilon = 1\n", "epsilon = 1\ndelta = 1e-6\n\n" + MONTHLY)
    plan = plan.replace("age = {", "day = { low = 2026-01-01, high = 2026-12-31 }\nage = {")
    (folder / "plan.toml").write_text(plan + RUNNING)
    refused = discreet(*RELEASE)
    assert refused.code == 3
    assert "with so_far, paid once for all days" in refused.err
    assert charges(discreet) == 0
    assert discreet(*RELEASE[:-1], "2").code == 0
    assert charges(discreet) == 2
    assert discreet(*RELEASE, "--period", "2026-02").code == 0  # within ε = 1 again
    assert charges(discreet) == 3


def test_a_profile_of_which_a_part_is_paid_still_asks_for_agreement(discreet, folder, monkeypatch):
    """It stopped after its first round: what is left is not free."""
    ask = ("profile", "visits.csv", "--unit", "row", "--epsilon", "1", "--number", "age", "--json")
    ask += ("--lifetime-epsilon", "1")
    real = planning.ask

    def stopped(session, plans, *, idempotency_key, at):
        if at == "count":
            raise InvalidParameter("stopped midway")
        return real(session, plans, idempotency_key=idempotency_key, at=at)

    monkeypatch.setattr(planning, "ask", stopped)
    assert discreet(*ask, "--max-epsilon", "1").code == 2
    monkeypatch.setattr(planning, "ask", real)
    assert discreet(*ask).code == 2
    refused = discreet(*ask, "--max-epsilon", "0.0001")
    assert refused.code == 3
    assert "for nothing" not in refused.err
    assert discreet(*ask, "--max-epsilon", "1").code == 0
