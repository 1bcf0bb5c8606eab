"""SQL in, a question out: `tests/fixtures/sql/reading.sql` holds both."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_worlds import BY_UNIT, written

from discreet.query.parse.select import read

FILE = Path(__file__).parents[2] / "fixtures" / "sql" / "reading.sql"


def fixtures() -> list[tuple[str, str, str]]:
    parts = FILE.read_text(encoding="utf-8").split("-- title: ")[1:]
    found = []
    for part in parts:
        title, _, rest = part.partition("\n")
        query, expected = rest.strip().removesuffix(";").split(";\n")
        found.append((title, query, expected.strip()))
    return found


@pytest.mark.parametrize(("title", "query", "expected"), fixtures(), ids=[title for title, _, _ in fixtures()])
def test_a_query_becomes_its_question(title: str, query: str, expected: str) -> None:
    assert written(read(query, BY_UNIT).question) == expected


def test_titles_are_distinct() -> None:
    titles = [title for title, _, _ in fixtures()]
    assert len(set(titles)) == len(titles) >= 40


def test_equal_texts_ask_the_same() -> None:
    one = read("SELECT city AS a, COUNT(*) FROM people AS p WHERE p.age > 3 GROUP BY 1", BY_UNIT).question
    other = read(
        'select CITY as a , count ( * ) from "people" where (AGE) > 3 group by city -- again', BY_UNIT
    ).question
    assert one == other


def test_no_name_of_the_analyst_reaches_the_source() -> None:
    """Tables and columns are the custodian's; every field is a number of ours; texts are constants."""
    question = read("SELECT AVG(evil) FROM (SELECT age + 1 AS evil FROM people AS wicked)", BY_UNIT).question
    assert "evil" not in repr(question.source)
    assert "wicked" not in repr(question)
