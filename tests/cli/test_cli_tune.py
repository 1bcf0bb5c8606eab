"""Limits of a plan are compared without its data: what is refused, and with which exit code."""

from __future__ import annotations

import shutil

import pytest

from discreet import data

SUMS = ('measures = { visits = "COUNT(*)" }', 'measures = { visits = "COUNT(*)", ages = "SUM(age)" }')


@pytest.fixture
def hospital(folder):
    (folder / "plan.toml").unlink()
    data.copy("hospital", folder)
    text = (folder / "plan.toml").read_text()
    (folder / "plan.toml").write_text(text[: text.index('[[publish]]\nname = "diagnoses"')])
    return folder


@pytest.mark.long
def test_limits_are_compared_without_the_data_and_for_nothing(discreet, hospital):
    (hospital / "stays.parquet").unlink()
    told = discreet("plan", "tune", "plan.toml")
    assert told.code == 0
    assert "compared on made-up rows" in told.out
    assert "Nothing private was read, and nothing was charged." in " ".join(told.out.split())
    assert "least" in told.out
    assert not (hospital / "northmere.ledger").exists()


@pytest.mark.long
def test_a_public_sample_is_said_to_be_one(discreet, hospital):
    shutil.move(hospital / "stays.parquet", hospital / "sample.parquet")
    for said in ("sample.parquet", "stays=sample.parquet"):
        answer = discreet("plan", "tune", "plan.toml", "--public", said, "--json")
        assert answer.code == 0
        assert answer.json["rows"] == "public"
    first = next(row for row in answer.json["grid"] if row["current"])
    assert first["total_share"] == pytest.approx(first["noise_share"] + first["bias_share"])


def test_what_is_no_public_sample_is_refused(discreet, hospital):
    own = discreet("plan", "tune", "plan.toml", "--public", "stays.parquet")
    assert own.code == 3
    assert "is the source of the private table 'stays'" in " ".join(own.err.split())
    twice = discreet("plan", "tune", "plan.toml", "--public", "a.csv", "--public", "stays=b.csv")
    assert twice.code == 2
    assert "named twice" in twice.err
    assert discreet("plan", "tune", "plan.toml", "--public", "none.parquet").code == 2
    whose = discreet("plan", "tune", "plan.toml", "--public", "stay=stays.parquet")
    assert whose.code == 2
    assert "say whose rows they are, one of stays" in " ".join(whose.err.split())


def test_a_plan_of_counted_rows_has_no_limits_to_compare_and_sums_have_bounds(discreet, folder):
    none = discreet("plan", "tune", "plan.toml")
    assert none.code == 2
    assert "there is nothing to compare" in none.err
    text = (folder / "plan.toml").read_text()
    (folder / "plan.toml").write_text(text.replace(*SUMS).replace('"*" = 400', '"*" = 400, ages = 20000'))
    grid = discreet("plan", "tune", "plan.toml", "--json").json["grid"]
    assert {(row["column"], row["of"]) for row in grid} == {("ages", "bounds")}
    assert "\nbounds  " in discreet("plan", "tune", "plan.toml").out
