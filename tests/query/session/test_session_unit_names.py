"""A unit may have a name, which is in every text and in nothing else; answers say of which rows they are."""

from __future__ import annotations

import re

import pytest
from session_data import opened

import discreet as dp
from discreet.errors import InvalidParameter


@pytest.mark.parametrize(
    ("said", "nouns"),
    [
        ({"name": "household"}, "households"),
        ({"name": "family"}, "families"),
        ({"name": "boy"}, "boys"),
        ({"name": "box"}, "boxes"),
        ({"name": "person", "plural": "people"}, "people"),
        ({"name": "ménage d’accueil", "plural": "ménages d’accueil"}, "ménages d’accueil"),
        ({}, "different values of SERIALNO"),
    ],
)
def test_several_have_a_plural(said, nouns):
    unit = dp.Unit("SERIALNO", **said)
    assert (unit.noun, unit.nouns) == (said.get("name", "SERIALNO"), nouns)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a\x1b[31mb",
        "a\nb",
        "a\u202eb",
        "\ud800",
        "<b>",
        "ε = 0.1",
        "in 1 % of cases",
        "-a",
        "a  b",
        "x" * 41,
        5,
    ],
)
def test_what_is_no_plain_word_is_refused(name):
    with pytest.raises(InvalidParameter, match=r"^name must be") as refused:
        dp.Unit("SERIALNO", name=name)
    assert str(refused.value).isprintable()


def test_rows_have_no_name_and_no_name_has_no_plural():
    with pytest.raises(InvalidParameter, match="would promise what does not hold"):
        dp.Unit("row", name="person")
    with pytest.raises(InvalidParameter, match="plural is of a name"):
        dp.Unit("SERIALNO", plural="households")


def test_texts_of_a_session_call_the_unit_by_its_name(tmp_path):
    unit = dp.Unit("customer", max_groups=2, max_rows_per_group=2, name="household")
    with opened(tmp_path, unit=unit, columns={"city": dp.text(), "price": dp.between(0, 50)}) as session:
        query = "SELECT city, COUNT(*) AS n, AVG(price) AS p FROM orders GROUP BY city"
        plan = session.sql(query, epsilon=1, keys={"city": ["Bern", "Genf"]})
        hidden = session.sql("SELECT city, COUNT(*) AS n FROM orders GROUP BY city", epsilon=1, delta=1e-9)
        texts = [str(plan.explain()), str(hidden.explain()), session.describe().splitlines()[0], repr(session)]
        with pytest.raises(dp.Refused, match=r"protects each household \(everybody who shares a customer\)"):
            session.charge(dp.privacy.PureDP(1), relation="add-remove", purpose="rows")
    assert all("household" in text for text in texts)
    assert re.search(r"protects +each household with all its rows", texts[0])
    assert "each household is counted in at most 2 groups" in texts[0]
    assert "the mean of each household's mean" in texts[0]
    assert "hidden unless households + noise" in texts[1]
    assert "their number of households plus noise" in texts[1]
    assert not re.search(r"\b(each|one|a) customer\b", "\n".join(texts))


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        ("SELECT COUNT(*) AS n FROM orders", True),
        ("SELECT city, COUNT(DISTINCT customer) AS n FROM orders GROUP BY city", True),
        ("SELECT COUNT(DISTINCT customer) AS n FROM orders", False),
        ("SELECT COUNT(*) AS n FROM (SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer) AS per", False),
    ],
)
def test_an_answer_says_that_it_is_of_the_counted_rows_where_limits_can_cut(query, cut, tmp_path):
    with opened(tmp_path, unit=dp.Unit("customer", max_rows_per_group=2)) as session:
        answer = session.sql(query, epsilon=1).release()
    assert ("values and ± are of the counted rows" in str(answer)) is cut
    assert ("values and ± are of the counted rows" in answer._repr_html_()) is cut


