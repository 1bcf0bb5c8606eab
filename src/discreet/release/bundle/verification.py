"""Check a bundle: that nothing in it was changed, that its files tell the same story, and that the ledger knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from discreet.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from discreet.formatting import percent_up, significant_up
from discreet.ledger import look
from discreet.ledger.inspect import LedgerView
from discreet.ledger.server_address import LedgerAddress, LedgerPlace, as_place
from discreet.pages.progress import working
from discreet.privacy.events import from_json
from discreet.privacy.meaning import Meaning, explain
from discreet.release.bundle.bundle_reader import BundleContents, hold
from discreet.release.bundle.ledger_comparison import (
    compare_digests,
    compare_with_ledger,
    described_otherwise,
    promised,
    stated_otherwise,
)
from discreet.release.bundle.manifest import (
    DUMMY,
    FORMATS,
    MANIFEST,
    SIGNATURE,
    check_signature,
    name_of_release,
    sha256,
    signer_of,
)
from discreet.release.bundle.rebuild import bundled_plan, rebuilt
from discreet.release.bundle.table_files import EXACT, ExactTable, read_exact, same_parquet, table_files
from discreet.release.bundle.wording import seen_apart
from discreet.release.signatures import PublicKey, read_public_key

__all__ = ["BundleFinding", "Outcome", "Verified", "explain_bundle", "verify_bundle"]

Outcome: TypeAlias = Literal["NOT VERIFIED", "consistent", "signed", "matches the ledger", "verified"]

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
_STATED = "“ε = …”, guesses and factors of the texts follow from the event"
_DESCRIBED = "the dictionary describes these tables and columns"
_MARKS = {"ok": "ok ", "not checked": "-- ", "BAD": "BAD"}
_OF_SERIES = {"sha256", "unit", "epsilon", "delta", "event", "charge", "hash"}


@final
@dataclass(frozen=True, slots=True)
class BundleFinding:
    """One thing that was checked: what, and every way in which it failed; or why it could not be checked here."""

    what: str
    problems: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def status(self) -> Literal["ok", "not checked", "BAD"]:
        """What came of it."""
        return "BAD" if self.problems else "not checked" if self.skipped else "ok"

    @property
    def ok(self) -> bool:
        """Whether it was checked, and holds."""
        return self.status == "ok"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What came of checking a bundle: of the release that its manifest names, whatever its folder is called.

    `outcome` says it in a word, and the text what was checked.

    verified            with the ledger: everything follows from what was paid for, stored and recorded there
    matches the ledger  nothing contradicts the ledger, but not everything could be compared with it
    signed              unchanged since the owner of the key that was named signed it
    consistent          its files agree with each other: whoever can write files can forge all of that
    NOT VERIFIED        something is wrong
    """

    name: str  # of the release and its period, as the manifest has them
    kind: str  # "release", or "DUMMY"
    checks: tuple[BundleFinding, ...]
    signed_by: str = ""  # the fingerprint of the key that signed it; empty if none did
    by_key: bool = False  # whether the reader named the key
    by_ledger: bool = False  # whether the ledger was compared

    @property
    def outcome(self) -> Outcome:
        """What may be said of it."""
        if self.problems:
            return "NOT VERIFIED"
        if self.by_ledger:
            return "matches the ledger" if self.not_checked else "verified"
        return "signed" if self.by_key else "consistent"

    @property
    def ok(self) -> bool:
        """Whether it is known to come from the publisher, and nothing that was to be checked was left out."""
        return self.outcome in ("verified", "signed") and not self.not_checked

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong."""
        return tuple(problem for check in self.checks for problem in check.problems)

    @property
    def not_checked(self) -> tuple[str, ...]:
        """Why something could not be checked."""
        return tuple(check.skipped for check in self.checks if check.status == "not checked")

    def describe(self) -> str:
        """Say in a sentence what is known."""
        match self.outcome:
            case "NOT VERIFIED":
                return "NOT VERIFIED"
            case "verified":
                return f"verified: everything matches the ledger{self._signed()}"
            case "matches the ledger":
                return f"matches the ledger, as far as it could be compared{self._signed()}; not everything was checked"
            case "signed":
                return f"signed by {self.signed_by}, and unchanged since; not compared with the ledger"
        origin = f"signed by {self.signed_by}, but nobody said whose key that is" if self.signed_by else "not signed"
        more = "add --key or --ledger to know more"
        return f"consistent: its files agree with each other; {origin}, so anybody may have written it: {more}"

    def _signed(self) -> str:
        if not self.signed_by:
            return ""
        # Only digests in the ledger, or the reader, say whose key it is.
        known = self.by_key or self.outcome == "verified"
        return f", and it is signed by {self.signed_by}{'' if known else ' (nobody said whose key that is)'}"

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.describe()}"]
        if self.kind == DUMMY:
            lines.append(f"  {DUMMY}: invented rows, nothing was released")
        for check in self.checks:
            lines.append(f"  {_MARKS[check.status]} {check.what}")
            lines += [f"      not checked: {check.skipped}"] if check.skipped else []
            lines += [f"      {problem}" for problem in check.problems]
        return "\n".join(lines)

    __repr__ = __str__


@working("verifying", terminal=False)
def verify_bundle(
    path: str | Path, *, ledger: str | LedgerPlace | None = None, key: PublicKey | str | Path | None = None
) -> Verified:
    """Check a bundle, a folder or a .zip file.

    With `key`, a public key, its file or its fingerprint, it must be signed with that one. With `ledger`, the file, it
    must be what was paid for, stored and recorded. With neither, its files can only be compared with each other.
    What is no bundle at all is refused. The ledger is only read.

    Args:
        path: The folder or the .zip file of a bundle.
        ledger: The file of the ledger, which is only read.
        key: Whom to trust: a public key, its file, or its fingerprint.

    Returns:
        The checks, with `ok`, `outcome` and `problems`; it prints as a list.

    Raises:
        InvalidParameter: If this is no bundle, or no key.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("visits", Path())
        >>> draft = dp.release.draft_plan("visits.csv", unit="patient").value
        >>> _ = Path("plan.toml").write_text(draft.confirmed(epsilon=1))
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> found = dp.release.verify_bundle(dp.release.publish(plan, principal="ana"), ledger="visits.ledger")
        >>> found.ok
        True
    """
    trusted = key if isinstance(key, PublicKey) or key is None else read_public_key(key)
    held = hold(Path(path))
    manifest = _manifest(held)
    signer = signer_of(manifest)
    checks = [_files(held, manifest), _plan(held, manifest)]
    tables, check = _tables(held, manifest)
    checks += [check, BundleFinding(_STATED, tuple(stated_otherwise(manifest, held.files, tables)))]
    checks.append(BundleFinding(_DESCRIBED, tuple(described_otherwise(manifest, held.files, tables))))
    if signer is not None or trusted is not None or SIGNATURE in held.files:
        checks.append(BundleFinding("it is signed", tuple(check_signature(held.files, signer, trusted))))
    if ledger is not None:
        sound = not any(each.problems for each in checks)
        place = as_place(ledger)
        known = place if isinstance(place, LedgerAddress) else Path(str(ledger))
        checks += _ledger(held, manifest, tables, known, sound=sound)
    return Verified(
        name=_name(manifest),
        kind=str(manifest["kind"]),
        checks=tuple(checks),
        signed_by="" if signer is None else signer.fingerprint,
        by_key=trusted is not None,
        by_ledger=ledger is not None,
    )


def explain_bundle(path: str | Path) -> Meaning:
    """Explain what a bundle means for one unit, by the curve of the noise that it says it has: as its report does."""
    found = verify_bundle(path)
    if found.problems:
        raise InvalidParameter(
            f"{found.name} is not consistent, so its ε cannot be explained: see discreet bundle verify"
        )
    held = hold(Path(path))
    manifest = _manifest(held)
    event, delta, relation = promised(manifest)
    meaning = explain(event, delta=delta, relation=relation)
    at = f", δ = {significant_up(delta)}" if delta else ""
    told = "no ε" if meaning.epsilon is None else f"ε = {significant_up(meaning.epsilon)}"
    plan = bundled_plan(held.files["plan.toml"])
    noun = plan.policy.unit.noun
    said, apart = f"{found.name}, {told}{at}", [seen_apart(plan.from_data, noun).strip()]
    for inner in manifest["guarantee"].get("nested", ()):
        own = explain(from_json(json.dumps(inner["event"])), delta=delta, relation=relation)
        called = plan.policy.counted.noun
        level = "no ε" if own.epsilon is None else f"ε = {significant_up(own.epsilon)}"
        said += f" for one {noun}; {level}{at} for one {called}"
        apart.append(
            f"Within it, every {called} has a promise of its own, {level}{at}: whether one is in the data, a guess is "
            f"right in at most {percent_up(own.success)} of cases. All that follows is about one {noun}."
        )
    return replace(meaning, said=said, noun=noun, uncovered=" ".join(filter(None, apart)))


def _ledger(
    held: BundleContents, manifest: dict[str, Any], tables: tuple[ExactTable, ...], path: LedgerPlace, *, sound: bool
) -> Iterator[BundleFinding]:
    """Compare with the ledger; and if all is well so far, make the whole bundle again from it."""
    what, rest = "the ledger holds this release", "everything else follows from the plan and the ledger"
    try:
        book = look(path)
    except (InvalidParameter, LedgerDamaged, LedgerUnavailable) as error:
        yield BundleFinding(what, (f"the ledger cannot be relied on: {error}",))
        return
    compared = BundleFinding(what, tuple(compare_with_ledger(manifest, tables, book)))
    yield compared
    if not compared.ok:
        return
    wrong, why = compare_digests(held.files[MANIFEST], manifest, book)
    yield BundleFinding("the ledger has recorded this manifest", wrong, skipped=why)
    if not sound or wrong:
        return
    found, why = rebuilt(manifest, held.files, tables, book, path)
    yield BundleFinding(rest, found, skipped=why)
    yield from map(BundleFinding, _raised_since(manifest, book))


def _raised_since(manifest: dict[str, Any], book: LedgerView) -> Iterator[str]:
    """Say that the lifetime budget is no longer the one that the texts tell, which is no fault of the bundle."""
    mark = manifest["ledger"]
    raises = [
        entry for entry in book.entries(mark["dataset"]) if entry.kind == "raise" and entry.index > mark["charge"]
    ]
    account = book.account(mark["dataset"])
    inner = dict(account.nested)
    for unit, day in {entry.content.get("unit"): entry.moment[:10] for entry in raises}.items():
        whose, now = ("", account.budget) if unit is None else (f" of {unit}", inner[unit])
        yield f"note: the lifetime budget{whose} was raised since, to {now.describe()}, on {day}"


def _manifest(held: BundleContents) -> dict[str, Any]:
    if MANIFEST not in held.files:
        raise InvalidParameter(f"this is no bundle: it has no {MANIFEST}")
    try:
        manifest = json.loads(held.files[MANIFEST])
    except (ValueError, RecursionError):
        raise InvalidParameter(f"{MANIFEST} cannot be read: it was changed or cut") from None
    said = manifest.get("format") if isinstance(manifest, dict) else None
    if said not in FORMATS or isinstance(said, (bool, float)):
        known = " and ".join(map(str, FORMATS))
        raise InvalidParameter(f"{MANIFEST} has a format that this release of discreet does not know: it knows {known}")
    if not isinstance(manifest, dict) or not manifest.keys() >= _NEEDED or not _well_formed(manifest):
        raise InvalidParameter(f"{MANIFEST} is not one that a release wrote")
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
        and manifest["kind"] in ("release", DUMMY)
        and (mark is None) == (manifest["kind"] == DUMMY)
        and _has_name(manifest)
        and ("signer" in manifest) == (manifest["format"] != 1)  # An earlier format is no way round a signature.
    )


def _has_name(manifest: dict[str, Any]) -> bool:
    try:
        return bool(_name(manifest))
    except (InvalidParameter, KeyError, TypeError):
        return False


def _name(manifest: dict[str, Any]) -> str:
    return name_of_release(manifest["name"], manifest["period"]["label"], dummy=manifest["kind"] == DUMMY)


def _files(held: BundleContents, manifest: dict[str, Any]) -> BundleFinding:
    return BundleFinding(
        "every file has the hash in the manifest", tuple(map(_printable, _changed(held, manifest["files"])))
    )


def _printable(text: str) -> str:
    """Spell out what would end a line or steer a terminal: whoever forges a bundle chooses the names of files."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _changed(held: BundleContents, listed: dict[str, Any]) -> Iterator[str]:
    there = held.files.keys() - {MANIFEST, SIGNATURE}
    yield from (f"{name} is no plain file" for name in sorted(held.odd))
    yield from (f"{name} is missing" for name in sorted(listed.keys() - there))
    yield from (f"{name} does not belong here" for name in sorted(there - listed.keys()))
    for name in sorted(listed.keys() & there):
        if listed[name] != {"sha256": sha256(held.files[name]), "bytes": len(held.files[name])}:
            yield f"{name} was changed"


def _plan(held: BundleContents, manifest: dict[str, Any]) -> BundleFinding:
    same = sha256(held.files.get("plan.toml", b"")) == manifest["plan_sha256"]
    return BundleFinding("the plan is the one that the manifest names", () if same else ("plan.toml is another plan",))


def _tables(held: BundleContents, manifest: dict[str, Any]) -> tuple[tuple[ExactTable, ...], BundleFinding]:
    what = "the tables say the same in every file"
    try:
        tables = read_exact(held.files.get(EXACT, b""))
    except InvalidParameter as error:
        return (), BundleFinding(what, (str(error),))
    return tables, BundleFinding(what, tuple(map(_printable, _differing(held, manifest, tables))))


def _differing(held: BundleContents, manifest: dict[str, Any], tables: tuple[ExactTable, ...]) -> Iterator[str]:
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
