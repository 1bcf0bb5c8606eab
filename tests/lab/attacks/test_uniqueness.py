"""Uniqueness: whoever is alone is counted under every combination, and the pruned search counts as the engine does."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import data
from discreet.errors import InvalidParameter, Refused
from discreet.lab.attacks import uniqueness
from discreet.lab.attacks.lab_tables import Encoded
from discreet.lab.attacks.success_rates import Success
from discreet.lab.attacks.uniqueness_search import CROWDS, Uniqueness, crowds
from discreet.privacy import NotPrivate

PEOPLE = {
    "zip": ["1", "1", "2", "2", "2", None],
    "born": ["1950", "1960", "1970", "1970", "1980", "1950"],
    "sex": ["F", "F", "M", "M", "F", "F"],
}


def found(**changed: object) -> Uniqueness:
    return uniqueness(pa.table(PEOPLE), **({"size": 3} | changed)).value


def test_people_who_are_alone_are_counted_under_every_combination() -> None:
    result = found()
    assert result.of("zip").unique == Success(1, 6)  # A missing value is a value of its own.
    assert result.of("born").unique == Success(2, 6)
    assert result.of("sex").unique == Success(0, 6)
    assert result.of("born", "zip").unique == Success(4, 6)
    assert result.of("zip", "born", "sex").unique == Success(4, 6)
    assert len(result.combinations) == 7
    assert [one.columns for one in result.best] == [("born",), ("zip", "born"), ("zip", "born", "sex")]


def test_a_combination_is_telling_if_no_column_can_be_left_out() -> None:
    telling = [one.columns for one in found().telling]
    assert telling == [("zip", "born"), ("born",), ("zip", "sex"), ("zip",)]


def test_a_profile_tells_who_hides_in_a_crowd_of_which_size() -> None:
    crowd = [1] + 3 * [2] + 7 * [3] + 15 * [4] + 40 * [5] + 60 * [6] + 150 * [7]
    profile = uniqueness(pa.table({"x": crowd}), size=1).value.of("x").profile
    assert dict(zip(CROWDS, profile, strict=True)) == {
        "alone": 1, "2-4": 3, "5-9": 7, "10-19": 15, "20-49": 40, "50-99": 60, "100 or more": 150,
    }  # fmt: skip
    assert uniqueness(pa.table({"x": crowd}), size=1).value.of("x").fewer_than(10) == Success(11, 276)


def test_columns_may_be_calculated() -> None:
    coarse = {"decade": "born[:3]", "sex": "sex"}
    assert found(columns=coarse).of("decade").unique == Success(2, 6)
    with pytest.raises(InvalidParameter, match="cannot be evaluated"):
        found(columns={"wrong": "nonsense(born)"})


def test_a_person_of_several_rows_is_as_exposed_as_their_worst_row() -> None:
    rows = pa.table({"who": [1, 1, 2, 3, 3], "place": ["a", "b", "b", "c", "c"], "day": [1, 1, 1, 2, 2]})
    result = uniqueness(rows, person="who", size=2).value
    assert (result.rows, result.people, result.columns) == (5, 3, ("place", "day"))
    assert result.of("place").profile[:2] == (2, 1)  # 1 by place a, 3 by place c; the two rows of 3 are one person.
    assert result.of("day").profile[:2] == (1, 2)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(*(st.integers(0, n) for n in (1, 3, 8, 30)), st.integers(0, 12)), min_size=1, max_size=60),
    person=st.booleans(),
    dense=st.sampled_from([1, 4_000_000]),
    word=st.sampled_from([1, 63]),
)
def test_the_pruned_search_agrees_with_brute_force_for_all_tables(rows, person, dense, word) -> None:
    """Also where keys are too many for a table of counts, or too long for one word."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.lab.attacks.uniqueness_search._DENSE", dense)
        patch.setattr("discreet.lab.attacks.uniqueness_search._WORD", word)
        counted = crowds(coded(rows, person), 4, threads=1)
    assert {columns for columns, _ in counted} >= {(3,), (3, 2, 1, 0)}
    assert len(counted) == 15
    for columns, profile in counted:
        assert profile == brute(rows, columns, person)


def coded(rows: list[tuple[int, ...]], person: bool) -> Encoded:
    codes = tuple(np.array(column, dtype=np.uint32) for column in zip(*rows, strict=True))
    owners = np.unique(codes[-1], return_inverse=True)[1].astype(np.uint32)
    people = int(owners.max()) + 1 if person else len(rows)
    return Encoded(("a", "b", "c", "d"), codes[:4], (2, 4, 9, 31), owners if person else None, people)


def brute(rows: list[tuple[int, ...]], columns: tuple[int, ...], person: bool) -> tuple[int, ...]:
    groups: dict[tuple[int, ...], set[int]] = {}
    owners = [row[-1] if person else place for place, row in enumerate(rows)]
    for owner, row in zip(owners, rows, strict=True):
        groups.setdefault(tuple(row[i] for i in columns), set()).add(owner)
    least = {o: min(len(g) for g in groups.values() if o in g) for o in owners}
    edges = (1, 2, 5, 10, 20, 50, 100, 10**9)
    return tuple(sum(low <= n < high for n in least.values()) for low, high in pairwise(edges))


def test_the_county_agrees_with_the_engine() -> None:
    with data.folder("hospital") as folder:
        file = folder / "voters.parquet"
        result = uniqueness(file, ["zip", "birth_date", "sex"], size=3).value
        query = f"SELECT count(*) FROM '{file}' GROUP BY zip, birth_date, sex HAVING count(*) = 1"
        assert result.of("zip", "birth_date", "sex").unique.hits == len(duckdb.sql(query).fetchall())


def test_a_result_is_not_private_and_prints_draws_and_writes_itself() -> None:
    result = uniqueness(pa.table(PEOPLE), size=3)
    assert isinstance(result, NotPrivate)
    assert "NOT PRIVATE" in str(result)
    assert "66.7 %  zip, born" in str(result)
    written = json.loads(result.value.to_json())
    assert written["combinations"][0] == {"columns": ["zip", "born"], "unique": 4 / 6, "profile": [4, 2, 0, 0, 0, 0, 0]}
    assert '"told": "66.7 %"' in result.value.plot().to_json()


@pytest.mark.parametrize(
    "wrong",
    [{"size": 0}, {"columns": []}, {"columns": ["salary"]}, {"person": "name"}],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        found(**wrong)


def test_an_empty_table_and_a_network_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="no rows"):
        uniqueness(pa.table({"x": pa.array([], pa.int64())}))
    with pytest.raises(Refused, match="another machine"):
        uniqueness("https://example.org/people.parquet")
