"""Compare a bundle with the ledger: who paid, which numbers were stored, and every epsilon that a text states."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, TypeAlias, final

from discreet.errors import InvalidParameter, LedgerDamaged, UnsupportedEvent
from discreet.exact import ratio
from discreet.formatting import percent_up, significant_up
from discreet.ledger import Budget, left_after
from discreet.ledger.charge_record import Entry
from discreet.ledger.inspect import LedgerView
from discreet.ledger.prices import concentrated_price
from discreet.ledger.restoration import whole
from discreet.privacy import Relation, epsilon
from discreet.privacy.events import Composed, Event, from_json
from discreet.release.bundle.claims import best_guess, e_to
from discreet.release.bundle.dictionary import outline_of
from discreet.release.bundle.guarantee_page import alone_text
from discreet.release.bundle.manifest import MANIFEST, digests_of
from discreet.release.bundle.table_files import EXACT, ExactTable
from discreet.release.bundle.wording import code
from discreet.release.cumulative.series_price import STEP, read_day
from discreet.release.cumulative.strategies import strategies
from discreet.release.plan import release_key, running_key

__all__ = ["ROUNDING", "compare_digests", "compare_with_ledger", "described_otherwise", "promised", "stated_otherwise"]

# --- in_ledger: Compare a bundle with the ledger: who paid, for what, when, and which numbers were stored. ---


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


def _label(manifest: Mapping[str, Any]) -> Any:
    period = manifest["period"]
    return period.get("label") if isinstance(period, dict) else None


def of_price(entry: Entry, said: dict[str, Any]) -> Iterator[str]:
    """Compare event, ε and δ with what was charged."""
    if entry.content["event"] != said.get("event"):
        yield "another event was charged"
    nested = said.get("nested", [])
    if [each.get("event") for each in nested] != entry.content.get("nested", []):
        yield "another event was charged to the units within"
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
    account = book.account(entry.dataset)
    units = [account.unit, *(unit for unit, _ in account.nested)]
    if units != [said.get("unit"), *(each.get("unit") for each in said.get("nested", []))]:
        yield "the ledger protects another unit"


def _of_left(book: LedgerView, entry: Entry, manifest: dict[str, Any]) -> Iterator[str]:
    """Compare what is said to be left: after the last charge of what is in the bundle."""
    unit = manifest["guarantee"].get("unit")
    charges = [facts["charge"] for facts in manifest["running"].values() if facts["unit"] == unit]
    last = max([entry.index, *(number for number in charges if isinstance(number, int))])
    left = left_after(book.entries(entry.dataset), last)
    if not _same_budget(manifest["guarantee"].get("lifetime_budget"), left.budget):
        yield "another lifetime budget was declared"
    if manifest["ledger"].get("left") not in (None, left.recorded(), left.describe_sums()):
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


# --- stated_numbers ---
# Every ε, δ and ρ that a bundle states, compared with what its event is worth: worked out again, never believed.
#
# This needs neither the ledger nor the version that wrote the bundle. The manifest holds the event. What follows from
# it
# is computed anew and written as the texts write it; a text that states anything else, or no longer states it at all,
# is
# told. Numbers that the plan itself names, in a title for instance, may be repeated.


ROUNDING = 1e-9  # What another processor may round otherwise in a bound that holds on either.

_LONGEST = 1 << 20  # Characters of an event.
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?(?:/\d+)?"
_LEVEL = re.compile(rf"([εδρ])\s*=\s*({_NUMBER})")
_GUESS = re.compile(rf"right (?:in |with probability )?at most(?: \(1 \+ δ\(0\)\) / 2 =)? ({_NUMBER}) %")
_ONE_IN = re.compile(rf"plus a chance of 1 in ({_NUMBER})")
_FACTOR = re.compile(rf"(?:a factor of at most|is at most) ({_NUMBER})(?: times|,)")

Found: TypeAlias = set[tuple[str, str]]  # a sign, and a number as it is written


@final
@dataclass(frozen=True, slots=True)
class _Worth:
    """What everything in a bundle that protects the same unit is worth together."""

    epsilon: float
    delta: Fraction
    rho: Fraction | None  # None where it has none
    alone: tuple[tuple[str, float], ...]  # ε of each table by itself
    guess: float
    lifetime: tuple[Budget, float] | None  # None for a budget that only windows have
    within: tuple[tuple[float, float, Budget], ...] = ()  # of units within the first: ε, guess and budget


def stated_otherwise(
    manifest: Mapping[str, Any], files: Mapping[str, bytes], tables: tuple[ExactTable, ...]
) -> Iterator[str]:
    """Tell every number about privacy that does not follow from the event of the manifest."""
    try:
        problems = list(_of_manifest(manifest))
        worth = _worth(manifest, tables)
    except (KeyError, TypeError, ValueError, ArithmeticError, InvalidParameter, UnsupportedEvent):
        yield f"{MANIFEST} holds no event whose ε can be worked out"
        return
    yield from problems
    if not problems:
        yield from _of_texts(worth, files, _quoted(files, tables))
        if "guarantee.md" in files:
            yield from _of_list(worth, _plain("guarantee.md", files["guarantee.md"]))
        if "registry.json" in files:
            yield from _of_registry(worth, files["registry.json"])


def described_otherwise(
    manifest: Mapping[str, Any], files: Mapping[str, bytes], tables: tuple[ExactTable, ...]
) -> Iterator[str]:
    """Tell where the dictionary is not about this release: its tables, their rows, and the columns of their files."""
    if "dictionary.json" not in files:
        return  # A lost file is told as one.
    try:
        said = json.loads(files["dictionary.json"])
        of = (said["name"], said["period"])
        told = {table["name"]: (table["rows"], _names(table["files"][0])) for table in said["tables"]}
        known = {table.name: (len(table.raw), _outline(table)) for table in tables}
        page = files.get("dictionary.md", b"").decode("utf-8", "replace")
    except (ValueError, LookupError, TypeError, RecursionError, ArithmeticError, InvalidParameter):
        yield "dictionary.json is none that a release wrote"
        return
    if of != (manifest["name"], _label(manifest)):
        yield "dictionary.json is of another release, or of another period"
    if told.keys() != known.keys():
        yield f"dictionary.json describes other tables than {EXACT} holds"
    for name in sorted(told.keys() & known.keys()):
        if told[name] != known[name]:
            yield f"dictionary.json describes other columns or rows of {name} than {EXACT} holds"
        if "dictionary.md" in files and not all(code(column) in page for column in (name, *known[name][1])):
            yield f"dictionary.md does not describe {name} and all its columns"


def _names(file: Mapping[str, Any]) -> list[str]:
    return [column["name"] for column in file["columns"]]


def _outline(table: ExactTable) -> list[str]:
    return [field.name for field in outline_of(table.raw, table.deviations)]


def _of_manifest(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Compare ε of the release and of each series with their events. More than is proven may be told, never less."""
    said = manifest["guarantee"]
    relation = Relation(said["relation"])
    parts = [("the release", said), *((f"series {name}", facts) for name, facts in manifest["running"].items())]
    parts += [(f"one {facts['unit']}", facts) for facts in said.get("nested", ())]
    for name, facts in parts:
        told = math.inf if facts["epsilon"] is None else float(facts["epsilon"])
        proven = epsilon(_event(facts["event"]), ratio(facts["delta"]), relation=relation)
        if not proven <= told * (1 + ROUNDING) or math.isnan(told):
            yield f"{MANIFEST} states a smaller ε for {name} than its event has"


