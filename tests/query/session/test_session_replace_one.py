"""Change-one sessions: what they hide and what is public, what is refused, and that no ledger mixes two relations."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.query.engine import Deadline

REPLACE = dp.Relation.REPLACE_ONE
TABLE = pa.table(
    {
        "who": [1, 1, 2, 3, 4, 4, 4],
        "team": ["a", "b", "a", "b", "a", "a", "b"],
        "score": [1, 5, 3, 3, 5, 1, 2],
        "at": [datetime(2026, 1, day) for day in (1, 2, 1, 1, 1, 1, 2)],
    }
)
BY_TEAM = "SELECT team, COUNT(*) AS n, AVG(score) AS mean FROM answers GROUP BY team"


def opened(folder: Any, unit: Any = None, **changes: Any) -> dp.Session:
    usual: dict[str, Any] = {
        "unit": dp.Unit("who", relation=REPLACE, units=5, name="employee") if unit is None else unit,
        "budget": dp.Budget(epsilon=100, delta=Fraction(1, 1000)),
        "columns": {"team": dp.categories(["a", "b"]), "score": dp.between(1, 5, whole=True)},
        "ledger": folder / "answers.ledger",
        "dataset": "answers",
        "principal": "ana",
    }
    return dp.Session({"answers": TABLE}, **usual | changes)


def test_what_is_charged_and_told_is_replace_one(tmp_path):
    with opened(tmp_path) as session:
        plan = session.sql(BY_TEAM, epsilon=1)
        answer = plan.release()
        charge = next(entry for entry in session.history() if entry.kind == "charge")
        told = str(plan.explain())
        assert answer.relation is REPLACE
        assert charge.content["relation"] == "replace-one"
        assert session.ledger.account.relation is REPLACE
        assert "each employee with all its rows, exchanged for any others or for none (replace-one)" in told
        assert "hides what the rows of an employee say" in told
        assert "that there are 5 employees, as declared, is public" in told
        assert "replace-one, of 5 employees, as declared" in str(session.describe())


@pytest.mark.parametrize(
    ("query", "spend", "limits", "reach"),
    [
        ("SELECT COUNT(*) AS n FROM answers WHERE score > 2", {"epsilon": 1}, (1, 1), 1),
        ("SELECT team, COUNT(*) AS n FROM answers GROUP BY team", {"epsilon": 1}, (1, 1), 2),
        ("SELECT team, COUNT(*) AS n FROM answers GROUP BY team", {"epsilon": 1}, (2, 1), 2),
        ("SELECT team, COUNT(*) AS n FROM answers GROUP BY team", {"epsilon": 1}, (1, 3), 6),
        ("SELECT SUM(score) AS n FROM answers", {"epsilon": 1}, (1, 1), 5),
        ("SELECT SUM(score - 3) AS n FROM answers", {"epsilon": 1}, (1, 1), 4),
    ],
)
def test_the_scale_of_noise_is_that_of_an_exchange(tmp_path, query, spend, limits, reach):
    """With none among them: a sum from 1 to 5 moves by 5, one from -2 to 2 by 4, a count that is spread by two."""
    with opened(tmp_path, dp.Unit("who", *limits, relation=REPLACE, units=5)) as session:
        law = session.sql(query, **spend)._asked.priced.draft.noising.numbers[0].law
        assert law.scale == reach


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(DISTINCT who) AS n FROM answers",
        "SELECT COUNT(*) AS n FROM answers",
        "SELECT COUNT(1) AS n FROM answers",
        "SELECT COUNT(*) AS n, AVG(score) AS mean FROM answers",
        "SELECT COUNT(*) AS n FROM (SELECT who, MAX(score) AS top FROM answers GROUP BY who) AS each_one",
        "SELECT COUNT(DISTINCT who) AS n FROM (SELECT who FROM answers UNION ALL SELECT who FROM answers) AS both",
    ],
)
def test_how_many_units_there_are_is_public_and_no_question(tmp_path, query):
    with opened(tmp_path) as session, pytest.raises(dp.Refused, match="5, as declared"):
        session.sql(query, epsilon=1)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(DISTINCT who) AS n FROM answers WHERE score > 3",
        "SELECT team, COUNT(DISTINCT who) AS n FROM answers GROUP BY team",
        "SELECT AVG(score) AS mean FROM answers",
        "SELECT COUNT(*) AS n FROM (SELECT who, MAX(score) AS m FROM answers GROUP BY who HAVING MAX(score) > 3) AS t",
    ],
)
def test_a_part_of_the_units_is_a_question(tmp_path, query):
    with opened(tmp_path) as session:
        assert session.sql(query, epsilon=1).release().rows


def test_rows_are_counted_where_a_unit_may_have_several(tmp_path):
    unit = dp.Unit("who", max_rows_per_group=3, relation=REPLACE, units=5)
    with opened(tmp_path, unit) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM answers", epsilon=1).release().rows


def test_rows_as_units_are_counted_by_nobody(tmp_path):
    with opened(tmp_path, dp.Unit("row", relation=REPLACE, units=7)) as session:
        with pytest.raises(dp.Refused, match="how many rows there are is public under replace-one: 7, as declared"):
            session.sql("SELECT COUNT(*) AS n FROM answers", epsilon=1)
        assert session.sql(BY_TEAM, epsilon=1).release().rows


def test_a_count_of_units_is_at_most_how_many_there_are(tmp_path):
    with opened(tmp_path) as session:
        plan = session.sql("SELECT COUNT(DISTINCT who) AS n FROM answers WHERE score > 3", epsilon=1)
        assert plan.release().single().interval()[1] <= 5


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"relation": REPLACE}, "never read from the data"),
        ({"units": 5}, "which add-remove hides"),
        ({"relation": REPLACE, "units": 0}, "units must be"),
        ({"relation": REPLACE, "units": 2.5}, "units must be"),
        ({"relation": "both", "units": 5}, "relation must be"),
    ],
)
def test_a_number_of_units_goes_with_replace_one(said, words):
    with pytest.raises(dp.InvalidParameter, match=words):
        dp.Unit("who", **said)


def test_a_ledger_takes_one_relation(tmp_path):
    """The planted mistake: answers under two relations that are added up in one budget."""
    opened(tmp_path).close()
    with pytest.raises(dp.Refused, match="declare the unit as 'who' and the relation as 'replace-one'"):
        opened(tmp_path, dp.Unit("who"))
    with opened(tmp_path) as session, pytest.raises(dp.InvalidParameter, match="accounted under REPLACE_ONE"):
        session.ledger.charge(dp.privacy.PureDP(1), relation=dp.Relation.ADD_REMOVE, purpose="x", unit="who")


@pytest.mark.parametrize("relation", dp.Relation)
def test_what_was_not_shown_to_hold_is_refused_before_it_is_paid(tmp_path, relation):
    """Where a unit may have no rows, how many rows a column has is not public, as these functions take it to be."""
    with opened(tmp_path, dp.Unit("row", relation=REPLACE, units=7)) as session:
        before = len(session.history())
        with pytest.raises(dp.Refused, match="open another data set under add-remove"):
            dp.mean([1, 2, 3], bounds=(0, 5), epsilon=1, relation=relation, session=session)
        with pytest.raises(dp.Refused, match="open another data set under add-remove"):
            dp.release.plan_profile(session, epsilon=1)
        with pytest.raises(dp.Refused, match="open another data set under add-remove"):
            dp.synthesize("answers", session=session, epsilon=1, delta=1e-6, relation=relation)
        assert len(session.history()) == before


UNITS = {
    "a column": dp.Unit("who", relation=REPLACE, units=5),
    "two columns": dp.Unit(["who", "team"], relation=REPLACE, units=10),
    "a window": dp.Unit("who", window="day", time="at", relation=REPLACE, units=10),
}


@pytest.mark.parametrize("name", UNITS)
def test_every_kind_of_unit_is_asked_under_replace_one(tmp_path, name):
    """What is kept of a unit depends on its own rows, so an exchange moves nobody else's, whatever the unit is."""
    with opened(tmp_path, UNITS[name]) as session:
        plan = session.sql("SELECT team, COUNT(*) AS n FROM answers GROUP BY team", epsilon=1)
        noising = plan._asked.priced.draft.noising
        assert (noising.numbers[0].law.scale, noising.common) == (2, 0)
        tallied = session._desk.engine.run(plan._asked.priced.stage, deadline=Deadline.after(60))
        assert int(tallied.tally.units.sum()) == {"a column": 4, "two columns": 6, "a window": 6}[name]
        assert plan.release().relation is REPLACE


