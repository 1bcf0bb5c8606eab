"""Write a bundle: all of it or nothing, and never over another one."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter, Refused
from discreet.file_locks import lock_file, refuse_without_locks
from discreet.ledger.private_files import sync, sync_folder
from discreet.release.bundle.bundle_files import contents_of, zip_bytes
from discreet.release.bundle.bundle_reader import hold
from discreet.release.bundle.manifest import DUMMY, MANIFEST, SIGNATURE, bundle_name, digests_of, signature_file
from discreet.release.bundle.verification import verify_bundle
from discreet.release.published import Published
from discreet.release.signatures import SigningKey

__all__ = ["write_bundle"]

_OF_RELEASE = ("kind", "name", "period", "plan_sha256", "guarantee", "ledger", "tables", "running")


def write_bundle(
    published: Published,
    folder: Path,
    *,
    key: SigningKey | None = None,
    record: Callable[[Mapping[str, str]], None] | None = None,
) -> Path:
    """Write the bundle of a release below `folder`, and a .zip of it beside it; return the bundle's own folder.

    The same release is never written twice: a bundle of it that is there already, and whole, is left as it is. One that
    was changed, is of another release or is not signed with `key`, is refused. Dummies replace each other. `record` is
    told the digests of a bundle before it is there.
    """
    target = folder / bundle_name(published)
    files = _signed(replace(published, signer=None if key is None else key.public), key)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        if published.ledger is None:
            _clear_dummy(target)
        if target.exists() or target.is_symlink():
            _check_same(target, files, published.plan.schedule.another)
        else:
            if record is not None:
                record(digests_of(files[MANIFEST]))
            _place_folder(target, files)
        if published.plan.output.zip:
            _place_archive(target)
    return target


def _signed(published: Published, key: SigningKey | None) -> dict[str, bytes]:
    """Make every file, and sign the manifest."""
    files = contents_of(published)
    return files if key is None else {**files, SIGNATURE: signature_file(files[MANIFEST], key)}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time write here. What one that died left behind can then be told from work under way."""
    refuse_without_locks("a folder that bundles are written to")
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # Some network file systems lock no folders; the rename is one step there too.
            lock_file(file)
        yield
    finally:
        os.close(file)


def _clear_dummy(target: Path) -> None:
    """Take an earlier dummy away: nothing was published, and every dummy is made of other invented rows."""
    if target.is_dir() and not target.is_symlink() and DUMMY in target.name and (target / MANIFEST).is_file():
        gone = _sibling(target)
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(target, gone)
        shutil.rmtree(gone)
        target.with_name(f"{target.name}.zip").unlink(missing_ok=True)


def _check_same(target: Path, files: Mapping[str, bytes], another: str) -> None:
    """Accept a bundle of the same release that nobody changed; another version of the package may have written it."""
    way_out = "move it away, then write the bundle again; the ledger keeps the answers"
    try:
        verified = verify_bundle(target)
        held = {} if verified.problems else hold(target).files
    except (InvalidParameter, NotADirectoryError):
        raise Refused(f"{target.name} is there already, and is no bundle", way_out=way_out) from None
    if verified.problems:
        raise Refused(f"{target.name} is there already, and was changed since it was written", way_out=way_out)
    ours, there = json.loads(files[MANIFEST]), json.loads(held[MANIFEST])
    if _release_in(there, held) != _release_in(ours, files):
        raise Refused(
            f"{target.name} is there already, and holds another release",
            reason="what was published once is not replaced",
            way_out=f"{another}. To write this one again, as the plan says now, {way_out}",
        )
    if ours["signer"] is not None and there.get("signer") != ours["signer"]:
        raise Refused(f"{target.name} is there already, and is not signed with this key", way_out=way_out)


def _release_in(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return which release a bundle holds, but for lifetime budget and place of the ledger: both may change.

    The charge, by its hash in the chain, is compared all the same, so a bundle of another ledger is another release.
    """
    facts = {name: manifest.get(name) for name in _OF_RELEASE if name != "plan_sha256"}
    facts["guarantee"] = {name: fact for name, fact in manifest["guarantee"].items() if name != "lifetime_budget"}
    try:
        plan = tomllib.loads(files["plan.toml"].decode())
    except ValueError:  # Nothing that a plan is read from: its bytes tell.
        return facts | {"plan": manifest.get("plan_sha256")}
    return facts | {"plan": {name: said for name, said in plan.items() if name not in ("budget", "ledger")}}


def _place_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write into a hidden sibling, force it to disk, and give it its name in one step."""
    made = _sibling(target)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    for name, held in files.items():
        place = made / name
        place.parent.mkdir(exist_ok=True)
        _write(place, held)
    for place in sorted({made, *((made / name).parent for name in files)}):
        sync_folder(place)
    os.rename(made, target)
    sync_folder(target.parent)


def _place_archive(target: Path) -> None:
    """Pack the folder that is there, unless an archive of just these files is there too."""
    archive = target.with_name(f"{target.name}.zip")
    held = hold(target)
    if archive.exists() or archive.is_symlink():
        if _holds(archive, held.files):
            return
        raise Refused(
            f"{archive.name} is there already, and does not hold this bundle",
            way_out="move it away; it is then packed again",
        )
    made = _sibling(archive)
    made.unlink(missing_ok=True)
    _write(made, zip_bytes(target.name, held.files))
    os.rename(made, archive)
    sync_folder(archive.parent)


def _holds(archive: Path, files: Mapping[str, bytes]) -> bool:
    try:
        there = hold(archive)
    except InvalidParameter:
        return False
    return there.files == files and not there.odd


def _sibling(target: Path) -> Path:
    return target.with_name(f".{target.name}.part")


def _write(place: Path, held: bytes) -> None:
    with open(place, "xb") as file:
        file.write(held)
        file.flush()
        sync(file.fileno())
