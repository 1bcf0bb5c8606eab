"""`%%discreet`: a cell of SQL in a notebook. Its price is shown first, and it is released only where that is agreed to.

`%load_ext discreet` adds it, and `%discreet connect URL` lets its cells ask a server. Nothing here imports IPython
before there is a notebook.
"""

from __future__ import annotations

import argparse
import atexit
import os
import re
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from discreet.cli.output import quiet
from discreet.cli.policies import open_session
from discreet.cli.query_support import TypedOffer
from discreet.cli.spending import PriceTag, agree, limit_of, price_of
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.client import RemoteDataset, RemoteServer
    from discreet.query import Session

__all__ = ["SqlMagic", "load"]

_ABOUT = (
    "Ask one SQL query. Without --dummy or --release its price and expected ± are shown, which is free. "
    "--release --max-epsilon 0.1 pays and answers, if the price is at most that. `%discreet connect URL` lets "
    "the cells that follow ask a server, under the token of DISCREET_TOKEN or by a code that you allow on its page."
)
_EPSILON = re.compile(r"ε = ([0-9][0-9.e+-]*)")
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
    words.add_argument("--session", help="instead: the variable that holds an open session, or a data set of a server")
    words.add_argument("--dataset", help="a data set of the server that is connected")
    words.add_argument("--principal", default=os.environ.get("DISCREET_PRINCIPAL"), help="who asks; by default you")
    words.add_argument("--project", default="", help="the project to charge, if quotas are by project")
    for name, told in _PRICES.items():
        words.add_argument(name, help=told)
    words.add_argument("--expected", action="append", help="expected rows of a typical group, or column=value")
    words.add_argument("--keys", action="append", help="public values of a group key: column=one,two")
    words.add_argument("--quantile-intervals", action="store_true", help="give quantiles a ±")
    words.add_argument("--population", action="store_true", help="± for what the rows were drawn from")
    does = words.add_mutually_exclusive_group()
    for name, told in (("explain", "show the price"), ("dummy", "try on made-up rows"), ("release", "pay and answer")):
        does.add_argument(f"--{name}", dest="does", action="store_const", const=name, help=told)
    words.add_argument("--max-epsilon", help="agree to any price up to this ε")
    words.add_argument("--at-delta", help="the δ at which ε is shown, where the budget has none")
    words.add_argument("--into", help="the variable that gets what is shown")
    words.set_defaults(does="explain")
    return words


def _connecting() -> _Words:
    words = _Words(prog="%discreet connect", description="Let the cells that follow ask a server.", allow_abbrev=False)
    words.add_argument("url", nargs="?", help="its address; by default DISCREET_SERVER")
    words.add_argument("--dataset", help="the data set to ask; it may be left out where there is one")
    words.add_argument("--certificates", help="a file of certificates to trust instead of those of the system")
    words.add_argument("--into", help="the variable that gets the data set")
    return words


def _read_connecting(typed: list[str]) -> argparse.Namespace:
    try:
        return _connecting().parse_args(typed)
    except InvalidParameter:  # Its text repeats what was typed, and that may be a token.
        raise InvalidParameter(
            "say %discreet connect URL --dataset NAME. A token is never typed into a cell, which is saved: set "
            "DISCREET_TOKEN"
        ) from None


