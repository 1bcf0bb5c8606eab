"""A server of Discreet from Python, with the verbs of a session.

    server = connect("https://discreet.example:8000", token="dsc_…")
    data = server.dataset("visits")
    plan = data.sql("SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", epsilon=0.1)
    plan.cost, plan.explain(), plan.dummy()  # free
    plan.release()  # pays; the same table as `Session` returns

What a session raises is raised here too. A plan has an idempotency key, so that a release that is tried again, by this
module or by hand, after a lost connection or a restart of the server, is paid once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn, Self, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.formatting import printable
from discreet.http_client import (
    HttpConnection,
    ServerUnavailable,
    WrongAnswer,
    checked_token,
    device_token,
    plain_text,
    server_address,
    server_path,
)
from discreet.ledger.budget import Budget
from discreet.ledger.spending import Left, Spending
from discreet.noise.source import read
from discreet.pages.kit import Described, DescribedTable
from discreet.remote_releases import NotAnsweredYet, RemotePlan, RemoteRelease, RemoteWork
from discreet.server_answers import (
    FactsAnswer,
    HistoryAnswer,
    JobAnswer,
    JobsAnswer,
    MeAnswer,
    MoneyAnswer,
    NamesAnswer,
    PlansAnswer,
    PlanStandingAnswer,
    PriceAnswer,
    RecordAnswer,
    RemoteColumn,
    read_budget,
    read_left,
    read_spent,
)

__all__ = ["NotAnsweredYet", "ServerUnavailable", "WrongAnswer", "connect"]

_PAGE = 100
_AGAIN = 20  # bytes of a key that nobody else has


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    timeout: float = 30.0,
    patience: float = 30.0,
    certificates: str | Path | None = None,
    scopes: Sequence[str] = ("read", "ask", "release"),
    show_code: Callable[[str], None] = print,
) -> RemoteServer:
    """Connect to a server under a token, and ask who one is there.

    Without a token a code is shown. Whoever is signed in on the page of the server types it there, sees what is asked
    for, and allows it or a part of it, for some hours; meanwhile this waits.

    The token is sent to this address and to no other; it is in no message, no display and no file. Certificates are
    always checked.

    Args:
        url: The address, such as https://discreet.example:8000; http:// is for this machine only. Left out, that of the
            variable DISCREET_SERVER.
        token: What `discreet token new` printed; left out, that of the variable DISCREET_TOKEN, and without one a
            person is asked.
        timeout: How many seconds a request may take, beside what it is told to wait for an answer.
        patience: For how many seconds a server that cannot be reached, or is busy, is tried again.
        certificates: A file of certificates (PEM) to trust instead of those of the system.
        scopes: What a person is asked to allow, where there is no token.
        show_code: What shows them the code.

    Returns:
        The server: `datasets` names what may be asked, `dataset` opens it.

    Raises:
        Refused: If the address is on another machine and has no TLS.
        NotAuthorised: If the server does not know the token, or nobody allowed the code in time.
        ServerUnavailable: If the server cannot be reached.

    Examples:
        >>> dp.client.connect("http://discreet.example:8000", token="dsc_0000")
        Traceback (most recent call last):
        discreet.errors.Refused: ...
    """
    said_url = os.environ.get("DISCREET_SERVER") if url is None else url
    if not said_url:
        raise InvalidParameter("there is no address: say url=…, or set DISCREET_SERVER")
    address = server_address(said_url)
    for name, seconds in (("timeout", timeout), ("patience", patience)):
        if not 0 < exact(seconds, name=name) <= 3600:
            raise InvalidParameter(f"{name} is a number of seconds, at most an hour")
    said: dict[str, Any] = {"timeout": float(timeout), "patience": float(patience), "certificates": certificates}
    found = (os.environ.get("DISCREET_TOKEN") or None) if token is None else token
    if found is None:
        asking = HttpConnection(address, token=None, **said)
        try:
            found = device_token(asking, scopes, "discreet.client", show_code)
        finally:
            asking.close()
    link = HttpConnection(address, token=checked_token(found), **said)
    try:
        return RemoteServer(link, link.get(MeAnswer, "/v1/me"))
    except BaseException:
        link.close()
        raise


# --- the server ---


@final
class RemoteServer:
    """A server, as one account sees it; `connect` makes it. It can be shared by threads."""

    __slots__ = ("_link", "_me")

    def __init__(self, link: HttpConnection, me: MeAnswer) -> None:
        self._link, self._me = link, me

    @property
    def address(self) -> str:
        """Where it is."""
        return self._link.address

    @property
    def name(self) -> str:
        """What this account is called."""
        return plain_text(self._me.name)

    @property
    def role(self) -> str:
        """What this account may do: owner, custodian, analyst, auditor, agent or reader."""
        return plain_text(self._me.role)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets that this account may know of."""
        return tuple(self._link.get(NamesAnswer, "/v1/datasets").datasets)

    def dataset(self, name: str) -> RemoteDataset:
        """Open a data set; nothing is spent, and no row is read."""
        return RemoteDataset(self._link, self._link.get(FactsAnswer, server_path("datasets", name)))

    def release(self, number: str) -> RemoteRelease:
        """Return a release by its id."""
        return RemoteRelease(self._link, self._link.get(JobAnswer, server_path("releases", number)))

    def close(self) -> None:
        """Close all connections."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise Refused("a connection cannot be sent elsewhere, since its token would be: connect there")

    def __repr__(self) -> str:
        return f"RemoteServer({self.address}; {printable(self.name)}, {printable(self.role)})"


@final
@dataclass(frozen=True, slots=True)
class RemoteTable:
    """What is declared of a table."""

    name: str
    private: bool
    unit: str | None
    columns: Mapping[str, RemoteColumn]


@final
class RemoteDataset:
    """A data set of a server, with the verbs of a `Session`. Everything that it shows is public."""

    __slots__ = ("_facts", "_last", "_link", "_lock")

    def __init__(self, link: HttpConnection, facts: FactsAnswer) -> None:
        self._link, self._facts = link, facts
        self._last: RemotePlan | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Its name."""
        return self._facts.name

    @property
    def protects(self) -> str:
        """Whom it protects, in words."""
        return plain_text(self._facts.protects)

    @property
    def relation(self) -> str:
        """The neighbouring relation."""
        return plain_text(self._facts.relation)

    @property
    def version(self) -> str | None:
        """The declared state of the data; None if nobody named one."""
        return self._facts.version

    @property
    def answer_after(self) -> float:
        """How many seconds after its begin a release is answered, whatever the rows are."""
        return self._facts.answer_after

    @property
    def tables(self) -> Mapping[str, RemoteTable]:
        """What may be asked: tables and their columns by name, with what is declared of them."""
        found = {
            one.name: RemoteTable(
                one.name, one.private, one.unit, MappingProxyType({column.name: column for column in one.columns})
            )
            for one in self._facts.tables
        }
        return MappingProxyType(found)

    def sql(
        self,
        query: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        error: Number | None = None,
        relative_error: Number | None = None,
        expected: int | Mapping[str, Number] | None = None,
        delta: Number | None = None,
        keys: Mapping[str, Iterable[Any]] | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        quantile_intervals: bool = False,
        population: bool = False,
        max_inner: int | None = None,
        idempotency_key: str | None = None,
    ) -> RemotePlan:
        """Price a question; nothing is spent and no row is read before the plan is released. See `Session.sql`.

        Numbers are sent exactly. Without `idempotency_key` the plan gets one of its own, so that releasing it again
        returns what was released; another plan of the same question pays again.
        """
        numbers = {"epsilon": epsilon, "rho": rho, "share": share, "error": error, "delta": delta}
        numbers["relative_error"] = relative_error
        said: dict[str, Any] = {name: _exactly(name, value) for name, value in numbers.items() if value is not None}
        whole = {"max_groups": max_groups, "max_rows_per_group": max_rows_per_group, "max_inner": max_inner}
        said |= {name: value for name, value in whole.items() if value is not None}
        said |= {} if expected is None else {"expected": _expected(expected)}
        said |= {} if keys is None else {"keys": {name: [_key(one) for one in ones] for name, ones in keys.items()}}
        flags = {"quantile_intervals": quantile_intervals, "population": population}
        said |= {name: True for name, is_set in flags.items() if is_set}
        return self._planned({"sql": query, **said}, idempotency_key)

    def _planned(self, said: dict[str, Any], key: str | None) -> RemotePlan:
        price = self._link.post(PriceAnswer, server_path("datasets", self.name, "estimate"), said)
        plan = RemotePlan(self._link, ("datasets", self.name), said, price, key or _own_key())
        with self._lock:
            self._last = plan
        return plan

    @property
    def plans(self) -> tuple[PlanStandingAnswer, ...]:
        """The release plans of this data set that whoever runs the server named, and where each stands."""
        return tuple(self._link.get(PlansAnswer, server_path("datasets", self.name, "plans")).plans)

    def publish(
        self,
        plan: str | None = None,
        *,
        toml: str | None = None,
        period: str | None = None,
        idempotency_key: str | None = None,
    ) -> RemoteWork:
        """Price one period of a release plan: one of `plans` by its name, or the text of a plan file."""
        said = {"plan": plan, "toml": toml, "period": period}
        meant = {name: value for name, value in said.items() if value is not None}
        return self._work("plans", meant, idempotency_key=idempotency_key)

    def profile(
        self,
        *,
        epsilon: Number,
        delta: Number | None = None,
        table: str | None = None,
        numbers: Sequence[str] = (),
        dates: Sequence[str] = (),
        idempotency_key: str | None = None,
    ) -> RemoteWork:
        """Price a profile of a table; `numbers` and `dates` name columns of texts that are read so."""
        said = {"numbers": list(numbers), "dates": list(dates)}
        return self._work("profile", said | _priced_of(epsilon, delta, table), idempotency_key=idempotency_key)

    def synthesize(
        self,
        *,
        epsilon: Number,
        delta: Number,
        table: str | None = None,
        method: str = "auto",
        rows_per_unit: int | None = None,
        label: str | None = None,
        rows: int | None = None,
        idempotency_key: str | None = None,
    ) -> RemoteWork:
        """Price synthetic rows of a table: how they are made, and how many are kept. See `dp.synthesize`."""
        more = {"method": method, "rows_per_unit": rows_per_unit, "label": label, "rows": rows}
        said = {name: value for name, value in more.items() if value is not None}
        return self._work("synthetic", said | _priced_of(epsilon, delta, table), idempotency_key=idempotency_key)

    def train(
        self,
        model: str,
        *,
        target: str,
        features: Sequence[str],
        epsilon: Number,
        delta: Number,
        table: str | None = None,
        max_rows: int | None = None,
        idempotency_key: str | None = None,
    ) -> RemoteWork:
        """Price a regression: "linear" of a number with declared bounds, "logistic" of one with declared values."""
        said: dict[str, Any] = {"model": model, "target": target, "features": list(features)}
        said |= {} if max_rows is None else {"max_rows": max_rows}
        return self._work("training", said | _priced_of(epsilon, delta, table), idempotency_key=idempotency_key)

    def _work(self, kind: str, said: dict[str, Any], *, idempotency_key: str | None = None) -> RemoteWork:
        place = ("datasets", self.name, kind)
        price = self._link.post(PriceAnswer, server_path(*place, "estimate"), said)
        return RemoteWork(self._link, place, said, price, idempotency_key or _own_key())

    def questions_left(self) -> int:
        """Return how many more questions like the last one the budget and the quotas hold."""
        with self._lock:
            last = self._last
        if last is None:
            raise InvalidParameter("nothing was asked here yet: plan a question first")
        return last.priced().more_like_this

    @property
    def budget(self) -> Budget:
        """The lifetime budget."""
        return read_budget(self._money().exact)

    @property
    def spent(self) -> Spending:
        """What was spent on this data set, by everybody."""
        return read_spent(self._money())

    @property
    def left(self) -> Left:
        """What is left of the lifetime budget, rounded down, and how many more charges like the last one fit."""
        return read_left(self._money())

    def money(self) -> str:
        """Return one sentence: what was spent, by everybody, and how many more charges like the last one fit."""
        return plain_text(self._money().sentence)

    def _money(self) -> MoneyAnswer:
        return self._link.get(MoneyAnswer, server_path("datasets", self.name, "budget"))

    def history(self) -> RemoteHistory:
        """Return charges, the newest first: one's own, or everybody's for whoever checks."""
        path, before = server_path("datasets", self.name, "history"), None
        found: list[RemoteCharge] = []
        while True:
            page = self._link.get(HistoryAnswer, path, before=before, limit=_PAGE).entries
            found += [RemoteCharge(one.number, one.when, one.who, one.price, one.purpose) for one in page]
            last = min((one.number for one in page), default=0)
            if len(page) < _PAGE or (before is not None and last >= before):
                return RemoteHistory(found)
            before = last

    def releases(self) -> Iterator[RemoteRelease]:
        """Go through releases, the newest first, page by page."""
        path, seen = server_path("datasets", self.name, "releases"), set[str]()
        after: str | None = None
        while True:
            page = self._link.get(JobsAnswer, path, after=after, limit=_PAGE).releases
            new = [one for one in page if one.id not in seen]
            yield from (RemoteRelease(self._link, one) for one in new)
            if len(page) < _PAGE or not new:
                return
            seen |= {one.id for one in new}
            after = page[-1].id

    def verify(self) -> int:
        """Let the server verify the record of this data set, and return how many charges it has."""
        found = self._link.get(RecordAnswer, server_path("datasets", self.name, "ledger"))
        if not found.verified:
            raise WrongAnswer("the server did not verify the record")
        return found.charges

    def describe(self) -> Described:
        """Say what may be asked: tables, columns, what is publicly known of them, whom is protected, what is left."""
        tables = [_described(table) for table in self.tables.values()]
        about = f"{self.name}: protects {self.protects} ({self.relation}); {self._facts.budget}"
        text = "\n".join([*map(_aligned, tables), plain_text(about), self.money()])
        return Described(text, (*tables, DescribedTable(printable(about), (), (("budget", self.money()),))))

    def __repr__(self) -> str:
        return printable(f"RemoteDataset({self.name}; {', '.join(self.tables)}; at {self._link.address})")

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()


