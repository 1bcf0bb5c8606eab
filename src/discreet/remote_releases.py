"""Releases of a server, from their price to their answer: questions, and work that makes files."""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, final

from discreet.errors import DiscreetError, InvalidParameter
from discreet.formatting import printable
from discreet.http_client import HttpConnection, WrongAnswer, plain_text, problem_error, server_path
from discreet.query.plan.explain import Explanation
from discreet.query.release_table import ReleaseTable
from discreet.server_answers import JobAnswer, MadeUpAnswer, PriceAnswer, read_price, read_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NotAnsweredYet", "RemoteFiles", "RemotePlan", "RemoteRelease", "RemoteWork", "Waiting"]

Waiting: TypeAlias = Callable[[str, float], None]
"""What is told while a release is waited for: its state, and the seconds that are gone."""

_LONGEST_WAIT = 30.0  # seconds that one request waits for an answer
_PAUSE = 0.5  # where the server does not wait
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


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


# --- what has a price ---


class _RemotePriced:
    """What is asked with its price; everything in it follows from public facts."""

    __slots__ = ("_link", "_place", "_price", "_said", "idempotency_key")

    def __init__(
        self, link: HttpConnection, place: tuple[str, ...], said: Mapping[str, Any], price: PriceAnswer, key: str
    ) -> None:
        self._link, self._place, self._said, self._price = link, place, MappingProxyType(dict(said)), price
        self.idempotency_key = key

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
        return self._link.post(PriceAnswer, server_path(*self._place, "estimate"), self._said)

    def explain(self) -> Explanation:
        """Say who is protected, how it will be answered, the expected ±, the price and what is left. Free."""
        return read_price(self.priced())

    def submit(self, *, idempotency_key: str | None = None) -> RemoteRelease:
        """Ask for the release and return at once: it is queued, and can be waited for, here or elsewhere."""
        key = self.idempotency_key if idempotency_key is None else idempotency_key
        path, said = server_path(*self._place, "releases"), {**self._said, "idempotency_key": key}
        return RemoteRelease(self._link, self._link.post(JobAnswer, path, said, asked=self.cost, wait=0))

    def _finished(self, key: str | None, timeout: float | None, on_progress: Waiting | None) -> RemoteRelease:
        begun = time.monotonic()
        asked = self.submit(idempotency_key=key)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - begun))
        return asked.finish(timeout=left, on_progress=on_progress)

    def __repr__(self) -> str:
        return str(read_price(self._price))

    def _repr_html_(self) -> str:
        return read_price(self._price)._repr_html_()


@final
class RemotePlan(_RemotePriced):
    """A question with its price, as `Plan` is one of a session; `RemoteDataset.sql` makes it."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The question as it was asked."""
        return str(self._said["sql"])

    def dummy(self) -> ReleaseTable:
        """Answer the same question from made-up rows that fit the schema, to see what an answer looks like. Free."""
        return read_table(self._link.body("POST", server_path(*self._place, "dummy.release"), said=self._said))

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
        return self._finished(idempotency_key, timeout, on_progress).answer()


@final
class RemoteWork(_RemotePriced):
    """Work that makes files, with its price: a period of a plan, a profile, synthetic rows or a model."""

    __slots__ = ()

    def dummy(self) -> RemoteFiles:
        """Do the same work on made-up rows. Free."""
        found = self._link.post(MadeUpAnswer, server_path(*self._place, "dummy"), self._said)
        try:
            held = {name: base64.b64decode(text, validate=True) for name, text in found.files.items()}
        except (ValueError, binascii.Error):
            raise WrongAnswer("the server sent a file that is none") from None
        return RemoteFiles(found.told, held.keys(), held.__getitem__)

    def release(
        self, *, idempotency_key: str | None = None, timeout: float | None = None, on_progress: Waiting | None = None
    ) -> RemoteFiles:
        """Pay, wait and return what was made; or what was stored under the key, for free. See `RemotePlan.release`."""
        return self._finished(idempotency_key, timeout, on_progress).files()


