"""A bundle is written whole or not at all, the same every time, and never over another one."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import bundle_worlds as worlds
import pytest

from discreet.errors import InvalidParameter, Refused
from discreet.release import verify_bundle
from discreet.release.bundle.bundle_files import contents_of
from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.bundle.manifest import sha256
from discreet.release.plan import Period

EXPECTED = {
    "README.txt", "report.html", "guarantee.md", "checklist.md", "dictionary.md", "dictionary.json", "plan.toml",
    "registry.json", "manifest.json", "tables.json",
}  # fmt: skip


def held(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_there(bundle, published):
    names = set(held(bundle))
    tables = {
        f"tables/{table.plan.name}{tidy}.{form}"
        for table in published.tables
        for tidy in ("", ".tidy")
        for form in ("csv", "parquet")
    }
    assert names == EXPECTED | tables
    assert bundle.name == "stays-2026-01"


def test_writing_elsewhere_gives_the_same_bytes(published, tmp_path):
    one, other = (write_bundle(published, tmp_path / name) for name in ("one", "other"))
    assert held(one) == held(other)
    assert one.with_suffix(".zip").read_bytes() == other.with_suffix(".zip").read_bytes()


@pytest.mark.long
def test_another_process_another_day_and_another_place_give_the_same_bytes(published, tmp_path):
    """Hashes of texts, clocks and places differ between processes; a bundle does not see them."""
    (tmp_path / "published.pickle").write_bytes(pickle.dumps(published))
    program = (
        "import pickle, time; time.time = lambda: 0.0\n"
        "from discreet.release.bundle.bundle_files import contents_of\n"
        "from discreet.release.bundle.manifest import sha256\n"
        "published = pickle.load(open('published.pickle', 'rb'))\n"
        "print({name: sha256(held) for name, held in contents_of(published).items()})"
    )
    strange = {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | strange,
    )
    assert ran.stdout.strip() == str({name: sha256(held) for name, held in contents_of(published).items()})


def test_a_bundle_that_is_there_is_left_alone(bundle, published):
    before = {path: path.stat().st_mtime_ns for path in bundle.rglob("*")}
    assert write_bundle(published, bundle.parent) == bundle
    assert {path: path.stat().st_mtime_ns for path in bundle.rglob("*")} == before


def test_a_missing_archive_is_packed_again(bundle, published):
    archive = bundle.with_suffix(".zip")
    packed = archive.read_bytes()
    archive.unlink()
    write_bundle(published, bundle.parent)
    assert archive.read_bytes() == packed


def test_a_changed_bundle_is_never_overwritten(bundle, published):
    (bundle / "tables" / "wards.csv").write_text("nothing")
    with pytest.raises(Refused, match="changed since"):
        write_bundle(published, bundle.parent)
    assert (bundle / "tables" / "wards.csv").read_text() == "nothing"


def test_another_release_is_never_overwritten(bundle, published):
    other = replace(published, tables=published.tables[:-1])
    with pytest.raises(Refused, match="another release"):
        write_bundle(other, bundle.parent)


@pytest.mark.parametrize("kind", ["file", "link", "empty"])
def test_what_is_no_bundle_is_never_overwritten(published, tmp_path, kind):
    target = tmp_path / "stays-2026-01"
    if kind == "file":
        target.write_text("mine")
    elif kind == "link":
        target.symlink_to(tmp_path)
    else:
        target.mkdir()
    with pytest.raises(Refused, match="no bundle"):
        write_bundle(published, tmp_path)


def test_a_foreign_archive_is_never_overwritten(published, tmp_path):
    (tmp_path / "stays-2026-01.zip").write_text("mine")
    with pytest.raises(Refused, match="does not hold this bundle"):
        write_bundle(published, tmp_path)
    assert (tmp_path / "stays-2026-01.zip").read_text() == "mine"


def test_what_a_crash_left_behind_is_swept_away(published, tmp_path):
    (tmp_path / ".stays-2026-01.part" / "tables").mkdir(parents=True)
    (tmp_path / ".stays-2026-01.part" / "README.txt").write_text("half")
    bundle = write_bundle(published, tmp_path)
    assert verify_bundle(bundle).outcome == "consistent"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stays-2026-01", "stays-2026-01.zip"]


@pytest.mark.parametrize("moment", ["write", "sync", "rename"])
def test_a_crash_leaves_nothing_under_the_name_of_the_bundle(published, tmp_path, monkeypatch, moment):
    class Crash(BaseException):
        pass

    def crash(*_: object) -> None:
        raise Crash

    where = {"write": "_write", "sync": "sync_folder"}
    if moment == "rename":
        monkeypatch.setattr(os, "rename", crash)
    else:
        monkeypatch.setattr(f"discreet.release.bundle.bundle_writer.{where[moment]}", crash)
    with pytest.raises(Crash):
        write_bundle(published, tmp_path)
    monkeypatch.undo()
    assert not (tmp_path / "stays-2026-01").exists()
    assert verify_bundle(write_bundle(published, tmp_path)).outcome == "consistent"


def test_writing_without_an_archive(published, tmp_path):
    plan = replace(published.plan, output=replace(published.plan.output, zip=False, formats=("csv",), tidy=False))
    bundle = write_bundle(replace(published, plan=plan), tmp_path)
    assert not bundle.with_suffix(".zip").exists()
    assert {path.suffix for path in (bundle / "tables").iterdir()} == {".csv"}
    assert not any("tidy" in path.name for path in (bundle / "tables").iterdir())
    assert verify_bundle(bundle).outcome == "consistent"


def test_the_archive_has_no_times(bundle):
    with zipfile.ZipFile(bundle.with_suffix(".zip")) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert all(entry.filename.startswith("stays-2026-01/") for entry in archive.infolist())


class TestDummy:
    def test_a_dummy_says_so_everywhere(self, published, tmp_path):
        bundle = write_bundle(worlds.dummy(published), tmp_path)
        assert bundle.name == "stays-2026-01-DUMMY"
        for name, content in held(bundle).items():
            assert "DUMMY" in name or b"DUMMY" in content or name == "plan.toml", name
        assert json.loads((bundle / "manifest.json").read_text())["ledger"] is None
        assert "publication_date" not in (bundle / "registry.json").read_text()

    def test_a_release_says_so_nowhere(self, bundle):
        assert not any(b"DUMMY" in content for content in held(bundle).values())

    def test_a_dummy_replaces_a_dummy_and_never_a_release(self, published, tmp_path):
        first = write_bundle(worlds.dummy(published), tmp_path)
        other = replace(worlds.dummy(published), tables=published.tables[:2])
        assert write_bundle(other, tmp_path) == first
        assert verify_bundle(first).outcome == "consistent"
        assert verify_bundle(first.with_suffix(".zip")).outcome == "consistent"
        assert not (first / "tables" / "wards.DUMMY.csv").exists()

    def test_no_ledger_holds_a_dummy(self, published, ledger, tmp_path):
        verified = verify_bundle(write_bundle(worlds.dummy(published), tmp_path), ledger=ledger)
        assert not verified.ok
        assert "no ledger holds it" in str(verified)


@pytest.mark.parametrize(
    "name", ["../stays", "a/b", "", ".hidden", "a b", "con", "LPT1", "x" * 101, "ä", "stays\n", "a.b", "-rf"]
)
class TestNames:
    def test_a_name_that_is_no_file_name_is_refused(self, published, tmp_path, name):
        with pytest.raises(InvalidParameter):
            write_bundle(replace(published, plan=replace(published.plan, name=name)), tmp_path)
        assert not list(tmp_path.iterdir())

    def test_a_label_that_is_no_file_name_is_refused(self, published, tmp_path, name):
        with pytest.raises(InvalidParameter):
            write_bundle(replace(published, period=Period(label=name)), tmp_path)

    def test_a_table_that_is_no_file_name_is_refused(self, published, tmp_path, name):
        table = replace(published.tables[0], plan=replace(published.tables[0].plan, name=name))
        with pytest.raises(InvalidParameter):
            write_bundle(replace(published, tables=(table,)), tmp_path)


def test_two_names_that_differ_by_capitals_are_refused(published, tmp_path):
    tables = [
        replace(table, plan=replace(table.plan, name=name))
        for table, name in zip(published.tables, ("a", "A"), strict=False)
    ]
    with pytest.raises(InvalidParameter, match="apart from capitals"):
        write_bundle(replace(published, tables=tuple(tables)), tmp_path)


def test_a_release_without_tables_is_refused(published, tmp_path):
    with pytest.raises(InvalidParameter, match="at least one table"):
        write_bundle(replace(published, tables=()), tmp_path)


def test_a_release_without_a_promise_is_refused(published, tmp_path):
    with pytest.raises(InvalidParameter, match="nothing could be promised"):
        write_bundle(replace(published, epsilon=float("inf")), tmp_path)


def test_two_processes_write_one_bundle(published, tmp_path):
    """Whoever comes second finds the bundle of the first and leaves it alone."""
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(3) as pool:
        written = pool.starmap(write_bundle, [(published, tmp_path)] * 3)
    assert {path.name for path in written} == {"stays-2026-01"}
    assert verify_bundle(written[0]).outcome == "consistent"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stays-2026-01", "stays-2026-01.zip"]
