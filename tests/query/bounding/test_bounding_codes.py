"""Rows in order of their values, units under exact codes: whatever the values are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.query.bounding import packed_columns
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.string_packing import Letters, Spelling
from discreet.query.bounding.unit_codes import (
    ListedUnits,
    NumberUnits,
    SpelledUnits,
    TextUnits,
    joined,
    numbered,
    spelled,
)

ROW = st.tuples(st.integers(0, 2), st.integers(-3, 3), st.sampled_from([0, 1, 2**62, -(2**63)]))


def ordered(rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    sets, *columns = (np.array([row[place] for row in rows], np.int64) for place in range(3))
    order = packed_columns.in_order(columns, sets, 3)
    assert sorted(order.tolist()) == list(range(len(rows)))
    return [rows[place] for place in order]


@pytest.mark.parametrize("word", [63, 8], ids=["wide", "no room for keys"])
@given(rows=st.lists(ROW, min_size=1, max_size=30))
def test_rows_are_in_order_for_all_rows(word: int, rows: list[tuple[int, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_columns, "_ROWSORT_WORD", word)
        assert ordered(rows) == sorted(rows)


@given(values=st.lists(st.sampled_from([0, 5, -1, -(2**63), 2**63 - 1]) | st.integers(-9, 9), min_size=1))
def test_units_are_numbered_exactly_for_all_values(values: list[int]) -> None:
    listed = numbered(NumberUnits(np.array(values, np.int64)))
    assert isinstance(listed.values, NumberUnits)
    assert listed.values.codes[listed.codes].tolist() == values
    assert listed.size == len(set(values))


TEXT = st.binary(max_size=20) | st.sampled_from([b"user_0000001", b"user_0000002", b"user_9999999"])


@given(st.lists(TEXT, min_size=1, max_size=20))
def test_spelling_loses_nothing_for_all_texts(texts: list[bytes]) -> None:
    letters = Letters.of(pa.array(texts, pa.large_binary()))
    assert letters.bytes().to_pylist() == texts
    spelling = Spelling.of(letters)
    if spelling.fits:
        codes = spelling.encode(letters)
        assert (codes >= 0).all()
        assert spelling.decode(codes).bytes().to_pylist() == texts
        assert len(set(codes.tolist())) == len(set(texts))


@given(st.lists(st.lists(TEXT, min_size=1, max_size=5), min_size=1, max_size=5))
def test_chunks_of_texts_get_codes_that_mean_the_same_for_all_chunks(chunks: list[list[bytes]]) -> None:
    units = joined([spelled(pa.array(chunk, pa.large_binary())) for chunk in chunks])
    texts = [text for chunk in chunks for text in chunk]
    assert units.codes.size == len(texts)
    assert len(set(zip(texts, units.codes.tolist(), strict=True))) == len(set(texts)) == len(set(units.codes.tolist()))


def test_usual_ids_are_spelled_in_few_bits() -> None:
    units = spelled(pa.array([f"user_{number:07d}".encode() for number in range(1000)], pa.large_binary()))
    assert isinstance(units, SpelledUnits)
    assert int(units.codes.max()) < 2**28


def test_long_texts_and_random_ones_are_listed() -> None:
    for texts in ([b"x" * 65, b"y"], [bytes(range(start, start + 16)) for start in range(0, 240, 7)]):
        part = spelled(pa.array(texts, pa.large_binary()))
        assert isinstance(part, TextUnits)
        assert isinstance(joined([part]), ListedUnits)


@given(st.lists(TEXT | st.binary(min_size=60, max_size=70), min_size=1, max_size=8))
def test_a_name_depends_on_the_text_alone_however_it_is_coded(texts: list[bytes]) -> None:
    secret = Secret()
    array = pa.array(texts, pa.large_binary())
    expected = secret.names_of_letters(Letters.of(array))
    units = joined([spelled(array)])
    for coded in (units, numbered(units)):
        assert coded.names(coded.codes, secret).tolist() == expected.tolist()
        assert coded.hashes(secret).tolist() == TextUnits(array).hashes(secret).tolist()
    alone = [secret.names_of_letters(Letters.of(array.slice(place, 1)))[0].tolist() for place in range(len(texts))]
    assert alone == expected.tolist()
    assert len({tuple(name) for name in alone}) == len(set(texts))
