"""AVG for a population: sampling and noise together, paid by a sum of squares, refused where rows are alike."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp

ROWS = 4_000
TABLE = pa.table(
    {
        "who": list(range(ROWS)),
        "x": [place % 101 for place in range(ROWS)],
        "yes": [int(place // 8 % 4 == 0) for place in range(ROWS)],
        "g": ["a" if place % 8 else "b" for place in range(ROWS)],
    }
)
MEANS = "SELECT g, AVG(x) AS m, AVG(yes) AS share, COUNT(*) AS n FROM t GROUP BY g"


def opened(folder: Any, relation: dp.Relation = dp.Relation.ADD_REMOVE, **changes: Any) -> dp.Session:
    units = {"relation": relation, "units": ROWS} if relation is dp.Relation.REPLACE_ONE else {}
    usual: dict[str, Any] = {
        "unit": dp.Unit("who", max_groups=1, max_rows_per_group=1, **units),
        "budget": dp.Budget(epsilon=1000, delta="1e-9"),
        "columns": {
            "x": dp.between(0, 100, whole=True),
            "yes": dp.between(0, 1, whole=True),
            "g": dp.categories(["a", "b"]),
        },
        "ledger": folder / "t.ledger",
        "dataset": "t",
        "principal": "ana",
    }
    return dp.Session({"t": TABLE}, **usual | changes)


@pytest.mark.parametrize("relation", list(dp.Relation))
@pytest.mark.parametrize("spend", [{"epsilon": 20}, {"rho": 20}])
def test_averages_have_intervals_for_what_rows_were_drawn_from(tmp_path, relation, spend) -> None:
    """With little noise they are a little wider than normal ones, while without population they are much shorter."""
    with opened(tmp_path, relation) as session:
        plan = session.sql(MEANS, **spend, population=True)
        drawn, plain = plan.release(), session.sql(MEANS, **spend).release()
        assert "drawn from" in str(plan.explain())
        assert "squares" in str(plan.explain())
    for row, other in zip(drawn, plain, strict=True):
        rows = ROWS // 8 * (7 if row["g"] == "a" else 1)
        for name, spread in (("m", 29.2), ("share", 0.433)):
            normal = 1.96 * spread / math.sqrt(rows)
            half = float(row[name].high - row[name].low) / 2
            assert normal * 0.8 < half < 3 * normal
            assert float(other[name].high - other[name].low) / 2 < half / 2
            assert row[name].low <= row[name].value <= row[name].high
        assert row["n"].high - row["n"].low < 10  # That of a count is of the counted rows, as before.


def test_a_share_pays_for_no_squares(tmp_path) -> None:
    asked = "SELECT AVG(yes) AS share FROM t"
    with opened(tmp_path) as session:
        plain, drawn = session.sql(asked, epsilon=1), session.sql(asked, epsilon=1, population=True)
        assert plain.event == drawn.event
        assert "squares" not in str(drawn.explain())


def test_what_is_computed_of_averages_is_of_populations_too(tmp_path) -> None:
    asked = "SELECT AVG(x) - 50 AS off FROM t"
    with opened(tmp_path) as session:
        drawn, plain = (session.sql(asked, epsilon=20, population=one).release()[0]["off"] for one in (True, False))
    assert drawn.high - drawn.low > 2 * (plain.high - plain.low)


def test_several_rows_of_a_person_are_no_population(tmp_path) -> None:
    unit = dp.Unit("who", max_groups=1, max_rows_per_group=2)
    with opened(tmp_path, unit=unit) as session, pytest.raises(dp.Refused, match="drawn independently"):
        session.sql(MEANS, epsilon=1, population=True)
    with (
        opened(tmp_path, ledger=tmp_path / "other.ledger") as session,
        pytest.raises(dp.Refused, match="none is asked for here"),
    ):
        session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1, population=True)


def test_more_intervals_than_anybody_waits_for_are_refused_before_they_are_paid(tmp_path) -> None:
    columns = {"x": dp.between(0, 100, whole=True), "who": dp.between(0, 50_000, whole=True)}
    asked = "SELECT who, AVG(x) AS m FROM t GROUP BY who"
    unit = dp.Unit("row")
    with opened(tmp_path, columns=columns, unit=unit) as session:
        assert session.sql(asked, epsilon=1).cost == "ε = 1"
        with pytest.raises(dp.Refused, match="50,000 groups at most"):
            session.sql(asked, epsilon=1, population=True)
