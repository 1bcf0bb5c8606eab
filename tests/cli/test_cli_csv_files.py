"""CSV files of the world on the command line: how they are written is declared; until then nothing is spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WRITTEN = ("--delimiter", ";", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252")
DATES = ("--date-format", "%d.%m.%Y")
PROFILE = ("profile", "messy.csv", "--unit", "Person", "--epsilon", "20", "--lifetime-epsilon", "40",
           "--max-epsilon", "20")  # fmt: skip
INIT = ("init", "messy.csv", "--unit", "Person", "--epsilon", "1", "--yes")


@pytest.fixture
def messy(folder: Path) -> Path:
    """A file as a spreadsheet in Germany writes it: 400 people, one row each."""
    lines = [
        f"{place};{place % 28 + 1:02d}.{place % 2 + 1:02d}.2026;{('Köln', 'Straße')[place % 2]};1.0{place % 10}0,50"
        for place in range(400)
    ]
    file = folder / "messy.csv"
    file.write_bytes("\r\n".join(["Person;Datum;Ort;Lohn", *lines, ""]).encode("cp1252"))
    return file


@pytest.mark.parametrize(
    "command",
    [PROFILE, (*INIT, "--out", "first.toml"), ("synth", "domain", "messy.csv"),
     ("synth", "fit", "messy.csv", "--unit", "Person", "--epsilon", "1", "--delta", "1e-6",
      "--lifetime-epsilon", "9", "--max-epsilon", "1")],
)  # fmt: skip
def test_one_column_with_semicolons_is_refused_and_nothing_is_spent(discreet, messy, folder, command):
    before = sorted(path.name for path in folder.iterdir())
    ran = discreet(*command)
    assert ran.code == 2
    assert '--delimiter ";"' in ran.err
    assert 'delimiter = ";"' in ran.err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_another_encoding_is_refused_and_nothing_is_spent(discreet, messy, folder):
    messy.write_bytes(messy.read_bytes().replace(b"Ort", "Straße".encode("cp1252")))
    ran = discreet(*PROFILE, "--delimiter", ";")
    assert ran.code == 2
    assert "--encoding" in ran.err
    assert not (folder / "messy.ledger").exists()


@pytest.mark.long
def test_a_profile_reads_numbers_and_dates_as_they_are_declared(discreet, messy):
    ran = discreet(
        *PROFILE, *WRITTEN, *DATES, "--number", "Lohn", "--date", "Datum", "--json"
    )  # fmt: skip
    assert ran.code == 0, ran.err
    columns = {one["name"]: one for one in json.loads(ran.out)["profile"]["columns"]}
    assert columns["Lohn"]["kind"] == "real"
    assert columns["Datum"]["kind"] == "date"
    assert columns["Lohn"]["missing"]["value"] < 200
    assert columns["Datum"]["missing"]["value"] < 200


@pytest.mark.long
def test_a_draft_reads_a_file_as_declared_and_its_plan_says_so(discreet, messy, folder):
    ran = discreet(*INIT, "--lifetime-epsilon", "3", *WRITTEN, *DATES, "--out", "first.toml")
    assert ran.code == 0, ran.err
    plan = (folder / "first.toml").read_text(encoding="utf-8")
    assert '[tables.messy.csv]  # how the file is written\ndelimiter = ";"\nencoding = "cp1252"\ndecimal = ","' in plan
    assert 'dates = "%d.%m.%Y"' in plan
    assert "Datum = { low = 2026-01-01" in plan
    assert '"Köln", "Straße"' in plan
    assert "Lohn = { low = 10" in plan
    assert discreet("release", "first.toml", "--max-epsilon", "1").code == 0
    asked = "SELECT COUNT(Lohn) AS n FROM messy WHERE MONTH(Datum) = 2"
    ran = discreet("query", asked, "--policy", "first.toml", "--epsilon", "1", "--max-epsilon", "1", "--json")
    assert abs(json.loads(ran.out)["rows"][0]["n"]["value"] - 200) < 100


def test_a_policy_says_itself_how_its_files_are_written(discreet):
    ran = discreet("profile", "policy.toml", "--epsilon", "1", "--delimiter", ";")
    assert ran.code == 2
    assert "[tables.NAME.csv]" in ran.err


@pytest.mark.long
def test_synthetic_rows_are_made_of_a_file_as_declared(discreet, messy, folder):
    assert discreet("synth", "domain", "messy.csv", *WRITTEN[:2], "--encoding", "cp1252").code == 0
    (folder / "mine.toml").write_text(
        '[columns]\nOrt = { values = ["Köln", "Straße"] }\nLohn = { low = 0, high = 2000, bins = 4 }\n',
        encoding="utf-8",
    )
    fit = ("synth", "fit", "messy.csv", "--domain", "mine.toml", "--unit", "Person", "--rows-per-unit", "1",
           "--lifetime-epsilon", "80")  # fmt: skip
    ran = discreet(
        *fit,
        "--method",
        "independent",
        "--epsilon",
        "20",
        "--delta",
        "1e-6",
        "--max-epsilon",
        "20",
        *WRITTEN,
        "--out",
        "m.safetensors",
    )
    assert ran.code == 0, ran.err
    assert discreet("synth", "sample", "m.safetensors", "--rows", "200", "--out", "made.csv").code == 0
    made = (folder / "made.csv").read_text(encoding="utf-8")
    assert 50 < made.count("Köln") < 150
    assert sum(float(line.split(",")[-1]) > 1000 for line in made.splitlines()[1:] if line[-1] != ",") > 100
