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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn, Self, TypeAlias, final

from discreet.errors import DiscreetError, InvalidParameter, NotAuthorised, Refused
from discreet.exact import Number, exact
from discreet.formatting import printable
from discreet.http_client import (
    HttpConnection,
    ServerUnavailable,
    WrongAnswer,
    checked_token,
    plain_text,
    problem_error,
    server_address,
    server_path,
)
from discreet.ledger.budget import Budget
from discreet.ledger.spending import Left, Spending
from discreet.noise.source import read
from discreet.pages.kit import Described, DescribedTable
from discreet.query.plan.explain import Explanation
from discreet.query.release_table import ReleaseTable
from discreet.server_answers import (
    FactsAnswer,
    HistoryAnswer,
    JobAnswer,
    JobsAnswer,
    MeAnswer,
    MoneyAnswer,
    NamesAnswer,
    PriceAnswer,
    RecordAnswer,
    RemoteColumn,
    read_budget,
    read_left,
    read_price,
    read_spent,
    read_table,
)

__all__ = ["NotAnsweredYet", "ServerUnavailable", "WrongAnswer", "connect"]

Waiting: TypeAlias = Callable[[str, float], None]
"""What is told while a release is waited for: its state, and the seconds that are gone."""

_LONGEST_WAIT = 30.0  # seconds that one request waits for an answer
_PAUSE = 0.5  # where the server does not wait
_PAGE = 100
_AGAIN = 20  # bytes of a key that nobody else has


class NotAnsweredYet(DiscreetError, TimeoutError):
    """The time that somebody wanted to wait is over. The release goes on, is paid, and can be waited for again.

    Args:
        release: The release; `wait` goes on waiting.

    Examples:
        >>> issubclass(dp.client.NotAnsweredYet, TimeoutError)
        True
    """

    def __init__(self, release: RemoteRelease) -> None:
        super().__init__(f"release {release.id} is {release.state}: it goes on, and `release.wait()` waits for it")
        self.release = release


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    timeout: float = 30.0,
    patience: float = 30.0,
    certificates: str | Path | None = None,
) -> RemoteServer:
    """Connect to a server under a token, and ask who one is there.

    The token is sent to this address and to no other; it is in no message, no display and no file. Certificates are
    always checked.

    Args:
        url: The address, such as https://discreet.example:8000; http:// is for this machine only. Left out, that of the
            variable DISCREET_SERVER.
        token: What `discreet token new` printed; left out, that of the variable DISCREET_TOKEN.
        timeout: How many seconds a request may take, beside what it is told to wait for an answer.
        patience: For how many seconds a server that cannot be reached, or is busy, is tried again.
        certificates: A file of certificates (PEM) to trust instead of those of the system.

    Returns:
        The server: `datasets` names what may be asked, `dataset` opens it.

    Raises:
        Refused: If the address is on another machine and has no TLS.
        NotAuthorised: If there is no token, or the server does not know it.
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
    found = os.environ.get("DISCREET_TOKEN") if token is None else token
    if not found:
        raise NotAuthorised("there is no token: say token=…, or set DISCREET_TOKEN; `discreet token new` prints one")
    for name, seconds in (("timeout", timeout), ("patience", patience)):
        if not 0 < exact(seconds, name=name) <= 3600:
            raise InvalidParameter(f"{name} is a number of seconds, at most an hour")
    said: dict[str, Any] = {"timeout": float(timeout), "patience": float(patience), "certificates": certificates}
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
        plan = RemotePlan(self._link, self.name, said, price, key or f"client/{read(_AGAIN).hex()}")
        with self._lock:
            self._last = plan
        return plan

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
        lines = [f"{table.title}\n" + "\n".join(f"  {'  '.join(row)}" for row in table.rows) for table in tables]
        text = "\n".join([*lines, plain_text(about), self.money()])
        return Described(text, (*tables, DescribedTable(printable(about), (), (("budget", self.money()),))))

    def __repr__(self) -> str:
        return printable(f"RemoteDataset({self.name}; {', '.join(self.tables)}; at {self._link.address})")

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()


def _described(table: RemoteTable) -> DescribedTable:
    whose = f", of {table.unit}" if table.unit else ""
    title = f"{table.name}: {'private' + whose if table.private else 'public'}"
    rows = [(column.name, column.kind, column.known()) for column in table.columns.values()]
    return DescribedTable(
        printable(title), ("column", "kind", "declared"), tuple(tuple(map(printable, row)) for row in rows)
    )


# --- a question ---


@final
class RemotePlan:
    """A question with its price, as `Plan` is one of a session; `RemoteDataset.sql` makes it."""

    __slots__ = ("_dataset", "_link", "_price", "_said", "idempotency_key")

    def __init__(
        self, link: HttpConnection, dataset: str, said: Mapping[str, Any], price: PriceAnswer, key: str
    ) -> None:
        self._link, self._dataset, self._said, self._price = link, dataset, MappingProxyType(dict(said)), price
        self.idempotency_key = key

    @property
    def text(self) -> str:
        """The question as it was asked."""
        return str(self._said["sql"])

    @property
    def cost(self) -> str:
        """What a release spends, in a few words."""
        return plain_text(self._price.cost)

    @property
    def affordable(self) -> bool:
        """Whether it fitted into what was left when it was priced."""
        return self._price.affordable

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know."""
        return tuple(map(plain_text, self._price.notes))

    @property
    def answer_after(self) -> float:
        """How many seconds after its begin a release is answered."""
        return self._price.answer_after

    def priced(self) -> PriceAnswer:
        """Ask for the price once more."""
        return self._link.post(PriceAnswer, server_path("datasets", self._dataset, "estimate"), self._said)

    def explain(self) -> Explanation:
        """Say who is protected, how it will be answered, the expected ±, the price and what is left. Free."""
        return read_price(self.priced())

    def dummy(self) -> ReleaseTable:
        """Answer the same question from made-up rows that fit the schema, to see what an answer looks like. Free."""
        path = server_path("datasets", self._dataset, "dummy.release")
        return read_table(self._link.body("POST", path, said=self._said))

    def release(
        self, *, idempotency_key: str | None = None, timeout: float | None = None, on_progress: Waiting | None = None
    ) -> ReleaseTable:
        """Pay, wait and return the answer; or return the one that was stored under the key, for free.

        A connection that is lost, and a server that is started again, are waited for as long as `connect` was told:
        under its key it is paid once. If that fails, release the same plan again.

        Args:
            idempotency_key: The key to pay under, instead of that of the plan.
            timeout: For how many seconds to wait; the release goes on after them.
            on_progress: A function of the state of the release and the seconds that are gone.

        Returns:
            The answer.

        Raises:
            BudgetExceeded: If the price does not fit into what is left. Nothing was paid.
            AnswerFailed: If what was paid for could not be answered.
            NotAnsweredYet: If the timeout is over.
            ServerUnavailable: If the server cannot be reached any more.
        """
        begun = time.monotonic()
        asked = self.submit(idempotency_key=idempotency_key)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - begun))
        return asked.wait(timeout=left, on_progress=on_progress)

    def submit(self, *, idempotency_key: str | None = None) -> RemoteRelease:
        """Ask for the release and return at once: it is queued, and can be waited for, here or elsewhere."""
        key = self.idempotency_key if idempotency_key is None else idempotency_key
        path, said = server_path("datasets", self._dataset, "releases"), {**self._said, "idempotency_key": key}
        return RemoteRelease(self._link, self._link.post(JobAnswer, path, said, asked=self.cost, wait=0))

    def __repr__(self) -> str:
        return str(read_price(self._price))

    def _repr_html_(self) -> str:
        return read_price(self._price)._repr_html_()


