"""Make a bundle again from its plan and the ledger, and compare: whatever is not raw follows from these two.

What one processor computes in floats, another may round otherwise: tidy values are let differ by one step of their
grid, and the ε that was told by its last digits. Everything else is compared byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError
from discreet.exact import ratio
from discreet.ledger import left_after
from discreet.ledger.charge_record import Charge
from discreet.ledger.inspect import LedgerView
from discreet.ledger.server_address import LedgerAddress, LedgerPlace
from discreet.privacy import Relation
from discreet.query import ReleaseTable
from discreet.release.bundle.ledger_comparison import ROUNDING
from discreet.release.bundle.manifest import FORMAT, MANIFEST, SIGNATURE, signer_of
from discreet.release.bundle.table_files import ExactTable
from discreet.release.plan import Period, ReleasePlan
from discreet.release.published import LedgerMark, Published, PublishedTable, RunningRelease

if TYPE_CHECKING:
    from discreet.release.pricing.priced_release import PricedRelease

__all__ = ["bundled_plan", "rebuilt"]

_WRITERS = ("discreet", "sqlglot")  # Whose other versions may word things otherwise.


def rebuilt(
    manifest: Mapping[str, Any],
    files: Mapping[str, bytes],
    tables: tuple[ExactTable, ...],
    book: LedgerView,
    ledger: LedgerPlace,
) -> tuple[tuple[str, ...], str]:
    """Return what does not follow from the plan and the ledger, and why that could not be compared here, if so.

    Charge and raw tables were compared before. The plan may be a stranger's: of the files it names none is read but
    public tables below the folder that it shares with the ledger, and nothing of them is told.
    """
    if manifest["format"] != FORMAT:
        return (), f"it has format {manifest['format']}, whose texts this release of discreet writes otherwise"
    other = _other_writers(manifest)
    if other:
        return (), f"it was written with {other}"
    try:
        plan, home = _plan(files["plan.toml"], ledger)
        if isinstance(ledger, LedgerAddress) and any(table.public for table in plan.policy.tables.values()):
            return (), "the ledger is on a server, which does not say where the public tables of the plan are"
        if home is None:
            return (), "the plan names another place for its ledger than the one that was given"
        if not _is_near(plan, home):
            return (), "the plan names public tables that are not beside the ledger"
        priced = _as_told(_priced(plan, manifest["period"]), tables)
        series = tuple(_series(plan, table, manifest, book) for table in tables if table.series)
    except (DiscreetError, OSError, LookupError, TypeError, ValueError, StopIteration):
        return ("the plan could not be priced again here, so the rest cannot be compared",), ""
    published = _published(priced, series, tables, manifest, book)
    return tuple(_problems(priced, published, files, tables, manifest)), ""


def _other_writers(manifest: Mapping[str, Any]) -> str:
    wrote = {name: manifest["versions"].get(name) for name in _WRITERS}
    return " and ".join(f"{name} {said}" for name, said in wrote.items() if said != version(name))


def _problems(
    priced: PricedRelease,
    published: Published,
    files: Mapping[str, bytes],
    tables: tuple[ExactTable, ...],
    manifest: Mapping[str, Any],
) -> Iterator[str]:
    if json.loads(published.event.to_json()) != manifest["guarantee"]["event"]:
        yield "the plan has another price than the one that was charged"
        return
    if not abs(published.epsilon - priced.epsilon) <= ROUNDING * priced.epsilon:
        yield f"{MANIFEST} states another ε than the plan has"
        return
    found = [*_of_noise(published, tables), *_of_tidy(published, tables)]
    yield from found or _of_files(_with_tidy(published, tables), files, manifest)


def bundled_plan(written: bytes) -> ReleasePlan:
    """Read the plan that lies in a bundle; the files that it names are not there."""
    return _read(written)[0]


def _read(written: bytes) -> tuple[ReleasePlan, Path]:
    from discreet.release.plan_reader import read_release_plan

    with TemporaryDirectory() as made:
        folder = Path(made).resolve()
        (folder / "plan.toml").write_bytes(written)
        return read_release_plan(folder / "plan.toml"), folder


def _plan(written: bytes, ledger: LedgerPlace) -> tuple[ReleasePlan, Path | None]:
    """Read the plan of a bundle as if it lay where its ledger says; return that folder too, if the ledger is there."""
    plan, folder = _read(written)
    if isinstance(ledger, LedgerAddress):
        return plan, folder
    home = ledger.resolve().parent
    if isinstance(plan.policy.ledger, Path) and plan.policy.ledger.is_relative_to(folder):
        # Up to the plan by the folders that it names, if the ledger is in these: a forged plan leads nowhere else.
        for name in reversed(plan.policy.ledger.relative_to(folder).parts[:-1]):
            if home.name != name:
                return plan, None
            home = home.parent
    moved = {
        name: replace(table, source=_moved(table.source, folder, home)) for name, table in plan.policy.tables.items()
    }
    return replace(plan, policy=replace(plan.policy, tables=moved)), home


def _is_near(plan: ReleasePlan, home: Path) -> bool:
    """Whether all public tables lie below a folder, wherever links lead."""
    public = [table.source for table in plan.policy.tables.values() if table.public]
    return all(source is not None and source.resolve().is_relative_to(home) for source in public)


def _moved(source: Path | None, before: Path, home: Path) -> Path | None:
    return home / source.relative_to(before) if source is not None and source.is_relative_to(before) else source


def _priced(plan: ReleasePlan, period: Mapping[str, Any]) -> PricedRelease:
    from discreet.release.pricing.release_price import price

    first = period["first"]
    found = plan.schedule.period(0) if first is None else plan.schedule.containing(datetime.fromisoformat(first).date())
    if _facts_of(found) != dict(period):
        raise ValueError("the plan has no such period")
    return price(plan, found)


def _as_told(priced: PricedRelease, tables: tuple[ExactTable, ...]) -> PricedRelease:
    """Take noise of each table's own if that is what a bundle tells: it was written before families shared theirs."""
    from discreet.release.pricing.release_price import apart

    before = apart(priced)
    told = {table.name: dict(table.deviations) for table in tables}
    own = {table.name: dict(table.priced.deviations) for table in before.tables}
    return before if all(told.get(name) == each for name, each in own.items()) else priced