@final
@dataclass(frozen=True, slots=True)
class SqlMagic:
    """The magic of one notebook, with the sessions that its cells opened, and the server that they ask."""

    shell: Any
    sessions: dict[tuple[str, ...], Session] = field(default_factory=dict)
    opened: ExitStack = field(default_factory=ExitStack)
    servers: list[RemoteServer] = field(default_factory=list)  # the last one is asked
    datasets: dict[str, RemoteDataset] = field(default_factory=dict)  # of the last server; that of cells is under ""

    def __call__(self, line: str, cell: str | None = None) -> Any:
        """Run a cell; without one, tell what may be asked and what is left, or connect to a server."""
        typed = _split(line)
        try:
            if cell is None and typed[:1] == ["connect"]:
                return self._connect(_read_connecting(typed[1:]))
            said = _words().parse_args(typed)
        except _Helped:
            return None
        into = None if said.into is None else _variable(said.into)
        session = self._session(said)
        shown = session.describe() if cell is None else self._ask(session, cell, said)
        if into is not None:
            self.shell.user_ns[into] = shown
        return shown

    def _connect(self, said: argparse.Namespace) -> Any:
        """Ask a server from now on. A token is never typed here: it would be saved with the notebook."""
        from discreet.client import connect

        server = connect(said.url, certificates=said.certificates)
        self.opened.callback(server.close)
        name = said.dataset or (server.datasets[0] if len(server.datasets) == 1 else None)
        if name is None:
            raise InvalidParameter(f"say --dataset, one of {', '.join(server.datasets) or 'none that you may see'}")
        found = server.dataset(name)
        self.servers.append(server)
        self.datasets.clear()
        self.datasets[""] = self.datasets[name] = found
        if said.into is not None:
            self.shell.user_ns[_variable(said.into)] = found
        return found.describe()

    def _ask(self, session: Session | RemoteDataset, cell: str, said: argparse.Namespace) -> Any:
        names = TypedOffer.__dataclass_fields__
        offer = TypedOffer(**{name: getattr(said, name) for name in names}).words()
        from discreet.query import Session

        if not isinstance(session, Session):
            return self._ask_server(session, cell, offer, said)
        plan = session.sql(cell, **offer)
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

    def _ask_server(self, data: RemoteDataset, cell: str, offer: dict[str, Any], said: argparse.Namespace) -> Any:
        """Do the same at a server. The price that is agreed to is the one that is shown."""
        if offer.pop("kept_share") is not None:
            raise InvalidParameter("--kept-share is for sessions: a server does not measure it")
        plan = data.sql(cell, **offer)
        if said.does == "explain":
            return plan.explain()
        if said.does == "dummy":
            return plan.dummy()
        from IPython.display import display

        display(plan)  # type: ignore[no-untyped-call,unused-ignore]
        found = _EPSILON.match(plan.cost)
        with quiet(True):
            price = PriceTag(words=plan.cost, epsilon=None if found is None else float(found[1]))
            agree(price, limit=limit_of(said.max_epsilon), what="this question")
        return plan.release()

    def _remote(self, said: argparse.Namespace) -> RemoteDataset:
        """Return the data set of the server that is meant."""
        if not self.servers:
            raise InvalidParameter("--dataset is of a server: `%discreet connect URL` first")
        name = said.dataset or ""
        if name not in self.datasets:
            self.datasets[name] = self.servers[-1].dataset(name)
        return self.datasets[name]

    def _session(self, said: argparse.Namespace) -> Session | RemoteDataset:
        """Return what is named, the server that is connected, or the session that a policy declares.

        A session stays open for the next cell.
        """
        if said.session is not None:
            return self._named(said.session)
        if said.dataset is not None or (self.servers and said.policy is None):
            return self._remote(said)
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

    def _named(self, name: str) -> Session | RemoteDataset:
        from discreet.client import RemoteDataset
        from discreet.query import Session

        found = self.shell.user_ns.get(name)
        if not isinstance(found, (Session, RemoteDataset)):
            raise InvalidParameter("--session takes the name of a variable that holds a dp.Session, or a data set")
        return found


def _variable(name: str) -> str:
    if not name.isidentifier():
        raise InvalidParameter("--into takes the name of a variable")
    return name


def load(shell: Any) -> None:
    """Add the magic to a shell of IPython; its sessions are closed when the process ends."""
    magic = SqlMagic(shell)
    atexit.register(magic.opened.close)
    shell.register_magic_function(magic, magic_kind="line_cell", magic_name="discreet")
