"""What is shown is safe to look at, whoever wrote the names in it, and JSON is JSON."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from fractions import Fraction

import pytest
from cli_folder import ASK, on_terminal, process
from cli_tree import commands
from rich.cells import cell_len

from discreet.cli.budget_support import BudgetNow
from discreet.cli.command_runner import run
from discreet.cli.output import TextTable, note, printable, show, working, written
from discreet.ledger import Account, Budget, Ledger
from discreet.pages import progress
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
        told, spent, left = BudgetNow.of(book, principal="ann", project="", called={}), book.spent(), book.left()
    assert Fraction(told.spent.epsilon) >= spent.epsilon == Fraction(1, 3)
    assert Fraction(told.left.epsilon) <= left.epsilon


# --- terminals ---

STYLE = re.compile(r"\x1b\[[0-9;]*m")
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # Of a terminal: colours, and what takes progress away again.
COMMANDS = [
    ("plan", "price", "plan.toml"),
    ("plan", "check", "plan.toml"),
    ("plan", "status", "plan.toml"),
    ("budget", "--policy", "plan.toml"),
    ("ledger", "history", "--policy", "policy.toml"),
    ("ledger", "verify", "--policy", "policy.toml"),
    ("explain", *ASK[1:]),
    (*ASK, "--max-epsilon", "1"),
    ("query", "SELECT clinics FROM visits WHERE age > 3 AND age < 99 AND satisfied = 'yes' GROUP BY age", *ASK[2:]),
    ("audit", "self", "--only", "RandomizedResponse"),
    ("doctor",),
]


def lines_of(screen):
    """What stands on a screen at the end: progress is written over, and taken away."""
    kept = re.sub(r"[^\n]*\r\x1b\[2K|[^\n]*\r?\n(\x1b\[\?25h)?\r?\x1b\[1A\x1b\[2K", "", screen)
    return STEERING.sub("", kept).replace("\r", "").split("\n")


def words_of(*texts):
    return [word.rstrip(",") for text in texts for word in text.split()]


class _Terminal:
    """A stream that calls itself a terminal."""

    def __init__(self):
        self.text, self.encoding = "", "utf-8"

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def terminal(monkeypatch):
    """Make a terminal of 80 columns, to which both streams go; within a test, since pytest sets them before it."""
    shown = _Terminal()
    for stream in ("sys.stdout", "sys.stderr"):
        monkeypatch.setattr(stream, shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return shown


@pytest.fixture
def asked(discreet, folder):
    """Run commands in a folder whose ledger has an entry for a long question."""
    question = "SELECT clinic, COUNT(*) AS number_of_visits, AVG(age) AS average_age FROM visits GROUP BY clinic"
    ran = discreet("query", question, *ASK[2:], "--max-epsilon", "1")
    assert ran.code == 0, ran.err
    return discreet


@pytest.mark.some(4)
@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2])[:20])
def test_commands_fit_a_terminal_cut_no_word_and_are_plain_in_a_pipe(command, asked, monkeypatch):
    piped = asked(*command)
    plain = piped.out + piped.err
    assert all(letter.isprintable() or letter == "\n" for letter in plain)
    assert not re.search("[█░]", plain)
    screen = terminal(monkeypatch)
    for columns in ("60", "80", "120"):
        screen.text = ""
        monkeypatch.setenv("COLUMNS", columns)
        run(command)
        assert STYLE.search(screen.text), "a terminal gets colours"
        lines = lines_of(screen.text)
        assert all(letter.isprintable() for line in lines for letter in line)
        assert max(map(cell_len, lines)) <= max(int(columns), *(cell_len(word) for word in words_of(*lines)))
        fresh = {*words_of(*lines)} - {*words_of(plain), "·"}
        assert not [word for word in fresh if not re.search(r"\d|[─█░…]", word)], "a word that no line of a pipe has"


@pytest.mark.long
def test_no_color_is_respected_and_bars_stay(asked, monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    for command in COMMANDS:
        run(command)
    assert not STYLE.search(screen.text)
    assert "█" in screen.text


@pytest.mark.long
@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[3]], ids=["plan price", "budget"])
def test_a_real_terminal_gets_bars_and_lines_that_fit(command, folder):
    screen = on_terminal(*command, folder=folder, COLUMNS="80").out
    assert re.search("\x1b\\[3[0-9]m█+", screen)
    assert max(map(cell_len, lines_of(screen))) <= 80


# --- progress ---

# Those that ask before they spend show progress between the questions; the others are done at once.
THEMSELVES = {"query", "release", "profile", "synth fit", "shell", "init", "budget", "audit self", "demo", "mcp"}
THEMSELVES |= {"limits", "serve"}
AT_ONCE = {
    "version", "key new", "key show", "data list", "data copy", "budget raise", "ledger release", "ledger reopen",
    "plan schema", "source prepare", "user add", "user disable", "user grant", "user invite", "user list", "token list",
    "token new", "token revoke", "approve list", "approve accept", "approve decline",
    "backup restore",
}  # fmt: skip


def test_every_command_that_may_take_long_shows_that_it_goes_on():
    silent = {name for name, one in commands().items() if not hasattr(one.callback.__wrapped__, "__wrapped__")}
    assert silent == THEMSELVES | AT_ONCE


@pytest.mark.long
def test_what_asks_shows_progress_but_never_over_a_question(folder, monkeypatch):
    screen = terminal(monkeypatch)
    begin = progress.Working.__init__

    def shown_at_once(current, *said, **options):
        """Steps may end before a thread of theirs begins."""
        begin(current, *said, **options)
        if current._screen is not None:
            current._screen.show(current)

    monkeypatch.setattr(progress.Working, "__init__", shown_at_once)
    for command in ((*ASK, "--max-epsilon", "1"), ("release", "plan.toml", "--max-epsilon", "1")):
        assert run(command) == 0
    told = STEERING.sub("", screen.text)
    for word in ("opening", "planning", "answering", "pricing", "publishing"):
        assert re.search(rf"{word} \d+ s elapsed", told), word
    assert not re.search(r"\d of \d+ ", told.replace("of 4", "")), "how much is done would tell about the data"


@pytest.mark.long
def test_what_takes_long_tells_its_time_and_goes_away(folder):
    (folder / "slow.py").write_text(
        "import time\n\ndef tells(data): time.sleep(0.003); return len(data)\ndef pairs(): return [((), (1,))]\n"
    )
    command = ("audit", "mechanism", "slow:tells", "--pairs", "slow:pairs", "--epsilon", "1", "--runs", "400")
    screen = on_terminal(*command, folder=folder, COLUMNS="80").out
    assert re.search(r"auditing \d+ s elapsed", STEERING.sub("", screen))
    assert "auditing" not in " ".join(lines_of(screen))
    piped = process(*command, folder=folder)
    assert "elapsed" not in piped.err + piped.out


@pytest.mark.long
def test_audits_are_counted_on_a_terminal_and_in_a_log(folder):
    command = ("audit", "self", "--only", "Vector")
    screen = STEERING.sub("", on_terminal(*command, folder=folder).out)
    # What takes a second is over before progress is shown.
    assert re.search(r"[1-5] of 6 +\d+ s elapsed", screen) or re.search(r"in [01] s\.", screen)
    assert "3 of 6  " in process(*command, folder=folder).err


def test_counts_are_lines_without_a_terminal(capsys):
    with working("counting", total=2) as current:
        current.step("one")
        current.step("two")
    assert capsys.readouterr().err == "1 of 2  one\n2 of 2  two\n"


def test_progress_of_a_query_is_its_time_and_its_limit_and_ends_before_an_answer(monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setattr(progress, "_SILENT", 0.05)
    with working("answering"):
        progress.show_limit(600)
        time.sleep(0.3)
        before = screen.text
        show(Said("the answer"), as_json=False)
        at_answer = screen.text
        time.sleep(0.3)
        assert screen.text == at_answer, "nothing is written over an answer"
    told = {STEERING.sub("", line).strip(" ⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") for line in re.split(r"[\r\n]", before)}
    assert all(re.fullmatch(r"answering \d+ s elapsed \(limit 600 s\)", one) for one in told - {""})
    assert told - {""}


def test_what_is_quick_shows_no_progress(monkeypatch):
    screen = terminal(monkeypatch)
    with working("answering"):
        pass
    assert screen.text == ""
