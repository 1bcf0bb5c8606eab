"""What verifies as a release is that release: no other period's numbers, under no other name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import bundle_worlds as worlds
import pytest

from discreet.release import verify_bundle, write_bundle


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("forged")
    bundle = write_bundle(worlds.with_series(worlds.release(folder)), folder / "published")
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
    assert verify_bundle(forged(bundle, tmp_path), ledger=ledger).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"period": {"label": "2026-02", "first": "2026-02-01", "end": "2026-03-01"}},
        {"name": "other"},
        {"period": None},
        {"period": {"first": "2026-01-01"}},
    ],
)
def test_numbers_of_another_period_or_plan_are_found(
    written: tuple[Path, Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    bundle, ledger = written
    problems = verify_bundle(forged(bundle, tmp_path, **changes), ledger=ledger).problems
    assert "the charge is of another release, or of another period" in problems
