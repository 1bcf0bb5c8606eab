"""`%%discreet`: a cell of SQL in a notebook. Its price is shown first, and it is released only where that is agreed to.

`%load_ext discreet` adds it. Nothing here imports IPython before there is a notebook.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from discreet.cli.output import quiet
from discreet.cli.policies import open_session
from discreet.cli.query_support import TypedOffer
from discreet.cli.spending import agree, limit_of, price_of
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = ["SqlMagic", "load"]

_ABOUT = (
    "Ask one SQL query. Without --dummy or --release its price and expected ± are shown, which is free. "
    "--release --max-epsilon 0.1 pays and answers, if the price is at most that."
)
_PRICES = {
    "--epsilon": "the ε to spend",
    "--rho": "the ρ (zCDP) to spend, instead of ε",
    "--share": "the share of the lifetime budget to spend",
    "--error": "the largest ± that is wanted, instead of a price",
    "--relative-error": "the same, relative to --expected",
    "--delta": "the δ to spend, for group keys that are not declared",
    "--kept-share": "the part of the price for which it is measured how much contribution limits cut",
    "--idempotency-key": "run again under the same key, the cell shows the stored answer for free",
}


@final
class _Words(argparse.ArgumentParser):
    """Reads the line of a cell; what it cannot read is refused as everywhere else."""

    def error(self, message: str) -> NoReturn:
        raise InvalidParameter(f"{message}. `%discreet --help` lists all options")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _Helped


class _Helped(Exception):
    """The help was asked for, and is printed."""


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise InvalidParameter("a quotation mark of the line is not closed") from None


def _words() -> _Words:
    words = _Words(prog="%%discreet", description=_ABOUT, allow_abbrev=False)
    words.add_argument("--policy", help="a policy file or a release plan; by default DISCREET_POLICY")
    words.add_argument("--session", help="instead of a policy: the variable that holds an open session")
    words.add_argument("--principal", default=os.environ.get("DISCREET_PRINCIPAL"), help="who asks; by default you")
    words.add_argument("--project", default="", help="the project to charge, if quotas are by project")
    for name, told in _PRICES.items():
        words.add_argument(name, help=told)
    words.add_argument("--expected", action="append", help="expected rows of a typical group, or column=value")
    words.add_argument("--keys", action="append", help="public values of a group key: column=one,two")
    words.add_argument("--quantile-intervals", action="store_true", help="give quantiles a ±")
    words.add_argument("--population", action="store_true", help="with it: for what the rows were drawn from")
    does = words.add_mutually_exclusive_group()
    for name, told in (("explain", "show the price"), ("dummy", "try on made-up rows"), ("release", "pay and answer")):
        does.add_argument(f"--{name}", dest="does", action="store_const", const=name, help=told)
    words.add_argument("--max-epsilon", help="agree to any price up to this ε")
    words.add_argument("--at-delta", help="the δ at which ε is shown, where the budget has none")
    words.add_argument("--into", help="the variable that gets what is shown")
    words.set_defaults(does="explain")
    return words


@final
@dataclass(frozen=True, slots=True)
class SqlMagic:
    """The magic of one notebook, with the sessions that its cells opened."""

    shell: Any
    sessions: dict[tuple[str, ...], Session] = field(default_factory=dict)
    opened: ExitStack = field(default_factory=ExitStack)

    def __call__(self, line: str, cell: str | None = None) -> Any:
        """Run a cell; without one, tell what may be asked and what is left."""
        try:
            said = _words().parse_args(_split(line))
        except _Helped:
            return None
        into = said.into
        if into is not None and not into.isidentifier():
            raise InvalidParameter("--into takes the name of a variable")
        session = self._session(said)
        shown = session.describe() if cell is None else self._ask(session, cell, said)
        if into is not None:
            self.shell.user_ns[into] = shown
        return shown

    def _ask(self, session: Session, cell: str, said: argparse.Namespace) -> Any:
        names = TypedOffer.__dataclass_fields__
        plan = session.sql(cell, **TypedOffer(**{name: getattr(said, name) for name in names}).words())
        if said.does == "explain":
            return plan.explain()
        if said.does == "dummy":
            return plan.dummy()
        from IPython.display import display

        display(plan.explain())  # type: ignore[no-untyped-call,unused-ignore]
        with quiet(True):  # The price was shown just now.
            price = price_of(plan.event, plan.cost, session=session, at_delta=said.at_delta)
            agree(price, limit=limit_of(said.max_epsilon), what="this question")
        return plan.release()

    def _session(self, said: argparse.Namespace) -> Session:
        """Return the session that is named, or the one that a policy declares; it stays open for the next cell."""
        from discreet.query import Session

        if said.session is not None:
            found = self.shell.user_ns.get(said.session)
            if not isinstance(found, Session):
                raise InvalidParameter("--session takes the name of a variable that holds a dp.Session")
            return found
        policy = said.policy or os.environ.get("DISCREET_POLICY")
        if not policy:
            raise InvalidParameter("say --policy FILE or --session NAME, or set DISCREET_POLICY")
        path = Path(policy)
        written = path.read_text(encoding="utf-8") if path.is_file() else ""  # A policy that changed is opened anew.
        key = (str(path.resolve()), written, said.principal or "", said.project)
        if key not in self.sessions:
            opening = open_session(path, principal=said.principal, project=said.project)
            self.sessions[key] = self.opened.enter_context(opening)
        return self.sessions[key]


def load(shell: Any) -> None:
    """Add the magic to a shell of IPython; its sessions are closed when the process ends."""
    magic = SqlMagic(shell)
    atexit.register(magic.opened.close)
    shell.register_magic_function(magic, magic_kind="line_cell", magic_name="discreet")
