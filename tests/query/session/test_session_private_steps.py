"""Bounds, limits and keys that are found privately: priced, charged to the same ledger, and usable."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from session_data import CITIES, charges, opened, shop

import discreet as dp
from discreet.pages.kit import words


def test_bounds_are_found_within_the_widest_and_can_be_declared(tmp_path):
    with opened(tmp_path, columns={"city": dp.categories(CITIES)}) as session:
        with pytest.raises(dp.Refused):
            session.sql("SELECT SUM(age) AS total FROM orders", epsilon=1)
        found = dp.private_bounds(session, "AGE", within=(0, 10**6), epsilon=20, coverage="0.9")
        assert charges(session) == 1
        assert session.spent.epsilon == 20
    low, high = found.declared.facts.low, found.declared.facts.high
    # Ages are spread evenly from 18 to 87; a tenth of them is cut off.
    assert 18 <= low <= 30
    assert 75 <= high <= 90
    assert found.release["low"][0].value == low
    assert found.release._repr_html_() in found._repr_html_()
    assert words(found.declared) in found._repr_html_()
    with opened(tmp_path, columns={"age": found.declared}) as session:
        session.sql("SELECT SUM(age) AS total FROM orders", epsilon=1).release()


def test_bounds_of_dates_and_decimals_keep_their_kind(tmp_path):
    days = pa.table(
        {"who": range(500), "day": [date(2020, 1, 1 + n % 20) for n in range(500)], "x": [n / 8 for n in range(500)]}
    )
    with opened(tmp_path, {"t": days}, unit="row", columns={}, budget=dp.Budget(epsilon=100)) as session:
        widest = date(1990, 1, 1), date(2030, 1, 1)
        times = dp.private_bounds(session, "day", within=widest, epsilon=20, coverage="0.9")
        reals = dp.private_bounds(session, "x", within=(0, 1000), step="0.125", epsilon=20, coverage="0.9")
    assert times.declared.facts.kind.value == "date"
    assert times.declared.facts.low >= dp.between(date(2019, 12, 1), date(2030, 1, 1)).facts.low
    assert reals.declared.facts.kind.value == "real"
    assert reals.declared.facts.high < 70


def test_limits_are_found_for_rows_and_groups_of_a_unit(tmp_path):
    rows = [{"who": f"p{n}", "place": f"c{k % (1 + n % 3)}"} for n in range(400) for k in range(6)]
    with opened(tmp_path, {"t": pa.Table.from_pylist(rows)}, unit=dp.Unit("who"), columns={}) as session:
        assert dp.private_limit(session, most=100, epsilon=20).limit == 6
        assert dp.private_limit(session, most=100, groups="place", epsilon=20).limit in (2, 3)
        assert charges(session) == 2
        with pytest.raises(dp.InvalidParameter, match="at least 2"):
            dp.private_limit(session, most=1, epsilon=1)
    with opened(tmp_path, unit="row", dataset="rows") as session, pytest.raises(dp.InvalidParameter, match="rows are"):
        dp.private_limit(session, most=10, epsilon=1)


def test_keys_that_enough_people_have_are_found_and_can_be_listed(tmp_path):
    rows = [*shop().to_pylist(), {"customer": "odd", "city": "Nowhere", "price": 1.0, "age": 20}]
    with opened(tmp_path, {"orders": pa.Table.from_pylist(rows)}, columns={}) as session:
        found = dp.private_keys(session, "city", epsilon=20, delta="1e-11")
        assert set(found.keys) == set(CITIES)
        assert charges(session) == 1
        query = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"
        answer = session.sql(query, keys={"city": found.keys}, epsilon=5).release()
        assert len(answer) == 3
        assert session.sql(query, keys={"city": found.declared}, epsilon=5).question.keys[0].domain is not None


def test_no_key_is_an_answer_too(tmp_path):
    with opened(tmp_path, {"orders": shop(2)}, columns={}) as session:
        found = dp.private_keys(session, "city", epsilon="0.1", delta="1e-11")
        assert found.keys == ()
        with pytest.raises(dp.InvalidParameter, match="enough people"):
            _ = found.declared


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"column": "agee"}, "Did you mean 'age'"),
        ({"column": "customer"}, "not released"),
        ({"table": "order"}, "Did you mean 'orders'"),
        ({"within": (5, 5)}, "low must be below high"),
        ({"coverage": 1}, "coverage"),
        ({"epsilon": None}, "no default"),
    ],
)
def test_nonsense_is_refused_before_anything_is_charged(given, words, tmp_path):
    with opened(tmp_path) as session:
        values = {"column": "age", "within": (0, 10), "epsilon": 1} | given
        with pytest.raises(dp.InvalidParameter, match=words):
            dp.private_bounds(session, values.pop("column"), **values)
        assert charges(session) == 0


def test_the_table_must_be_named_if_there_are_several(tmp_path):
    with opened(tmp_path, {"a": shop(), "b": shop()}) as session:
        with pytest.raises(dp.InvalidParameter, match="which table"):
            dp.private_keys(session, "city", epsilon=1, delta="1e-9")
        dp.private_keys(session, "city", table="B", epsilon=1, delta="1e-9")
