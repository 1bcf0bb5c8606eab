"""Two units, one within the other: what each answer costs both, that both pay, and what is refused."""

from __future__ import annotations

import itertools
import math
import os
import signal
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.ledger import charge_record, ledger
from discreet.privacy.events import BoundedRange, DiscreteLaplace, Gaussian, PureDP
from discreet.query.engine import Deadline
from discreet.query.plan.draft import Nesting

PEOPLE = pa.table(
    {
        "household": [1, 1, 1, 2, 2, 3, None, 4],
        "person": [1, 2, 3, 1, 1, 1, 1, None],
        "sex": ["f", "m", "f", "m", "m", "f", "f", "f"],
        "gain": [1, -1, 1, 1, 1, -1, 1, 1],
    }
)
COLUMNS = {"sex": dp.categories(["f", "m"]), "gain": dp.between(-1, 1, whole=True)}
CHAIN = dp.Chain(dp.Unit("household"), dp.Unit(["household", "person"], name="person"), max_inner=5)
BOTH = [dp.Budget(epsilon=100), dp.Budget(epsilon=60)]


def opened(chain: dp.Chain = CHAIN, table: Any = PEOPLE, **changes: Any) -> dp.Session:
    usual: dict[str, Any] = {
        "unit": chain,
        "budget": BOTH,
        "columns": COLUMNS,
        "ledger": "memory",
        "dataset": "people",
        "principal": "ana",
    }
    return dp.Session(table, **usual | changes)


def tallied(session: dp.Session, query: str) -> Any:
    plan = session.sql(query, epsilon=1)
    return session._desk.engine.run(plan._asked.priced.stage, deadline=Deadline.after(60)).tally


# --- What is counted. ---


def test_an_inner_unit_is_the_pair_and_who_lacks_a_part_is_nobody() -> None:
    with opened() as session:
        found = tallied(session, "SELECT sex, COUNT(DISTINCT unit) AS n FROM people GROUP BY sex")
        assert found.rows.tolist() == [3, 2]  # Person 1 of household 2 has two rows, of which one counts.


@pytest.mark.parametrize(("most", "expected"), [(1, 3), (2, 4), (3, 5)])
def test_of_an_outer_unit_so_many_inner_ones_are_counted(most: int, expected: int) -> None:
    with opened() as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1, max_inner=most)
        found = session._desk.engine.run(plan._asked.priced.stage, deadline=Deadline.after(60))
        assert found.tally.rows.tolist() == [expected]


@pytest.mark.parametrize("kinds", [("int64", "string"), ("string", "int32"), ("string", "string"), ("int8", "int8")])
def test_numbers_and_texts_tell_units_apart_alike(kinds: tuple[str, str]) -> None:
    kinds_of = dict(zip(("household", "person"), kinds, strict=True))
    columns = {name: PEOPLE[name].cast(kinds_of.get(name, PEOPLE[name].type)) for name in PEOPLE.column_names}
    with opened(table=pa.table(columns)) as session:
        assert tallied(session, "SELECT COUNT(DISTINCT unit) AS n FROM people").rows.tolist() == [5]


@pytest.mark.parametrize(("window", "most", "expected"), [("hour", 9, 5), ("day", 9, 4), ("day", 2, 3), ("day", 1, 2)])
def test_days_of_a_user_are_within_the_user(window: str, most: int, expected: int) -> None:
    first = datetime(2026, 1, 1, 23)
    views = pa.table(
        {
            "user": ["ana"] * 5 + ["ben", None],
            "at": [first + timedelta(hours=h) for h in (0, 0, 1, 2, 30)] + [first, first],
        }
    )
    chain = dp.Chain(dp.Unit("user"), dp.Unit("user", window=window, time="at"), max_inner=most)
    with opened(chain, views, columns={}) as session:
        assert tallied(session, "SELECT COUNT(DISTINCT unit) AS n FROM people").rows.tolist() == [expected]


