"""From a plan file to a verified bundle, by the one command that does it; and again, from the ledger alone."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import bundle_worlds as worlds
import pyarrow.parquet as pq
import pytest

from discreet.errors import InvalidParameter
from discreet.release import publish, read_release_plan, verify_bundle
from discreet.release.bundle.bundle_writer import write_bundle

PLAN = """\
name = "stays"
title = "Hospital stays"
dataset = "hospital"
ledger = "hospital.ledger"
[unit]
column = "patient"
[budget]
epsilon = 8
delta = 1e-5
[tables.stays]
source = "stays.parquet"
[tables.stays.columns]
district = { categories = ["Harbour", "Hill", "Mill"] }
sex = { categories = ["f", "m"] }
cost = { low = 0, high = 20000 }
admitted = { low = 2026-01-01, high = 2026-12-31 }
ward = { kind = "text" }
[release]
epsilon = 1
delta = 1e-7
[schedule]
every = "month"
first = 2026-01-01
column = "admitted"
[output]
folder = "published"
[[levels]]
name = "region"
of = "district"
members = { Coast = ["Harbour"], Inland = ["Hill", "Mill"] }
[[publish]]
name = "stays"
from = "stays"
groupings = [[], ["region"], ["district", "sex"]]
measures = { stays = "COUNT(*)", cost = "SUM(cost)" }
expected = { "*" = 400 }
[[publish]]
name = "wards"
sql = "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward"
delta = 1e-8
share = 0.2
[[running]]
name = "so_far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 90
epsilon = 0.5
"""


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "plan.toml").write_text(PLAN)
    pq.write_table(worlds.stays(), folder / "stays.parquet")
    plan = read_release_plan(folder / "plan.toml")
    return publish(plan, principal="ana", period=plan.schedule.period(0))


def held(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_published_is_what_the_ledger_holds(released):
    verified = verify_bundle(released, ledger=released.parent.parent / "hospital.ledger")
    assert verified.ok, verified
    assert (released / "tables" / "stays_by_district_sex.tidy.csv").is_file()
    assert (released / "tables" / "so_far.csv").is_file()


def test_a_lost_bundle_comes_back_from_the_ledger_byte_by_byte(released):
    before, packed = held(released), released.with_suffix(".zip").read_bytes()
    shutil.rmtree(released)
    released.with_suffix(".zip").unlink()
    plan = read_release_plan(released.parent.parent / "plan.toml")
    assert publish(plan, principal="ana", period=plan.schedule.period(0)) == released
    assert held(released) == before
    assert released.with_suffix(".zip").read_bytes() == packed


def test_tidy_files_add_up(released):
    tables = released / "tables"
    total = pq.read_table(tables / "stays.tidy.parquet")["stays"].to_pylist()
    regions = pq.read_table(tables / "stays_by_region.tidy.parquet")["stays"].to_pylist()
    cells = pq.read_table(tables / "stays_by_district_sex.tidy.parquet")["stays"].to_pylist()
    assert sum(total) == sum(regions) == sum(cells)


def test_another_version_of_the_package_leaves_a_bundle_alone(published, bundle):
    """Its words or its style may differ; the release is the same, and nothing was changed since it was written."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["versions"]["discreet"] = "0.0.9"
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    bundle.with_suffix(".zip").unlink()
    before = held(bundle)
    assert write_bundle(published, bundle.parent) == bundle
    assert held(bundle) == before
    assert verify_bundle(bundle.with_suffix(".zip")).outcome == "consistent"


JUNK: tuple[Any, ...] = (None, True, -1, 1e300, "", "x" * 50, [], [1], {}, {"a": 1}, "../x", "0")


@pytest.mark.long
@pytest.mark.parametrize("name", ["manifest.json", "tables.json"])
def test_junk_in_place_of_any_value_is_never_an_accident(bundle, ledger, name):
    """Whatever stands where, a bundle is refused in our words or found wrong; it never verifies and never breaks."""
    original = json.loads((bundle / name).read_text())
    places = list(_places(original))
    chooser = random.Random(7)
    for place in chooser.sample(places, min(25, len(places))):
        changed = json.loads(json.dumps(original))
        junk = chooser.choice([each for each in JUNK if each != _at(changed, place)])
        _at(changed, place[:-1])[place[-1]] = junk
        (bundle / name).write_text(json.dumps(changed))
        try:
            verified = verify_bundle(bundle, ledger=ledger)
        except InvalidParameter:
            continue
        unknown = name == "manifest.json" and place[0] == "versions"  # Another version words things otherwise.
        assert unknown or verified.problems, (place, junk)


def _places(value: Any, before: tuple[Any, ...] = ()) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*before, key)
        yield from _places(inner, (*before, key))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value
