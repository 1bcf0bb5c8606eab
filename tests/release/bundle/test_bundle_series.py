"""A series of totals so far is in the bundle as a table of its own, with its own price, and verified day by day."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import bundle_worlds as worlds
import pytest

from discreet.privacy import Composed, epsilon
from discreet.release import verify_bundle
from discreet.release.bundle.bundle_writer import write_bundle
from discreet.release.bundle.claims import best_guess, claim_of
from discreet.release.bundle.dictionary import dictionary_of, dictionary_page
from discreet.release.bundle.guarantee_page import guarantee_page
from discreet.release.published import Published
from discreet.release.report import report_page


@pytest.fixture(scope="module")
def going_on(tmp_path_factory) -> tuple[Published, Path]:
    folder = tmp_path_factory.mktemp("series")
    return worlds.release(folder, worlds.plan_text(more=worlds.SERIES)), folder / "hospital.ledger"


def test_a_series_is_a_file_with_its_error_day_by_day(going_on, tmp_path):
    published, _ = going_on
    bundle = write_bundle(published, tmp_path)
    rows = list(csv.DictReader((bundle / "tables" / "so_far.csv").open()))
    assert len(rows) == 31
    assert list(rows[0]) == ["day", "total", "total_low", "total_high", "total_noise_sd"]
    assert rows[0]["day"] == "2026-01-01"
    deviations = published.running[0].deviations
    assert [Fraction(row["total_noise_sd"]) >= told for row, told in zip(rows, deviations, strict=True)]
    assert len({row["total_noise_sd"] for row in rows}) > 1


def test_a_series_is_verified_to_the_last_digit(going_on, tmp_path):
    published, ledger = going_on
    bundle = write_bundle(published, tmp_path)
    verified = verify_bundle(bundle.with_suffix(".zip"), ledger=ledger)
    assert verified.outcome == "matches the ledger", str(verified)


def test_a_forged_total_is_found_by_the_ledger(going_on, tmp_path):
    published, ledger = going_on
    running = published.running[0]
    stored = json.loads(running.table.to_json())
    for name in ("values", "low", "high"):
        stored["columns"][1][name]["over"][3] += 1
    forged = replace(running, table=type(running.table).from_json(json.dumps(stored)))
    bundle = write_bundle(replace(published, running=(forged,)), tmp_path)
    assert verify_bundle(bundle).outcome == "consistent"
    assert verify_bundle(bundle, ledger=ledger).problems == (
        "series so_far: its totals do not follow from what was stored",
    )


def test_a_series_that_was_never_charged_is_found(going_on, tmp_path):
    published, ledger = going_on
    running = published.running[0]
    assert running.charge is not None
    for charge, problem in (
        (replace(running.charge, id=99), "the ledger has no charge for it"),
        (replace(running.charge, hash="0" * 64), "its charge has another hash"),
    ):
        bundle = write_bundle(replace(published, running=(replace(running, charge=charge),)), tmp_path / problem[:5])
        assert verify_bundle(bundle, ledger=ledger).problems == (f"series so_far: {problem}",)


def test_a_series_that_is_left_out_of_the_manifest_is_found(going_on, tmp_path):
    published, _ = going_on
    bundle = write_bundle(published, tmp_path)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["running"] = {}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    assert verify_bundle(bundle).problems


def test_the_promise_counts_a_series_in(going_on):
    """Whoever reads the bundle has the tables and the series: what is promised holds for both together."""
    published, _ = going_on
    claim = claim_of(published)
    together = Composed([published.event, published.running[0].event])
    assert claim.epsilon == epsilon(together, published.delta, relation=published.relation) > published.epsilon
    assert claim.guess == best_guess(together, published.relation) > best_guess(published.event, published.relation)
    assert "so_far" in dict(claim.alone)
    page = guarantee_page(published, claim)
    assert "one patient is counted on at most 1 of its days" in page
    assert "`so_far`" in page


def test_days_that_are_protected_by_themselves_are_told_apart(tmp_path):
    by_day = worlds.SERIES + "person_day = true\n"
    published = worlds.release(tmp_path, worlds.plan_text(more=by_day))
    claim = claim_of(published)
    assert claim.epsilon == published.epsilon
    page = guarantee_page(published, claim)
    assert "each patient and day is protected by itself" in page
    assert "over several days" in page
    bundle = write_bundle(published, tmp_path / "published")
    assert verify_bundle(bundle, ledger=tmp_path / "hospital.ledger").outcome == "matches the ledger"


def test_a_series_is_drawn_and_described(going_on):
    published, _ = going_on
    page = report_page(published, claim_of(published))
    assert '<section id="running">' in page
    assert 'id="series-1-told"' in page
    assert "Stays so far (once)" in page
    assert "(`so_far`)" in dictionary_page(published, dictionary_of(published))


def test_a_name_for_a_table_and_a_series_is_refused(going_on, tmp_path):
    published, _ = going_on
    running = published.running[0]
    clash = replace(running, plan=replace(running.plan, name="wards"))
    with pytest.raises(ValueError, match="two tables are called"):
        write_bundle(replace(published, running=(clash,)), tmp_path)
