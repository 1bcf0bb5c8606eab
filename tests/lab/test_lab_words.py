"""What the engine says of a value stays in the lab, also where a column is calculated."""

from __future__ import annotations

import traceback
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import InvalidParameter
from discreet.lab import attacks


@pytest.mark.parametrize("text", ["CAST(name AS INTEGER)", "error(name)"])
def test_a_calculation_that_fails_on_a_value_does_not_tell_it(text: str) -> None:
    table = pa.table({"name": ["Annabella", "Bob"]})
    with pytest.raises(InvalidParameter) as caught:
        attacks.uniqueness(table, {"n": text})
    assert "Annabella" not in "".join(traceback.format_exception(caught.value))


def test_a_condition_cannot_write_over_the_table(tmp_path: Path) -> None:
    file = tmp_path / "stays.parquet"
    table = pa.table({"name": ["Anna", "Bob"]})
    pq.write_table(table, file)
    write = f"COPY (SELECT 1) TO '{file}' (FORMAT csv, USE_TMP_FILE false)"
    for attack in (
        lambda: attacks.uniqueness(file, {"n": f"1) FROM range(1); {write}; SELECT (1"}),
        lambda: attacks.tabulate(file, ["name"], where=f"1) IS TRUE); {write}; SELECT ((1"),
    ):
        with pytest.raises(InvalidParameter, match="one expression"):
            attack()
        assert pq.read_table(file) == table


def test_a_file_that_is_no_table_is_refused_in_our_words(tmp_path: Path) -> None:
    broken, database = tmp_path / "broken.parquet", tmp_path / "other.duckdb"
    broken.write_text("Annabella")
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'Annabella' AS name")
    for file in (broken, database):
        with pytest.raises(InvalidParameter, match="'rows'"):
            attacks.uniqueness(file)


def test_nobody_to_attack_is_refused() -> None:
    table = {name: np.array(["x", "y", "z"]) for name in ("known", "secret")}
    with pytest.raises(InvalidParameter, match="people"):
        attacks.attributes(lambda rows: lambda known: "x", table, secret="secret", people=0)