def _aligned(table: DescribedTable) -> str:
    widths = [max(map(len, column)) for column in zip(*table.rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table.rows)
    return "\n".join([table.title, *(f"  {line}" for line in lines)])


def _described(table: RemoteTable) -> DescribedTable:
    whose = f", of {table.unit}" if table.unit else ""
    title = f"{table.name}: {'private' + whose if table.private else 'public'}"
    rows = [(column.name, column.kind, column.known()) for column in table.columns.values()]
    return DescribedTable(
        printable(title), ("column", "kind", "declared"), tuple(tuple(map(printable, row)) for row in rows)
    )


# --- charges ---


@final
@dataclass(frozen=True, slots=True)
class RemoteCharge:
    """One charge: which of all of this data set, when, by whom, at what price and for what."""

    number: int
    when: str
    who: str
    price: str | None
    purpose: str


@final
class RemoteHistory(tuple[RemoteCharge, ...]):
    """Charges that show themselves as a table."""

    __slots__ = ()
    _HEAD = ("number", "when (UTC)", "price", "who", "for what")

    def _rows(self) -> list[tuple[str, ...]]:
        cells = ((str(one.number), one.when, one.price or "", one.who, " ".join(one.purpose.split())) for one in self)
        return [tuple(map(printable, row)) for row in cells]

    def __repr__(self) -> str:
        rows = [self._HEAD, *self._rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self._HEAD))]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        from discreet.pages import kit

        return kit.grid(self._rows(), self._HEAD)


# --- what is sent ---


def _own_key() -> str:
    """Return a key that nobody else has."""
    return f"client/{read(_AGAIN).hex()}"


def _priced_of(epsilon: Number, delta: Number | None, table: str | None) -> dict[str, str]:
    numbers = {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})
    said = {name: _exactly(name, value) for name, value in numbers.items()}
    return said | ({} if table is None else {"table": table})


def _exactly(name: str, value: Number) -> str:
    """Write a number so that it is the same there: one tenth is 1/10."""
    return str(exact(value, name=name))


def _expected(expected: int | Mapping[str, Number]) -> Any:
    if isinstance(expected, Mapping):
        return {name: _exactly("an expected value", value) for name, value in expected.items()}
    if isinstance(expected, bool) or not isinstance(expected, int):
        raise InvalidParameter("expected is a number of rows, or values by column, such as {'*': 500}")
    return expected


def _key(value: Any) -> Any:
    if isinstance(value, (str, int)):  # Truths are numbers here.
        return value
    if isinstance(value, date):
        return value.isoformat()
    raise InvalidParameter(f"a key of a group is a text, a whole number, a truth or a day, not {type(value).__name__}")