def test_joins_and_sub_queries_are_by_pair() -> None:
    jobs = pa.table({"household": [1, 1, 2, 3], "person": [1, 1, 1, 2], "pay": [1, 0, 1, 1]})
    tables = {"people": PEOPLE, "jobs": jobs}
    columns = {"people": COLUMNS, "jobs": {"pay": dp.between(0, 1, whole=True)}}
    with opened(table=tables, columns=columns) as session:
        query = "SELECT COUNT(DISTINCT people.unit) AS n FROM people JOIN jobs ON people.unit = jobs.unit"
        assert tallied(session, query).rows.tolist() == [2]
        query = "SELECT SUM(LEAST(c, 5)) AS n FROM (SELECT unit, COUNT(*) AS c FROM people GROUP BY unit) AS s"
        assert [int(total) for total in tallied(session, query).measures[0].total] == [6]


def test_a_column_of_the_unit_is_of_the_inner_one() -> None:
    table = pa.table({"household": [1, 1, 1], "person": [1, 1, 2], "sex": ["m", "f", "m"]})
    with opened(table=table, columns={"sex": dp.categories(["f", "m"], of_unit=True)}) as session:
        found = tallied(session, "SELECT sex, COUNT(DISTINCT unit) AS n FROM people GROUP BY sex")
        assert found.rows.tolist() == [1, 1]


def test_columns_of_a_chain_are_stored_alike() -> None:
    tables = {"people": PEOPLE, "jobs": pa.table({"household": ["1"], "person": [1]})}
    with pytest.raises(dp.InvalidParameter, match="as integer and as text in different tables"):
        opened(table=tables, columns={})


# --- What it costs. ---

QUESTIONS = (
    ("SELECT COUNT(*) AS n FROM people", {"epsilon": 1}),
    ("SELECT sex, COUNT(*) AS n, SUM(gain) AS s FROM people GROUP BY sex", {"epsilon": 1}),
    ("SELECT AVG(gain) AS a, COUNT(DISTINCT household) AS d FROM people", {"epsilon": 1}),
    ("SELECT sex, VARIANCE(gain) AS v FROM people GROUP BY sex", {"epsilon": 1}),
    ("SELECT sex, CORR(gain, gain * gain) AS r FROM people GROUP BY sex", {"epsilon": 1}),
    ("SELECT MEDIAN(gain) AS m FROM people", {"epsilon": 1}),
    ("SELECT MODE(sex) AS m FROM people", {"epsilon": 1}),
    ("SELECT sex, QUANTILE(gain, [0.1, 0.5, 0.9]) AS m FROM people GROUP BY sex", {"epsilon": 1}),
    ("SELECT FIVE_NUMBERS(gain) AS m FROM people", {"epsilon": 1, "quantile_intervals": True}),
)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_person_pays_for_two_of_them_and_a_household_for_all(question: Any, most: int) -> None:
    query, price = question
    chain = dp.Chain(CHAIN.outer, dp.Unit(["household", "person"], 2, 3), max_inner=most)
    with opened(chain) as session:
        plan = session.sql(query, **price)
        (nested,) = plan.nested
        outer, inner = (dp.privacy.epsilon(event, 0, relation="add-remove") for event in (plan.event, nested))
        assert max(outer, inner) == pytest.approx(1, rel=1e-9)
        assert inner / outer == pytest.approx(2 / most, rel=1e-9)


def test_gaussian_noise_and_choices_that_compose_are_billed_by_squares() -> None:
    with opened(budget=[dp.Budget(rho=10), dp.Budget(rho=9)]) as session:
        plan = session.sql("SELECT COUNT(*) AS n, MEDIAN(gain) AS m FROM people", rho=Fraction(1, 2))
        (nested,) = plan.nested
        (outer, whole), (inner, part) = plan.event.events, nested.events  # type: ignore[attr-defined]
        assert isinstance(outer, Gaussian)
        assert isinstance(inner, Gaussian)
        assert inner.mu_squared / outer.mu_squared == Fraction(4, 25)
        assert isinstance(whole, BoundedRange)
        assert part == BoundedRange(whole.epsilon * 2 / 5)
        assert plan.cost == "ρ = 0.5 for one household; ρ = 0.08 for one person"


# --- Exact worlds: the law of an answer, over all tags and all noise, for all households of up to three persons. ---

Household = Sequence[int]  # gains of persons, each -1, 0 or 1


def sums(household: Household, most: int) -> list[int]:
    """Return the sum for every order of tags."""
    orders = itertools.permutations(household)
    return [sum(order[:most]) for order in orders]