def _facts_of(period: Period) -> dict[str, str | None]:
    days = {"first": period.first, "end": period.end}
    return {"label": period.label, **{name: None if day is None else day.isoformat() for name, day in days.items()}}


def _series(plan: ReleasePlan, table: ExactTable, manifest: Mapping[str, Any], book: LedgerView) -> RunningRelease:
    """Make a series again from the measurements that were stored: its totals, and their errors."""
    from discreet.release.cumulative.advance import begun_running
    from discreet.release.cumulative.series_price import price_running, table_of

    running = next(one for one in plan.running if one.name == table.name)
    entry = book.charge(manifest["running"][table.name]["charge"])
    assert entry is not None, "the charge of a series was compared before"
    priced = begun_running(plan, price_running(plan, running), entry)
    told = book.parts(entry.index)[: len(table.raw)]
    return RunningRelease(
        plan=running,
        table=table_of(priced, told),
        deviations=priced.deviations[: len(told)],
        charge=Charge(entry.index, entry.index, entry.hash),
        event=priced.event,
        unit=priced.unit,
    )


def _published(
    priced: PricedRelease,
    series: tuple[RunningRelease, ...],
    tables: tuple[ExactTable, ...],
    manifest: Mapping[str, Any],
    book: LedgerView,
) -> Published:
    from discreet.release.tidy.tidying import tidy_tables

    raw = {table.name: table.raw for table in tables}
    made = tuple(
        PublishedTable(
            plan=table.plan,
            raw=raw[table.name],
            tidy=None,
            deviations=dict(table.priced.deviations),
            shared=table.priced.draft.noising.shared,
            threshold=table.threshold,
        )
        for table in priced.tables
    )
    return Published(
        plan=priced.plan,
        period=priced.period,
        tables=tidy_tables(priced.plan, made) if priced.plan.output.tidy else made,
        event=priced.event,
        nested=priced.nested,
        relation=Relation(manifest["guarantee"]["relation"]),
        epsilon=float(manifest["guarantee"]["epsilon"]),
        delta=ratio(manifest["guarantee"]["delta"]),
        ledger=_mark(manifest, series, book),
        signer=signer_of(manifest),
        running=series,
    )


