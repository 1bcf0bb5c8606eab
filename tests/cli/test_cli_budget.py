"""From a first profile to a release and a raised budget: no order of commands ends where nothing goes on."""

from __future__ import annotations

import re
import tomllib

import pytest

from discreet.cli.budget_support import Amount, BudgetNow, DetailedBudget
from discreet.ledger import look

PROFILE = ("profile", "people.csv", "--unit", "patient", "--epsilon", "1", "--max-epsilon", "1")
INIT = ("init", "people.csv", "--unit", "patient", "--epsilon", "1", "--out", "own.toml", "--yes")
RELEASE = ("release", "own.toml", "--max-epsilon", "1")
REASON = ("--reason", "agreed")


@pytest.fixture
def people(folder):
    (folder / "visits.csv").rename(folder / "people.csv")
    for other in ("policy.toml", "plan.toml"):
        (folder / other).unlink()
    return folder


def went(ran):
    assert ran.code == 0, ran.err
    return ran


def sentence(discreet, file="own.toml"):
    return discreet("budget", "--policy", file, "--json").json["sentence"]


def test_a_profile_says_how_to_declare_the_lifetime_budget_and_spends_nothing(discreet, people):
    ran = discreet(*PROFILE)
    assert ran.code == 2
    assert "--lifetime-epsilon 4" in ran.err
    assert not (people / "people.ledger").exists()


def test_no_ledger_is_made_before_somebody_agrees_to_the_price(discreet, people):
    """Whoever does not agree, or is refused, has declared no lifetime budget, which could never be lowered again."""
    before = sorted(people.iterdir())
    lifetime = ("--lifetime-epsilon", "4", "--lifetime-delta", "1e-5")
    priced = (*PROFILE[:-2], *lifetime)
    assert "there is no terminal to ask on" in discreet(*priced).err
    assert "exceeds --max-epsilon" in discreet(*priced, "--max-epsilon", "0.5").err
    dear = ("profile", "people.csv", "--unit", "patient", "--epsilon", "9", "--max-epsilon", "9", *lifetime)
    assert "does not fit into what is left" in discreet(*dear).err
    (people / "domain.toml").write_text('[columns]\nclinic = { values = ["Harbour"], other = true }\n')
    fit = ("synth", "fit", "people.csv", "--unit", "patient", "--domain", "domain.toml", "--delta", "1e-5",
           "--rows-per-unit", "1", "--out", "model.safetensors", *lifetime)  # fmt: skip
    assert "there is no terminal to ask on" in discreet(*fit, "--epsilon", "1").err
    assert "does not fit into what is left" in discreet(*fit, "--epsilon", "9", "--max-epsilon", "9").err
    (people / "domain.toml").unlink()
    assert sorted(people.iterdir()) == before
    went(discreet(*priced, "--max-epsilon", "1"))
    assert (people / "people.ledger").exists()


def test_a_policy_makes_no_ledger_before_somebody_agrees(discreet, folder):
    before = sorted(folder.iterdir())
    assert "there is no terminal to ask on" in discreet("profile", "policy.toml", "--epsilon", "0.1").err
    assert sorted(folder.iterdir()) == before


def test_profile_then_init_then_release(discreet, people):
    went(discreet(*PROFILE, "--lifetime-epsilon", "4"))
    drafted = went(discreet(*INIT))
    assert "lifetime budget: ε = 4, pure, as the ledger of these data has it" in drafted.err
    assert "left: 3 more like this one" in went(discreet(*RELEASE)).err
    assert sentence(discreet) == "spent: 50 % (2 charges, the last ε = 1); left: 2 more like it"


def test_init_then_profile_then_release(discreet, people):
    went(discreet(*INIT, "--delta", "1e-6", "--lifetime-epsilon", "4", "--lifetime-delta", "1e-5"))
    assert "ε = 4, δ = 1e-05, as own.toml declares it" in went(discreet(*PROFILE)).err
    went(discreet(*RELEASE))
    assert re.fullmatch(
        r"spent: [\d.]+ % \(2 charges, the last ε = 1 at δ = 1e-6\); left: \d+ more like it", sentence(discreet)
    )
    went(discreet("profile", "own.toml", "--epsilon", "0.1", "--max-epsilon", "1", "--idempotency-key", "again"))