def loss(one: Household, other: Household, most: int, scale: Fraction) -> float:
    """Return the largest logarithm of how much likelier an answer is with one household than with another."""
    falls = math.exp(-1 / scale)

    def chances(household: Household) -> list[float]:
        drawn = sums(household, most)
        return [sum(falls ** abs(answer - total) for total in drawn) / len(drawn) for answer in range(-60, 61)]

    return max(abs(math.log(a / b)) for a, b in zip(chances(one), chances(other), strict=True))


def households() -> Iterator[Household]:
    for size in range(4):
        yield from itertools.product((-1, 0, 1), repeat=size)


def losses(most: int) -> tuple[float, float, float, float]:
    """Return what a household and a person lose at worst, then what each is charged."""
    with opened(dp.Chain(CHAIN.outer, CHAIN.inner, max_inner=most)) as session:
        plan = session.sql("SELECT SUM(gain) AS s FROM people", epsilon=Fraction(1, 2))
        (nested,) = plan.nested
        assert isinstance(plan.event, DiscreteLaplace)
        scale = plan.event.scale
        charged = [dp.privacy.epsilon(event, 0, relation="add-remove") for event in (plan.event, nested)]
    everyone = list(households())
    outer = max(loss(household, (), most, scale) for household in everyone)
    pairs = [(one, one[:place] + one[place + 1 :]) for one in map(tuple, everyone) for place in range(len(one))]
    inner = max(loss(one, other, most, scale) for one, other in pairs)
    return outer, inner, *charged


@pytest.mark.parametrize("most", [1, 2, 3])
def test_nobody_loses_more_than_is_charged(most: int) -> None:
    outer, inner, for_outer, for_inner = losses(most)
    assert outer <= for_outer + 1e-9
    assert inner <= for_inner + 1e-9


@pytest.mark.parametrize("most", [1, 2])
def test_a_person_billed_once_loses_more_than_is_charged(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nesting, "inner", property(lambda self: 1))
    _, inner, _, for_inner = losses(most)
    assert inner > for_inner + 1e-3


def test_a_household_billed_as_one_person_loses_more_than_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nesting, "outer", property(lambda self: 1))
    outer, _, for_outer, _ = losses(3)
    assert outer > for_outer + 0.1


# --- Both pay. ---


def test_every_answer_is_charged_to_both_and_admitted_by_both(tmp_path: Path) -> None:
    with opened(budget=[dp.Budget(epsilon=3), dp.Budget(epsilon=1)], ledger=tmp_path / "a.ledger") as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert plan.cost == "ε = 1 for one household; ε = 0.4 for one person"
        assert session.questions_left() == 2
        for _ in range(2):
            plan.release()
        assert session.left.epsilon == 1
        with pytest.raises(dp.BudgetExceeded, match=r"the lifetime budget of \[\"household\", \"person\"\]"):
            plan.release()
        assert session.left.epsilon == 1  # Refused by one, and charged to none.
        session.ledger.verify()
        ((unit, spent, left),) = session.ledger.nested_left()
        assert (unit, spent.epsilon, left.epsilon, left.more) == (
            '["household", "person"]',
            Fraction(4, 5),
            Fraction(1, 5),
            0,
        )
        assert "For one" in session.money()
        assert "and ε = 1, pure for one" in str(session.ledger.describe())


def test_a_charge_that_leaves_one_of_them_out_is_refused() -> None:
    with opened() as session:
        for nested in ((), (PureDP(1), PureDP(1))):
            with pytest.raises(dp.Refused, match="makes 2 promises"):
                session.ledger.charge(PureDP(1), relation="add-remove", purpose="x", unit="household", nested=nested)
        with pytest.raises(dp.Refused, match="makes 2 promises"):
            session.charge(PureDP(1), relation="add-remove", purpose="x", unit=CHAIN.inner.account)
        with pytest.raises(dp.Refused):
            dp.mean([1, 0], relation="add-remove", bounds=(0, 1), epsilon=1, session=session)
        assert not session.spent.charges


def test_a_ledger_that_charged_only_one_of_them_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as session:
        monkeypatch.setattr("discreet.ledger.requests.check_nested", lambda nested, account: None)
        monkeypatch.setattr(ledger.Book, "nested_scopes", lambda self: [])
        session.ledger.charge(PureDP(1), relation="add-remove", purpose="x", unit="household")
        monkeypatch.undo()
        with pytest.raises(dp.LedgerDamaged, match="does not charge every unit"):
            session.ledger.verify()


