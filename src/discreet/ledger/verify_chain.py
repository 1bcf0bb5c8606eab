"""Verify the whole hash chain, and add everything up anew: it is whole, or `LedgerDamaged`.

A checkpoint is an entry with the sums of all entries before it. It is written by somebody who has added them up from
the chain, never from what is kept beside it, and its hash goes into the anchor. An opening hashes the whole chain all
the same, and follows all declarations, keys, claims and answers; only prices that stand before the anchored checkpoint
are not added up again. A checkpoint that is not in the anchor proves nothing: its sums are compared like any others.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final, final

from discreet.errors import LedgerDamaged
from discreet.ledger.accounts import LIFETIME, Book, carried_over
from discreet.ledger.budget import EventPrice, Sums, as_written, canonical, digest
from discreet.ledger.charge_record import BEGINNING, Charge, Entry, Head, ReadClaim, question_of
from discreet.ledger.charges_and_claims import append
from discreet.ledger.installments import part_key
from discreet.ledger.store import LedgerRows

__all__ = ["CHECKPOINT_EVERY", "Replay", "add_checkpoint", "verify", "verify_opening"]

CHECKPOINT_EVERY: Final = 20_000  # entries; so many are added up again by an opening
_CHECKPOINT_SCOPE: Final = (
    4  # entries for each sum, at least: else checkpoints would be longer than what they stand for
)
_PREVIOUS = b'"previous":"'
_DATASET = re.compile(rb'\{"dataset":"(?:[^"\\]|\\.)*"')  # how an entry of a charge begins


@as_written()
def verify(rows: LedgerRows) -> None:
    """Raise `LedgerDamaged` unless the chain is whole and everything kept beside it follows from it."""
    replayed = Replay()
    replayed.follow(rows)
    replayed.compare(rows)


@as_written()
def verify_opening(rows: LedgerRows) -> Replay:
    """Verify as `verify` does, but for the prices before the anchored checkpoint.

    The whole chain up to there is hashed, and ends in what is anchored. So its entries are the ones that were added up
    when that was anchored, and those sums are theirs.
    """
    replayed, mark = Replay(), rows.checkpoint()
    if mark is not None:
        sums = _anchored_sums(rows, mark)
        replayed.hash_before(rows, mark.index)
        replayed.sums.take(sums)
    replayed.follow(rows)
    replayed.compare(rows)
    newest = replayed.checkpoint
    if newest is not None and newest != mark:  # Written by somebody whose anchor it is in; now it is in ours, too.
        rows.anchor_checkpoint(newest)
    return replayed


@as_written()
def add_checkpoint(rows: LedgerRows, verified: Replay | None = None) -> None:
    """Add up what came since the anchored checkpoint, or since what was verified, and write it down as the next one.

    It is added up from the chain alone. What is kept beside the chain could have been changed since it was verified,
    and a checkpoint would make that last.
    """
    if (verified is not None and not verified.is_due) or not rows.accounts():
        return  # It is not due; or the ledger was moved meanwhile, and nothing is added to it.
    sums, last, mark = _SumsOfEntries(), BEGINNING, rows.checkpoint()
    if verified is not None:
        sums, last = verified.sums, verified.last
    elif mark is not None:
        sums.take(_anchored_sums(rows, mark))
        last = mark
    for head, body in rows.entries(after=last.index):
        sums.add(_linked(last, head, body))
        last = head
    texts, since = sums.texts(), last.index - (0 if mark is None else mark.index)
    if last != rows.head() or texts != rows.all_sums():
        raise LedgerDamaged("the sums are not the sums of the entries")
    if since >= _CHECKPOINT_SCOPE * len(texts):
        written = append(rows, "", "checkpoint", {"sums": sums.packed()})
        rows.anchor_checkpoint(Head(written.index, written.hash))


def _anchored_sums(rows: LedgerRows, mark: Head) -> list[list[str]]:
    """Return the sums that the anchored checkpoint says, if the chain has it as it was anchored."""
    body, written_hash = rows.entry(mark.index) or ("", "")
    if written_hash != mark.hash or digest(body) != mark.hash:
        raise LedgerDamaged("this ledger does not contain its anchored checkpoint: it is another one, or was changed")
    entry = Entry.read(body, written_hash)
    if entry.kind != "checkpoint":
        raise LedgerDamaged("what is anchored as a checkpoint is another entry")
    return entry.content["sums"]  # type: ignore[no-any-return]


def _linked(last: Head, head: Head, body: str) -> Entry:
    """Return an entry that follows the one before, in the one form of an entry."""
    if head.index != last.index + 1 or digest(body) != head.hash:
        raise LedgerDamaged(f"entry {last.index + 1} is missing or was changed")
    entry = Entry.read(body, head.hash)
    if (entry.index, entry.previous, entry.time) != (head.index, last.hash, head.time):
        raise LedgerDamaged(f"entry {head.index} does not follow the one before")
    if canonical(json.loads(body)) != body:  # So that what is looked for in its bytes is what is read from it.
        raise LedgerDamaged(f"entry {head.index} is not written as entries are")
    return entry


@final
class _SumsOfEntries:
    """What was spent by the prices of entries, and by nothing else."""

    def __init__(self) -> None:
        self._prices: dict[tuple[str, str], Counter[str]] = {}  # How often each price was paid, by data set and scope.
        self._before: dict[tuple[str, str], Sums] = {}  # What counts as spent before those.

    def add(self, entry: Entry) -> None:
        """Add what an entry spends."""
        match entry.kind:
            case "charge":
                for scope, packed in entry.content["prices"].items():
                    self._prices.setdefault((entry.dataset, scope), Counter())[canonical(packed)] += 1
            case "open" | "raise" | "quotas" if "sums" in entry.content:
                self._carry_over(entry)
            case "restored":
                self._restore(entry)
            case "checkpoint":
                if self.packed() != entry.content["sums"]:
                    raise LedgerDamaged(f"the sums of the checkpoint {entry.index} are not those of the entries")

    def _restore(self, entry: Entry) -> None:
        """From here on the whole budget counts as spent."""
        scopes = Book.read(entry.dataset, canonical(entry.content["declared"])).nested_scopes()
        names = [LIFETIME, *(scope.name for scope in scopes)]
        for name, text in zip(names, [entry.content["sums"], *entry.content.get("nested_sums", ())], strict=True):
            self._start((entry.dataset, name), Sums.from_text(text))

    def _carry_over(self, entry: Entry) -> None:
        """Go on with the sums of a pure account that got its first delta: no more and no less than it had spent."""
        name = (entry.dataset, LIFETIME)
        book = Book.read(entry.dataset, canonical(entry.content["declared"]))
        total = carried_over(self._sum(name), book) if name in self._prices else None
        if total is None or total.text() != entry.content["sums"] or book.rule.shares.carried != total.epsilon:
            raise LedgerDamaged(f"entry {entry.index} carries over something else than was spent")
        self._start(name, total)

    def _start(self, name: tuple[str, str], total: Sums) -> None:
        self._before[name], self._prices[name] = total, Counter()

    def _sum(self, name: tuple[str, str]) -> Sums:
        """Add up one scope, equal prices at once; they are then not added up again."""
        paid = [(EventPrice.unpacked(json.loads(text)), times) for text, times in self._prices[name].items()]
        total = self._before.get(name) or Sums.nothing(len(paid[0][0].kept))
        for price, times in paid:
            total = total.plus(price, times)
        self._start(name, total)
        return total

    def totals(self) -> dict[tuple[str, str], Sums]:
        """Return the sums of every scope."""
        return {name: self._sum(name) for name in list(self._prices)}

    def texts(self) -> dict[tuple[str, str], str]:
        """Return them as a store keeps them."""
        return {name: total.text() for name, total in self.totals().items()}

    def packed(self) -> list[list[str]]:
        """Return them as a checkpoint has them."""
        return [[*name, text] for name, text in sorted(self.texts().items())]

    def take(self, packed: list[list[str]]) -> None:
        """Go on from the sums of a checkpoint, in place of what was added up before."""
        self._prices.clear()
        self._before.clear()
        for dataset, scope, text in packed:
            self._start((dataset, scope), Sums.from_text(text))


@final
class Replay:
    """What must be there if these entries were written and nothing else."""

    def __init__(self) -> None:
        self.last = BEGINNING
        self.sums = _SumsOfEntries()
        self.checkpoint: Head | None = None  # the newest, whose sums were compared with those of the entries
        self._declared: dict[str, str] = {}
        self._answers: dict[int, str] = {}
        self._charges: dict[int, str] = {}
        self._hashes: dict[int, str] = {}  # of charges
        self._series: dict[int, tuple[int, int]] = {}  # How many answers a charge pays for, and how many there are.
        self._remembered: dict[int, tuple[str, str | None, str | None]] = {}
        self._claims: dict[int, ReadClaim] = {}  # without an answer, by their charge
        self._restored: set[str] = set()
        self._names: dict[bytes, str] = {}  # of data sets, as entries have them
        self._time = 0
        self._moved: dict[str, str] | None = None  # what was declared when it was moved

    @property
    def is_due(self) -> bool:
        """Whether so much came since the newest checkpoint that the next one is due."""
        return self.last.index - (0 if self.checkpoint is None else self.checkpoint.index) >= CHECKPOINT_EVERY

    def follow(self, rows: LedgerRows) -> None:
        """Add every entry after the last, with what it spends."""
        for head, body in rows.entries(after=self.last.index):
            entry = _linked(self.last, head, body)
            self.add(entry)
            self.sums.add(entry)
            if entry.kind == "checkpoint":
                self.checkpoint = head
            self.last = head

    def hash_before(self, rows: LedgerRows, index: int) -> None:
        """Hash every entry before an anchored one, and add it but for what it spends.

        Each was read as a whole before that was anchored, and then had the one form of an entry, in which names are
        sorted. So a charge with neither key nor question nor parts is known by what stands beside its hash of the one
        before, and need not be read as a whole again.
        """
        last, previous, moment = 0, BEGINNING.hash.encode(), 0
        for number, written_hash, moment, body in rows.links(before=index):
            last += 1
            if number != last or sha256(body).hexdigest() != written_hash:
                raise LedgerDamaged(f"entry {last} is missing or was changed")
            dataset = None
            if b'"index":%d,"kind":"charge","previous":"%b","prices":' % (last, previous) in body:
                dataset = self._dataset(body)
            if dataset is None or not body.endswith(f'"time":{moment}}}'.encode()) or body.count(_PREVIOUS) != 1:
                self._add_hashed(Head(last - 1, previous.decode()), Head(last, written_hash, moment), body)
            else:
                self._note_charge(last, dataset, written_hash)
            previous = written_hash.encode()
        self.last = Head(last, previous.decode(), moment)

    def _dataset(self, body: bytes) -> str | None:
        """Return the data set of an entry that begins with it and goes on with an event."""
        start = body[: body.find(b',"event":')]
        if start not in self._names and _DATASET.fullmatch(start):
            self._names[start] = json.loads(start + b"}")["dataset"]
        return self._names.get(start)

    def _add_hashed(self, last: Head, head: Head, body: bytes) -> None:
        """Read an entry as a whole."""
        entry = Entry.read(body.decode(), head.hash)
        if (entry.index, entry.previous, entry.time) != (head.index, last.hash, head.time):
            raise LedgerDamaged(f"entry {head.index} does not follow the one before")
        self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add one entry, but for what it spends."""
        if entry.time < self._time:
            raise LedgerDamaged(f"entry {entry.index} is older than the one before")
        self._time = entry.time
        if self._moved is not None and entry.kind != "arrived":
            raise LedgerDamaged(f"entry {entry.index} was written after this ledger was moved")
        match entry.kind:
            case "charge":
                self._charge(entry)
            case "answer":
                self._answer(entry)
            case "part":
                self._part(entry)
            case "bundle":
                if self._charges.get(entry.content["charge"]) != entry.dataset:
                    raise LedgerDamaged(f"entry {entry.index} is about the bundle of no charge of its data set")
            case "reading":
                self._reading(entry)
            case "failed" | "read" | "released" | "reopened":
                self._claim_ended(entry)
            case "open" | "raise" | "quotas" | "restored":
                self._declared[entry.dataset] = canonical(entry.content["declared"])
                if entry.kind == "restored":
                    self._restored.add(entry.dataset)
            case "moved" | "arrived":
                self._move(entry)
            case "format" | "checkpoint":
                pass
            case _:
                raise LedgerDamaged(f"entry {entry.index} is of a kind that this release does not know")

    def _move(self, entry: Entry) -> None:
        """A ledger that was moved declares nothing; where it arrived it declares what it did."""
        if entry.kind == "moved":
            self._moved, self._declared = self._declared, {}
        elif self._moved is None:
            raise LedgerDamaged(f"entry {entry.index} arrived from nowhere")
        else:
            self._declared, self._moved = self._moved, None

    def _note_charge(self, index: int, dataset: str, written_hash: str) -> None:
        if dataset not in self._declared:
            raise LedgerDamaged(f"entry {index} charges a data set that was not opened")
        self._charges[index], self._hashes[index] = dataset, written_hash

    def _charge(self, entry: Entry) -> None:
        self._note_charge(entry.index, entry.dataset, entry.hash)
        if "parts" in entry.content:
            self._series[entry.index] = (entry.content["parts"], 0)
        key, question = entry.content.get("key"), question_of(entry.content)
        if key is not None or question is not None:
            self._remembered[entry.index] = (entry.dataset, key, question)
        book = Book.read(entry.dataset, self._declared[entry.dataset])
        units = {scope.name for scope in book.nested_scopes()}
        if units - entry.content["prices"].keys() or len(units) != len(entry.content.get("nested", ())):
            raise LedgerDamaged(f"entry {entry.index} does not charge every unit that its data set protects")

    def _answer(self, entry: Entry) -> None:
        charge = entry.content["charge"]
        if self._charges.get(charge) != entry.dataset or charge in self._answers or charge in self._series:
            raise LedgerDamaged(f"entry {entry.index} answers no charge of its data set, or one that has an answer")
        self._answers[charge] = entry.content["answer"]
        self._claims.pop(charge, None)

    def _part(self, entry: Entry) -> None:
        charge, number = entry.content["charge"], entry.content["part"]
        paid, drawn = self._series.get(charge, (0, 0))
        if self._charges.get(charge) != entry.dataset or number != drawn or drawn >= paid:
            raise LedgerDamaged(f"entry {entry.index} is not the next answer of a series of its data set")
        self._series[charge] = (paid, drawn + 1)
        self._answers[entry.index] = entry.content["answer"]
        claim = self._claims.get(charge)
        if claim is not None and claim.part is not None and claim.part <= number:
            del self._claims[charge]
        self._remembered[entry.index] = (entry.dataset, part_key(charge, number), None)

    def _reading(self, entry: Entry) -> None:
        said = entry.content
        charge, part = said["charge"], said.get("part")
        is_open = charge not in self._answers and (part is None) == (charge not in self._series)
        if self._charges.get(charge) != entry.dataset or charge in self._claims or not is_open:
            raise LedgerDamaged(f"entry {entry.index} claims no charge of its data set, or one that was read before")
        paid = Charge(charge, charge, self._hashes[charge])
        claim = ReadClaim(paid, entry.index, entry.dataset, said["principal"], said["until"], said["process"], part)
        self._claims[charge] = claim

    def _claim_ended(self, entry: Entry) -> None:
        """Follow what became of claims: failed, ended without an answer to keep, released, or no longer counted."""
        charges = entry.content["charges"] if entry.kind == "reopened" else [entry.content["charge"]]
        for charge in charges:
            claim = self._claims.get(charge)
            if claim is None or claim.dataset != entry.dataset:
                raise LedgerDamaged(f"entry {entry.index} is about a claim that is not there")
            if entry.kind == "failed":
                self._claims[charge] = replace(claim, is_failed=True)
            elif entry.kind == "reopened":
                self._claims[charge] = replace(claim, counts=False)
            else:
                del self._claims[charge]

    def compare(self, rows: LedgerRows) -> None:
        """Compare with what is kept beside the chain."""
        if rows.accounts() != self._declared:
            raise LedgerDamaged("what is declared is not what the entries say")
        sums = self.sums.totals()
        if rows.all_sums() != {name: total.text() for name, total in sums.items()}:
            raise LedgerDamaged("the sums are not the sums of the entries")
        if {charge: digest(text) for charge, text in rows.answers().items()} != self._answers:
            raise LedgerDamaged("the stored answers are not the ones that were given")
        if rows.remembered() != self._remembered:
            raise LedgerDamaged("the keys and questions are not the ones of the entries")
        if {claim.charge.id: claim for claim in rows.claims()} != self._claims:
            raise LedgerDamaged("the claims are not the ones of the entries")
        self._admitted(sums)

    def _admitted(self, sums: Mapping[tuple[str, str], Sums]) -> None:
        """No lifetime sum is above its budget, but for those that count as spent because a copy was restored."""
        for dataset in (self._moved or self._declared).keys() - self._restored:
            book, total = Book.read(dataset, (self._moved or self._declared)[dataset]), sums.get((dataset, LIFETIME))
            if total is not None and not book.rule.admits(total):
                raise LedgerDamaged("more was spent than the budget holds")
            for scope in book.nested_scopes():
                within = sums.get((dataset, scope.name))
                if (within is None) != (total is None) or (within is not None and not scope.rule.admits(within)):
                    raise LedgerDamaged(f"more was spent than {scope.text} holds, or nothing of it was charged")
