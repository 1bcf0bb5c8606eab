"""Options that commands share, each declared once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from discreet.cli.output import working
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.schema.csv_file import CsvFile

__all__ = [
    "POLICY",
    "AsJson",
    "AtDelta",
    "DateFormat",
    "Decimal",
    "Delimiter",
    "Delta",
    "Encoding",
    "Epsilon",
    "Lifetime",
    "LifetimeDelta",
    "MaxEpsilon",
    "Period",
    "PlanFile",
    "PolicyFile",
    "Principal",
    "Project",
    "Quote",
    "Thousands",
    "command",
    "file_as_written",
    "function_named",
    "group",
]

F = TypeVar("F", bound=Callable[..., Any])

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; its schema is in docs/schema/cli.")]
POLICY = "A policy file, or a release plan."
PolicyFile = Annotated[Path, typer.Option("--policy", envvar="DISCREET_POLICY", help=POLICY)]
Period = Annotated[
    str | None, typer.Option("--period", help="The period to release, such as 2026-10; see plan status.")
]
PlanFile = Annotated[Path, typer.Argument(help="The release plan.", metavar="PLAN")]
Principal = Annotated[
    str | None,
    typer.Option(
        "--principal", envvar="DISCREET_PRINCIPAL", help="The principal, who asks; by default your login name."
    ),
]
Project = Annotated[str, typer.Option("--project", help="The project to charge, if quotas are by project.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", help="The ε to spend.", metavar="NUMBER")]
Delta = Annotated[str | None, typer.Option("--delta", help="The δ to spend, such as 1e-6.", metavar="NUMBER")]
MaxEpsilon = Annotated[
    str | None,
    typer.Option(
        "--max-epsilon", help="Accept any price up to this ε without confirmation. Required without a terminal."
    ),
]
Lifetime = Annotated[
    str | None,
    typer.Option("--lifetime-epsilon", help="The ε of the lifetime budget, if ledger and plan declare none yet."),
]
LifetimeDelta = Annotated[
    str | None, typer.Option("--lifetime-delta", help="The δ of the lifetime budget; by default that of --delta.")
]
AtDelta = Annotated[
    str | None, typer.Option("--at-delta", help="The δ at which ε is shown, where the budget has no δ of its own.")
]


# How a CSV file that is named by itself is written; a policy or a plan says so in [tables.NAME.csv].
Delimiter = Annotated[str | None, typer.Option("--delimiter", help='CSV: what stands between fields, such as ";".')]
Quote = Annotated[str | None, typer.Option("--quote", help="CSV: what encloses fields that have a delimiter in them.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="CSV: the encoding, such as cp1252 or latin-1.")]
Decimal = Annotated[str | None, typer.Option("--decimal", help="CSV: the decimal mark of numbers, . or a comma.")]
Thousands = Annotated[str | None, typer.Option("--thousands", help="CSV: what groups digits by three.")]
DateFormat = Annotated[
    str | None, typer.Option("--date-format", help="CSV: how dates are written, such as %d.%m.%Y; else ISO 8601.")
]


def file_as_written(path: Path, dates: Sequence[str] | None = None, **said: str | None) -> Path | CsvFile:
    """Return a file as it is said to be written; `dates` are columns that the format of dates is for, all if none."""
    known: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if not known:
        return path
    if path.suffix == ".toml":
        raise InvalidParameter(f"{path.name} says how files are written, in [tables.NAME.csv]: leave it out here")
    from discreet.schema.csv_file import csv

    pattern = known.pop("date_format", "")
    return csv(path, dates=dict.fromkeys(dates, pattern) if dates and pattern else pattern, **known)


def group(summary: str, *, example: str | None = None) -> typer.Typer:
    """Return an empty group of commands; one that does something by itself has an example."""
    return typer.Typer(
        help=summary, no_args_is_help=example is None, epilog=None if example is None else _epilog(example)
    )


def command(
    app: typer.Typer, name: str, *, example: str, panel: str | None = None, busy: str | None = None
) -> Callable[[F], F]:
    """Add a command to a group, with an example at the end of its help. A test runs every example.

    One that may take seconds, and asks nothing, says by `busy` what it does: a terminal shows that it goes on.
    """
    add = app.command(name, epilog=_epilog(example), rich_help_panel=panel)

    def added(function: F) -> F:
        add(function if busy is None else _busy(function, busy))
        return function

    return added


def _busy(function: Callable[..., Any], words: str) -> Callable[..., Any]:
    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        with working(words):  # Until there is something to show.
            return function(*arguments, **named)

    return called


def _epilog(example: str) -> str:
    lines = "\n".join(f"  {line}" for line in example.strip().splitlines())
    return f"\b\nExample:\n{lines}"


# --- loading ---
# A function of the user's own code, by its name: `my_module:fn`, from this folder or from what is installed.


def function_named(name: str) -> Callable[..., Any]:
    """Import a function: its module is looked for in this folder first. Importing runs that module's code."""
    module, separator, function = name.partition(":")
    if not separator or not all(part.isidentifier() for part in (*module.split("."), function)):
        raise InvalidParameter(f"{name!r} is no function: write module:function, such as my_module:fn")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    if not _there(module):
        raise InvalidParameter(f"there is no module {module}: run this in its folder, or install it")
    found = getattr(import_module(module), function, None)
    if not callable(found):
        raise InvalidParameter(f"the module {module} has no function {function}")
    loaded: Callable[..., Any] = found
    return loaded


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # A folder above it is not there.
        return False
