"""A bundle holds what is public or noised, and nothing else; what was released once is not drawn or told anew."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plan_texts import plan_in

import discreet as dp
from discreet.ledger import look
from discreet.release import publish
from discreet.release.plan import Period, ReleasePlan

CANARY = "SECRET-123"
MARKUP = "<img src=x onerror=alert(1)>"
FORMULA = "=cmd|'/c calc'!A0"
JANUARY = Period(label="2026-01", first=date(2026, 1, 1), end=date(2026, 2, 1))
FEBRUARY = Period(label="2026-02", first=date(2026, 2, 1), end=date(2026, 3, 1))
WARDS = (MARKUP, FORMULA, "plain")


def rows(patients: int = 900) -> pa.Table:
    """Three large wards with wild names, and one of a single person; that person's values are canaries."""
    listed = [
        {
            "patient": f"{CANARY}-p{number}",
            "district": ("Harbour", "Hill", "Mill")[number % 3],
            "sex": "fm"[number % 2],
            "cost": 100 + number % 50,
            "admitted": date(2026, 1, 1) + timedelta(days=number % 28),
            "urgent": False,
            "ward": WARDS[number % 3] if number else f"{CANARY}-ward",
        }
        for number in range(patients)
    ]
    listed[0] |= {"district": f"{CANARY}-district", "cost": 1234567}
    return pa.Table.from_pylist(listed)


def world(folder: Path, *changes: tuple[str, str]) -> ReleasePlan:
    pq.write_table(rows(), folder / "stays.parquet")
    return plan_in(folder, *changes)


def texts(bundle: Path) -> dict[str, str]:
    """Everything in a bundle and its archive as text: packed files are unpacked."""
    found = {path.name: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    with zipfile.ZipFile(bundle.with_name(f"{bundle.name}.zip")) as archive:
        found |= {f"zip/{name}": archive.read(name) for name in archive.namelist()}
    return {name: _text(name, held) for name, held in found.items()}


def _text(name: str, held: bytes) -> str:
    if not name.endswith(".parquet"):
        return held.decode()
    table = pq.read_table(io.BytesIO(held))
    return f"{table.to_pylist()} {table.schema.metadata} {held!r}"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    plan = world(tmp_path_factory.mktemp("review"))
    return publish(plan, principal=f"{CANARY}-custodian", period=JANUARY)


def test_no_value_of_a_hidden_person_is_anywhere_in_a_bundle(bundle):
    """A rare ward, an unlisted district, a value outside of its bounds, who patients are, and who published."""
    told = texts(bundle)
    assert any("wards.csv" in name for name in told)
    for text in told.values():
        assert CANARY not in text
        assert "1234567" not in text


def test_names_of_groups_are_text_wherever_they_are_shown(bundle):
    """Groups that nobody listed are named by the data: as markup or a formula they would run at the reader's."""
    told = texts(bundle)
    shown = json.loads(told["tables.json"])["tables"]["wards"]["raw"]["columns"][0]["values"]
    assert {MARKUP, FORMULA} <= set(shown)
    assert MARKUP not in told["report.html"]
    assert "&lt;img" in told["report.html"]
    assert f'"{FORMULA}"' not in told["wards.csv"]


def test_every_period_has_a_charge_of_its_own_also_where_the_data_kept_their_version(tmp_path):
    """Without a column of the schedule two periods ask the same of the same version of the data."""
    plan = world(
        tmp_path,
        ('column = "admitted"\n', ""),
        ('ledger = "hospital.ledger"', 'ledger = "hospital.ledger"\nversion = "1"'),
    )
    marks = []
    for period in (JANUARY, FEBRUARY):
        folder = publish(plan, principal="ana", period=period)
        marks.append(json.loads((folder / "manifest.json").read_text())["ledger"])
    book = look(plan.policy.ledger)
    keys = [book.charge(mark["charge"]).content["key"] for mark in marks]
    assert keys == ["release/stays/2026-01", "release/stays/2026-02"]


def test_an_analyst_cannot_take_the_key_of_a_release(tmp_path):
    """Whoever had it first would keep the period from ever being published."""
    plan = world(tmp_path)
    with dp.Session.from_policy(plan.policy, principal="mallory") as session, pytest.raises(dp.DiscreetError):
        session.sql(
            "SELECT COUNT(*) AS n FROM stays", epsilon="0.001", idempotency_key="release/stays/2026-01"
        ).release()
    publish(plan, principal="ana", period=JANUARY)