def test_a_killed_process_has_charged_both_or_none(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    opened(ledger=path).close()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            account = charge_record.Account(
                "people", "household", dp.Relation.ADD_REMOVE, BOTH[0], ((CHAIN.inner.account, BOTH[1]),)
            )
            book = ledger.Ledger.open(path, account)
            for number in range(10**6):
                price = PureDP(Fraction(1, 10**6))
                book.charge(price, relation="add-remove", purpose="x", unit="household", nested=(price,))
                if number == 20:
                    os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with opened(ledger=path) as session:
        session.ledger.verify()
        ((_, nested, _),) = session.ledger.nested_left()
        assert (session.spent.charges, session.spent.epsilon) == (nested.charges, nested.epsilon)
        assert nested.charges >= 21


def test_what_was_declared_is_declared_again(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with opened(ledger=path) as session:
        session.raise_budget(dp.Budget(epsilon=200), reason="more")
        session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()
    raised = [dp.Budget(epsilon=200), BOTH[1]]
    with opened(ledger=path, budget=raised) as session:
        assert session.ledger.nested_left()[0][1].charges == 1
    with pytest.raises(dp.Refused, match="was declared as"):
        opened(ledger=path, budget=[raised[0], dp.Budget(epsilon=70)])
    with pytest.raises(dp.Refused, match="was declared as"):
        opened(ledger=path, unit=dp.Unit("household"), budget=raised[0])


def test_a_restored_copy_has_spent_both(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with opened(ledger=path) as session:
        account = session.ledger.account
    dp.ledger.restore(path, [account], reason="backup", principal="ana")
    with opened(ledger=path) as session:
        session.ledger.verify()
        assert session.left.epsilon == 0
        assert session.ledger.nested_left()[0][2].epsilon == 0


def test_the_same_question_is_answered_again_for_free() -> None:
    with opened(version="1") as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert str(plan.release()) == str(plan.release())
        assert session.spent.charges == session.ledger.nested_left()[0][1].charges == 1


def test_a_batch_is_charged_to_both() -> None:
    with opened() as session:
        plans = {name: session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1) for name in "ab"}
        joint = session.batch(plans, idempotency_key="k", purpose="report")
        joint.release()
        assert session.spent.epsilon == 2
        assert session.ledger.nested_left()[0][1].epsilon == Fraction(4, 5)


# --- What is refused. ---


@pytest.mark.parametrize(
    ("outer", "inner", "says"),
    [
        (dp.Unit("patient"), dp.Unit("doctor"), "whoever leaves changes what is kept of everybody they met"),
        (dp.Unit("user"), dp.Unit("user"), "has a window or further columns"),
        (dp.Unit("user", window="day", time="at"), dp.Unit(["user", "x"]), "has no window"),
        (dp.Unit("user", max_groups=2), dp.Unit(["user", "x"]), "leave max_groups"),
        (dp.Unit("row"), dp.Unit("user"), "a chain is of two units"),
        # The same columns in another order, or another case: nothing would tell inner units apart.
        (dp.Unit(["user", "x"]), dp.Unit(["x", "user"]), "has a window or further columns"),
        (dp.Unit("user"), dp.Unit(["user", "USER"]), "has a window or further columns"),
    ],
)
def test_units_that_are_no_chain_are_refused(outer: dp.Unit, inner: dp.Unit, says: str) -> None:
    with pytest.raises(dp.InvalidParameter, match=says):
        dp.Chain(outer, inner, max_inner=3)


def test_what_is_not_proven_is_refused() -> None:
    with pytest.raises(dp.InvalidParameter, match="everybody they met"):
        opened(unit=[dp.Unit("household"), dp.Unit("person")])
    with pytest.raises(dp.InvalidParameter, match="each with a budget of its own"):
        opened(budget=BOTH[0])
    with pytest.raises(dp.InvalidParameter, match="two are for a chain"):
        opened(unit=dp.Unit("household"))
    with opened() as session:
        with pytest.raises(dp.Refused, match="keys of these groups are not public"):
            session.sql("SELECT household, COUNT(*) AS n FROM people GROUP BY household", epsilon=1)
        with pytest.raises(dp.InvalidParameter, match="max_inner may only be tightened"):
            session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1, max_inner=6)
        with pytest.raises(dp.Refused, match="the kept share is measured for one unit"):
            session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1, kept_share=0.1)
        with pytest.raises(dp.Refused):
            dp.synthesize("people", session=session, epsilon=1, delta=1e-6)
        with pytest.raises(dp.Refused, match="a profile is divided among rounds that are charged to one unit"):
            dp.release.plan_profile(session, epsilon=1)  # When it is planned, and not when it is to be paid.
    with (
        opened(unit=dp.Unit("household"), budget=BOTH[0]) as session,
        pytest.raises(dp.InvalidParameter, match="there is no chain"),
    ):
        session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1, max_inner=1)


