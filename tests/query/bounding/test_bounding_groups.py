"""Group codes depend on keys alone, and keys that print alike are one."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.query.bounding import group_codes
from discreet.query.bounding.group_codes import GroupKeys, KeyColumn

KEY = st.none() | st.sampled_from(["", "a", "b", "é", "é"])
NUMBER = st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")])


def canonical(text: str | None, number: float | None) -> tuple[Any, Any]:
    import unicodedata

    return (
        None if text is None else unicodedata.normalize("NFC", text),
        None if number is None or number != number else number + 0.0,
    )


def ordered(keys: set[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return sorted(keys, key=lambda key: [(part is None, 0 if part is None else part) for part in key])


@given(st.lists(st.tuples(KEY, NUMBER), min_size=1, max_size=30), st.booleans())
def test_groups_are_the_canonical_keys_in_order_for_all_rows(rows: list[tuple[Any, Any]], encoded: bool) -> None:
    texts, numbers = pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.float64())
    if encoded:
        texts = texts.dictionary_encode()
    found = GroupKeys.found_in([texts, numbers])
    expected = ordered({canonical(*row) for row in rows})
    codes = found.codes([texts, numbers])
    assert codes is not None
    assert found.size == len(expected)
    assert found.values(range(found.size)) == expected
    assert [expected[code] for code in codes] == [canonical(*row) for row in rows]
    assert all(not str(value).startswith("-0") for _, value in found.values(range(found.size)))


def test_codes_do_not_depend_on_the_order_of_rows_or_how_often_they_occur() -> None:
    rows = [(text, number) for text in ("a", "b", None) for number in (1, 2, 3) if (text, number) != ("b", 2)]
    shuffled = random.Random(1).sample(rows * 3, 3 * len(rows))
    first, second = (
        GroupKeys.found_in([pa.array([row[0] for row in data]), pa.array([row[1] for row in data])])
        for data in (rows, shuffled)
    )
    assert first.values(range(first.size)) == second.values(range(second.size)) == rows


@pytest.mark.parametrize("table", [1 << 22, 0], ids=["looked up", "searched"])
def test_keys_that_are_no_group_have_no_code(table: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_codes, "_TABLE", table)
    found = GroupKeys.found_in([pa.array(["a", "b"]), pa.array([1, 2], pa.int32())])
    codes = found.codes([pa.array(["a", "a", "c", "b", None]), pa.array([1, 2, 1, 2, 1], pa.int64())])
    assert codes is not None
    assert codes.tolist() == [0, -1, -1, 1, -1]


def test_public_keys_make_all_combinations_the_last_fastest() -> None:
    keys = GroupKeys.all_of([KeyColumn.listed(["b", "a"]), KeyColumn.listed([True, False]), KeyColumn.listed([3])])
    assert keys.size == 4
    assert keys.values(range(4)) == [("b", True, 3), ("b", False, 3), ("a", True, 3), ("a", False, 3)]
    codes = keys.codes([pa.array(["a", "b", "x"]), pa.array([False, None, True]), pa.array([3, 3, 3])])
    assert codes is not None
    assert codes.tolist() == [3, -1, -1]


def test_without_keys_there_is_one_group() -> None:
    for keys in (GroupKeys.all_of([]), GroupKeys.found_in([])):
        assert keys.size == 1
        assert keys.codes([]) is None
        assert keys.values([0]) == [()]


@pytest.mark.parametrize(
    "values",
    [
        [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)],
        [Decimal("1.50"), Decimal("2.50")],
        [False, True],
        [b"a", b"b"],
    ],
    ids=str,
)
def test_keys_may_be_of_any_scalar_type(values: list[Any]) -> None:
    column = pa.array([values[1], None, values[0]])
    found = GroupKeys.found_in([column])
    codes = found.codes([column])
    assert codes is not None
    assert codes.tolist() == [1, 2, 0]
    assert found.values(range(3)) == [(values[0],), (values[1],), (None,)]


def test_public_keys_are_distinct_and_of_the_type_of_the_column() -> None:
    with pytest.raises(InvalidParameter, match="distinct"):
        KeyColumn.listed(["é", "é"])
    with pytest.raises(InvalidParameter, match="type"):
        KeyColumn.listed([1, 2]).codes(pa.array(["secret"]))


def test_more_groups_than_there_can_be_are_refused() -> None:
    wide = KeyColumn.listed(list(range(1 << 11)))
    with pytest.raises(InvalidParameter, match="groups"):
        _ = GroupKeys.all_of([wide, wide, wide]).size
