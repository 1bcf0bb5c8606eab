"""Run one command, and turn whatever it raises into a message without data and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from typer.exceptions import TyperException

from discreet.cli.exits import Code, Failure, Reason, code_of, kind_of
from discreet.cli.output import complain, printable, quiet, written
from discreet.errors import BudgetExceeded, DiscreetError, Refused

__all__ = ["run", "told"]

_BUG = (
    "this is a mistake in discreet, not yours. What is charged stays charged, and nothing was released that is not in "
    "the ledger.\n  way out: run it again with DISCREET_DEBUG=1 and report what it prints, with the output of "
    "`discreet doctor`. It shows places in the program and never a value of your data"
)
_MORE = (
    "  way out: offer less for it, or let whoever holds the data raise the budget: "
    'discreet budget raise --policy FILE --epsilon … --reason "…"'
)
_STOPPED = "stopped. What was charged until now stays charged; `discreet ledger history` shows it"


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; nothing that it raises gets out."""
    from discreet.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # ε and ± on a terminal that has no such letters are no failure.
    as_json = "--json" in arguments
    try:
        with quiet(as_json and not sys.stderr.isatty()):
            return _ended(
                typer.main.get_command(app).main(list(arguments), prog_name="discreet", standalone_mode=False)
            )
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001  # The last one on the way out: its text could hold data.
        return _failed(error, as_json=as_json, file=_policy_in(arguments))


def _policy_in(arguments: Sequence[str]) -> str:
    """Return the policy or plan that a command was given, so that a way out can name it."""
    named = (word.removeprefix("--policy=") for word in arguments)
    return next((word for word in named if word.endswith(".toml")), os.environ.get("DISCREET_POLICY", "FILE"))


def _ended(returned: object) -> int:
    if returned == Code.INTERRUPTED:
        raise KeyboardInterrupt  # It was caught on the way, and deserves its words.
    return returned if isinstance(returned, int) else Code.OK


def _failed(error: BaseException, *, as_json: bool, file: str) -> int:
    code, place = code_of(error), error if isinstance(error, Refused) else None
    message = told(error).replace("--policy FILE", f"--policy {printable(file)}")
    reason = Reason(
        kind=kind_of(error),
        code=int(code),
        message=message,
        line=None if place is None else place.line,
        column=None if place is None else place.column,
    )
    if as_json:
        print(written(asdict(Failure(error=reason))), file=sys.stderr)
    else:
        complain(code.word, reason.message)
    if code is Code.BUG and os.environ.get("DISCREET_DEBUG"):
        print(_places(error), file=sys.stderr)
    return code


def told(error: BaseException) -> str:
    """Say what happened in words that hold no data: our own, or constant ones."""
    match error:
        case BudgetExceeded():
            return printable(f"{error}\n{_MORE}")
        case DiscreetError():
            return printable(str(error))
        case TyperException():
            return printable(_usage(error))
        case typer.Abort():
            return "stopped; nothing was spent"
        case KeyboardInterrupt():
            return _STOPPED
        case OSError() if error.strerror:
            name = Path(os.fsdecode(error.filename)).name if isinstance(error.filename, (str, bytes)) else "a file"
            return printable(f"{name}: {error.strerror}")
    return _BUG


def _usage(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    help_command = f"\n  way out: {context.command_path} --help" if context is not None else ""
    return f"{error.format_message() or 'say which command'}{help_command}"


def _places(error: BaseException) -> str:
    """Write where it happened: files, lines and classes, never a text, which a library may have filled with data."""
    frames = traceback.extract_tb(error.__traceback__)
    return "\n".join(
        [*(f"  {frame.filename}, line {frame.lineno}, in {frame.name}" for frame in frames), type(error).__name__]
    )
