"""Nothing is spent without a yes: of somebody at a terminal, or as a limit that was said before."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from cli_folder import ASK, on_terminal, process

from discreet.cli.spending import PriceTag, agree, limit_of
from discreet.errors import Refused
from discreet.privacy import PureDP, Relation, epsilon


def charges(discreet) -> int:
    return int(discreet("budget", "--policy", "policy.toml", "--json").json["charges"])


def test_without_a_terminal_a_limit_is_needed_and_nothing_is_spent(discreet):
    ran = discreet(*ASK)
    assert (ran.code, ran.out) == (2, "")
    assert "--max-epsilon" in ran.err
    assert charges(discreet) == 0


def test_a_price_above_the_limit_is_refused_and_nothing_is_spent(discreet):
    ran = discreet(*ASK, "--max-epsilon", "0.4999")
    assert (ran.code, ran.out) == (3, "")
    assert charges(discreet) == 0


def test_a_price_within_the_limit_is_spent(discreet):
    """Exactly the limit too: a tenth and the float next to it are the same price."""
    for asked in ("0.5", "0.3"):
        ran = discreet(*ASK[:-1], asked, "--max-epsilon", asked)
        assert ran.code == 0
        assert "±" in ran.out
        assert f"price: ε = {asked}" in ran.err
    assert charges(discreet) == 2


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "much", "1e400x"])
def test_a_limit_that_is_no_number_is_refused(discreet, limit):
    assert discreet(*ASK, "--max-epsilon", limit).code == 2
    assert charges(discreet) == 0


def test_a_budget_in_rho_needs_to_know_the_delta_of_a_limit(discreet, folder):
    text = (folder / "policy.toml").read_text().replace("epsilon = 4", "rho = 1").replace("epsilon = 3", "rho = 1")
    (folder / "policy.toml").write_text(text)
    ask = (*ASK[:-2], "--rho", "0.01", "--max-epsilon", "1")
    assert discreet(*ask).code == 2
    assert discreet(*ask, "--at-delta", "1e-6").code == 0
    assert discreet(*ask[:-1], "0.3", "--at-delta", "1e-6").code == 3
    assert charges(discreet) == 1


@pytest.mark.long
def test_on_a_terminal_it_asks_and_yes_spends(discreet, folder):
    ran = on_terminal(*ASK, folder=folder, answers=(("[y/N]", "y\n"),))
    assert ran.code == 0
    assert ran.out.index("price:") < ran.out.index("ε = 0.5") < ran.out.index("[y/N]") < ran.out.index("±")
    assert charges(discreet) == 1


@pytest.mark.parametrize("answer", ["n\n", "\n", "yess\n", ""])
def test_anything_but_yes_spends_nothing(discreet, monkeypatch, answer):
    monkeypatch.setattr("discreet.cli.spending.can_ask", lambda: True)
    ran = discreet(*ASK, given=answer)
    assert ran.code == 3
    assert "nothing was spent" in ran.err
    assert charges(discreet) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("key", "code"), [("\x04", 3), ("\x03", 130)], ids=["Ctrl-D", "Ctrl-C"])
def test_leaving_at_the_question_spends_nothing(discreet, folder, key, code):
    assert on_terminal(*ASK, folder=folder, answers=(("[y/N]", key),)).code == code
    assert charges(discreet) == 0


@pytest.mark.long
def test_results_go_to_stdout_and_the_rest_to_stderr(folder):
    ran = process(*ASK, "--max-epsilon", "1", folder=folder)
    assert ran.code == 0
    assert ran.out.splitlines()[0].strip() == "n"
    assert "price" not in ran.out
    assert "price: ε = 0.5" in ran.err
    assert "budget spent: nothing; left: 6 more like this one, by the quota of analyst each" in ran.err
    assert "spent: 12.5 % (1 charge, ε = 0.5); left: 5 more like it, by the quota of analyst each" in ran.err


def test_a_question_can_come_from_the_input(discreet):
    ran = discreet("query", "-", *ASK[2:], "--max-epsilon", "1", "--json", given=ASK[1])
    assert ran.code == 0
    assert list(ran.json["rows"][0]) == ["n"]


def test_explaining_is_free(discreet, folder):
    ran = discreet("explain", *ASK[1:])
    assert ran.code == 0
    assert "price" in ran.out
    assert charges(discreet) == 0


def test_looking_at_a_budget_makes_no_ledger(discreet, folder):
    assert discreet("budget", "--policy", "policy.toml").code == 0
    assert discreet("ledger", "history", "--policy", "policy.toml").code == 0
    assert discreet("ledger", "verify", "--policy", "policy.toml").code == 2
    assert not (folder / "clinics.ledger").exists()


@pytest.mark.parametrize("asked", ["0.1", "0.15", "0.3", "0.6", "0.7", "1/3"])
def test_a_price_is_accepted_that_is_exactly_the_limit(asked):
    """No float is three tenths: the price is rounded up, and so must the limit be."""
    price = epsilon(PureDP(asked), 0, relation=Relation.ADD_REMOVE)
    agree(PriceTag(words="", epsilon=price), limit=limit_of(asked), what="it")
    more = epsilon(PureDP(Fraction(asked) + Fraction(1, 10**12)), 0, relation=Relation.ADD_REMOVE)
    with pytest.raises(Refused) as refused:
        agree(PriceTag(words="", epsilon=more), limit=limit_of(asked), what="it")
    first, second = re.findall(r"ε = ([\d.]+)", str(refused.value))
    assert first.rstrip(".,") != second.rstrip(".,")


def test_a_flag_gives_quantiles_an_interval(discreet):
    words = (
        "query",
        "SELECT COUNT(*) AS n, MEDIAN(age) AS age FROM visits",
        "--policy",
        "policy.toml",
        "--epsilon",
        "1",
    )
    assert "± is found in the data" in discreet("explain", *words[1:], "--quantile-intervals").out
    ran = discreet(*words, "--max-epsilon", "1", "--quantile-intervals", "--json")
    assert ran.code == 0
    assert "no ±" not in discreet("explain", *words[1:], "--quantile-intervals").out
    assert discreet("query", *ASK[1:], "--max-epsilon", "1", "--quantile-intervals").code == 3