def _event(packed: Any) -> Event:
    text = json.dumps(packed)
    if len(text) > _LONGEST:
        raise ValueError
    return from_json(text)


def promised(manifest: Mapping[str, Any]) -> tuple[Event, Fraction, Relation]:
    """Return everything in a bundle that tells about one unit, the δ at which its ε is told, and the relation."""
    said = manifest["guarantee"]
    series = [_event(facts["event"]) for facts in manifest["running"].values() if facts["unit"] == said["unit"]]
    event = _event(said["event"])
    return Composed([event, *series]) if series else event, ratio(said["delta"]), Relation(said["relation"])


def _worth(manifest: Mapping[str, Any], tables: tuple[ExactTable, ...]) -> _Worth:
    said, (event, delta, relation) = manifest["guarantee"], promised(manifest)
    with_series = event != _event(said["event"])
    level = epsilon(event, delta, relation=relation) if with_series else float(said["epsilon"])
    if not math.isfinite(level):
        raise ValueError
    budget = Budget.unpacked(said["lifetime_budget"])
    return _Worth(
        epsilon=level,
        delta=delta,
        rho=_rho(_event(said["event"]), relation),
        alone=tuple((table.name, epsilon(table.raw.event, delta, relation=relation)) for table in tables),
        guess=best_guess(event, relation),
        lifetime=None if budget.kind == "unlimited" else (budget, best_guess(whole(budget), relation)),
        within=tuple(_nested_worth(each, relation) for each in said.get("nested", ())),
    )


def _nested_worth(said: Mapping[str, Any], relation: Relation) -> tuple[float, float, Budget]:
    level = float(said["epsilon"])
    return level, best_guess(_event(said["event"]), relation), Budget.unpacked(said["lifetime_budget"])


def _rho(event: Event, relation: Relation) -> Fraction | None:
    try:
        return concentrated_price(event, relation).rho
    except UnsupportedEvent:
        return None


