"""What verifies as a release is that release: no other period's numbers, under no other name."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import bundle_worlds as worlds
import pytest

from discreet.errors import InvalidParameter
from discreet.release import verify_bundle
from discreet.release.bundle.bundle_writer import write_bundle


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("forged")
    bundle = write_bundle(worlds.release(folder), folder / "published")
    return bundle, folder / "hospital.ledger"


def forged(bundle: Path, folder: Path, **changes: Any) -> Path:
    """Change what a manifest says of its release: no other file is named there by this."""
    copy = folder / "copy"
    shutil.copytree(bundle, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | changes))
    return copy


def test_what_was_released_is_verified(written: tuple[Path, Path], tmp_path: Path) -> None:
    bundle, ledger = written
    assert verify_bundle(forged(bundle, tmp_path), ledger=ledger).outcome == "matches the ledger"


@pytest.mark.parametrize(
    "changes",
    [
        {"period": {"label": "2026-02", "first": "2026-02-01", "end": "2026-03-01"}},
        {"name": "other"},
    ],
)
def test_numbers_of_another_period_or_plan_are_found(
    written: tuple[Path, Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    bundle, ledger = written
    problems = verify_bundle(forged(bundle, tmp_path, **changes), ledger=ledger).problems
    assert "the charge is of another release, or of another period" in problems


def test_a_manifest_without_the_name_of_its_period_is_refused(written: tuple[Path, Path], tmp_path: Path) -> None:
    bundle, ledger = written
    with pytest.raises(InvalidParameter, match="is not one that a release wrote"):
        verify_bundle(forged(bundle, tmp_path, period={"first": "2026-01-01"}), ledger=ledger)


PUBLIC = """
[tables.regions]
source = "SOURCE"
public = true
"""


def with_table(bundle: Path, folder: Path, source: Path) -> Path:
    """Put a public table into the plan of a bundle, and mend all hashes, as anybody can."""
    copy = folder / "stranger"
    shutil.copytree(bundle, copy)
    written = (copy / "plan.toml").read_bytes() + PUBLIC.replace("SOURCE", str(source)).encode()
    (copy / "plan.toml").write_bytes(written)
    manifest = json.loads((copy / "manifest.json").read_text())
    digest = hashlib.sha256(written).hexdigest()
    manifest["files"]["plan.toml"] = {"sha256": digest, "bytes": len(written)}
    (copy / "manifest.json").write_text(json.dumps(manifest | {"plan_sha256": digest}))
    return copy


@pytest.mark.parametrize("exists", [True, False])
def test_the_plan_of_a_stranger_opens_no_file(written: tuple[Path, Path], tmp_path: Path, exists: bool) -> None:
    """Nor does it tell whether there is one: a plan says which tables are public, and could say it of any file."""
    bundle, ledger = written
    secret = tmp_path / "secret.csv"
    if exists:
        secret.write_text("SECRET-123,SECRET-123\n1,2\n")
    verified = str(verify_bundle(with_table(bundle, tmp_path, secret), ledger=ledger))
    assert "not checked: the plan names public tables that are not beside the ledger" in verified
    assert "SECRET" not in verified
