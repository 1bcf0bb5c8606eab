"""The manifest: what is in a bundle, byte by byte, and where the ledger has it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from importlib.metadata import version
from typing import Any

from discreet.errors import InvalidParameter
from discreet.privacy import epsilon
from discreet.release.bundle.claims import NestedPromise, StatedGuarantee
from discreet.release.published import LedgerMark, Published, RunningRelease
from discreet.release.signatures import ALGORITHM, PublicKey, SigningKey

__all__ = [
    "DUMMY",
    "FORMAT",
    "FORMATS",
    "MANIFEST",
    "SIGNATURE",
    "TABLES",
    "bundle_name",
    "check_signature",
    "check_tables",
    "digests_of",
    "files_digest",
    "json_bytes",
    "key_facts",
    "manifest_of",
    "name_of_release",
    "release_facts",
    "sha256",
    "signature_file",
    "signer_of",
    "table_file",
    "verify_command",
]

FORMAT = 3  # 1: without a signer; 2: texts that do not say of which rows numbers are, and know no name for a unit.
FORMATS = (1, 2, FORMAT)  # Those that can be read.
MANIFEST = "manifest.json"

_PACKAGES = ("discreet", "duckdb", "numpy", "pyarrow", "sqlglot")


def manifest_of(published: Published, claim: StatedGuarantee, files: Mapping[str, bytes]) -> dict[str, Any]:
    """List every other file of a bundle with its hash."""
    return {
        "format": FORMAT,
        **release_facts(published, claim),
        "files": {name: {"sha256": sha256(held), "bytes": len(held)} for name, held in sorted(files.items())},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        "signer": None if published.signer is None else key_facts(published.signer),
        "verify": verify_command(published),
    }


def key_facts(key: PublicKey) -> dict[str, str]:
    """Name a key."""
    return {"algorithm": ALGORITHM, "public_key": key.text, "fingerprint": key.fingerprint}


def digests_of(written: bytes) -> dict[str, str]:
    """Return what the ledger records of a bundle, from its manifest: digests of the plan and of all files, and who.

    The hash of the manifest would be enough, for it has all others; the rest says what differs where something does.
    """
    manifest = json.loads(written)
    signer = manifest.get("signer")
    return {
        "manifest": sha256(written),
        "plan": manifest["plan_sha256"],
        "files": files_digest(manifest["files"]),
        "version": manifest["versions"]["discreet"],
        "signer": "" if signer is None else signer["fingerprint"],
    }


def files_digest(files: Mapping[str, Any]) -> str:
    """Return one digest of the names and hashes of all files."""
    return sha256(json.dumps({name: facts["sha256"] for name, facts in files.items()}, sort_keys=True).encode())


def release_facts(published: Published, claim: StatedGuarantee) -> dict[str, Any]:
    """Say which release this is. Two bundles of one release agree in this, whatever wrote them."""
    plan, period = published.plan, published.period
    return {
        "kind": "release" if published.ledger is not None else DUMMY,
        "name": plan.name,
        "title": plan.title,
        "publisher": plan.publisher,
        "period": {
            "label": period.label,
            "first": None if period.first is None else period.first.isoformat(),
            "end": None if period.end is None else period.end.isoformat(),
        },
        "plan_sha256": sha256(plan.written.encode()),
        "guarantee": {
            "unit": claim.unit,
            "relation": published.relation.value,
            "epsilon": published.epsilon,
            "delta": str(published.delta),
            "event": json.loads(published.event.to_json()),
            "lifetime_budget": claim.budget.packed(),
            **({} if claim.within is None else {"nested": [_nested(claim.within)]}),
        },
        "ledger": None if published.ledger is None else _mark(published.ledger),
        "tables": {table.plan.name: sha256(table.raw.to_json().encode()) for table in published.tables},
        "running": {running.plan.name: _series(running, published) for running in published.running},
    }


def _nested(promise: NestedPromise) -> dict[str, Any]:
    return {
        "unit": promise.unit,
        "epsilon": promise.epsilon,
        "delta": str(promise.delta),
        "event": json.loads(promise.event.to_json()),
        "lifetime_budget": promise.budget.packed(),
    }


def _series(running: RunningRelease, published: Published) -> dict[str, Any]:
    charge, level = running.charge, epsilon(running.event, published.delta, relation=published.relation)
    return {
        "sha256": sha256(running.table.to_json().encode()),
        "unit": running.unit,
        "epsilon": level if math.isfinite(level) else None,
        "delta": str(published.delta),
        "event": json.loads(running.event.to_json()),
        "charge": None if charge is None else charge.id,
        "hash": None if charge is None else charge.hash,
    }


def _mark(mark: LedgerMark) -> dict[str, Any]:
    moment = mark.time if mark.time.tzinfo is None else mark.time.astimezone(UTC)
    return {
        "dataset": mark.dataset,
        "charge": mark.charge,
        "hash": mark.hash,
        "time": moment.isoformat(timespec="microseconds"),
        "left": None if mark.left is None else mark.left.recorded(),
    }


def verify_command(published: Published) -> str:
    """Return the exact command that checks a bundle, run from the folder that holds it."""
    key = "" if published.signer is None else f" --key {published.signer.fingerprint}"
    return f"discreet bundle verify {bundle_name(published)}{key}"


def sha256(held: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(held).hexdigest()


def json_bytes(value: Any) -> bytes:
    """Write JSON for people and programs: the same bytes every time."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


