"""Compare a bundle with the ledger: who paid, for what, when, and which numbers were stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from discreet.errors import InvalidParameter, LedgerDamaged, UnsupportedEvent
from discreet.exact import ratio
from discreet.ledger import Budget, Entry, LedgerView, left_after
from discreet.privacy import Relation, epsilon
from discreet.privacy.events import from_json
from discreet.release.bundle.exact_tables import EXACT, ExactTable
from discreet.release.bundle.manifest import digests_of
from discreet.release.bundle.stated_numbers import ROUNDING
from discreet.release.keys import release_key, running_key
from discreet.release.running.choosing import strategies
from discreet.release.running.measuring import read_day
from discreet.release.running.pricing import STEP

__all__ = ["compare_digests", "compare_with_ledger"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compare_with_ledger(manifest: dict[str, Any], tables: tuple[ExactTable, ...], book: LedgerView) -> Iterator[str]:
    """Tell every way in which a bundle is not what the ledger holds."""
    mark = manifest["ledger"]
    if mark is None:
        yield "this is a dummy: no ledger holds it"
        return
    entry = book.charge(mark["charge"]) if isinstance(mark["charge"], int) else None
    if entry is None:
        yield f"the ledger has no charge {mark['charge']}"
        return
    yield from _of_charge(entry, manifest)
    yield from _of_account(book, entry, manifest["guarantee"])
    yield from _of_left(book, entry, manifest)
    yield from _of_answer(book, entry, [table for table in tables if not table.series])
    for table in tables:
        if table.series:
            key = running_key(manifest["name"], table.name)
            yield from series_in_ledger(book, table, manifest["running"].get(table.name, {}), key)


def compare_digests(written: bytes, manifest: dict[str, Any], book: LedgerView) -> tuple[tuple[str, ...], str]:
    """Return how a bundle differs from those that were recorded under its charge, or why that is not known."""
    recorded = book.bundles(manifest["ledger"]["charge"])
    if not recorded:
        return (), "the ledger kept no digests when this was released: words and titles may have been changed since"
    try:
        ours = digests_of(written)
    except (KeyError, TypeError):
        return ("it was never recorded",), ""
    if ours in recorded:
        return (), ""
    last = recorded[-1]
    names = {
        "plan": "the plan is not the one that was run",
        "files": "its files are not those that were written",
        "version": "another version of the package is named than the one that wrote it",
        "signer": "another signer is named than the one that signed it",
    }
    differing = tuple(said for name, said in names.items() if ours[name] != last.get(name))
    return differing or ("its manifest is not the one that was written",), ""


def _of_charge(entry: Entry, manifest: dict[str, Any]) -> Iterator[str]:
    mark, guarantee = manifest["ledger"], manifest["guarantee"]
    if entry.dataset != mark["dataset"]:
        yield "the charge is of another data set"
    if entry.content.get("key") != release_key(manifest["name"], _label(manifest)):
        yield "the charge is of another release, or of another period"
    if entry.hash != mark["hash"]:
        yield "the charge has another hash"
    if _moment(entry.time) != _read_moment(mark["time"]):
        yield "the charge was made at another time"
    if entry.content["relation"] != guarantee.get("relation"):
        yield "it was charged under another relation"
    yield from of_price(entry, guarantee)


def _label(manifest: dict[str, Any]) -> Any:
    period = manifest["period"]
    return period.get("label") if isinstance(period, dict) else None


def of_price(entry: Entry, said: dict[str, Any]) -> Iterator[str]:
    """Compare event, ε and δ with what was charged."""
    if entry.content["event"] != said.get("event"):
        yield "another event was charged"
    if not _holds(entry, said):
        yield "ε and δ are not those of the event that was charged"


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _read_moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _holds(entry: Entry, guarantee: dict[str, Any]) -> bool:
    """Whether the event is as private as was said: what is proven now may be better than what was proven then."""
    try:
        event = from_json(json.dumps(entry.content["event"]))
        proven = epsilon(event, ratio(guarantee["delta"]), relation=Relation(entry.content["relation"]))
        return proven <= float(guarantee["epsilon"]) * (1 + ROUNDING)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, InvalidParameter, UnsupportedEvent):
        return False


def _of_account(book: LedgerView, entry: Entry, said: dict[str, Any]) -> Iterator[str]:
    if book.account(entry.dataset).unit != said.get("unit"):
        yield "the ledger protects another unit"


def _of_left(book: LedgerView, entry: Entry, manifest: dict[str, Any]) -> Iterator[str]:
    """Compare what is said to be left: after the last charge of what is in the bundle."""
    unit = manifest["guarantee"].get("unit")
    charges = [facts["charge"] for facts in manifest["running"].values() if facts["unit"] == unit]
    last = max([entry.index, *(number for number in charges if isinstance(number, int))])
    left = left_after(book.entries(entry.dataset), last)
    if not _same_budget(manifest["guarantee"].get("lifetime_budget"), left.budget):
        yield "another lifetime budget was declared"
    if manifest["ledger"].get("left") not in (None, left.describe(), left.describe_sums()):
        yield "something else was left of the budget"


def _same_budget(said: object, declared: Budget) -> bool:
    """Compare the numbers; how delta is split is of the account, and older policies did not say it."""
    known = declared.packed()
    names = ("epsilon", "delta", "rho")
    return isinstance(said, dict) and [said.get(name) for name in names] == [known.get(name) for name in names]


def _of_answer(book: LedgerView, entry: Entry, tables: list[ExactTable]) -> Iterator[str]:
    """Compare every raw number with the answer that was stored, exactly."""
    stored = _stored(book.answer(entry.index))
    if stored is None:
        yield "no tables are stored under this charge"
        return
    published = {table.name: json.loads(table.raw.to_json()) for table in tables}
    yield from (f"{name} is not in {EXACT}, but was stored" for name in sorted(stored.keys() - published.keys()))
    yield from (f"{name} was never stored" for name in sorted(published.keys() - stored.keys()))
    for name in sorted(stored.keys() & published.keys()):
        if stored[name] != published[name]:
            yield f"{name} is not the table that was stored"


def series_in_ledger(book: LedgerView, table: ExactTable, said: dict[str, Any], key: str) -> Iterator[str]:
    """Compare a series with its own charge, and its totals with the measurements that were stored day by day."""
    entry = book.charge(said["charge"]) if isinstance(said.get("charge"), int) else None
    problems = ["the ledger has no charge for it"] if entry is None else []
    if entry is not None:
        problems += ["its charge has another hash"] if entry.hash != said["hash"] else []
        problems += ["its charge is of another series"] if entry.content.get("key") != key else []
        problems += [*of_price(entry, said), *_of_account(book, entry, said)]
        problems += [] if _same_totals(book, entry, table) else ["its totals do not follow from what was stored"]
    yield from (f"series {table.name}: {problem}" for problem in problems)


def _same_totals(book: LedgerView, entry: Entry, table: ExactTable) -> bool:
    """Add the stored measurements up again, in the way that was charged."""
    try:
        said = json.loads(entry.content["plan"])
        (way,) = (one for one in strategies(int(said["said"]["days"])) if one.name == said["strategy"])
        measured = [read_day(text)[0] for text in book.parts(entry.index)[: len(table.raw)]]
        totals = [round(total / STEP) * STEP for total in way.totals(measured)]
    except (KeyError, TypeError, ValueError, LedgerDamaged):
        return False
    return totals == [table.raw.column("total")[row].value for row in range(len(table.raw))]


def _stored(text: str | None) -> dict[str, Any] | None:
    """Read the tables of a stored answer."""
    try:
        tables = json.loads(text or "")["tables"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return tables if isinstance(tables, dict) else None
