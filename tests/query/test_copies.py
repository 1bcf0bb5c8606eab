"""Nobody's row can be made so many that the question fails by it alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp

PEOPLE = pa.table({"id": [1, 2, 3], "name": ["Ada", "Bo", "Cy"], "city": ["Rome", "Rome", "Oslo"]})
# City and day together have no duplicates; each of them alone has.
DATES = pa.table({"city": ["Rome"] * 1000 + ["Oslo"] * 1000, "day": [*range(1000), *range(1000)]})
DAYS = pa.table({"city": ["Rome"] * 2000, "day": [place // 2 for place in range(2000)]})


def joined(times: int, table: str = "days") -> str:
    joins = " ".join(f"JOIN {table} d{place} ON p.city = d{place}.city" for place in range(times))
    return f"SELECT COUNT(*) AS n FROM people p {joins} WHERE p.name = 'Ada'"


@pytest.fixture
def session() -> dp.Session:
    return dp.Session(
        {"people": PEOPLE, "days": dp.public(DAYS), "dates": dp.public(DATES)},
        unit=dp.Unit("id", 1, 5),
        budget=dp.Budget(epsilon=10),
        ledger="memory",
        dataset="people",
        principal="ana",
    )


@pytest.mark.parametrize("table", ["days", "dates"])
def test_a_join_that_multiplies_a_row_beyond_measure_is_refused_before_it_is_paid(
    session: dp.Session, table: str
) -> None:
    """Also where the columns of the join are a part of some that have no duplicates together."""
    with pytest.raises(dp.Refused, match="4,000,000 rows of one"):
        session.sql(joined(2, table), epsilon=1)
    assert not session.history()[1:]


def test_copies_are_counted_on_both_sides_of_a_join(session: dp.Session) -> None:
    copied = "SELECT q.id FROM people q JOIN days d ON q.city = d.city JOIN days e ON q.city = e.city"
    with pytest.raises(dp.Refused, match="400,000,000 rows of one"):
        session.sql(f"SELECT COUNT(*) AS n FROM people p JOIN ({copied}) AS s ON p.id = s.id", epsilon=1)
    assert not session.history()[1:]


def test_a_row_counts_once_for_each_part_of_a_union(session: dp.Session) -> None:
    parts = " UNION ALL ".join(["SELECT id, name, city FROM people"] * 600)
    with pytest.raises(dp.Refused, match="1,200,000 rows of one"):
        session.sql(f"SELECT COUNT(*) AS n FROM ({parts}) AS p JOIN days d ON p.city = d.city", epsilon=1)
    assert not session.history()[1:]


def test_a_join_with_many_matches_is_answered(session: dp.Session) -> None:
    assert len(session.sql(joined(1), epsilon=1).release()) == 1