def _near(value: float) -> tuple[float, ...]:
    """A number, and what another processor may have made of it."""
    return (value * (1 - ROUNDING), value, value * (1 + ROUNDING))


def _of_texts(worth: _Worth, files: Mapping[str, bytes], quoted: Found) -> Iterator[str]:
    levels: Found = {("ε", significant_up(each)) for each in _near(worth.epsilon)}
    known = levels | {("δ", significant_up(worth.delta))} | quoted
    known |= {("ε", significant_up(v)) for _, one in worth.alone if math.isfinite(one) for v in _near(one)}
    known |= set() if worth.lifetime is None else _levels(worth.lifetime[0].describe())
    inner: Found = {("ε", significant_up(each)) for level, _, _ in worth.within for each in _near(level)}
    known |= inner.union(*(_levels(budget.describe()) for _, _, budget in worth.within))
    guesses = {percent_up(min(1.0, each)) for each in _near(worth.guess)}
    likely = guesses | (
        set() if worth.lifetime is None else {percent_up(min(1.0, v)) for v in _near(worth.lifetime[1])}
    )
    likely |= {percent_up(min(1.0, each)) for _, guess, _ in worth.within for each in _near(guess)}
    factors = {significant_up(e_to(each), 3) for each in _near(worth.epsilon) if each < 700}
    rare = set() if worth.delta == 0 else {f"{math.floor(1 / worth.delta):,}"}
    for name in ("README.txt", "guarantee.md", "checklist.md", "report.html", "dictionary.md", "registry.json"):
        if name not in files:
            continue  # A lost file is told as one.
        text = _plain(name, files[name])
        found, guessed = _levels(text), {f"{number} %" for number in _GUESS.findall(text)}
        wrong = [f"{sign} = {number}" for sign, number in sorted(found - known)]
        wrong += [f"a guess of {each}" for each in sorted(guessed - likely)]
        wrong += [f"a factor of {each}" for each in sorted({*_FACTOR.findall(text)} - factors)]
        wrong += [f"a chance of 1 in {each}" for each in sorted({*_ONE_IN.findall(text)} - rare)]
        yield from (f"{name} states {each}, which does not follow from the event" for each in wrong)
        if name in ("guarantee.md", "checklist.md") and not found & levels:
            yield f"{name} does not state the ε of the event"
        if name == "guarantee.md" and inner and not found & inner:
            yield f"{name} does not state the ε of the units within"
        if name in ("README.txt", "guarantee.md", "report.html") and not guessed & guesses:
            yield f"{name} does not state how often a guess is right"


def _of_list(worth: _Worth, text: str) -> Iterator[str]:
    """Compare the list of what each table spends alone."""
    for name, level in worth.alone:
        rows = [f"| {code(name)} | {alone_text(each)} |" for each in _near(level)]
        if not any(row in text for row in rows):
            yield f"guarantee.md states another ε for table {name} than its event has"


def _plain(name: str, held: bytes) -> str:
    """Return what a reader sees of a file, on one line."""
    text = held.decode("utf-8", "replace")
    if name.endswith(".html"):
        text = html.unescape(_without_tags(text))
    return " ".join(text.split())


def _without_tags(text: str) -> str:
    """Take tags away in one pass; a search for pairs of < and > would take quadratic time where they never close."""
    first, *others = text.split("<")
    return " ".join([first, *(other.partition(">")[2] for other in others)])


def _levels(text: str) -> Found:
    return set(_LEVEL.findall(text))


def _quoted(files: Mapping[str, bytes], tables: tuple[ExactTable, ...]) -> Found:
    """Return the numbers that texts take over word by word: from the plan, and what each table was said to cost."""
    notes = [text for table in tables for text in (table.title, table.raw.cost, *table.raw.notes)]
    return _levels(" \n".join([files.get("plan.toml", b"").decode("utf-8", "replace"), *notes]))


def _of_registry(worth: _Worth, held: bytes) -> Iterator[str]:
    """Compare the numbers of the registry's entry, which are numbers and no text."""
    try:
        said = json.loads(held)["deployment"]["privacy_loss"]["privacy_parameters"]
        levels = (float(said["epsilon"]), float(said["delta"]))
        float(said.get("rho", 0))
    except (ValueError, KeyError, TypeError, RecursionError):
        yield "registry.json states no ε and δ"
        return
    for sign, told, known in zip("εδ", levels, (worth.epsilon, float(worth.delta)), strict=True):
        if not abs(told - known) <= ROUNDING * known:
            yield f"registry.json states another {sign} than follows from the event"
    if "rho" in said and not (worth.rho is not None and float(worth.rho) <= float(said["rho"]) * (1 + ROUNDING)):
        yield "registry.json states a smaller ρ than the event has"