@final
class RemoteFiles:
    """What came of work: a few facts, `told`, and files by `names`. All of it was released, or made up."""

    __slots__ = ("_fetch", "names", "told")

    def __init__(self, told: Mapping[str, Any], names: Any, fetch: Callable[[str], bytes]) -> None:
        self.told, self.names, self._fetch = MappingProxyType(dict(told)), tuple(sorted(names)), fetch

    def read(self, name: str) -> bytes:
        """Return a file."""
        if name not in self.names:
            raise InvalidParameter(f"there is no such file; there are {', '.join(map(printable, self.names))}")
        return self._fetch(name)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write all files into a folder; none that is there is written over."""
        if not all(map(_FILE.fullmatch, self.names)):
            raise WrongAnswer("the server names a file as none can be named here")
        found = {Path(folder) / name: self.read(name) for name in self.names}
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, content in found.items():
            with path.open("xb") as file:
                file.write(content)
        return tuple(found)

    def to_arrow(self) -> pa.Table:
        """Return synthetic rows as an Arrow table."""
        import pyarrow as pa
        from pyarrow import parquet

        content = self.read("synthetic.parquet")
        try:
            return parquet.read_table(pa.BufferReader(content))
        except (pa.ArrowException, OSError, ValueError):
            raise WrongAnswer("the server sent rows that are none") from None

    def __repr__(self) -> str:
        return f"RemoteFiles({', '.join(map(printable, self.names))})"


# --- what was asked for ---


@final
class RemoteRelease:
    """A release that was asked for: it may await an approval, is queued, running, done or failed."""

    __slots__ = ("_job", "_link")

    def __init__(self, link: HttpConnection, job: JobAnswer) -> None:
        self._link, self._job = link, job

    @property
    def id(self) -> str:
        """Its id, which nobody can guess; `RemoteServer.release` finds it again."""
        return plain_text(self._job.id)

    @property
    def kind(self) -> str:
        """What was asked for: a question, a plan, a profile, synth or train."""
        return plain_text(self._job.kind)

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
        """How far it was when it was last asked for: awaiting an approval, queued, running, done or failed."""
        return plain_text(self._job.state)

    @property
    def is_over(self) -> bool:
        """Whether it is answered, or failed."""
        return self._job.state in ("done", "failed")

    def refresh(self, *, wait: float = 0) -> RemoteRelease:
        """Ask how far it is, and wait so many seconds for its end; it is the same release afterwards."""
        self._job = self._link.get(JobAnswer, server_path("releases", self._job.id), wait=wait)
        return self

    def finish(self, *, timeout: float | None = None, on_progress: Waiting | None = None) -> RemoteRelease:
        """Wait for its end; `on_progress` hears the state and the seconds that are gone.

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
        return self

    def wait(self, *, timeout: float | None = None, on_progress: Waiting | None = None) -> ReleaseTable:
        """Wait for the answer to a question, and return it."""
        return self.finish(timeout=timeout, on_progress=on_progress).answer()

    def answer(self) -> ReleaseTable:
        """Return the answer to a question, exactly as it is stored, or raise why there is none."""
        self._check_done()
        if self._job.kind != "question":
            raise InvalidParameter("this was no question: `files` has what came of it")
        return read_table(self._link.body("GET", server_path("releases", self._job.id, "answer.release")))

    def files(self) -> RemoteFiles:
        """Return what came of work, or raise why there is nothing."""
        self._check_done()
        work = self._job.work
        if work is None:
            raise InvalidParameter("this was a question: `answer` has its table")
        number = self._job.id

        def fetch(name: str) -> bytes:
            return self._link.body("GET", server_path("releases", number, "files", name))

        return RemoteFiles(work.told, work.files, fetch)

    def _check_done(self) -> None:
        problem = self._job.problem
        if problem is not None:
            raise problem_error(problem, problem.status, self.cost)
        if not self.is_over:
            raise NotAnsweredYet(self)

    def __repr__(self) -> str:
        return printable(f"RemoteRelease({self.id}; {self.dataset}, {self.cost}, {self.state})")