def test_an_answer_about_rows_says_nothing_of_counted_ones(tmp_path):
    with opened(tmp_path, unit="row") as session:
        assert "counted rows" not in str(session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1).release())


@pytest.mark.parametrize(
    ("unit", "cut"),
    [
        (dp.Unit("customer"), True),
        (dp.Unit("customer", max_groups=2), True),
        (dp.Unit("customer", max_groups=3), False),
    ],
)
def test_a_count_of_units_by_group_says_in_how_many_groups_one_is_counted(unit, cut, tmp_path):
    with opened(tmp_path, unit=unit) as session:
        plan = session.sql("SELECT city, COUNT(DISTINCT customer) AS n FROM orders GROUP BY city", epsilon=1)
    notes = "\n".join(plan.notes)
    said = f"counted in max_groups = {unit.max_groups} of them only, so groups come out too small"
    assert (said in notes) is cut
    assert ("dp.private_limit" in notes) is cut
    assert ("max_groups covers all 3 groups" in notes) is not cut
    assert ("counted rows" in notes) is cut
    assert "at most 1 row" not in notes


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        ("AVG(price) AS m", True),
        ("MEDIAN(price) AS m", True),
        ("STDDEV(price) AS m", True),
        ("SUM(price) / COUNT(*) AS m", True),
        ("COUNT(*) AS n, SUM(price) AS s", False),
    ],
)
def test_a_mean_or_share_says_that_the_draw_of_rows_is_not_in_its_interval(asked, drawn, tmp_path):
    draw, instead = "drawn at random, which moves means", "SELECT AVG(m) FROM (SELECT customer, AVG(x) AS m FROM"
    with opened(tmp_path, unit=dp.Unit("customer")) as session:
        notes = "\n".join(session.sql(f"SELECT {asked} FROM orders", epsilon=1).notes)
        own = "SELECT AVG(m) AS a FROM (SELECT customer, AVG(price) AS m FROM orders GROUP BY customer) AS s"
        per_unit = "\n".join(session.sql(own, epsilon=1).notes)
    assert (draw in notes) is drawn
    assert (instead in notes) is asked.startswith("AVG")
    assert not any(words in per_unit for words in (draw, instead, "counted rows"))


def test_hidden_groups_promise_their_intervals_for_counted_rows_only(tmp_path):
    with opened(tmp_path, unit=dp.Unit("customer"), columns={"city": dp.text()}) as session:
        plan = session.sql("SELECT city, COUNT(*) AS n FROM orders GROUP BY city", epsilon=1, delta=1e-9)
    assert "does not bend the intervals of shown groups, which are of the counted rows" in "\n".join(plan.notes)


def test_a_declared_stand_in_for_missing_values_is_said(tmp_path):
    per = "(SELECT customer, AVG(price) AS m FROM orders GROUP BY customer) AS s"
    two = "(SELECT customer, price FROM orders UNION ALL SELECT customer, age FROM orders) AS u"
    said = {
        "SELECT SUM(price) AS s FROM orders": "50 and counted in steps of 0.5, which",
        "SELECT SUM(age) AS s FROM orders": "100; NULL is left out",
        f"SELECT SUM(m) AS s FROM {per}": "NULL is left out",
        f"SELECT SUM(price) AS s FROM {two}": "missing values count as 3 where that is declared; other NULLs are left",
        "SELECT SUM(b.price) AS s FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS a "
        "LEFT JOIN (SELECT customer, price FROM orders) AS b ON a.customer = b.customer": "where that is declared",
    }
    columns = {"price": dp.between(0, 50, step="0.5", missing=3), "age": dp.between(18, 100, whole=True)}
    with opened(tmp_path, unit=dp.Unit("customer"), columns=columns) as session:
        notes = {query: "\n".join(session.sql(query, epsilon="0.1").notes) for query in said}
    for query, words in said.items():
        assert words in notes[query], notes[query]
    plain = notes["SELECT SUM(price) AS s FROM orders"]
    assert "; missing values count as 3" in plain
    assert "NULL" not in plain
