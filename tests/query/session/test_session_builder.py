"""A question in Python is the question that its SQL is."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from session_data import CITIES, opened, shop

import discreet as dp
from discreet.query import (
    col,
    count,
    count_distinct,
    deviation,
    maximum,
    mean,
    median,
    minimum,
    mode,
    quantile,
    sum,
    variance,
)
from discreet.query.session.builder import word


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    regions = pa.table({"city": CITIES, "region": ["north", "west", "south"]})
    tables = {"orders": shop(), "regions": dp.public(regions)}
    columns = {"city": dp.categories(CITIES), "price": dp.between(0, 50, step="0.5"), "age": dp.between(18, 100)}
    with opened(tmp_path_factory.mktemp("builder"), tables, columns=columns, ledger="memory") as made:
        yield made


def cases(session):
    orders = session.table("Orders")
    yield orders.agg(n=count()), "SELECT COUNT(*) AS n FROM orders"
    yield (
        orders.where(col("price") > 5, col("age") < 60).group_by("city").agg(n=count(), total=sum("price")),
        "SELECT city, COUNT(*) AS n, SUM(price) AS total FROM orders WHERE price > 5 AND age < 60 GROUP BY city",
    )
    yield (
        orders.where((col("city") == "Bern") | ~(col("age") >= 30)).agg(age=mean("age"), m=median("age")),
        "SELECT AVG(age) AS age, MEDIAN(age) AS m FROM orders WHERE city = 'Bern' OR NOT age >= 30",
    )
    yield (
        orders.group_by(decade=(col("age") - col("age") % 10)).agg(n=count_distinct("customer")),
        "SELECT age - age % 10 AS decade, COUNT(DISTINCT customer) AS n FROM orders GROUP BY age - age % 10",
    )
    yield (
        orders.agg(v=variance("price"), s=deviation("price"), a=minimum("age"), b=maximum("age"), c=mode("city")),
        "SELECT VAR_SAMP(price) AS v, STDDEV_SAMP(price) AS s, MIN(age) AS a, MAX(age) AS b, MODE(city) AS c "
        "FROM orders",
    )
    yield (
        orders.join("regions", on="city").group_by("region").agg(n=count()).order_by("n", descending=True).limit(2),
        "SELECT region, COUNT(*) AS n FROM orders JOIN regions ON orders.city = regions.city GROUP BY region "
        "ORDER BY n DESC LIMIT 2",
    )
    yield (
        orders.where(col("age").between(20, 30), col("city").isin(["Bern", "Genf"]), ~col("price").is_null()).agg(
            q=quantile("price", "0.9"), x=sum(col("price") * 2 + 1)
        ),
        "SELECT QUANTILE(price, 0.9) AS q, SUM(price * 2 + 1) AS x FROM orders "
        "WHERE age BETWEEN 20 AND 30 AND city IN ('Bern', 'Genf') AND NOT price IS NULL",
    )
    yield (
        orders.where(col("city").like("B%")).group_by("city").agg(n=count("price")).having(col("n") > 10),
        "SELECT city, COUNT(price) AS n FROM orders WHERE city LIKE 'B%' GROUP BY city HAVING n > 10",
    )


def test_the_builder_makes_the_question_of_its_sql(session):
    for built, written in cases(session):
        assert built.plan(epsilon=1).question == session.sql(written, epsilon=1).question, written


def test_a_built_question_is_answered(session):
    answer = session.table("orders").group_by("city").agg(n=count()).plan(epsilon=20).release()
    assert [row["city"] for row in answer] == CITIES
    assert all(row["n"].value > 80 for row in answer)


def test_steps_do_not_change_what_they_start_from(session):
    start = session.table("orders").agg(n=count())
    start.where(col("age") > 50)
    assert start.sql == 'SELECT COUNT(*) AS "n"\nFROM "orders"'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "TRUE"), (3, "3"), (-3, "(- 3)"), (0.1, "0.1"), (Fraction(1, 8), "0.125"), (Decimal("-2.50"), "(- 2.5)"),
        (1e-7, "0.0000001"), ("it's", "'it''s'"), (date(2020, 1, 2), "DATE '2020-01-02'"),
        (datetime(2020, 1, 2, 3, 4), "TIMESTAMP '2020-01-02 03:04:00'"), (10**20, "1" + "0" * 20),
    ],
)  # fmt: skip
def test_constants_are_written_exactly(value, written):
    assert word(value).sql == written


@pytest.mark.parametrize("value", [None, object(), float("nan"), float("inf"), Fraction(1, 3), [1], b"x"])
def test_what_has_no_exact_text_is_refused(value):
    with pytest.raises(dp.InvalidParameter):
        word(value)


def test_names_are_names_and_nothing_else(session):
    hostile = session.table("orders").where(col('age" > 0 OR "age') > 1).agg(n=count())
    with pytest.raises(dp.Refused):
        hostile.plan(epsilon=1)


def test_mistakes_are_refused_with_a_hint(session):
    orders = session.table("orders")
    with pytest.raises(dp.InvalidParameter, match="Did you mean"):
        session.table("order")
    with pytest.raises(dp.InvalidParameter, match="agg"):
        orders.plan(epsilon=1)
    with pytest.raises(dp.InvalidParameter, match="col"):
        orders.where("age > 5")
    with pytest.raises(dp.InvalidParameter, match="expression"):
        orders.agg(n="count")
    with pytest.raises(dp.InvalidParameter, match="inner"):
        orders.join("regions", on="city", how="cross")
    with pytest.raises(dp.InvalidParameter, match="at least one"):
        col("age").isin([])
    with pytest.raises(dp.InvalidParameter, match="& and"):
        _ = col("age") > 1 and col("age") < 5


def test_words_of_data_frames_are_answered_with_ours(session):
    """Whoever says groupby learns the word; whatever else is missing is missing as usual."""
    orders = session.table("orders")
    for asked, ours in (("groupby", "group_by"), ("sort_values", "order_by"), ("head", "limit"), ("release", "plan")):
        with pytest.raises(AttributeError, match=rf"{asked}.*\.{ours}\("):
            getattr(orders, asked)
    assert not hasattr(orders, "nothing_like_it")


def test_a_question_shows_itself_as_its_sql_or_says_what_is_missing(session):
    orders = session.table("orders").group_by("city")
    assert ".agg(" in repr(orders)
    asked = orders.agg(n=count())
    assert repr(asked) == asked.sql


def test_history_and_catalogue_are_tables_and_lines_for_people(session):
    session.sql("SELECT COUNT(*) AS n FROM orders", epsilon="0.25").release()
    lines = repr(session.history()).splitlines()
    assert lines[0].split()[:2] == ["number", "when"]
    charged = [line for line in lines if " charge " in line]
    assert charged
    assert all(word in charged[-1] for word in ("ε = 0.25", "SELECT COUNT(*) AS n FROM orders"))
    assert not any(entry.hash in repr(session.history()) for entry in session.history())
    assert "<td" in session.history()._repr_html_()
    assert repr(session.catalogue).startswith("Catalogue(orders: customer text, city text, price real")
    assert "\n" not in repr(session.catalogue)


def test_near_misses_of_a_question_are_answered_with_what_to_write(session):
    with pytest.raises(dp.Refused, match=r"way out: a text stands in single quotes, '30'"):
        session.sql('SELECT COUNT(*) AS n FROM orders WHERE age = "30"', epsilon=1)
    with pytest.raises(dp.Refused, match=r"way out: use one of them"):
        session.sql("SELECT COUNT(*) AS n FROM orders WHERE zzz = 30", epsilon=1)
    for other in ("NUNIQUE", "COUNT_DISTINCT"):
        with pytest.raises(dp.Refused, match=r"COUNT\(DISTINCT x\)"):
            session.sql(f"SELECT {other}(city) AS n FROM orders", epsilon=1)


def test_a_wrong_column_of_time_is_refused_as_that(tmp_path):
    with pytest.raises(dp.InvalidParameter, match="no column 'when', which time= names: it tells in which day"):
        opened(tmp_path, shop(), unit=dp.Unit("customer", window="day", time="when"), ledger="memory")


def test_intervals_of_quantiles_are_asked_for_in_the_same_words(session):
    asked = session.table("orders").group_by("city").agg(n=count(), age=median("age"))
    plan = asked.plan(epsilon=2, quantile_intervals=True)
    assert plan.event == session.sql(asked.sql, epsilon=2, quantile_intervals=True).event
    assert "± is found in the data, and paid for" in str(plan.explain())
    assert "quantile_intervals pays for a ±" in str(asked.plan(epsilon=2).explain())
    assert plan.dummy().column("age").has_interval
