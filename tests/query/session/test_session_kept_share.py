"""The kept share in sessions: a part of the price, charged and released before the answer that it describes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp

BY_SEX = "SELECT sex, COUNT(*) AS n, SUM(x) AS x FROM t GROUP BY sex"
ROWS = [
    {"h": unit, "sex": ("m", "f")[(unit + row) % 2], "x": row % 5} for unit in range(400) for row in range(1 + unit % 4)
]


def opened(*, limits: tuple[int, int] = (2, 1), most: int | None = 4, epsilon: int = 20, **words: Any) -> dp.Session:
    return dp.Session(
        pa.Table.from_pylist(ROWS),
        unit=dp.Unit("h", *limits, name="household", rows_at_most=most),
        budget=dp.Budget(epsilon=epsilon),
        columns={"sex": dp.categories(["m", "f"]), "x": dp.between(0, 4, whole=True)},
        ledger="memory",
        dataset="t",
        principal="ana",
        **words,
    )


def test_the_kept_share_is_charged_and_released_before_the_answer() -> None:
    with opened() as session:
        session.sql(BY_SEX, epsilon=10, kept_share="0.1").release()
        told = [(entry.kind, entry.content.get("purpose", "")) for entry in session.history()]
        assert [purpose for kind, purpose in told if kind == "charge"] == [f"kept share of {BY_SEX}", BY_SEX]
        kinds = [kind for kind, _ in told if kind in ("charge", "release", "answer")]
        assert kinds.index("charge") < kinds.index(kinds[-1])
        assert kinds == [kinds[0], kinds[1]] * 2  # The first is answered before the second is charged.
        assert session.spent.epsilon == 10


def test_shares_and_corrected_totals_are_near_what_they_are() -> None:
    with opened(epsilon=100) as session:
        table = session.sql(BY_SEX, epsilon=100, kept_share="0.5").release()
    kept = table.kept
    assert kept is not None
    assert abs(float(kept.units.value) - 0.5) < 0.03  # 1 or 2 rows of 1 to 4: at most one for each sex
    assert kept.rows is not None
    assert abs(float(kept.rows.value) - 700 / 1000) < 0.05
    assert abs(float(kept.totals["all_rows"].value) - 1000) < 30
    assert abs(float(kept.totals["all_x"].value) - 1000) < 60
    assert "of all households that have rows here are counted with all their rows" in table.notes[0]
    assert any(note.startswith("corrected totals") for note in table.notes)


def test_without_rows_at_most_only_units_are_counted() -> None:
    with opened(most=None) as session:
        table = session.sql(BY_SEX, epsilon=1, kept_share="0.1").release()
    assert table.kept is not None
    assert table.kept.rows is None
    assert table.kept.release.names == ("whole_units", "other_units")
    assert not any("corrected" in note for note in table.notes)


def test_joins_that_repeat_rows_have_no_corrected_totals() -> None:
    """A unit has more rows in a join than in its tables: what is known of these says nothing there."""
    query = "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.h = b.h"
    with opened() as session:
        assert session.kept_share(query, epsilon=1).dummy().names == ("whole_units", "other_units")


def test_nothing_is_measured_where_no_limit_cuts() -> None:
    units = "SELECT COUNT(DISTINCT h) AS n FROM t"
    with opened() as session:
        plan = session.sql(units, epsilon=1, kept_share="0.1")
        assert plan.cost == "ε = 1"
        assert plan.release().kept is None
        assert session.spent.epsilon == 1
        with pytest.raises(dp.Refused, match="no limit can cut"):
            session.kept_share(units, epsilon=1)


def test_an_answer_that_cannot_be_paid_is_not_half_bought() -> None:
    with opened(epsilon=1) as session:
        plan = session.sql(BY_SEX, epsilon="1.05", kept_share="0.1")
        with pytest.raises(dp.BudgetExceeded):
            plan.release()
        assert session.spent.epsilon == 0


def test_an_error_that_is_wanted_stays_and_the_part_comes_on_top() -> None:
    with opened() as session:
        alone = session.sql(BY_SEX, error=40)
        both = session.sql(BY_SEX, error=40, kept_share="0.1")
        assert both.deviations == alone.deviations
        assert both.cost.startswith(alone.cost)
        assert Fraction(both._first._asked.priced.spend.epsilon) == alone._asked.priced.spend.epsilon / 9  # type: ignore[union-attr,arg-type,operator]


def test_asked_again_under_a_key_both_are_free_and_the_same() -> None:
    with opened() as session:
        first = session.sql(BY_SEX, epsilon=1, kept_share="0.1", idempotency_key="a").release()
        again = session.sql(BY_SEX, epsilon=1, kept_share="0.1", idempotency_key="a").release()
        assert session.spent.epsilon == 1
        assert (first.notes, first.to_json()) == (again.notes, again.to_json())


def test_a_batch_takes_the_kept_share_by_itself() -> None:
    with opened() as session:
        with pytest.raises(dp.InvalidParameter, match=r"session\.kept_share"):
            session.batch({"a": session.sql(BY_SEX, epsilon=1, kept_share="0.1")}, idempotency_key=None, purpose="both")
        plans = {"a": session.sql(BY_SEX, epsilon=1), "b": session.kept_share(BY_SEX, epsilon=1)}
        released = session.batch(plans, idempotency_key=None, purpose="both").release()
        assert released.tables["b"].names[:2] == ("whole_units", "other_units")


def test_explain_names_the_price_and_the_error_of_the_kept_share() -> None:
    with opened() as session:
        told = str(session.sql(BY_SEX, epsilon=1, kept_share="0.1").explain())
    assert "ε = 0.9, and ε = 0.1 for the kept share" in told
    assert "kept share: whole_units" in told


@pytest.mark.parametrize("part", ["0.6", 0, -1])
def test_a_part_that_is_none_is_refused(part: Any) -> None:
    with opened() as session, pytest.raises(dp.InvalidParameter, match="kept_share"):
        session.sql(BY_SEX, epsilon=1, kept_share=part)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"column": "row", "rows_at_most": 3}, "for a unit column"),
        ({"column": "h", "max_rows_per_group": 4, "rows_at_most": 3}, "at least max_rows_per_group"),
        ({"column": "h", "rows_at_most": 0}, "rows_at_most"),
    ],
)
def test_what_is_known_of_rows_is_checked(words: dict[str, Any], reason: str) -> None:
    with pytest.raises(dp.InvalidParameter, match=reason):
        dp.Unit(**words)