def test_an_answer_in_one_batch_is_charged_under_the_relation(tmp_path):
    with opened(tmp_path) as session:
        plans = {name: session.sql(BY_TEAM, epsilon=1) for name in ("one", "two")}
        session.batch(plans, idempotency_key=None, purpose="both").release()
        charge = next(entry for entry in session.history() if entry.kind == "charge")
        assert charge.content["relation"] == "replace-one"


def test_fingerprints_of_add_remove_know_nothing_of_exchanges(tmp_path):
    """What was paid for before replace-one was there is found again; under replace-one it is another question."""
    from discreet.query.plan.fingerprint import canonical

    with opened(tmp_path, dp.Unit("who")) as one, opened(tmp_path, ledger="memory") as other:
        first, second = (session.sql(BY_TEAM, epsilon=1) for session in (one, other))
        written = canonical(first._asked.priced.draft.noising)
        assert "exchange" not in written
        assert "common" not in written
        assert first.fingerprint != second.fingerprint


def test_a_chain_of_units_is_of_add_remove():
    """What an inner unit lets in whose rows are exchanged was not shown."""
    outer, inner = {"column": "who"}, {"column": ["who", "team"]}
    for one, other in (({"relation": REPLACE, "units": 5}, {}), ({}, {"relation": REPLACE, "units": 5})):
        with pytest.raises(dp.InvalidParameter, match="come and go"):
            dp.Chain(dp.Unit(**outer, **one), dp.Unit(**inner, **other), max_inner=2)


