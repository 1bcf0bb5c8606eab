"""The shell: queries in SQL, one after the other, each priced and agreed to before it is paid."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.budget_support import BudgetNow
from discreet.cli.command_runner import told
from discreet.cli.exits import Code, code_of
from discreet.cli.output import complain, note, say, show, working
from discreet.cli.query_support import TableAnswer, TypedOffer, explained
from discreet.cli.spending import agree, limit_of, price_of
from discreet.errors import DiscreetError, InvalidParameter
from discreet.exact import exact
from discreet.file_locks import CLOSE_ON_EXEC
from discreet.query.policy import called_units

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = ["COMMANDS", "Sitting", "history_file", "is_whole", "prepare_terminal", "sit", "statements"]

# --- terminal_input ---
# Input of the shell: statements over several lines, completion, and a history of queries, never of answers.


# --- lines: Statements as they are typed: over several lines, until a semicolon. ---


_FIRST, _MORE = "discreet> ", "     ...> "
_LEAVE = (r"\quit", r"\q", "quit", "exit")


@final
class _KeyPress(Enum):
    """What is pressed instead of typing a line."""

    END = "Ctrl-D, or the end of the input"
    DROP = "Ctrl-C"


def statements() -> Iterator[str]:
    r"""Return what is typed, statement by statement, until the end of the input or `\quit`."""
    lines: list[str] = []
    while (line := _line(_MORE if lines else _FIRST)) is not _KeyPress.END:
        if line is _KeyPress.DROP:
            lines = []  # As in other shells: what was begun is dropped, the sitting goes on.
            continue
        assert isinstance(line, str)
        if not lines and line.strip() in _LEAVE:
            return
        lines += [line] if line.strip() else []
        if is_whole("\n".join(lines)):
            yield _without_end(lines)
            lines = []
    if lines:
        yield _without_end(lines)  # The input ended: what was piped in needs no semicolon.


def _without_end(lines: list[str]) -> str:
    return "\n".join(lines).strip().removesuffix(";").rstrip()


def is_whole(text: str) -> bool:
    r"""Tell whether a statement is at its end: a semicolon outside of quotes; `\budget` and the like need none."""
    written = text.strip()
    if written.startswith("\\") and not written.startswith(r"\explain"):
        return True
    return written.endswith(";") and written.count("'") % 2 == 0


def _line(prompt: str) -> str | _KeyPress:
    """Read a line. The prompt goes to the terminal, never into results."""
    at_terminal = sys.stdin.isatty()
    if at_terminal and not sys.stdout.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    try:
        return input(prompt if at_terminal and sys.stdout.isatty() else "")
    except EOFError:
        _new_line(at_terminal)
        return _KeyPress.END
    except KeyboardInterrupt:
        if not at_terminal:
            raise
        _new_line(at_terminal)
        return _KeyPress.DROP


def _new_line(at_terminal: bool) -> None:
    if at_terminal:
        print(file=sys.stderr)


# --- terminal: What makes a terminal comfortable: it completes words, and remembers questions, never answers. ---


_MOST = 2000  # Lines of history that are kept.
_APART = " \t\n,;=<>()"
_SQL = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "JOIN", "ON", "AS", "AND", "OR", "NOT", "IN",
    "BETWEEN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "WITH", "UNION ALL", "COUNT(*)", "COUNT(",
    "COUNT(DISTINCT", "SUM(", "AVG(", "MEDIAN(", "QUANTILE(", "STDDEV(", "VAR_SAMP(", "CORR(", "MIN(", "MAX(", "MODE(",
    "FILTER (WHERE", "DP_LOW(", "DP_HIGH(", "DATE", "EXTRACT(", "DATE_TRUNC(", "COALESCE(",
)  # fmt: skip


def history_file() -> Path:
    """Return where questions of earlier sittings are kept: in the user's own folder for such things."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / "history"


def prepare_terminal(words: Sequence[str]) -> None:
    """Let a terminal complete words and remember questions; one that cannot still asks, only less comfortably."""
    try:
        import readline
    except ImportError:
        return
    every = sorted({*_SQL, *words})

    def complete(begun: str, number: int) -> str | None:
        fitting = [word for word in every if word.casefold().startswith(begun.casefold())]
        return fitting[number] if number < len(fitting) else None

    readline.set_completer(complete)
    readline.set_completer_delims(_APART)
    readline.parse_and_bind("tab: complete")
    _remember()


def _remember() -> None:
    """Read earlier questions, and keep new ones when the process ends, in a file that its owner alone can read."""
    import atexit
    import readline

    file = history_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY | CLOSE_ON_EXEC, 0o600))
        file.chmod(0o600)
        readline.read_history_file(file)
    except OSError:
        note("questions are not remembered: the folder for it cannot be written")
        return
    readline.set_history_length(_MOST)
    atexit.register(readline.write_history_file, file)