def test_texts_name_both() -> None:
    with opened() as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
        told = str(plan.explain())
        assert "each person with all its rows, and each household with all rows in it" in told
        assert "each household is counted with at most 5 persons (max_inner)" in told
        assert "For one person: spent" in session.money()
        assert "pure for one person. Spent" in str(session.describe())
        assert "[" not in session.money() + str(session.describe()) + told  # as the ledger calls it
        assert session.chain == CHAIN
        assert "household, and person within it" in repr(session)


def test_the_budget_of_the_inner_unit_is_raised_by_its_name(tmp_path: Path) -> None:
    """It counts at once, is on record, and is what must be declared from then on; the outer one stays."""
    path, ask = tmp_path / "people.ledger", "SELECT COUNT(*) AS n FROM people"
    tight = [dp.Budget(epsilon=100), dp.Budget(epsilon="0.5")]
    more = [tight[0], dp.Budget(epsilon=2)]
    with opened(ledger=path, budget=tight) as session:
        session.sql(ask, epsilon=1).release()  # 0.4 for one person
        with pytest.raises(dp.BudgetExceeded):
            session.sql(ask, epsilon=1).release()
        session.raise_budget(more[1], reason="another year", unit="person")
        session.sql(ask, epsilon=1).release()
        assert session.ledger.account.budgets == tuple(more)
        told = [entry.content for entry in session.history() if entry.kind == "raise"]
        assert [(one["unit"], one["before"]) for one in told] == [('["household", "person"]', tight[1].packed())]
        session.ledger.verify()
        for budget, unit, says in (
            (dp.Budget(epsilon=1), "person", "only be raised"),
            (dp.Budget(epsilon=3, delta=1e-6), "person", "pure, and stays so"),
            (dp.Budget(epsilon=3), "doctor", "no unit within 'household' is called 'doctor'"),
        ):
            with pytest.raises(dp.Refused, match=says):
                session.raise_budget(budget, reason="wrong", unit=unit)
        session.raise_budget(dp.Budget(epsilon=200), reason="of the household", unit="household")
        account = session.ledger.account
    with pytest.raises(dp.Refused, match="budget raise --unit"):
        opened(ledger=path, budget=[dp.Budget(epsilon=200), tight[1]])
    with opened(ledger=path, budget=[dp.Budget(epsilon=200), more[1]]) as session:
        assert session.ledger.account == account


def test_a_restored_copy_from_before_a_raise_of_the_inner_budget_has_the_raised_one(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with opened(ledger=path) as session:
        before = session.ledger.account
    more = dp.ledger.Account("people", before.unit, before.relation, BOTH[0], ((before.nested[0][0], dp.Budget(80)),))
    dp.ledger.restore(path, [more], reason="backup", principal="ana")
    with opened(ledger=path, budget=[BOTH[0], dp.Budget(80)]) as session:
        session.ledger.verify()
        assert session.ledger.nested_left()[0][2].epsilon == 0
    less = dp.ledger.Account("people", before.unit, before.relation, BOTH[0], before.nested)
    with pytest.raises(dp.Refused, match="only be raised"):
        dp.ledger.restore(path, [less], reason="backup", principal="ana")


def test_a_quota_says_for_whom_it_counts() -> None:
    """Quotas count what is spent for the outer unit; a refusal says so."""
    quota = dp.Quota(budget=dp.Budget(epsilon=1), project=None, principal="ana", window=None)
    with opened(quotas=[quota]) as session:
        session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()
        with pytest.raises(dp.BudgetExceeded, match="for one household"):
            session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()
