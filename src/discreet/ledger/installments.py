"""Several answers under one charge: a series that was paid for whole before its first answer.

A charge says how many answers it pays for. They are drawn in order, each once, and each is an entry of the chain. The
body of an answer is kept beside the chain under the index of that entry, which a key of our own leads to.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import InvalidParameter, LedgerDamaged, Refused
from discreet.exact import integer, positive_integer
from discreet.ledger.budget import digest
from discreet.ledger.charge_record import Entry
from discreet.ledger.charges_and_claims import append
from discreet.ledger.store import LedgerRows

__all__ = [
    "RESERVED",
    "add_part",
    "check_known",
    "check_single",
    "check_user_key",
    "is_known",
    "part_before",
    "part_key",
    "parts_of",
    "read_part_number",
    "read_parts_paid",
]

RESERVED = "discreet:"  # Keys that begin so are ours.
_MOST = 1_000_000
_RESTORED = '"kind":"restored"'


def part_key(charge: int, number: int) -> str:
    """Name an answer of a series."""
    return f"{RESERVED}part:{charge}:{number}"


def check_user_key(key: str | None) -> None:
    """Refuse a key that could be taken for one of ours."""
    if key is not None and key.startswith(RESERVED):
        raise InvalidParameter(f"an idempotency key must not begin with {RESERVED!r}: choose another one")


def read_parts_paid(parts: int) -> int:
    """Read how many answers a charge pays for."""
    if positive_integer(parts, name="parts") > _MOST:
        raise InvalidParameter(f"a charge pays for at most {_MOST:,} answers")
    return parts


def check_single(entry: Entry) -> None:
    """Refuse to answer a series at once."""
    if "parts" in entry.content:
        raise InvalidParameter("this charge pays for several answers: store them one by one with store_part")


def parts_of(rows: LedgerRows, entry: Entry) -> tuple[str, ...]:
    """Return the answers that were stored under a charge, in order."""
    found: list[str] = []
    while (index := rows.by_key(entry.dataset, part_key(entry.index, len(found)))) is not None:
        text = rows.answer(index)
        if text is None:
            raise LedgerDamaged("a part of an answer is on record without the answer: restore the ledger from a copy")
        found.append(text)
    return tuple(found)


def part_before(rows: LedgerRows, entry: Entry, number: int) -> str | None:
    """Return one answer of a series; None if it is the next one, and refuse if it is not."""
    index = rows.by_key(entry.dataset, part_key(entry.index, number))
    text = None if index is None else rows.answer(index)
    if text is None:
        _check_next(rows, entry, number)
    return text


def add_part(rows: LedgerRows, entry: Entry, number: int, draw: Callable[[], str]) -> str:
    """Return one answer of a series; draw and store it if it is the next one."""
    text = part_before(rows, entry, number)
    if text is not None:
        return text
    text = draw()
    if not isinstance(text, str):
        raise InvalidParameter("draw must return the answer as text")
    content = {"charge": entry.index, "part": number, "answer": digest(text)}
    written = append(rows, entry.dataset, "part", content)
    rows.set_answer(written.index, text)
    rows.remember(written.index, entry.dataset, key=part_key(entry.index, number), question=None)
    claim = rows.claim(entry.index)
    if claim is not None and claim.part is not None and claim.part <= number:
        rows.end_claim(entry.index)  # This was the last answer that followed from the read.
    return text


def read_part_number(entry: Entry, number: int) -> None:
    """Refuse a number that is none of the answers of a series."""
    paid = entry.content.get("parts", 0)
    if not 0 <= integer(number, name="number") < paid:
        raise InvalidParameter(f"this charge pays for {paid} answers in a series, counted from 0")


def _check_next(rows: LedgerRows, entry: Entry, number: int) -> None:
    read_part_number(entry, number)
    if number and rows.by_key(entry.dataset, part_key(entry.index, number - 1)) is None:
        raise InvalidParameter("the answers of a series are drawn in order: an earlier one is missing")
    check_known(rows, entry)


def check_known(rows: LedgerRows, entry: Entry) -> None:
    """Refuse to draw for a charge that a restored copy has: what the copy does not have may be its answer."""
    if not is_known(rows, entry):
        raise Refused(
            "this was charged before the ledger was restored from a copy",
            reason="answers that the copy does not have may have been drawn; drawing them again was never paid for",
            way_out="ask under a new idempotency key, or begin a new series under a new name: with a new charge",
        )


def is_known(rows: LedgerRows, entry: Entry) -> bool:
    """Tell whether the ledger knows all that became of a charge: no copy was restored since.

    It looks at what came after the charge; that is little, where a charge is answered at once.
    """
    restored = rows.marked(_RESTORED, after=entry.index)
    return not any(Entry.read(body, "").dataset == entry.dataset for body, _ in restored)
