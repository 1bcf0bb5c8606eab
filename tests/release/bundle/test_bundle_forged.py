"""A bundle is what its publisher wrote, or it is not verified: signatures, and digests in the ledger."""

from __future__ import annotations

import io
import json
import re
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bundle_worlds as worlds
import pyarrow.parquet as pq
import pytest

from discreet.cli.command_runner import run
from discreet.cli.exits import Code
from discreet.errors import InvalidParameter, Refused
from discreet.ledger import look
from discreet.ledger.prices import concentrated_price
from discreet.privacy import Event, Relation, epsilon
from discreet.privacy.events import from_json
from discreet.release import new_key, publish, read_release_plan, read_signing_key, verify_bundle
from discreet.release.bundle.manifest import json_bytes, sha256, signature_file
from discreet.release.signatures import SigningKey


class World:
    """A release that was really made: signed, and recorded in its ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ledger = folder, folder / "hospital.ledger"
        self.fingerprint = new_key(folder / "board.key").fingerprint
        new_key(folder / "other.key")
        text = worlds.pure_text().replace('folder = "published"', 'folder = "published"\nkey = "board.key"')
        (folder / "plan.toml").write_text(text, encoding="utf-8")
        pq.write_table(worlds.stays(), folder / "stays.parquet")
        self.plan = read_release_plan(folder / "plan.toml")
        self.bundle = publish(self.plan, principal="ana", period=self.plan.schedule.period(0))

    def key(self, name: str = "board") -> SigningKey:
        return read_signing_key(self.folder / f"{name}.key")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def copy(signed: World, tmp_path: Path) -> Path:
    return shutil.copytree(signed.bundle, tmp_path / signed.bundle.name)


def edited(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    change(manifest)
    (bundle / "manifest.json").write_bytes(json_bytes(manifest))


def rewritten(bundle: Path, name: str, content: bytes) -> None:
    """Change a file and its hash, as a forger does."""
    (bundle / name).write_bytes(content)
    edited(bundle, lambda m: m["files"].update({name: {"sha256": sha256(content), "bytes": len(content)}}))


def event_of(manifest: dict[str, Any]) -> Event:
    return from_json(json.dumps(manifest["guarantee"]["event"]))


def resigned(bundle: Path, key: SigningKey) -> None:
    """Sign a manifest anew; it then names that key."""
    facts = {"algorithm": "Ed25519", "public_key": key.public.text, "fingerprint": key.public.fingerprint}
    edited(bundle, lambda m: m.update(signer=facts))
    (bundle / "signature.json").write_bytes(signature_file((bundle / "manifest.json").read_bytes(), key))


class TestOutcomes:
    def test_each_way_to_check_has_its_word(self, signed):
        assert verify_bundle(signed.bundle).outcome == "consistent"
        assert verify_bundle(signed.bundle, key=signed.fingerprint).outcome == "signed"
        assert verify_bundle(signed.bundle, ledger=signed.ledger).outcome == "verified"
        assert verify_bundle(signed.bundle, ledger=signed.ledger, key=signed.fingerprint).outcome == "verified"

    def test_only_a_known_origin_is_ok(self, signed):
        assert not verify_bundle(signed.bundle).ok
        assert verify_bundle(signed.bundle, key=signed.folder / "board.key.pub").ok
        assert verify_bundle(signed.bundle.with_suffix(".zip"), key=signed.key().public).ok
        assert verify_bundle(signed.bundle, ledger=signed.ledger).ok

    def test_the_word_verified_is_for_everything(self, signed, copy):
        assert "verified" not in str(verify_bundle(copy)).casefold()
        assert "verified" not in str(verify_bundle(copy, key=signed.fingerprint)).casefold()
        assert signed.fingerprint in str(verify_bundle(copy, key=signed.fingerprint))

    def test_the_command_has_an_exit_code_for_each(self, signed, copy, capfd):
        ledger, key = ["--ledger", str(signed.ledger)], ["--key", signed.fingerprint]
        verify = ["bundle", "verify", str(copy)]
        assert run(verify) == Code.NOT_CHECKED
        assert run([*verify, *key]) == Code.OK
        assert run([*verify, *ledger]) == Code.OK
        (copy / "README.txt").write_text("x")
        for more in ([], key, ledger):
            assert run([*verify, *more]) == Code.REFUSED
        capfd.readouterr()

    def test_the_fingerprint_is_in_report_registry_and_readme(self, signed):
        for name in ("report.html", "registry.json", "README.txt", "manifest.json", "signature.json"):
            assert signed.fingerprint in (signed.bundle / name).read_text(), name

    def test_written_again_it_has_the_same_bytes(self, signed, tmp_path):
        moved = tmp_path / "before"
        shutil.copytree(signed.bundle, moved)
        shutil.rmtree(signed.bundle)
        again = publish(signed.plan, principal="ana", period=signed.plan.schedule.period(0))
        assert {p.name: p.read_bytes() for p in again.iterdir() if p.is_file()} == {
            p.name: p.read_bytes() for p in moved.iterdir() if p.is_file()
        }
        assert len(look(signed.ledger).bundles(2)) == 1, "the same digests are recorded once"

    def test_another_key_does_not_sign_what_is_there(self, signed):
        with pytest.raises(Refused, match="not signed with this key"):
            publish(signed.plan, principal="ana", period=signed.plan.schedule.period(0), key=signed.key("other"))


class TestForgedWithTheLedger:
    """What the ledger recorded cannot be talked out of it."""

    def forged(self, copy: Path) -> None:
        """A whole other guarantee, with every hash right."""
        text = (copy / "guarantee.md").read_text()
        rewritten(copy, "guarantee.md", text.replace("patient", "nobody").encode())

    @pytest.mark.parametrize("package", ["discreet", "sqlglot"])
    def test_a_forged_version_skips_nothing(self, signed, copy, package):
        self.forged(copy)
        edited(copy, lambda m: m["versions"].update({package: "0.0.1"}))
        edited(copy, lambda m: m.update(signer=None))
        (copy / "signature.json").unlink()
        verified = verify_bundle(copy, ledger=signed.ledger)
        assert verified.outcome == "NOT VERIFIED"
        assert "its files are not those that were written" in verified.problems

    def test_a_forged_version_alone_is_found(self, signed, copy):
        edited(copy, lambda m: m["versions"].update({"discreet": "0.0.1"}))
        resigned(copy, signed.key())
        assert verify_bundle(copy, ledger=signed.ledger).problems == (
            "another version of the package is named than the one that wrote it",
        )

    @pytest.mark.parametrize("source", ["/etc/passwd", "elsewhere.csv"])
    def test_a_plan_that_names_another_table_skips_nothing(self, signed, copy, source):
        more = f'\n[tables.extra]\npublic = true\nsource = "{source}"\n'
        plan = (copy / "plan.toml").read_bytes() + more.encode()
        rewritten(copy, "plan.toml", plan)
        edited(copy, lambda m: m.update(plan_sha256=sha256(plan)))
        resigned(copy, signed.key("other"))
        problems = verify_bundle(copy, ledger=signed.ledger).problems
        assert "the plan is not the one that was run" in problems
        assert "another signer is named than the one that signed it" in problems

    def test_an_earlier_format_skips_nothing(self, signed, copy):
        edited(copy, lambda m: (m.update(format=1), m.pop("signer")))
        (copy / "signature.json").unlink()
        assert verify_bundle(copy, ledger=signed.ledger).outcome == "NOT VERIFIED"

    def test_a_manifest_in_other_words_is_found(self, signed, copy):
        edited(copy, lambda m: m.update(title="Something else"))
        resigned(copy, signed.key())
        assert verify_bundle(copy, ledger=signed.ledger).problems == ("its manifest is not the one that was written",)


class TestSignatures:
    """Whoever names a key is told of everything that its owner did not sign."""

    def problems(self, signed: World, bundle: Path) -> tuple[str, ...]:
        verified = verify_bundle(bundle, key=signed.fingerprint)
        assert verified.outcome == "NOT VERIFIED"
        return verified.problems

    def test_a_signature_that_was_taken_away(self, signed, copy):
        (copy / "signature.json").unlink()
        assert any("signature.json is missing" in each for each in self.problems(signed, copy))
        assert verify_bundle(copy).outcome == "NOT VERIFIED"

    def test_a_bundle_that_says_it_was_never_signed(self, signed, copy):
        (copy / "signature.json").unlink()
        edited(copy, lambda m: m.update(signer=None))
        assert self.problems(signed, copy) == ("it is not signed",)

    def test_an_earlier_format_that_knew_no_signatures(self, signed, copy):
        (copy / "signature.json").unlink()
        edited(copy, lambda m: (m.update(format=1), m.pop("signer")))
        assert self.problems(signed, copy) == ("it is not signed",)

    def test_an_earlier_format_with_a_signer_is_none(self, copy):
        edited(copy, lambda m: m.update(format=1))
        with pytest.raises(InvalidParameter):
            verify_bundle(copy)

    def test_another_key(self, signed, copy):
        resigned(copy, signed.key("other"))
        assert verify_bundle(copy).outcome == "consistent"
        (problem,) = self.problems(signed, copy)
        assert problem.startswith("it is signed by another key")

    def test_another_key_however_the_right_one_is_named(self, signed, copy):
        ways = (signed.fingerprint, signed.folder / "board.key.pub", signed.key().public)
        assert {verify_bundle(copy, key=way).outcome for way in ways} == {"signed"}
        resigned(copy, signed.key("other"))
        for way in ways:
            (problem,) = verify_bundle(copy, key=way).problems
            assert problem.startswith("it is signed by another key")

    def test_the_key_of_the_manifest_with_the_signature_of_another(self, signed, copy):
        other = signed.key("other")
        (copy / "signature.json").write_bytes(signature_file((copy / "manifest.json").read_bytes(), other))
        assert self.problems(signed, copy)
        forged = json.loads((copy / "signature.json").read_text())
        forged |= {"public_key": signed.key().public.text, "fingerprint": signed.fingerprint}
        (copy / "signature.json").write_bytes(json_bytes(forged))
        assert self.problems(signed, copy) == ("the signature is not one of this manifest.json",)

    def test_a_changed_file_and_manifest(self, signed, copy):
        rewritten(copy, "README.txt", (copy / "README.txt").read_bytes() + b"more\n")
        assert self.problems(signed, copy) == ("the signature is not one of this manifest.json",)

    def test_a_file_too_many(self, signed, copy):
        (copy / "extra.txt").write_text("x")
        assert self.problems(signed, copy) == ("extra.txt does not belong here",)

    @pytest.mark.parametrize("more", [{"note": "x"}, {"format": 2}, {"algorithm": "none"}, {"signature": ""}])
    def test_a_signature_file_with_anything_else(self, signed, copy, more):
        said = json.loads((copy / "signature.json").read_text())
        (copy / "signature.json").write_bytes(json_bytes(said | more))
        assert self.problems(signed, copy)

    def test_a_signature_of_a_bundle_that_names_no_signer(self, copy):
        edited(copy, lambda m: m.update(signer=None))
        assert verify_bundle(copy).outcome == "NOT VERIFIED"


TEXTS = ("guarantee.md", "checklist.md", "report.html", "registry.json", "README.txt")


class TestNumbersOfTheTexts:
    """ε is worked out again from the event: no text states another one, not even by a hundredth."""

    @pytest.mark.parametrize("name", ["guarantee.md", "checklist.md", "report.html"])
    @pytest.mark.parametrize("factor", [0.99, 1.01])
    def test_an_epsilon_that_is_off_by_a_hundredth_is_found(self, copy, name, factor):
        text = (copy / name).read_text()
        found = re.search(r"ε(?: |\u00a0|&nbsp;)=(?: |\u00a0|&nbsp;)(2|1\.\d+)", text)
        assert found, name
        start, end = found.span(1)
        rewritten(copy, name, f"{text[:start]}{float(found[1]) * factor:.4g}{text[end:]}".encode())
        assert any(each.startswith(f"{name} states ε") for each in verify_bundle(copy).problems)

    @pytest.mark.parametrize("name", ["guarantee.md", "report.html", "README.txt"])
    def test_a_better_guess_is_found(self, copy, name):
        text = (copy / name).read_text()
        shown = re.search(r"at most (\d\d\.\d)", text)[1]
        rewritten(copy, name, text.replace(shown, f"{float(shown) - 0.5:.1f}").encode())
        assert any(each.startswith(f"{name} ") for each in verify_bundle(copy).problems)

    @pytest.mark.parametrize("name", ["guarantee.md", "checklist.md"])
    def test_a_text_that_no_longer_states_it_is_found(self, copy, name):
        rewritten(copy, name, (copy / name).read_text().replace("ε =", "it is").encode())
        assert f"{name} does not state the ε of the event" in verify_bundle(copy).problems

    def test_the_list_of_tables(self, copy):
        text = (copy / "guarantee.md").read_text()
        row = re.search(r"\| `by_district` \| (\d\.\d+) \|", text)
        changed = text.replace(row[0], row[0].replace(row[1], f"{float(row[1]) * 0.99:.4g}"))
        rewritten(copy, "guarantee.md", changed.encode())
        assert verify_bundle(copy).problems[0].startswith("guarantee.md states another ε for table by_district")

    @pytest.mark.parametrize("number", ["epsilon", "delta"])
    def test_the_numbers_of_the_registry(self, copy, number):
        entry = json.loads((copy / "registry.json").read_text())
        numbers = entry["deployment"]["privacy_loss"]["privacy_parameters"]
        numbers[number] = numbers[number] * 0.99 or 1e-9
        rewritten(copy, "registry.json", json_bytes(entry))
        assert any(each.startswith("registry.json states another") for each in verify_bundle(copy).problems)

    @pytest.mark.parametrize("factor", [0.99, 1 - 1e-6])
    def test_a_smaller_rho_in_the_registry(self, copy, factor):
        event = event_of(json.loads((copy / "manifest.json").read_text()))
        rho = float(concentrated_price(event, Relation.ADD_REMOVE).rho)
        entry = json.loads((copy / "registry.json").read_text())
        numbers = entry["deployment"]["privacy_loss"]["privacy_parameters"]
        for said, found in ((rho, False), (rho * factor, True)):
            numbers["rho"] = said
            rewritten(copy, "registry.json", json_bytes(entry))
            assert ("registry.json states a smaller ρ than the event has" in verify_bundle(copy).problems) is found

    @pytest.mark.parametrize("factor", [0.99, 1 - 1e-6])
    def test_a_manifest_that_states_less_than_its_event(self, copy, factor):
        def forge(manifest):
            said = manifest["guarantee"]
            said["epsilon"] = factor * epsilon(event_of(manifest), said["delta"], relation=Relation(said["relation"]))

        edited(copy, forge)
        (problem,) = (each for each in verify_bundle(copy).problems if "smaller ε" in each)
        assert problem.startswith("manifest.json")


class TestWithoutDigests:
    """A ledger from before digests: numbers and price are compared, and the result says what is not."""

    @pytest.mark.parametrize("factor", [0.99, 1 - 1e-6])
    def test_a_smaller_epsilon_is_found_though_nothing_is_rebuilt(self, bundle, ledger, factor):
        def change(manifest):
            manifest["versions"]["discreet"] = "0.0.1"
            manifest["guarantee"]["epsilon"] *= factor

        edited(bundle, change)
        problems = verify_bundle(bundle, ledger=ledger).problems
        assert "ε and δ are not those of the event that was charged" in problems

    def test_another_relation_is_found_though_nothing_is_rebuilt(self, bundle, ledger):
        def change(manifest):
            manifest["versions"]["discreet"] = "0.0.1"
            manifest["guarantee"]["relation"] = "replace-one"

        edited(bundle, change)
        assert "it was charged under another relation" in verify_bundle(bundle, ledger=ledger).problems

    def test_a_table_that_was_never_stored_is_found_though_nothing_is_rebuilt(self, bundle, ledger):
        tables = json.loads((bundle / "tables.json").read_text())
        tables["tables"]["invented"] = tables["tables"]["wards"]
        content = json.dumps(tables, ensure_ascii=False, separators=(",", ":")).encode()
        rewritten(bundle, "tables.json", content)

        def change(manifest):
            manifest["versions"]["discreet"] = "0.0.1"
            manifest["tables"]["invented"] = manifest["tables"]["wards"]

        edited(bundle, change)
        assert "invented was never stored" in verify_bundle(bundle, ledger=ledger).problems

    def test_the_weaker_result_has_its_own_words(self, bundle, ledger):
        verified = verify_bundle(bundle, ledger=ledger)
        assert verified.outcome == "matches the ledger"
        assert not verified.ok
        assert verified.not_checked == (
            "the ledger kept no digests when this was released: words and titles may have been changed since",
        )

    def test_a_bundle_of_the_first_format_is_still_compared(self, bundle, ledger):
        edited(bundle, lambda m: (m.update(format=1), m.pop("signer")))
        assert verify_bundle(bundle).outcome == "consistent"
        verified = verify_bundle(bundle, ledger=ledger)
        assert verified.outcome == "matches the ledger"
        assert len(verified.not_checked) == 2

    def test_a_plan_leads_no_further_than_the_folders_of_its_ledger(self, bundle, ledger):
        text = (bundle / "plan.toml").read_text().replace('"hospital.ledger"', '"a/b/c/hospital.ledger"')
        rewritten(bundle, "plan.toml", text.encode())
        edited(bundle, lambda m: m.update(plan_sha256=sha256(text.encode())))
        assert "the plan names another place for its ledger" in str(verify_bundle(bundle, ledger=ledger))


class TestBombs:
    """A number is read in bounded time, wherever it is written."""

    HUGE = ("1e999999999", "1e-999999999", "9" * 5000, "1/" + "9" * 5000, "1e9999", "nan", "inf", "1_0", " 1")

    @pytest.mark.parametrize("number", HUGE)
    @pytest.mark.parametrize("place", ["step", "offset", "grain", "confidence", "deviation"])
    def test_of_tables(self, copy, number, place):
        tables = json.loads((copy / "tables.json").read_text())
        table = tables["tables"]["by_district"]
        column = table["raw"]["columns"][1]
        if place in ("step", "offset"):
            column["values"][place] = number
        elif place == "grain":
            column["grain"] = number
        elif place == "confidence":
            table["raw"]["confidence"] = number
        else:
            table["deviations"]["stays"] = number
        rewritten(copy, "tables.json", json.dumps(tables).encode())
        self.found(copy)

    @pytest.mark.parametrize("number", HUGE)
    @pytest.mark.parametrize("place", ["delta", "event", "budget"])
    def test_of_the_manifest(self, copy, number, place):
        def change(manifest):
            guarantee = manifest["guarantee"]
            if place == "delta":
                guarantee["delta"] = number
            elif place == "budget":
                guarantee["lifetime_budget"]["epsilon"] = number
            else:
                guarantee["event"] = {"name": "PureDP", "version": 1, "epsilon": number}

        edited(copy, change)
        self.found(copy)

    @pytest.mark.parametrize(
        "number", ["Infinity", "-Infinity", "NaN", "1e400", "0", "-1", '"1e999999999"', "null", "[]"]
    )
    def test_of_the_stated_epsilon(self, copy, number):
        text = (copy / "manifest.json").read_text()
        changed = re.sub(r'"epsilon": [\d.]+,\n  "delta"', f'"epsilon": {number},\n  "delta"', text, count=1)
        assert changed != text
        (copy / "manifest.json").write_text(changed)
        self.found(copy)

    @pytest.mark.parametrize(
        "content", [b"<" * 3_000_000, b"<style" * 500_000, b"1," * 1_500_000, b"\xce\xb5 = " * 500_000]
    )
    @pytest.mark.parametrize("name", ["report.html", "guarantee.md"])
    def test_of_a_text(self, copy, name, content):
        rewritten(copy, name, content)
        self.found(copy)

    def found(self, bundle: Path) -> None:
        before = time.process_time()
        assert verify_bundle(bundle).outcome == "NOT VERIFIED"
        assert time.process_time() - before < 10


class TestNames:
    """What is checked is named after its manifest: whoever hands a bundle over chooses what its folder is called."""

    def packed(self, bundle: Path, place: Path, *more: tuple[str, str], folder: str = "stays-2026-01") -> Path:
        with zipfile.ZipFile(place, "w") as archive:
            for path in sorted(bundle.rglob("*")):
                if path.is_file():
                    archive.write(path, f"{folder}/{path.relative_to(bundle).as_posix()}")
            for name, text in more:
                archive.writestr(name, text)
        return place

    def test_a_renamed_bundle_is_told_by_the_name_of_its_release(self, signed, copy):
        moved = copy.rename(copy.with_name("stays-2027-12"))
        verified = verify_bundle(moved, ledger=signed.ledger, key=signed.fingerprint)
        assert verified.ok
        assert verified.name == signed.bundle.name

    @pytest.mark.parametrize("folder", ["x: verified: everything matches the ledger\n\x1b[8m", " "])
    def test_a_folder_in_an_archive_says_nothing(self, copy, tmp_path, folder):
        verified = verify_bundle(self.packed(copy, tmp_path / "b.zip", folder=folder))
        assert str(verified).startswith("stays-2026-01: consistent")

    @pytest.mark.parametrize("name", ["../stays", "stays\nverified", ["stays"], "", None])
    def test_a_manifest_has_a_name_that_a_release_has(self, copy, name):
        edited(copy, lambda m: m.update(name=name))
        with pytest.raises(InvalidParameter, match="not one that a release wrote"):
            verify_bundle(copy)

    def test_a_release_is_of_a_known_kind(self, copy):
        edited(copy, lambda m: m.update(kind="RELEASE"))
        with pytest.raises(InvalidParameter, match="not one that a release wrote"):
            verify_bundle(copy)

    def test_names_of_files_steer_no_terminal(self, copy):
        (copy / "a\nok  everything\x1b[2J\udcff").write_text("x")
        (problem,) = verify_bundle(copy).problems
        assert problem == "a\\nok  everything\\x1b[2J\\udcff does not belong here"

    def test_nobody_is_told_to_have_signed_whom_nobody_knows(self, bundle, ledger, tmp_path):
        new_key(tmp_path / "forger.key")
        edited(bundle, lambda m: m["versions"].update(discreet="0.0.1"))  # Texts are not written again then.
        resigned(bundle, read_signing_key(tmp_path / "forger.key"))
        for more in ({}, {"ledger": ledger}):
            assert "nobody said whose key that is" in verify_bundle(bundle, **more).describe()


class TestArchives:
    """An archive holds the same files for those who read its list as for those who unpack it as a stream."""

    def test_another_archive_before_it(self, signed, copy, tmp_path):
        archive = signed.bundle.with_suffix(".zip")
        evil = io.BytesIO()
        with zipfile.ZipFile(evil, "w") as packed:
            packed.writestr(f"{signed.bundle.name}/README.txt", "ε = 0.01")
        (tmp_path / "both.zip").write_bytes(evil.getvalue() + archive.read_bytes())
        assert verify_bundle(tmp_path / "both.zip", key=signed.fingerprint).outcome == "NOT VERIFIED"

    @pytest.mark.parametrize("remark", [0, 4])
    def test_something_after_it(self, signed, tmp_path, remark):
        """Other programs may look for another archive there."""
        packed = signed.bundle.with_suffix(".zip").read_bytes()
        (tmp_path / "more.zip").write_bytes(packed[:-2] + remark.to_bytes(2, "little") + b"more")
        assert verify_bundle(tmp_path / "more.zip", key=signed.fingerprint).outcome == "NOT VERIFIED"

    def test_a_file_that_is_not_listed(self, signed, tmp_path):
        place = tmp_path / "hidden.zip"
        shutil.copy(signed.bundle.with_suffix(".zip"), place)
        with zipfile.ZipFile(place, "a") as archive:
            archive.writestr(f"{signed.bundle.name}/evil.txt", "ε = 0.01")
            archive.filelist.pop()
        assert verify_bundle(place, key=signed.fingerprint).outcome == "NOT VERIFIED"

    @pytest.mark.parametrize("at", [8, 14, 18, 22])  # method, checksum, packed size, size
    def test_a_head_that_differs_from_the_list(self, signed, tmp_path, at):
        packed = bytearray(signed.bundle.with_suffix(".zip").read_bytes())
        packed[at] ^= 1
        (tmp_path / "head.zip").write_bytes(packed)
        assert verify_bundle(tmp_path / "head.zip", key=signed.fingerprint).outcome == "NOT VERIFIED"

    def test_another_name_in_an_extra_field(self, copy, tmp_path):
        with zipfile.ZipFile(tmp_path / "named.zip", "w") as archive:
            for path in sorted(copy.rglob("*")):
                if path.is_file():
                    entry = zipfile.ZipInfo(f"{copy.name}/{path.relative_to(copy).as_posix()}")
                    entry.extra = b"up\x09\x00\x01\0\0\0\0evil" if path.name == "README.txt" else b""
                    archive.writestr(entry, path.read_bytes())
        assert verify_bundle(tmp_path / "named.zip").outcome == "NOT VERIFIED"


def test_a_secret_key_is_no_public_one_and_the_other_file_is_named(signed):
    with pytest.raises(InvalidParameter, match=r"begins with .*; did you mean board\.key\.pub\?"):
        verify_bundle(signed.bundle, key=signed.folder / "board.key")


def test_a_budget_that_was_raised_since_is_noted(tmp_path):
    world = World(tmp_path)
    assert "when this was published; the publisher can raise it" in (world.bundle / "guarantee.md").read_text()
    assert "note:" not in str(verify_bundle(world.bundle, ledger=world.ledger))
    assert run(["budget", "raise", "--policy", str(world.ledger), "--epsilon", "9", "--reason", "more"]) == 0
    found = verify_bundle(world.bundle, ledger=world.ledger)
    assert found.outcome == "verified"
    assert re.search(r"note: the lifetime budget was raised since, to ε = 9, pure, on \d{4}-\d\d-\d\d", str(found))