def test_the_kept_share_is_a_question_like_others(tmp_path):
    """A unit that is counted wholly, and then not: it moves both numbers of units."""
    with opened(tmp_path) as session:
        plan = session.kept_share(BY_TEAM, epsilon=1)
        assert plan.event == dp.privacy.DiscreteLaplace(scale=2, sensitivity=2)
        assert plan.release().relation is REPLACE


def test_rows_that_are_units_have_no_kept_share(tmp_path):
    """Every row is counted, so there is nothing to measure or to pay for; it used to end in StopIteration."""
    for unit in (dp.Unit("row", relation=REPLACE, units=7), dp.Unit("row")):
        with opened(tmp_path, unit, ledger="memory") as session:
            with pytest.raises(dp.Refused, match="no limit can cut rows off this answer"):
                session.kept_share(BY_TEAM, epsilon=1)
            plan = session.sql(BY_TEAM, epsilon=1, kept_share=0.1)
            assert (plan.cost, plan.release().kept) == ("ε = 1", None)


def test_a_column_that_is_one_for_each_unit_costs_one_group_of_either_side(tmp_path):
    columns = {"team": dp.categories(["a", "b"], of_unit=True)}
    with opened(tmp_path, dp.Unit("who", 2, relation=REPLACE, units=5), columns=columns) as session:
        plan = session.sql("SELECT team, COUNT(*) AS n FROM answers GROUP BY team", epsilon=1)
        assert plan.event == dp.privacy.DiscreteLaplace(scale=2, sensitivity=2)


def test_statistics_of_one_call_do_not_pay_from_the_ledger_of_such_a_session_of_rows(tmp_path):
    """They take the number of rows as public, and here a row may be missing; a ledger of rows alone takes them."""
    values = [1.0, 2.0, 3.0]
    asked = {"epsilon": 1, "bounds": (0, 5), "relation": REPLACE, "public_rows": 3}
    with opened(tmp_path, dp.Unit("row", relation=REPLACE, units=7)) as session:
        with pytest.raises(dp.Refused, match="what each row says, or that it is missing"):
            dp.mean(values, session=session.ledger, **asked)
        assert session.spent.epsilon == 0
        assert "for one row (replace-one)" in str(session.describe())
    plain = dp.ledger.Account("other", "row", REPLACE, dp.Budget(epsilon=1))
    with dp.ledger.Ledger.open("memory", plain) as book:
        dp.mean(values, session=book, **asked)
        assert book.spent().epsilon == 1


def test_a_ledger_of_rows_is_not_one_of_rows_that_may_be_missing(tmp_path):
    place = tmp_path / "rows.ledger"
    dp.ledger.Ledger.open(place, dp.ledger.Account("answers", "row", REPLACE, dp.Budget(epsilon=10))).close()
    with pytest.raises(dp.Refused, match="a row may be missing"):
        opened(tmp_path, dp.Unit("row", relation=REPLACE, units=7), ledger=place)


@pytest.mark.parametrize("relation", [REPLACE, dp.Relation.ADD_REMOVE])
def test_a_column_does_not_share_the_account_of_rows_that_may_be_missing(relation):
    """Prices of one row would be added up for people, who have several."""
    with pytest.raises(dp.InvalidParameter, match="rename the column"):
        dp.Unit("row or none", relation=relation, units=5 if relation is REPLACE else None)
