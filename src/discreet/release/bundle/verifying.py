"""Check a bundle: that nothing in it was changed, that its files tell the same story, and that the ledger knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from discreet.ledger import look
from discreet.release.bundle.exact_tables import EXACT, ExactTable, read_exact, table_files
from discreet.release.bundle.holding import Held, hold
from discreet.release.bundle.in_ledger import compare_with_ledger
from discreet.release.bundle.manifest import FORMAT, MANIFEST, sha256
from discreet.release.bundle.naming import DUMMY
from discreet.release.bundle.rebuilding import rebuilt
from discreet.release.bundle.same_table import same_parquet

__all__ = ["Check", "Verified", "verify_bundle"]

_NEEDED = {
    "format",
    "kind",
    "name",
    "period",
    "plan_sha256",
    "guarantee",
    "ledger",
    "tables",
    "running",
    "files",
    "versions",
}
_OF_SERIES = {"sha256", "unit", "epsilon", "delta", "event", "charge", "hash"}


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: what, and every way in which it failed; or why it could not be checked here."""

    what: str
    problems: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def ok(self) -> bool:
        return not self.problems


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What came of checking a bundle. `ok` says whether all of it holds; the text says what was checked."""

    name: str
    kind: str  # "release", or "DUMMY"
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong."""
        return tuple(problem for check in self.checks for problem in check.problems)

    def __str__(self) -> str:
        lines = [f"{self.name}: {'verified' if self.ok else 'NOT VERIFIED'}"]
        if self.kind == DUMMY:
            lines.append(f"  {DUMMY}: invented rows, nothing was released")
        for check in self.checks:
            lines.append(f"  {'BAD' if not check.ok else '-- ' if check.skipped else 'ok '} {check.what}")
            lines += [f"      not checked: {check.skipped}"] if check.skipped else []
            lines += [f"      {problem}" for problem in check.problems]
        return "\n".join(lines)


def verify_bundle(path: str | Path, *, ledger: str | Path | None = None) -> Verified:
    """Check a bundle, a folder or a .zip file; with `ledger`, the file, also that it is what was paid for and stored.

    What is no bundle at all is refused. The ledger is only read.
    """
    held = hold(Path(path))
    manifest = _manifest(held)
    checks = [_files(held, manifest), _plan(held, manifest)]
    tables, check = _tables(held, manifest)
    checks.append(check)
    if ledger is not None:
        checks += _ledger(held, manifest, tables, Path(ledger), sound=all(each.ok for each in checks))
    return Verified(name=held.name, kind=str(manifest["kind"]), checks=tuple(checks))


def _ledger(
    held: Held, manifest: dict[str, Any], tables: tuple[ExactTable, ...], path: Path, *, sound: bool
) -> Iterator[Check]:
    """Compare with the ledger; and if all is well so far, make the whole bundle again from it."""
    what, rest = "the ledger holds this release", "everything else follows from the plan and the ledger"
    try:
        book = look(path)
    except (InvalidParameter, LedgerDamaged, LedgerUnavailable) as error:
        yield Check(what, (f"the ledger cannot be relied on: {error}",))
        return
    compared = Check(what, tuple(compare_with_ledger(manifest, tables, book)))
    yield compared
    if not (sound and compared.ok):
        return
    found, why = rebuilt(manifest, held.files, tables, book, path)
    yield Check(rest, found, skipped=why)


def _manifest(held: Held) -> dict[str, Any]:
    if MANIFEST not in held.files:
        raise InvalidParameter(f"this is no bundle: it has no {MANIFEST}")
    try:
        manifest = json.loads(held.files[MANIFEST])
    except (ValueError, RecursionError):
        raise InvalidParameter(f"{MANIFEST} cannot be read: it was changed or cut") from None
    if not isinstance(manifest, dict) or not manifest.keys() >= _NEEDED or not _well_formed(manifest):
        raise InvalidParameter(f"{MANIFEST} is not one that a release wrote")
    if manifest["format"] != FORMAT:
        raise InvalidParameter(
            f"this bundle has format {manifest['format']!r}, this release of discreet knows {FORMAT}"
        )
    return manifest


def _well_formed(manifest: dict[str, Any]) -> bool:
    files, tables, mark = manifest["files"], manifest["tables"], manifest["ledger"]
    return (
        isinstance(files, dict)
        and all(isinstance(facts, dict) and {"sha256", "bytes"} <= facts.keys() for facts in files.values())
        and isinstance(tables, dict)
        and isinstance(manifest["running"], dict)
        and all(isinstance(facts, dict) and facts.keys() >= _OF_SERIES for facts in manifest["running"].values())
        and all(isinstance(manifest[name], dict) for name in ("guarantee", "period", "versions"))
        and (mark is None or (isinstance(mark, dict) and {"dataset", "charge", "hash", "time"} <= mark.keys()))
        and (mark is None) == (manifest["kind"] == DUMMY)
    )


def _files(held: Held, manifest: dict[str, Any]) -> Check:
    return Check("every file is there and unchanged", tuple(_changed(held, manifest["files"])))


def _changed(held: Held, listed: dict[str, Any]) -> Iterator[str]:
    there = held.files.keys() - {MANIFEST}
    yield from (f"{name} is no plain file" for name in sorted(held.odd))
    yield from (f"{name} is missing" for name in sorted(listed.keys() - there))
    yield from (f"{name} does not belong here" for name in sorted(there - listed.keys()))
    for name in sorted(listed.keys() & there):
        if listed[name] != {"sha256": sha256(held.files[name]), "bytes": len(held.files[name])}:
            yield f"{name} was changed"


def _plan(held: Held, manifest: dict[str, Any]) -> Check:
    same = sha256(held.files.get("plan.toml", b"")) == manifest["plan_sha256"]
    return Check("the plan is the one that was run", () if same else ("plan.toml is another plan",))


def _tables(held: Held, manifest: dict[str, Any]) -> tuple[tuple[ExactTable, ...], Check]:
    what = "the tables say the same in every file"
    try:
        tables = read_exact(held.files.get(EXACT, b""))
    except InvalidParameter as error:
        return (), Check(what, (str(error),))
    return tables, Check(what, tuple(_differing(held, manifest, tables)))


def _differing(held: Held, manifest: dict[str, Any], tables: tuple[ExactTable, ...]) -> Iterator[str]:
    """Write every table again from its exact numbers, and compare; Parquet by its values, for its bytes may vary."""
    said = {table.name: sha256(table.raw.to_json().encode()) for table in tables}
    series = {name: facts["sha256"] for name, facts in manifest["running"].items()}
    if said != manifest["tables"] | series or series.keys() != {table.name for table in tables if table.series}:
        yield f"{EXACT} does not hold the tables that {MANIFEST} names"
    dummy = manifest["kind"] == DUMMY
    try:
        expected = table_files(tables, ("csv", "parquet"), dummy=dummy)
    except (InvalidParameter, LookupError, TypeError, ValueError, ArithmeticError):  # Tables that no release wrote.
        yield f"{EXACT} holds no tables that a release wrote"
        return
    for name in sorted(held.files):
        if name.startswith("tables/") and name not in expected:
            yield f"{name} is of no table in {EXACT}"
        elif name in expected and not _same(held.files[name], expected[name], name):
            yield f"{name} does not say what {EXACT} says"


def _same(there: bytes, expected: bytes, name: str) -> bool:
    return same_parquet(there, expected) if name.endswith(".parquet") else there == expected
