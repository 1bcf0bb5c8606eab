"""What is told of a ledger."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, TextTable

if TYPE_CHECKING:
    from discreet.ledger import Entry, Ledger, ReadClaim

__all__ = ["ClaimedRead", "Claims", "Exported", "History", "Recorded", "VerifiedLedger"]

_LONGEST = 70  # Characters of a purpose, for people.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedLedger:
    """A record that was read from its beginning to its end, and in which everything is right."""

    dataset: str
    entries: int
    charges: int
    head: str  # the hash of the last entry: whoever notes it elsewhere can tell later that nothing was taken back

    @classmethod
    def of(cls, ledger: Ledger) -> VerifiedLedger:
        """Describe a record that was verified."""
        entries = ledger.history()
        dataset, charges = ledger.account.dataset, sum(entry.kind == "charge" for entry in entries)
        return cls(dataset=dataset, entries=len(entries), charges=charges, head=entries[-1].hash)

    def blocks(self) -> Iterator[Block]:
        yield f"{self.dataset}: verified, {self.entries:,} entries of which {self.charges:,} are charges"
        yield f"the last one is {self.head}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One entry: what is public of it."""

    index: int
    time: str  # ISO 8601, UTC
    kind: str
    principal: str
    project: str
    purpose: str
    hash: str
    event: dict[str, Any] | None  # what was charged

    @classmethod
    def of(cls, entry: Entry) -> Recorded:
        """Read an entry."""
        said = entry.content
        return cls(
            index=entry.index,
            time=datetime.fromtimestamp(entry.time // 1_000_000, UTC).isoformat(),
            kind=entry.kind,
            principal=said.get("principal", ""),
            project=said.get("project", ""),
            purpose=said.get("purpose") or said.get("reason", ""),
            hash=entry.hash,
            event=said.get("event"),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Every entry of a data set."""

    dataset: str
    entries: list[Recorded]

    @classmethod
    def of(cls, ledger: Ledger) -> History:
        """Read a ledger."""
        return cls(dataset=ledger.account.dataset, entries=[Recorded.of(entry) for entry in ledger.history()])

    def blocks(self) -> Iterator[Block]:
        rows = [(str(e.index), e.time, e.kind, e.principal, _short(e.purpose)) for e in self.entries]
        yield TextTable(head=("", "time", "entry", "who", "what for"), rows=rows, right=frozenset({0}))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRead:
    """One read without an answer: what is public of it."""

    charge: int
    dataset: str
    principal: str
    until: str  # ISO 8601, UTC: when its time is over
    state: str  # "may be answered", "failed", or "failed, looked at": it counts no more
    counts: bool

    @classmethod
    def of(cls, claim: ReadClaim) -> ClaimedRead:
        """Read a claim."""
        failed = "failed" if claim.counts else "failed, looked at"
        return cls(
            charge=claim.charge.id,
            dataset=claim.dataset,
            principal=claim.principal,
            until=datetime.fromtimestamp(claim.until // 1_000_000, UTC).isoformat(),
            state="may be answered" if claim.is_live(time.time_ns() // 1000) else failed,
            counts=claim.counts,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Every read that was begun and has no answer."""

    claims: list[ClaimedRead]
    most: int  # that somebody may have on a data set before nothing more is read for them

    @classmethod
    def of(cls, claims: Iterable[ReadClaim]) -> Claims:
        """List claims."""
        from discreet.ledger.claims import MOST_UNANSWERED

        return cls(claims=[ClaimedRead.of(claim) for claim in claims], most=MOST_UNANSWERED)

    def blocks(self) -> Iterator[Block]:
        if not self.claims:
            yield "every read that was begun has its answer"
            return
        rows = [(str(one.charge), one.dataset, one.principal, one.until, one.state) for one in self.claims]
        yield TextTable(head=("charge", "data set", "who", "until", "state"), rows=rows, right=frozenset({0}))
        yield f"at {self.most} that count, nothing more is read for whoever asked: see ledger release, ledger reopen"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A record that was written out."""

    file: str
    entries: int
    head: str

    @classmethod
    def of(cls, ledger: Ledger, file: Path) -> Exported:
        """Describe an export."""
        entries = ledger.history()
        return cls(file=str(file), entries=len(entries), head=entries[-1].hash)

    def blocks(self) -> Iterator[Block]:
        yield f"{self.file}: {self.entries:,} entries"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