# --- signature: The signature of a bundle: over its manifest, which has the hash of every other file. ---


SIGNATURE = "signature.json"


def signature_file(manifest: bytes, key: SigningKey) -> bytes:
    """Sign a manifest."""
    return _written(key.public, key.sign(manifest))


def _written(key: PublicKey, signature: bytes) -> bytes:
    facts = {
        "format": 1,
        "algorithm": ALGORITHM,
        "signs": MANIFEST,
        "public_key": key.text,
        "fingerprint": key.fingerprint,
        "signature": base64.b64encode(signature).decode(),
    }
    return json_bytes(facts)


def signer_of(manifest: Mapping[str, Any]) -> PublicKey | None:
    """Return the key that a manifest says it is signed with; None for a bundle without a signature."""
    said = manifest.get("signer")
    if said is None:
        return None
    key = PublicKey.from_text(said.get("public_key")) if isinstance(said, dict) else None
    if key is None or said != key_facts(key):
        raise InvalidParameter(f"{MANIFEST} names a key that is none")
    return key


def check_signature(
    files: Mapping[str, bytes], signer: PublicKey | None, trusted: PublicKey | str | None
) -> Iterator[str]:
    """Tell every way in which a bundle is not signed as it says, or not by whom the reader trusts."""
    held = files.get(SIGNATURE)
    if signer is None:
        if held is not None:
            yield f"{SIGNATURE} is there, but {MANIFEST} names no signer"
        elif trusted is not None:
            yield "it is not signed"
        return
    if held is None:
        yield f"{SIGNATURE} is missing: {MANIFEST} says that it is signed by {signer.fingerprint}"
        return
    signature = _signature(held)
    # Written again it must have the same bytes: nothing is in the file but a signature by the key of the manifest.
    if signature is None or held != _written(signer, signature):
        yield f"{SIGNATURE} is not a signature by the key that {MANIFEST} names"
    elif not signer.has_signed(files[MANIFEST], signature):
        yield f"the signature is not one of this {MANIFEST}"
    if trusted is not None and trusted not in (signer, signer.fingerprint):
        yield f"it is signed by another key: {signer.fingerprint}"


def _signature(held: bytes) -> bytes | None:
    try:
        return base64.b64decode(json.loads(held)["signature"].encode("ascii"), validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
        return None


# --- file_names: Names of files and folders: made of validated words of the plan only, never of data. ---


DUMMY = "DUMMY"
TABLES = "tables"  # The folder of the tables, within a bundle.

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
# Names that one widely used system keeps for its devices, whatever their suffix.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


def bundle_name(published: Published) -> str:
    """Name the folder of a bundle after its plan and its period; that of a dummy says so."""
    return name_of_release(published.plan.name, published.period.label, dummy=published.ledger is None)


def name_of_release(plan: str, period: str, *, dummy: bool) -> str:
    """Return the name of a bundle from what its manifest says; refuse words that no plan has."""
    words = [_word(plan, "the name of a plan"), _word(period, "the label of a period")]
    return "-".join([*words, *([DUMMY] if dummy else [])])


def table_file(name: str, suffix: str, *, tidy: bool, dummy: bool) -> str:
    """Return where a table is, as a path within the bundle."""
    parts = [_word(name, "the name of a table"), *(["tidy"] if tidy else []), *([DUMMY] if dummy else []), suffix]
    return f"{TABLES}/{'.'.join(parts)}"


def check_tables(names: Iterable[str]) -> None:
    """Refuse names that are no file names, and two that some file systems hold for one."""
    seen: set[str] = set()
    for name in names:
        if _word(name, "the name of a table").casefold() in seen:
            raise InvalidParameter(f"two tables are called {name!r}, apart from capitals: rename one of them")
        seen.add(name.casefold())


def _word(text: str, what: str) -> str:
    if not _WORD.fullmatch(text) or text.casefold() in _DEVICES:
        raise InvalidParameter(f"{what} is made of letters, digits, - and _ (at most 100), and is no device: {text!r}")
    return text
