"""One line of the record: public facts, hashed together with the line before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, final

from discreet.ledger.canonical import canonical, digest
from discreet.ledger.lease import may_run
from discreet.privacy.events import Event, from_json

__all__ = ["BEGINNING", "Charge", "Entry", "Head", "ReadClaim", "StoredAnswer", "written"]


@final
@dataclass(frozen=True, slots=True)
class Head:
    """The end of the chain: how many entries there are, and the hash of the last one."""

    index: int
    hash: str
    time: int = field(default=0, compare=False)  # of the last entry; the anchor does not keep it


BEGINNING = Head(0, "0" * 64)


@final
@dataclass(frozen=True, slots=True)
class Charge:
    """A charge that is durable: it was written, forced to disk and anchored before this value existed."""

    id: int  # the index of its entry
    index: int
    hash: str


@final
@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was released under a charge. Giving it out again costs nothing."""

    charge: Charge
    text: str


@final
@dataclass(frozen=True, slots=True)
class ReadClaim:
    """A read that was begun under a charge and has no answer yet: the only one, and the last one if it has none.

    It is durable before the first row is read. Nobody else reads under that charge until there is an answer, or until
    whoever holds the data releases the claim.
    """

    charge: Charge
    index: int  # of its own entry
    dataset: str
    principal: str  # for whom it is read
    until: int  # microseconds since 1970: from then on it counts as failed, whatever became of the process
    process: str  # that reads: once it is gone no answer will come
    part: int | None = None  # of a series: the last answer that follows from this read
    is_failed: bool = False  # the process lived to say so
    counts: bool = True  # towards the limit of failures; not any more once whoever holds the data has looked

    def is_live(self, moment: int) -> bool:
        """Tell whether an answer may still come."""
        return not self.is_failed and moment < self.until and may_run(self.process)


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it was read back."""

    index: int
    hash: str
    previous: str
    # "open", "charge", "answer", "part", "bundle", "raise", "quotas", "format" or "restored"; and of claims
    # "reading", "read", "failed", "released" or "reopened"
    kind: str
    dataset: str
    time: int  # microseconds since 1970, never before the time of the entry before
    content: Mapping[str, Any]

    @property
    def event(self) -> Event | None:
        """The event that was charged; None for another kind of entry."""
        return from_json(json.dumps(self.content["event"])) if self.kind == "charge" else None

    def describe(self) -> str:
        """Return the entry on one line."""
        moment = datetime.fromtimestamp(self.time / 1e6, UTC).isoformat(timespec="seconds")
        return f"{self.index} {moment} {self.kind} {self.dataset} {self.content.get('purpose', '')}".rstrip()

    @classmethod
    def read(cls, body: str, written_hash: str) -> Entry:
        """Read the text of an entry."""
        packed = json.loads(body)
        fixed = {name: packed.pop(name) for name in ("index", "previous", "kind", "dataset", "time")}
        return cls(hash=written_hash, content=packed, **fixed)


def written(head: Head, *, kind: str, dataset: str, time: int, content: Mapping[str, Any]) -> tuple[Head, str]:
    """Return the head after an entry, and the text of the entry: canonical JSON with the hash of the one before."""
    fixed = {"index": head.index + 1, "previous": head.hash, "kind": kind, "dataset": dataset, "time": time}
    body = canonical(fixed | dict(content))
    return Head(head.index + 1, digest(body), time), body
