"""Linkage: records are named where they fit exactly one person, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from discreet import data
from discreet.errors import InvalidParameter, Refused
from discreet.lab.attacks import linkage
from discreet.lab.attacks.linkage import Linkage
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import NotPrivate

RECORDS = {
    "id": [1, 2, 3, 4, 4, 5, 6],
    "zip": ["1", "1", "2", "2", "2", "3", None],
    "born": ["1950-01-01", "1960-02-02", "1970-03-03", "1980-04-04", "1980-04-04", "1990-05-05", "1950-01-01"],
    "ill": ["a", "b", "c", "d", "e", "f", "g"],
}
LISTED = {
    "name": ["Ann", "Bo", "Cy", "Di", "Ed", "Flo", "Nil"],
    "zip": ["1", "2", "2", "2", "9", "1", None],
    "born": ["1950-01-01", "1970-03-03", "1970-03-03", "1980-04-04", "1990-05-05", "1961-02-02", "1950-01-01"],
}


def found(**changed: object) -> Linkage:
    options = {"on": ["zip", "born"], "name": "name", "tell": ["ill"], "person": "id"} | changed
    return linkage(pa.table(RECORDS), pa.table(LISTED), **options).value


def test_records_that_fit_one_person_are_named() -> None:
    result = found(sample=10)
    assert {(row["name"], row["ill"]) for row in result.sample} == {("Ann", "a"), ("Di", "d"), ("Di", "e")}
    assert result.named == Success(3, 7)
    assert result.people == Success(2, 6)
    assert result.ambiguous == 1
    assert result.unique == Success(6, 7)  # the two records of one person are not two people
    assert result.listed == Success(4, 6)


def test_dates_and_their_spelling_are_the_same(tmp_path: Path) -> None:
    stays, voters = tmp_path / "stays.parquet", tmp_path / "voters.csv"
    duckdb.sql("SELECT 1 AS zip, DATE '1950-01-01' AS born").write_parquet(str(stays))
    voters.write_text("name,zip,born\nAnn,1,1950-01-01\n")
    assert linkage(stays, voters, on=["zip", "born"], name="name").value.named == Success(1, 1)


def test_the_county_is_named_as_the_script_says() -> None:
    """The figures of the pages. Nine in ten of all adults are named who are on the list."""
    with data.folder("hospital") as folder:
        result = linkage(
            folder / "stays.parquet",
            folder / "voters.parquet",
            on=["zip", "birth_date", "sex"],
            name="name",
            tell=["diagnosis"],
            person="patient",
        ).value
    assert result.named == Success(10_696, 19_200)
    assert result.people == Success(10_106, 18_217)
    assert 0.97 < result.right < 1
    assert len(result.sample) == 5


def test_chance_names_few_where_values_are_many_and_all_where_they_tell_nothing() -> None:
    size = 400
    people = [f"{i // 2}" for i in range(size)]
    telling = pa.table({"a": ["x"] * size, "b": [f"{i}" for i in range(size)], "name": people})
    assert linkage(telling, telling, on=["a", "b"], name="name").value.by_chance == size - 1
    apart = pa.table({"a": [f"{i}" for i in range(size)], "b": [f"{i}" for i in range(size)], "name": people})
    result = linkage(apart, apart, on=["a", "b"], name="name").value
    assert result.by_chance == 0
    assert result.right == 1


def test_the_result_is_for_the_custodian_only() -> None:
    result = linkage(pa.table(RECORDS), pa.table(LISTED), on=["zip"], name="name")
    assert isinstance(result, NotPrivate)
    assert str(result).startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    "source",
    [
        "https://example.org/stays.parquet",
        "s3://bucket/stays.parquet",
        Path("https://example.org/stays.parquet"),
        "\\\\server\\share\\stays.parquet",
        "//server/share/stays.parquet",
        ["stays.parquet", "http://example.org/more.parquet"],
    ],
)
def test_network_sources_are_refused(source: object) -> None:
    with pytest.raises(Refused, match="another machine"):
        linkage(source, pa.table(LISTED), on=["zip"], name="name")
    with pytest.raises(Refused, match="another machine"):
        linkage(pa.table(RECORDS), source, on=["zip"], name="name")


def test_a_local_connection_is_taken() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE \"table\" AS SELECT 'x' AS zip")
    assert linkage(connection, pa.table(LISTED), on=["zip"], name="name").value.named == Success(0, 1)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="on which columns"):
        found(on=[])
    with pytest.raises(InvalidParameter, match="there is no column 'shoe'"):
        found(on=["shoe"])
    with pytest.raises(InvalidParameter, match="no file"):
        linkage("nowhere.parquet", pa.table(LISTED), on=["zip"], name="name")
