"""What is shown is safe to look at, whoever wrote the names in it, and JSON is JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

import pytest
from cli_folder import process

from discreet.cli.budget_support import BudgetNow
from discreet.cli.output import TextTable, note, printable, show, written
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import PureDP, Relation

STEERS = "a\x1b[2J\x07\x9bb\rc"


@dataclass(frozen=True)
class Said:
    """Something with a name that a stranger chose."""

    name: str

    def blocks(self):
        yield self.name
        yield TextTable(head=("name",), rows=[(self.name,)])


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_steers_a_terminal_is_written(as_json, capsys):
    show(Said(STEERS), as_json=as_json)
    note(STEERS)
    out, err = capsys.readouterr()
    assert all(letter.isprintable() or letter == "\n" for letter in out + err)
    assert not as_json or json.loads(out) == {"name": STEERS}


def test_words_are_left_as_they_are():
    assert printable("ε = 0.1 ± 3\nÄrzte") == "ε = 0.1 ± 3\nÄrzte"


def test_a_number_that_json_does_not_know_is_no_answer():
    with pytest.raises(ValueError, match="JSON"):
        written({"epsilon": float("inf")})


def test_columns_are_aligned(capsys):
    note(TextTable(head=("name", "n"), rows=[("a", "1"), ("long name", "100")], right=frozenset({1})))
    assert capsys.readouterr().err.splitlines() == [
        "name         n",
        "─────────  ───",
        "a            1",
        "long name  100",
    ]


def test_shells_complete_commands(folder):
    words = {"_DISCREET_COMPLETE": "complete_bash", "COMP_WORDS": "discreet ledger ve", "COMP_CWORD": "2"}
    assert process(folder=folder, **words).out.split() == ["verify"]


def test_no_command_is_a_usage_error_that_shows_what_there_is(discreet):
    ran = discreet()
    assert ran.code == 2
    assert "Publish" in ran.out
    assert "discreet --help" in ran.err


def test_what_is_spent_is_rounded_up_and_what_is_left_down():
    account = Account("patients", budget=Budget(epsilon=2, delta="1e-6"), unit="row", relation=Relation.ADD_REMOVE)
    with Ledger.open("memory", account) as book:
        book.charge(PureDP(Fraction(1, 3)), relation=Relation.ADD_REMOVE, purpose="test", principal="ann")
        told, spent, left = BudgetNow.of(book, principal="ann", project=""), book.spent(), book.left()
    assert Fraction(told.spent.epsilon) >= spent.epsilon == Fraction(1, 3)
    assert Fraction(told.left.epsilon) <= left.epsilon
