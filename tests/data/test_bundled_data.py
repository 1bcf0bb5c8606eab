"""Bundled data: what is shipped is what the scripts make, it is small, and its list tells the truth."""

from __future__ import annotations

import csv
import importlib.util
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from discreet import data
from discreet.data.sets import Bundled
from discreet.errors import InvalidParameter

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("make_hospital", ROOT / "scripts" / "make_hospital.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_county_can_be_made_again(script: ModuleType) -> None:
    made = script.tables()
    with data.folder("hospital") as folder:
        for name, table in made.items():
            assert pq.read_table(folder / f"{name}.parquet").equals(table)


def test_another_seed_makes_other_people(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "PEOPLE", 50)
    assert script.people(random.Random(1)) == script.people(random.Random(1)) != script.people(random.Random(2))


def test_the_visits_can_be_made_again() -> None:
    command = [sys.executable, ROOT / "scripts" / "make_visits.py"]
    made = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    with data.folder("visits") as folder:
        assert made == (folder / "visits.csv").read_text(encoding="utf-8")


def columns_and_rows(path: Path) -> tuple[tuple[str, ...], int]:
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return tuple(table.column_names), table.num_rows
    if path.suffix == ".csv":
        header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
        return tuple(header), len(rows)
    return (), 0


@pytest.mark.parametrize("chosen", data.bundled(), ids=lambda chosen: chosen.name)
def test_the_list_tells_what_is_in_the_files(chosen: Bundled) -> None:
    with data.folder(chosen.name) as folder:
        for file in chosen.files:
            assert columns_and_rows(folder / file.name) == (file.columns, file.rows)
        if folder.name == chosen.name:
            assert {path.name for path in folder.iterdir()} == {file.name for file in chosen.files}
        assert sum((folder / file.name).stat().st_size for file in chosen.files) < 1_000_000


def test_stays_have_no_names_and_voters_do() -> None:
    (hospital,) = (chosen for chosen in data.bundled() if chosen.name == "hospital")
    columns = {file.name: set(file.columns) for file in hospital.files}
    assert not columns["stays.parquet"] & {"name", "address"}
    assert columns["voters.parquet"] >= {"name", "address"}


def test_a_set_is_copied_once(tmp_path: Path) -> None:
    copied = data.copy("hospital", tmp_path / "new")
    assert [path.name for path in copied] == ["stays.parquet", "voters.parquet", "plan.toml"]
    with data.folder("hospital") as folder:
        assert all(path.read_bytes() == (folder / path.name).read_bytes() for path in copied)
    copied[1].unlink()
    with pytest.raises(InvalidParameter, match="already"):
        data.copy("hospital", tmp_path / "new")
    assert not copied[1].exists()


def test_an_unknown_set_is_refused_with_the_list() -> None:
    with pytest.raises(InvalidParameter, match="hospital, visits"):
        data.copy("census", Path("anywhere"))
