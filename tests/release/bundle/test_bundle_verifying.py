"""Whatever was changed in a bundle is found, and whatever was not is not complained about."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import bundle_worlds as worlds
import pyarrow.parquet as pq
import pytest

from discreet.errors import InvalidParameter
from discreet.release import verify_bundle
from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.bundle.manifest import json_bytes, sha256
from discreet.release.bundle.verification import Verified
from discreet.release.published import Published


def rehashed(bundle: Path, name: str, content: bytes) -> None:
    """Change a file, and the manifest with it, as somebody would who wants to hide it."""
    (bundle / name).write_bytes(content)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"][name] = {"sha256": sha256(content), "bytes": len(content)}
    (bundle / "manifest.json").write_bytes(json_bytes(manifest))


def test_a_bundle_and_its_archive_are_verified(bundle, ledger):
    for path, book in ((bundle, ledger), (bundle.with_suffix(".zip"), None), (str(bundle), None)):
        verified = verify_bundle(path, ledger=book)
        assert verified.problems == ()
        assert verified.name == "stays-2026-01"
        assert verified.outcome == ("consistent" if book is None else "matches the ledger")
        assert not verified.ok
        assert str(verified).startswith(f"stays-2026-01: {verified.outcome}")


def test_the_result_is_frozen(bundle):
    with pytest.raises(AttributeError):
        verify_bundle(bundle).name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "ending", [".csv", ".parquet", ".html", ".md", ".txt", ".toml", "tables.json", "registry.json"]
)
def test_one_changed_bit_is_found(bundle, ending):
    path = sorted(path for path in bundle.rglob("*") if path.name.endswith(ending))[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    verified = verify_bundle(bundle)
    assert not verified.ok
    assert f"{path.relative_to(bundle).as_posix()} was changed" in verified.problems
    assert "NOT VERIFIED" in str(verified)


def test_a_missing_file_is_found(bundle):
    (bundle / "tables" / "wards.csv").unlink()
    assert verify_bundle(bundle).problems == ("tables/wards.csv is missing",)


@pytest.mark.parametrize("name", ["extra.txt", "tables/extra.csv", "tables/deep/extra.csv", ".hidden"])
def test_a_file_too_many_is_found(bundle, name):
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_text("x")
    assert f"{name} does not belong here" in verify_bundle(bundle).problems


def test_a_link_is_found_and_not_followed(bundle, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes((bundle / "README.txt").read_bytes())
    (bundle / "README.txt").unlink()
    (bundle / "README.txt").symlink_to(secret)
    assert set(verify_bundle(bundle).problems) == {"README.txt is no plain file", "README.txt is missing"}


def test_a_linked_folder_is_found_and_not_followed(bundle, tmp_path):
    (bundle / "tables").rename(tmp_path / "elsewhere")
    (bundle / "tables").symlink_to(tmp_path / "elsewhere")
    problems = verify_bundle(bundle).problems
    assert "tables is no plain file" in problems
    assert "tables/wards.csv is missing" in problems


class TestCleverChanges:
    """Whoever changes the manifest too is found by what the files say to each other, and by the ledger."""

    def test_a_csv_with_a_better_number(self, bundle):
        text = (bundle / "tables" / "wards.csv").read_text()
        rehashed(bundle, "tables/wards.csv", text.replace("7", "8").encode())
        assert verify_bundle(bundle).problems == ("tables/wards.csv does not say what tables.json says",)

    def test_a_parquet_file_with_a_better_number(self, bundle):
        path = bundle / "tables" / "wards.parquet"
        table = pq.read_table(path).slice(1)
        packed = io.BytesIO()
        pq.write_table(table, packed)
        rehashed(bundle, "tables/wards.parquet", packed.getvalue())
        assert verify_bundle(bundle).problems == ("tables/wards.parquet does not say what tables.json says",)

    def test_a_parquet_file_that_is_packed_otherwise_is_the_same(self, bundle):
        path = bundle / "tables" / "wards.parquet"
        packed = io.BytesIO()
        pq.write_table(pq.read_table(path), packed, compression="none")
        rehashed(bundle, "tables/wards.parquet", packed.getvalue())
        assert verify_bundle(bundle).outcome == "consistent"

    def test_a_parquet_file_that_is_none(self, bundle):
        rehashed(bundle, "tables/wards.parquet", b"PAR1" * 10)
        assert verify_bundle(bundle).problems

    def test_another_plan(self, bundle):
        rehashed(bundle, "plan.toml", b"name = 'other'")
        assert verify_bundle(bundle).problems == ("plan.toml is another plan",)

    def test_exact_numbers_that_are_none(self, bundle):
        for content in (
            b"",
            b"[]",
            b'{"format": 1, "tables": {"a": {}}}',
            b'{"format": 2}',
            b'{"format":1,"tables":5}',
        ):
            rehashed(bundle, "tables.json", content)
            assert verify_bundle(bundle).problems

    def test_a_whole_forged_bundle_is_found_by_the_ledger(self, published, ledger, tmp_path):
        """Everything is consistent, every hash is right: but one count is higher by one than what was stored."""
        table = published.tables[1]
        raw = json.loads(table.raw.to_json())
        raw["columns"][1]["values"]["over"][0] += 1
        forged = replace(table, raw=type(table.raw).from_json(json.dumps(raw)), tidy=None)
        bundle = write_bundle(replace(published, tables=(forged,)), tmp_path)
        assert verify_bundle(bundle).outcome == "consistent"
        problems = verify_bundle(bundle, ledger=ledger).problems
        assert "by_district is not the table that was stored" in problems
        assert "wards is not in tables.json, but was stored" in problems


class TestRebuilding:
    """Every hash is right and every raw number true: what does not follow from the plan and the ledger is found."""

    def problems(self, forged: Published, ledger: Path, folder: Path) -> tuple[str, ...]:
        bundle = write_bundle(forged, folder)
        assert verify_bundle(bundle).outcome == "consistent"
        return verify_bundle(bundle, ledger=ledger).problems

    def changed(self, published: Published, number: int, **changes: object) -> Published:
        tables = list(published.tables)
        tables[number] = replace(tables[number], **changes)  # type: ignore[arg-type]
        return replace(published, tables=tuple(tables))

    def test_tidy_values_that_were_moved(self, published, ledger, tmp_path):
        tidy = published.tables[1].tidy
        stored = json.loads(tidy.to_json())
        stored["columns"][1]["values"][0] = {"f": "9999"}
        forged = self.changed(published, 1, tidy=type(tidy).from_json(json.dumps(stored)))
        assert self.problems(forged, ledger, tmp_path) == (
            "the tidy values of by_district do not follow from the raw ones",
        )

    def test_noise_that_is_told_smaller(self, published, ledger, tmp_path):
        forged = self.changed(published, 1, deviations={"stays": Fraction(1)})
        assert self.problems(forged, ledger, tmp_path) == ("by_district tells other noise than the plan has",)

    def test_a_threshold_that_was_never_there(self, published, ledger, tmp_path):
        forged = self.changed(published, 1, threshold="nothing is ever shown")
        found = self.problems(forged, ledger, tmp_path)
        assert "report.html does not follow from the plan and the ledger" in found
        assert "dictionary.md does not follow from the plan and the ledger" in found

    @pytest.mark.parametrize("name", ["report.html", "guarantee.md"])
    def test_words_that_were_changed(self, bundle, ledger, name):
        rehashed(bundle, name, (bundle / name).read_bytes().replace(b"patient", b"nobody"))
        assert verify_bundle(bundle).outcome == "consistent"
        found = verify_bundle(bundle, ledger=ledger).problems
        assert found == (f"{name} does not follow from the plan and the ledger",)

    def test_a_title_that_was_changed(self, bundle, ledger):
        manifest = json.loads((bundle / "manifest.json").read_text())
        manifest["title"] = "Something else"
        (bundle / "manifest.json").write_bytes(json_bytes(manifest))
        assert verify_bundle(bundle, ledger=ledger).problems == (
            "manifest.json says another title than follows from the plan and the ledger",
        )

    def test_a_plan_that_costs_something_else(self, published, ledger, tmp_path):
        plan = replace(published.plan, written=published.plan.written.replace("epsilon = 2", "epsilon = 1"))
        assert self.problems(replace(published, plan=plan), ledger, tmp_path) == (
            "the plan has another price than the one that was charged",
        )

    def test_a_plan_that_is_none(self, published, ledger, tmp_path):
        plan = replace(published.plan, written="name = 'stays'")
        (problem,) = self.problems(replace(published, plan=plan), ledger, tmp_path)
        assert problem.startswith("the plan could not be priced again here")

    @pytest.mark.parametrize("source", ["/etc/passwd", "../../secret.csv", "linked.csv"])
    def test_a_plan_of_a_stranger_opens_no_file_elsewhere(self, published, ledger, tmp_path, source):
        """Whoever gets a plan checked could have any file read by calling it public."""
        link = ledger.parent / "linked.csv"
        link.unlink(missing_ok=True)
        link.symlink_to("/etc/passwd")
        public = (
            f'[tables.extra]\npublic = true\nsource = "{source}"\n[tables.extra.columns]\nx = {{ kind = "text" }}\n'
        )
        plan = replace(published.plan, written=published.plan.written.replace("[release]", f"{public}[release]"))
        bundle = write_bundle(replace(published, plan=plan), tmp_path)
        verified = verify_bundle(bundle, ledger=ledger)
        assert "not checked: the plan names public tables that are not beside the ledger" in str(verified)
        assert "root:" not in str(verified)

    def test_a_bundle_of_another_version_is_compared_as_far_as_it_can_be(self, bundle, ledger):
        manifest = json.loads((bundle / "manifest.json").read_text())
        manifest["versions"]["discreet"] = "0.0.9"
        (bundle / "manifest.json").write_bytes(json_bytes(manifest))
        verified = verify_bundle(bundle, ledger=ledger)
        assert not verified.ok
        assert verified.outcome == "matches the ledger"
        assert "not checked: it was written with discreet 0.0.9" in str(verified)


class TestLedger:
    """Each fact that a bundle claims of the ledger is compared."""

    def problems(self, published: Published, ledger: Path, folder: Path) -> tuple[str, ...]:
        bundle = write_bundle(published, folder)
        assert verify_bundle(bundle).outcome == "consistent"
        return verify_bundle(bundle, ledger=ledger).problems

    def mark(self, published: Published, **changes: object) -> Published:
        assert published.ledger is not None
        return replace(published, ledger=replace(published.ledger, **changes))  # type: ignore[arg-type]

    def test_another_charge(self, published, ledger, tmp_path):
        assert self.problems(self.mark(published, charge=99), ledger, tmp_path) == ("the ledger has no charge 99",)

    def test_an_entry_that_is_no_charge(self, published, ledger, tmp_path):
        assert self.problems(self.mark(published, charge=1), ledger, tmp_path) == ("the ledger has no charge 1",)

    def test_another_hash(self, published, ledger, tmp_path):
        assert self.problems(self.mark(published, hash="0" * 64), ledger, tmp_path) == ("the charge has another hash",)

    def test_another_data_set(self, published, ledger, tmp_path):
        found = self.problems(self.mark(published, dataset="other"), ledger, tmp_path)
        assert found == ("the charge is of another data set",)

    def test_another_time(self, published, ledger, tmp_path):
        assert published.ledger is not None
        moved = published.ledger.time.replace(year=2020)
        assert self.problems(self.mark(published, time=moved), ledger, tmp_path) == (
            "the charge was made at another time",
        )

    def test_another_rest(self, published, ledger, tmp_path):
        more = replace(published.ledger.left, share=1.0)
        assert self.problems(self.mark(published, left=more), ledger, tmp_path) == (
            "something else was left of the budget",
        )

    def test_another_event(self, published, ledger, tmp_path):
        other = replace(published, event=published.tables[0].raw.event)
        assert "another event was charged" in self.problems(other, ledger, tmp_path)

    def test_a_smaller_epsilon(self, published, ledger, tmp_path):
        better = replace(published, epsilon=published.epsilon / 2)
        problems = verify_bundle(write_bundle(better, tmp_path), ledger=ledger).problems
        assert "manifest.json states a smaller ε for the release than its event has" in problems
        assert "ε and δ are not those of the event that was charged" in problems

    def test_a_smaller_delta(self, published, ledger, tmp_path):
        better = replace(published, delta=Fraction(1, 10**12))
        problems = verify_bundle(write_bundle(better, tmp_path), ledger=ledger).problems
        assert "manifest.json states a smaller ε for the release than its event has" in problems
        assert "ε and δ are not those of the event that was charged" in problems

    def test_another_unit(self, published, ledger, tmp_path):
        policy = replace(published.plan.policy, unit=replace(published.plan.policy.unit, column="visit"))
        other = replace(published, plan=replace(published.plan, policy=policy))
        assert self.problems(other, ledger, tmp_path) == ("the ledger protects another unit",)

    def test_another_ledger(self, published, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        worlds.release(tmp_path / "elsewhere")
        found = self.problems(published, tmp_path / "elsewhere" / "hospital.ledger", tmp_path)
        assert "the charge has another hash" in found
        assert "by_district is not the table that was stored" in found

    def test_no_ledger(self, published, tmp_path):
        (problem,) = self.problems(published, tmp_path / "missing.ledger", tmp_path)
        assert problem.startswith("the ledger cannot be relied on")

    def test_a_file_that_is_no_ledger(self, published, tmp_path):
        (tmp_path / "no.ledger").write_bytes(b"x" * 4096)
        (problem,) = self.problems(published, tmp_path / "no.ledger", tmp_path)
        assert problem.startswith("the ledger cannot be relied on")


class TestArchives:
    """An archive from a stranger can do no harm."""

    def made(self, tmp_path: Path, entries: dict[str, bytes], **facts: int) -> Path:
        path = tmp_path / "strange.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in entries.items():
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                for fact, value in facts.items():
                    setattr(entry, fact, value)
                archive.writestr(entry, content)
        return path

    def packed(self, bundle: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(bundle.with_suffix(".zip")) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    @pytest.mark.parametrize(
        "name",
        ["../evil", "stays-2026-01/../evil", "/etc/passwd", "stays-2026-01/tables/../../evil", "evil", "a\\..\\evil"],
    )
    def test_a_path_that_leads_out_is_found(self, bundle, tmp_path, name):
        archive = self.made(tmp_path, self.packed(bundle) | {name: b"x"})
        verified = verify_bundle(archive)
        assert not verified.ok
        assert f"{name} is no plain file" in verified.problems
        assert not (tmp_path / "evil").exists()
        assert not (tmp_path.parent / "evil").exists()

    def test_a_link_is_found(self, bundle, tmp_path):
        packed = self.packed(bundle)
        path = tmp_path / "linked.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in packed.items():
                entry = zipfile.ZipInfo(name)
                if name.endswith("README.txt"):
                    entry.external_attr, content = 0o120777 << 16, b"/etc/passwd"
                archive.writestr(entry, content)
        assert "stays-2026-01/README.txt is no plain file" in verify_bundle(path).problems

    def test_two_entries_of_one_name_are_found(self, bundle, tmp_path):
        path = tmp_path / "twice.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in self.packed(bundle).items():
                archive.writestr(name, content)
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr("stays-2026-01/README.txt", b"another text for those who read the last one")
        assert verify_bundle(path).problems

    def test_two_folders_are_found(self, bundle, tmp_path):
        archive = self.made(tmp_path, self.packed(bundle) | {"other/README2.txt": b"x"})
        assert verify_bundle(archive).problems

    def test_a_bomb_is_not_unpacked(self, bundle, tmp_path, monkeypatch):
        monkeypatch.setattr("discreet.release.bundle.bundle_reader._LARGEST", 10_000_000)
        bomb = self.made(tmp_path, self.packed(bundle) | {"stays-2026-01/bomb.txt": b"\0" * 20_000_000})
        assert bomb.stat().st_size < 1_000_000
        with pytest.raises(InvalidParameter, match="too large"):
            verify_bundle(bomb)

    def test_too_many_files_are_not_read(self, bundle, monkeypatch):
        monkeypatch.setattr("discreet.release.bundle.bundle_reader._MOST_FILES", 5)
        for path in (bundle, bundle.with_suffix(".zip")):
            with pytest.raises(InvalidParameter, match="too large"):
                verify_bundle(path)

    def test_a_damaged_archive_is_refused(self, bundle, tmp_path):
        content = bytearray(bundle.with_suffix(".zip").read_bytes())
        content[200] ^= 255
        (tmp_path / "damaged.zip").write_bytes(content)
        with pytest.raises(InvalidParameter, match="damaged"):
            verify_bundle(tmp_path / "damaged.zip")

    def test_an_encrypted_archive_is_refused(self, bundle, tmp_path):
        content = bytearray(bundle.with_suffix(".zip").read_bytes())
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = -1
            while (at := content.find(mark, at + 1)) >= 0:
                content[at + place] |= 1
        (tmp_path / "locked.zip").write_bytes(content)
        with pytest.raises(InvalidParameter, match="encrypted"):
            verify_bundle(tmp_path / "locked.zip")


class TestWithoutLedger:
    """What contradicts itself is found by anybody; all else needs a key or the ledger, and the text says so."""

    def test_a_dictionary_of_other_tables(self, bundle):
        said = json.loads((bundle / "dictionary.json").read_text())
        said["tables"][0]["files"][0]["columns"].pop()
        rehashed(bundle, "dictionary.json", json_bytes(said))
        (problem,) = verify_bundle(bundle).problems
        assert "describes other columns" in problem
        said["tables"].pop(0)
        rehashed(bundle, "dictionary.json", json_bytes(said))
        assert "dictionary.json describes other tables than tables.json holds" in verify_bundle(bundle).problems
        for content in (b"[]", b"{}", b"x"):
            rehashed(bundle, "dictionary.json", content)
            assert verify_bundle(bundle).problems == ("dictionary.json is none that a release wrote",)

    def test_a_page_of_another_dictionary(self, bundle):
        rehashed(bundle, "dictionary.md", b"# Another one")
        assert all("dictionary.md does not describe" in problem for problem in verify_bundle(bundle).problems)
        assert verify_bundle(bundle).problems

    @pytest.mark.parametrize("name", ["guarantee.md", "report.html"])
    def test_a_rarer_chance(self, bundle, name):
        text = (bundle / name).read_text(encoding="utf-8")
        changed, count = re.subn(r"(a\schance\sof\s1\sin\s)[\d,]+", r"\g<1>9,999,999,999", text)
        assert count
        rehashed(bundle, name, changed.encode())
        assert any("states a chance of 1 in 9,999,999,999," in problem for problem in verify_bundle(bundle).problems)

    def test_it_says_what_to_add(self, bundle):
        assert verify_bundle(bundle).describe().endswith("add --key or --ledger to know more")


class TestNoBundle:
    @pytest.mark.parametrize("name", ["missing", "missing.zip", "file.txt", "empty"])
    def test_what_is_no_bundle_is_refused(self, tmp_path, name):
        (tmp_path / "file.txt").write_text("x")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InvalidParameter):
            verify_bundle(tmp_path / name)

    @pytest.mark.parametrize(
        "content",
        [b"", b"null", b"[]", b"{}", b"\xff\xfe", b'{"format": 1}', b"[" * 100_000],
        ids=["empty", "null", "list", "object", "bytes", "short", "deep"],
    )
    def test_a_manifest_that_is_none_is_refused(self, bundle, content):
        (bundle / "manifest.json").write_bytes(content)
        with pytest.raises(InvalidParameter, match=r"manifest\.json"):
            verify_bundle(bundle)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("format", 4), ("format", 1), ("format", "1"), ("format", True), ("format", 2.0),
         ("files", []), ("files", {"a": 5}), ("tables", None), ("guarantee", 1),
         ("ledger", {}), ("ledger", None), ("kind", "DUMMY")],
    )  # fmt: skip
    def test_a_manifest_of_another_form_is_refused(self, bundle, field, value):
        manifest = json.loads((bundle / "manifest.json").read_text())
        manifest[field] = value
        (bundle / "manifest.json").write_bytes(json_bytes(manifest))
        with pytest.raises(InvalidParameter):
            verify_bundle(bundle)


def test_the_text_tells_what_was_checked(bundle, ledger):
    verified = verify_bundle(bundle, ledger=ledger)
    assert isinstance(verified, Verified)
    assert [check.what for check in verified.checks] == [
        "every file has the hash in the manifest",
        "the plan is the one that the manifest names",
        "the tables say the same in every file",
        "“ε = …”, guesses and factors of the texts follow from the event",
        "the dictionary describes these tables and columns",
        "the ledger holds this release",
        "the ledger has recorded this manifest",
        "everything else follows from the plan and the ledger",
    ]