def test_a_pure_profile_first_and_a_plan_with_a_delta_after_it(discreet, people):
    """As it ended before: the way out that is told works as it is told."""
    went(discreet(*PROFILE, "--lifetime-epsilon", "1"))
    assert "left: nothing" in sentence(discreet, "people.ledger")
    assert discreet(*INIT, "--delta", "1e-6").code == 2  # It says which lifetime budget to say.
    drafted = went(discreet(*INIT, "--delta", "1e-6", "--lifetime-epsilon", "4", "--lifetime-delta", "1e-5"))
    assert "discreet budget raise --policy own.toml" in drafted.err
    refused = discreet(*RELEASE)
    assert refused.code == 3
    command = re.search(r"discreet (budget raise --policy own.toml --epsilon 4 --delta 1e-05) --reason", refused.err)
    assert command is not None
    for look_at in (("budget",), ("ledger", "history"), ("ledger", "verify")):
        went(discreet(*look_at, "--policy", "own.toml"))  # What can be looked at does not depend on the plan.
    went(discreet(*command[1].split(), *REASON))
    went(discreet(*RELEASE))
    went(discreet("ledger", "verify", "--policy", "own.toml"))
    assert look("people.ledger").account("people").budget.kind == "approximate"


def test_the_toml_that_is_told_is_taken(discreet, people):
    went(discreet(*PROFILE, "--lifetime-epsilon", "4"))
    went(discreet(*INIT, "--lifetime-epsilon", "2"))
    refused = discreet(*RELEASE)
    assert refused.code == 3
    assert "cannot be lowered" in refused.err
    told = re.search(r"\[budget\]\n +epsilon = \S+", refused.err)
    assert told is not None
    assert tomllib.loads(told[0]) == {"budget": {"epsilon": 4}}
    plan = people / "own.toml"
    plan.write_text(re.sub(r"\[budget\].*\nepsilon = 2", told[0], plan.read_text()))
    went(discreet(*RELEASE))


def test_release_then_raise_then_release_again(discreet, people):
    went(discreet(*INIT, "--lifetime-epsilon", "1"))
    went(discreet(*RELEASE))
    assert sentence(discreet) == "spent: 100 % (1 charge, ε = 1); left: nothing"
    full_query = ("query", "SELECT COUNT(*) AS n FROM people", "--policy", "own.toml", "--epsilon", "1")
    full_query += ("--max-epsilon", "1")
    full = discreet(*full_query)
    assert full.code == 4
    assert "discreet budget raise --policy own.toml" in full.err
    for lower in (("--epsilon", "0.5"), ("--epsilon", "1")):
        assert discreet("budget", "raise", "--policy", "own.toml", *lower, *REASON).code == 3
    raised = went(discreet("budget", "raise", "--policy", "own.toml", "--epsilon", "3", "--delta", "1e-6", *REASON))
    assert "  [budget]\n  epsilon = 3\n  delta = 1e-06" in raised.err
    plan = people / "own.toml"
    plan.write_text(re.sub(r"(\[budget\].*\n)epsilon = 1\n", r"\1epsilon = 3\ndelta = 1e-06\n", plan.read_text()))
    assert sentence(discreet) == "spent: 33.4 % (1 charge, ε = 1); left: 2 more like it"
    went(discreet(*full_query))
    again = discreet("budget", "raise", "--policy", "own.toml", *REASON)
    assert again.code == 3  # It is what the plan declares already.


def test_a_budget_without_a_policy_is_raised_by_its_ledger(discreet, people):
    went(discreet(*PROFILE, "--lifetime-epsilon", "1"))
    refused = discreet(*PROFILE, "--lifetime-epsilon", "2")
    assert refused.code == 3
    assert "discreet budget raise --policy people.ledger" in refused.err
    assert discreet("budget", "raise", "--policy", "people.ledger", *REASON).code == 2
    went(discreet("budget", "raise", "--policy", "people.ledger", "--epsilon", "2", *REASON))
    went(discreet(*PROFILE, "--idempotency-key", "again"))