@final
class RemoteRelease:
    """A release that was asked for: queued, running, done or failed."""

    __slots__ = ("_job", "_link")

    def __init__(self, link: HttpConnection, job: JobAnswer) -> None:
        self._link, self._job = link, job

    @property
    def id(self) -> str:
        """Its id, which nobody can guess; `RemoteServer.release` finds it again."""
        return plain_text(self._job.id)

    @property
    def dataset(self) -> str:
        """The data set that was asked."""
        return self._job.dataset

    @property
    def who(self) -> str:
        """Who asked."""
        return plain_text(self._job.who)

    @property
    def text(self) -> str:
        """The question."""
        return self._job.sql

    @property
    def cost(self) -> str:
        """What it spends."""
        return plain_text(self._job.cost)

    @property
    def state(self) -> str:
        """How far it was when it was last asked for: queued, running, done or failed."""
        return plain_text(self._job.state)

    @property
    def is_over(self) -> bool:
        """Whether it is answered, or failed."""
        return self._job.state in ("done", "failed")

    def refresh(self, *, wait: float = 0) -> RemoteRelease:
        """Ask how far it is, and wait so many seconds for its end; it is the same release afterwards."""
        self._job = self._link.get(JobAnswer, server_path("releases", self._job.id), wait=wait)
        return self

    def wait(self, *, timeout: float | None = None, on_progress: Waiting | None = None) -> ReleaseTable:
        """Wait for the answer; `on_progress` hears the state and the seconds that are gone.

        It hears nothing of how much is done: that would follow from the rows.
        """
        begun = time.monotonic()
        while not self.is_over:
            gone = time.monotonic() - begun
            if on_progress is not None:
                on_progress(self.state, gone)
            left = _LONGEST_WAIT if timeout is None else min(_LONGEST_WAIT, timeout - gone)
            if left <= 0:
                raise NotAnsweredYet(self)
            asked = time.monotonic()
            self.refresh(wait=min(left, 1.0) if on_progress is not None else left)
            if not self.is_over and time.monotonic() - asked < min(left, _PAUSE):
                time.sleep(min(left, _PAUSE))  # The server waits for a few releases of an account at a time.
        return self.answer()

    def answer(self) -> ReleaseTable:
        """Return the answer, exactly as it is stored, or raise why there is none."""
        problem = self._job.problem
        if problem is not None:
            raise problem_error(problem, problem.status, self.cost)
        if not self.is_over:
            raise NotAnsweredYet(self)
        return read_table(self._link.body("GET", server_path("releases", self._job.id, "answer.release")))

    def __repr__(self) -> str:
        return printable(f"RemoteRelease({self.id}; {self.dataset}, {self.cost}, {self.state})")


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