def _mark(manifest: Mapping[str, Any], series: tuple[RunningRelease, ...], book: LedgerView) -> LedgerMark:
    said, unit = manifest["ledger"], manifest["guarantee"]["unit"]
    charges = [one.charge.id for one in series if one.charge is not None and one.unit == unit]
    return LedgerMark(
        dataset=said["dataset"],
        charge=said["charge"],
        hash=said["hash"],
        time=datetime.fromisoformat(said["time"]),
        left=left_after(book.entries(said["dataset"]), max([said["charge"], *charges])),
    )


def _of_noise(published: Published, tables: tuple[ExactTable, ...]) -> Iterator[str]:
    """Compare the deviations that are told with those of the plan, and a series with its own making."""
    said = {table.name: table for table in tables}
    for table in published.tables:
        if dict(said[table.plan.name].deviations) != dict(table.deviations):
            yield f"{table.plan.name} tells other noise than the plan has"
    for running in published.running:
        told = said[running.plan.name]
        if told.deviations != {"total": running.deviations} or told.raw.to_json() != running.table.to_json():
            yield f"{running.plan.name} tells other noise or other errors than the plan has"


def _of_tidy(published: Published, tables: tuple[ExactTable, ...]) -> Iterator[str]:
    said = {table.name: table.tidy for table in tables}
    for table in published.tables:
        if not _near(table.tidy, said[table.plan.name]):
            yield f"the tidy values of {table.plan.name} do not follow from the raw ones"


def _near(one: ReleaseTable | None, other: ReleaseTable | None) -> bool:
    """Whether two tables are the same but for the last step of a tidy number."""
    if one is None or other is None:
        return one is other
    if len(one) != len(other) or one.names != other.names:
        return False
    return all(
        _close(a[row].value, b[row].value, a.grain) and a[row][2:] == b[row][2:]
        for a, b in zip(one.columns, other.columns, strict=True)
        for row in range(len(one))
    )


def _close(one: Any, other: Any, grain: Fraction | None) -> bool:
    if one == other or not all(isinstance(each, (int, Fraction)) for each in (one, other)):
        return bool(one == other)
    step = abs(Fraction(one)) / 10**6 if grain is None else grain
    return bool(abs(one - other) <= step)


def _with_tidy(published: Published, tables: tuple[ExactTable, ...]) -> Published:
    """Take the tidy values that are there: they were found near enough."""
    said = {table.name: table.tidy for table in tables}
    return replace(published, tables=tuple(replace(each, tidy=said[each.plan.name]) for each in published.tables))


def _of_files(published: Published, files: Mapping[str, bytes], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Write everything again, with the tidy values that are there, and compare; Parquet was compared before."""
    from discreet.release.bundle.bundle_files import contents_of

    again = contents_of(published)
    yield from (f"{name} was not to be written" for name in sorted(files.keys() - again.keys() - {SIGNATURE}))
    for name in sorted(again.keys() - {MANIFEST}):
        if not name.endswith(".parquet") and again[name] != files.get(name):
            yield f"{name} does not follow from the plan and the ledger"
    facts = json.loads(again[MANIFEST])
    differing = sorted(name for name in facts.keys() - {"files", "versions"} if facts[name] != manifest.get(name))
    yield from (f"{MANIFEST} says another {name} than follows from the plan and the ledger" for name in differing)