def test_plans_that_disagree_are_not_chosen_from(discreet, people):
    went(discreet(*INIT, "--lifetime-epsilon", "4"))
    (people / "other.toml").write_text((people / "own.toml").read_text().replace("epsilon = 4", "epsilon = 5"))
    ran = discreet(*PROFILE)
    assert ran.code == 2
    assert "other.toml and own.toml declare different budgets" in ran.err


def test_details_are_shown_when_they_are_asked_for(discreet, people):
    went(discreet(*INIT, "--delta", "1e-6", "--lifetime-epsilon", "4", "--lifetime-delta", "1e-5"))
    went(discreet(*RELEASE))
    short, long = (went(discreet("budget", "--policy", "own.toml", *more)).out for more in ((), ("--details",)))
    assert "unbounded" not in short + long
    assert "sum of δ" in long
    assert "sum of δ" not in short
    assert max(map(len, short.splitlines())) <= 80
    history = went(discreet("ledger", "history", "--policy", "own.toml")).out
    assert "ε = 1 at δ = 1e-6" in history
    assert "reading" not in history
    assert max(map(len, history.splitlines())) <= 80
    assert "reading" in went(discreet("ledger", "history", "--policy", "own.toml", "--details")).out
    entries = discreet("ledger", "history", "--policy", "own.toml", "--json").json["entries"]
    assert [one["price"] for one in entries if one["kind"] == "charge"] == ["ε = 1 at δ = 1e-6"]
    assert entries[0]["budget"] == "ε = 4, δ = 1e-05"


def test_no_word_of_a_reason_is_left_out(discreet, folder):
    reason = "the council agreed on 3 March to a second year of this publication"
    went(
        discreet(
            "query",
            "SELECT COUNT(*) AS n FROM visits",
            "--policy",
            "policy.toml",
            "--epsilon",
            "0.5",
            "--max-epsilon",
            "1",
        )
    )
    went(discreet("budget", "raise", "--policy", "policy.toml", "--epsilon", "6", "--reason", reason))
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("epsilon = 4", "epsilon = 6"))
    for more in ((), ("--details",)):
        history = went(discreet("ledger", "history", "--policy", "policy.toml", *more)).out
        assert "…" not in history
        assert [word for word in reason.split() if word not in history.split()] == []


@pytest.mark.parametrize(
    ("unit", "called"),
    [
        ('column = "row"', "row"),
        ('column = "patient"\nname = "household"', "household"),
        ('column = ["clinic", "patient"]', "combination of clinic and patient"),
    ],
)
def test_a_budget_calls_the_unit_as_its_policy_does(discreet, folder, unit, called):
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace('column = "row"', unit))
    told = went(discreet("budget", "--policy", "policy.toml", "--json")).json["guarantee"]
    assert told.endswith(f"for one {called} (add-remove)")


def test_raising_asks_on_a_terminal_unless_told(discreet, people, monkeypatch):
    went(discreet(*PROFILE, "--lifetime-epsilon", "1"))
    answers = ["n", "y"]
    monkeypatch.setattr("discreet.cli.budget_support.can_ask", lambda: True)
    monkeypatch.setattr("discreet.cli.budget_support.answer_to", lambda _: answers.pop(0))
    raising = ("budget", "raise", "--policy", "people.ledger", *REASON, "--epsilon")
    refused = discreet(*raising, "2")
    assert (refused.code, "not confirmed" in refused.err) == (3, True)
    went(discreet(*raising, "2"))
    assert answers == []
    went(discreet(*raising, "3", "--yes"))


def test_details_say_that_gaussian_charges_are_not_added_up(discreet, people):
    now = BudgetNow(
        dataset="d", guarantee="g", charges=1, share_left=0.5, quotas=[], sentence="s", more=None,
        budget=Amount(epsilon=4.0, delta=1e-6, rho=None, words=""),
        spent=Amount(epsilon=None, delta=0.0, rho=None, words=""),
        left=Amount(epsilon=None, delta=None, rho=None, words=""),
    )  # fmt: skip
    told = "\n".join(str(block) for block in DetailedBudget(now=now).blocks())
    assert "sum of ε: not added up" in told
    assert "sum of δ: 0, of charges that have one of their own" in told
    assert "ε does not simply add up" in told
