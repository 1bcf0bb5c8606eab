"""Verify the whole hash chain, and add everything up anew: it is whole, or `LedgerDamaged`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import final

from discreet.errors import LedgerDamaged
from discreet.ledger.accounts import LIFETIME, Book, carried_over
from discreet.ledger.budget import EventPrice, Sums, canonical, digest
from discreet.ledger.charge_record import BEGINNING, Charge, Entry, ReadClaim, question_of
from discreet.ledger.installments import part_key
from discreet.ledger.store import LedgerRows

__all__ = ["verify"]


def verify(rows: LedgerRows) -> None:
    """Raise `LedgerDamaged` unless the chain is whole and everything kept beside it follows from it."""
    replayed = _Replay()
    last = BEGINNING
    for head, body in rows.entries():
        if head.index != last.index + 1 or digest(body) != head.hash:
            raise LedgerDamaged(f"entry {last.index + 1} is missing or was changed")
        entry = Entry.read(body, head.hash)
        if (entry.index, entry.previous, entry.time) != (head.index, last.hash, head.time):
            raise LedgerDamaged(f"entry {head.index} does not follow the one before")
        replayed.add(entry)
        last = head
    replayed.compare(rows)


@final
class _Replay:
    """What must be there if these entries were written and nothing else."""

    def __init__(self) -> None:
        self._declared: dict[str, str] = {}
        self._prices: dict[tuple[str, str], Counter[str]] = {}  # How often each price was paid, by data set and scope.
        self._before: dict[tuple[str, str], Sums] = {}  # What counts as spent before those.
        self._answers: dict[int, str] = {}
        self._charges: dict[int, str] = {}
        self._hashes: dict[int, str] = {}  # of charges
        self._series: dict[int, tuple[int, int]] = {}  # How many answers a charge pays for, and how many there are.
        self._remembered: dict[int, tuple[str, str | None, str | None]] = {}
        self._claims: dict[int, ReadClaim] = {}  # without an answer, by their charge
        self._restored: set[str] = set()
        self._time = 0
        self._moved: dict[str, str] | None = None  # what was declared when it was moved

    def add(self, entry: Entry) -> None:
        """Add one entry."""
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
            case "open" | "raise" | "quotas":
                self._declared[entry.dataset] = canonical(entry.content["declared"])
                if "sums" in entry.content:
                    self._carry_over(entry)
            case "restored":
                self._declared[entry.dataset] = canonical(entry.content["declared"])
                self._before[entry.dataset, LIFETIME] = Sums.from_text(entry.content["sums"])
                self._prices[entry.dataset, LIFETIME] = Counter()
                book = Book.read(entry.dataset, self._declared[entry.dataset])
                for scope, text in zip(book.nested_scopes(), entry.content.get("nested_sums", ()), strict=True):
                    self._before[entry.dataset, scope.name] = Sums.from_text(text)
                    self._prices[entry.dataset, scope.name] = Counter()
                self._restored.add(entry.dataset)
            case "moved" | "arrived":
                self._move(entry)
            case "format":
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

    def _charge(self, entry: Entry) -> None:
        if entry.dataset not in self._declared:
            raise LedgerDamaged(f"entry {entry.index} charges a data set that was not opened")
        self._charges[entry.index], self._hashes[entry.index] = entry.dataset, entry.hash
        if "parts" in entry.content:
            self._series[entry.index] = (entry.content["parts"], 0)
        key, question = entry.content.get("key"), question_of(entry.content)
        if key is not None or question is not None:
            self._remembered[entry.index] = (entry.dataset, key, question)
        book = Book.read(entry.dataset, self._declared[entry.dataset])
        units = {scope.name for scope in book.nested_scopes()}
        if units - entry.content["prices"].keys() or len(units) != len(entry.content.get("nested", ())):
            raise LedgerDamaged(f"entry {entry.index} does not charge every unit that its data set protects")
        for scope, packed in entry.content["prices"].items():
            self._prices.setdefault((entry.dataset, scope), Counter())[canonical(packed)] += 1

    def _carry_over(self, entry: Entry) -> None:
        """Go on with the sums of a pure account that got its first delta: no more and no less than it had spent."""
        name = (entry.dataset, LIFETIME)
        book = Book.read(entry.dataset, self._declared[entry.dataset])
        total = carried_over(self._sums(name), book) if name in self._prices else None
        if total is None or total.text() != entry.content["sums"] or book.rule.shares.carried != total.epsilon:
            raise LedgerDamaged(f"entry {entry.index} carries over something else than was spent")
        self._before[name], self._prices[name] = total, Counter()

    def _sums(self, name: tuple[str, str]) -> Sums:
        """Add up one scope: equal prices at once."""
        paid = [(EventPrice.unpacked(json.loads(text)), times) for text, times in self._prices[name].items()]
        total = self._before.get(name) or Sums.nothing(len(paid[0][0].kept))
        for price, times in paid:
            total = total.plus(price, times)
        return total

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
        sums = {name: self._sums(name) for name in self._prices}
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