# --- sitting: What is said in a sitting, and what is done about it. ---


COMMANDS: Mapping[str, str] = {
    r"\budget": "what is spent and what is left",
    r"\tables": "tables, columns and what is publicly known of them",
    r"\explain": "how a question would be answered and what it would cost: \\explain SELECT …;",
    r"\offer": "what the next questions may cost or should reach: \\offer epsilon=0.1 delta=1e-8, or error=20",
    r"\help": "this list",
    r"\quit": "leave",
}
_OFFERS = ("epsilon", "rho", "share", "error", "relative_error", "expected", "delta", "kept_share")


@final
class Sitting:
    """One analyst, one session, and, if they set one, a limit to what the whole sitting may spend."""

    def __init__(
        self, session: Session, offer: TypedOffer, *, principal: str, max_epsilon: str | None, at_delta: str | None
    ) -> None:
        self._session, self._offer, self._principal, self._at_delta = session, offer, principal, at_delta
        self._limit = limit_of(max_epsilon)
        self._spent = Fraction(0)
        self._does: Mapping[str, Callable[[str], None]] = {
            r"\budget": self._budget,
            r"\tables": lambda _: say(self._session.describe()),
            r"\explain": lambda sql: show(explained(self._session, sql, self._offer), as_json=False),
            r"\offer": self._change_offer,
            r"\help": lambda _: _help(),
        }

    def hear(self, statement: str) -> Code:
        """Do what a statement says; say what is wrong with it, if anything, and go on."""
        try:
            self._do(statement)
        except (DiscreetError, OSError, KeyboardInterrupt) as error:
            complain(code_of(error).word, told(error))
            return code_of(error)
        return Code.OK

    def _do(self, statement: str) -> None:
        word, _, rest = statement.partition(" ")
        if not word.startswith("\\"):
            self._ask(statement)
        elif word in self._does:
            self._does[word](rest.strip())
        else:
            raise InvalidParameter(f"there is no {word}; there are {', '.join(COMMANDS)}")

    def _ask(self, sql: str) -> None:
        with working("planning"):
            plan = self._session.sql(sql, **self._offer.words())
        price = price_of(plan.event, plan.cost, session=self._session, at_delta=self._at_delta)
        agree(price, limit=self._allowed(), what="this question")
        self._spent += exact(price.epsilon or 0)
        with working("answering"):
            answer = TableAnswer.of(plan.release())
        show(answer, as_json=False)
        note(self._session.money())

    def _allowed(self) -> Fraction | None:
        """Return what is left of the limit of this sitting: prices add up."""
        return None if self._limit is None else self._limit - self._spent

    def _budget(self, _: str) -> None:
        called = called_units(self._session.chain or self._session.unit)
        now = BudgetNow.of(self._session.ledger, principal=self._principal, project="", called=called)
        show(now, as_json=False)
        if self._limit is not None:
            note(f"this sitting: ε = {float(self._spent):.6g} of {float(self._limit):.6g}")

    def _change_offer(self, words: str) -> None:
        said = dict(word.split("=", 1) for word in words.split() if "=" in word)
        unknown = [name for name in said if name not in _OFFERS]
        if not said or unknown:
            raise InvalidParameter(f"write, for example, \\offer epsilon=0.1; there are {', '.join(_OFFERS)}")
        typed: dict[str, Any] = {name: [value] if name == "expected" else value for name, value in said.items()}
        self._offer = TypedOffer(**typed)
        note(f"offered from now on: {' '.join(f'{name}={value}' for name, value in said.items())}")


def _help() -> None:
    for name, meaning in COMMANDS.items():
        say(f"{name:<10}{meaning}")
    say("A question is one SELECT; it may go over several lines and ends with ;")


# --- running: A sitting from its beginning to its end. ---


def sit(
    session: Session,
    epsilon: str | None,
    delta: str | None,
    *,
    principal: str,
    max_epsilon: str | None,
    at_delta: str | None,
) -> Code:
    """Hear every statement. On a terminal a mistake ends nothing; elsewhere the first one's code is the exit code."""
    offer = TypedOffer(epsilon=epsilon, delta=delta)
    sitting = Sitting(session, offer, principal=principal, max_epsilon=max_epsilon, at_delta=at_delta)
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        prepare_terminal([*COMMANDS, *_names(session)])
        note(r"A question is one SELECT and ends with ; — \help for more, \quit to leave.")
    codes = [sitting.hear(statement) for statement in statements()]
    return Code.OK if at_terminal else next((code for code in codes if code), Code.OK)


def _names(session: Session) -> Iterator[str]:
    for table in session.catalogue.tables.values():
        yield table.name
        yield from table.columns
