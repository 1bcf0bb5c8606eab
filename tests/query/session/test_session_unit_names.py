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
