"""A question goes from text to answer, whatever the tables are made of."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest
from session_data import CITIES, FORMS, charges, opened, shop

import discreet as dp

COUNT = "SELECT COUNT(*) AS n FROM orders"
BY_CITY = "SELECT city, COUNT(*) AS n, SUM(price) AS revenue, AVG(age) AS age FROM orders GROUP BY city"


@pytest.mark.parametrize("form", FORMS)
def test_a_question_is_answered_whatever_holds_the_table(form, tmp_path):
    table = shop()
    given = FORMS[form](table, tmp_path)
    with opened(tmp_path, {"orders": given}) as session:
        answer = session.sql(BY_CITY, epsilon=100).release()
    exact = table.to_pandas().groupby("city").agg(n=("price", "size"), revenue=("price", "sum"), age=("age", "mean"))
    assert [row["city"] for row in answer] == CITIES
    for row in answer:
        # Noise has a scale of less than a thirtieth of these distances; a wrong table, cast or bound is off by more.
        assert abs(row["n"].value - exact.n[row["city"]]) <= 8
        assert abs(row["revenue"].value - exact.revenue[row["city"]]) <= 400
        assert abs(row["age"].value - exact.age[row["city"]]) <= 5


def test_a_file_brings_its_name_and_any_other_single_table_is_data(tmp_path):
    path = FORMS["csv"](shop(), tmp_path)
    with opened(tmp_path, str(path)) as session:
        assert session.sql(COUNT, epsilon=1).release()["n"][0].value > 100
    with opened(tmp_path, shop(), dataset="other") as session:
        assert session.sql("SELECT COUNT(*) AS n FROM other", epsilon=1).release()["n"][0].value > 100


def test_rows_can_be_units(tmp_path):
    with opened(tmp_path, unit="row", budget=dp.Budget(epsilon=3)) as session:
        answer = session.sql(COUNT, epsilon="0.5").release()
        assert abs(answer["n"][0].value - 450) < 100
        assert session.spent.epsilon == answer_epsilon(answer)


def answer_epsilon(answer):
    return answer.event.sensitivity / answer.event.scale


def test_private_tables_are_joined_on_the_unit_and_public_ones_on_anything(tmp_path):
    people = pa.table({"customer": [f"c{n:04}" for n in range(300)], "vip": [n % 2 == 0 for n in range(300)]})
    regions = pa.table({"city": CITIES, "region": ["north", "west", "south"]})
    tables = {"orders": shop(), "people": people, "regions": dp.public(regions)}
    with opened(
        tmp_path, tables, columns={"orders": {"city": dp.categories(CITIES)}, "people": {"vip": dp.boolean()}}
    ) as session:
        by_region = "SELECT r.region, COUNT(*) AS n FROM orders o JOIN regions r ON o.city = r.city GROUP BY r.region"
        assert {row["region"] for row in session.sql(by_region, epsilon=20).release()} == {"north", "west", "south"}
        vip = "SELECT COUNT(*) AS n FROM orders o JOIN people p ON o.customer = p.customer WHERE p.vip"
        assert abs(session.sql(vip, epsilon=20).release()["n"][0].value - 150) < 10


def test_explaining_and_trying_out_cost_nothing_and_read_nothing(tmp_path, monkeypatch):
    with opened(tmp_path) as session:
        monkeypatch.setattr(session._desk.engine, "run", never)
        plan = session.sql(BY_CITY, epsilon=1)
        assert "customer" in str(plan.explain())
        assert repr(plan) == str(plan.explain())
        assert "<table>" in plan._repr_html_()
        dummy = plan.dummy()
        assert dummy.names == ("city", "n", "revenue", "age")
        assert_says_that_it_is_a_dummy(dummy)
        assert charges(session) == 0
        assert session.left.epsilon == 200


def assert_says_that_it_is_a_dummy(dummy):
    warning = "DUMMY: made-up rows, nothing was read or paid"
    assert str(dummy).splitlines()[0] == repr(dummy).splitlines()[0] == warning
    assert str(dummy).count("DUMMY") == 1
    assert dummy._repr_html_().startswith(f"<p><strong>{warning}")
    assert dummy.to_csv().splitlines()[0].endswith('"age_high","DUMMY"')
    assert all("DUMMY: made-up rows" in line for line in dummy.to_csv().splitlines()[1:])
    assert dummy.to_pandas().attrs["warning"] == warning
    assert warning in dummy.plot("n").to_json()
    assert warning in dummy.plot("n", title="Orders").to_json()
    assert warning in str(dp.query.ReleaseTable.from_json(dummy.to_json()))


def test_what_was_released_is_no_dummy(tmp_path):
    with opened(tmp_path) as session:
        table = session.sql(BY_CITY, epsilon=1).release()
    shown = (str(table), table._repr_html_(), table.to_csv(), table.plot("n").to_json(), str(table.to_pandas().attrs))
    assert not any("DUMMY" in text for text in shown)


def never(*given, **named):
    raise AssertionError("rows were read")


def test_opening_a_session_reads_no_rows(tmp_path, monkeypatch):
    from discreet.query.workers.worker_engine import WorkerEngine

    monkeypatch.setattr(WorkerEngine, "run_all", never)
    opened(tmp_path).close()


def test_questions_left_counts_the_last_question(tmp_path):
    with opened(tmp_path, budget=dp.Budget(epsilon=1)) as session:
        with pytest.raises(dp.InvalidParameter, match="nothing was asked"):
            session.questions_left()
        plan = session.sql(COUNT, epsilon="0.1")
        assert session.questions_left() == 10
        plan.release()
        assert session.questions_left() == 9
        for _ in range(9):
            plan.release()
        assert session.questions_left() == 0
        with pytest.raises(dp.BudgetExceeded) as refused:
            plan.release()
        assert "ε = 0.1" in str(refused.value)
        assert "ε = 0 of 1" in str(refused.value)
        assert charges(session) == 10


def test_a_share_and_an_error_are_offers_too(tmp_path):
    with opened(tmp_path, unit="row", budget=dp.Budget(epsilon=4)) as session:
        shared = session.sql(COUNT, share="1/8").release()
        assert answer_epsilon(shared) == pytest.approx(0.5)
        wanted = session.sql(COUNT, error=12).release()
        assert wanted["n"][0].plus_minus <= 12
        relative = session.sql(COUNT, relative_error="0.1", expected={"n": 450}).release()
        assert relative["n"][0].plus_minus <= 45
        earlier = session.sql(COUNT, relative_error="0.2", expected=relative).release()
        assert earlier["n"][0].plus_minus <= abs(relative["n"][0].value) / 5


def test_unknown_keys_need_a_delta_that_a_pure_ledger_refuses(tmp_path):
    query = "SELECT age, COUNT(*) AS n FROM orders GROUP BY age"
    undeclared = {"city": COLUMNS_OF_CITY}
    with opened(tmp_path, columns=undeclared) as session:
        with pytest.raises(dp.Refused, match="delta"):
            session.sql(query, epsilon=1)
        assert len(session.sql(query, epsilon=50, delta="1e-7").release()) > 0
        listed = session.sql(query, epsilon=1, keys={"age": [18, 25, 300]}).release()
        assert [row["age"] for row in listed] == [18, 25, 300]
    pure = opened(tmp_path, columns=undeclared, budget=dp.Budget(epsilon=1), dataset="pure")
    with pure as session, pytest.raises(dp.Refused, match="pure"):
        session.sql(query, epsilon=1, delta="1e-7")


COLUMNS_OF_CITY = dp.categories(CITIES)


def test_quotas_hold_below_the_budget(tmp_path):
    quotas = [dp.Quota(dp.Budget(epsilon=1), principal="*")]
    with opened(tmp_path, quotas=quotas) as session:
        session.sql(COUNT, epsilon=1).release()
        with pytest.raises(dp.BudgetExceeded, match="quota"):
            session.sql(COUNT, epsilon="0.1").release()
    with opened(tmp_path, quotas=quotas, principal="ben") as session:
        session.sql(COUNT, epsilon=1).release()


def test_a_data_set_keeps_its_unit_and_budget(tmp_path):
    opened(tmp_path).close()
    for change in ({"unit": "row"}, {"unit": dp.Unit("city"), "columns": {}}, {"budget": dp.Budget(epsilon=5)}):
        with pytest.raises(dp.Refused):
            opened(tmp_path, **change)
    opened(tmp_path, unit=dp.Unit("customer")).close()  # Limits are a matter of each question.


def test_raising_a_budget_is_an_entry_of_its_own(tmp_path):
    with opened(tmp_path, budget=dp.Budget(epsilon=1)) as session:
        session.raise_budget(dp.Budget(epsilon=2), reason="the board agreed")
        assert session.left.epsilon == 2
        assert [entry.kind for entry in session.history()][-1] == "raise"
        with pytest.raises(dp.Refused):
            session.raise_budget(dp.Budget(epsilon=1), reason="a mistake")
    opened(tmp_path, budget=dp.Budget(epsilon=2)).close()


def test_a_relation_that_is_not_the_unit_s_is_refused_with_what_to_say(tmp_path):
    with pytest.raises(dp.InvalidParameter, match='relation="replace-one", units=12_000'):
        opened(tmp_path, relation=dp.Relation.REPLACE_ONE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "customer"}, "unit must be"),
        ({"unit": None}, "unit must be"),
        ({"budget": 1}, "budget must be"),
        ({"principal": ""}, "principal"),
        ({"dataset": " "}, "dataset"),
        ({"tables": {}}, "at least one table"),
        ({"tables": {1: shop()}}, "must not be empty: write a text"),
        ({"tables": {"": shop()}}, "must not be empty: write a text"),
        ({"tables": {"t": pa.table({"customer": [[1]]})}, "unit": "row", "columns": {}}, "no column of a kind"),
        ({"tables": {"t": pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])}}, "same name"),
        ({"tables": {"t": shop().to_pandas()[["age", "age"]]}}, "same name"),
        ({"tables": {"t": None}}, "a table must be"),
        ({"tables": dp.public("x.csv")}, "all tables are public"),
    ],
)
def test_nonsense_is_refused(change, words, tmp_path):
    with pytest.raises(dp.InvalidParameter, match=words):
        opened(tmp_path, **change)


@pytest.mark.parametrize(
    "given", [{"seconds": 0}, {"memory": 10}, {"threads": 0}, {"on_progress": 3}, {"seconds": float("nan")}]
)
def test_senseless_resources_are_refused(given):
    with pytest.raises(dp.InvalidParameter):
        dp.query.Resources(**given)


def test_a_session_tells_what_may_be_asked_and_nothing_of_the_rows(tmp_path):
    regions = dp.public(pa.table({"city": CITIES, "region": ["north", "west", "south"]}))
    with opened(tmp_path, {"orders": shop(), "regions": regions}) as session:
        told = session.describe()
        assert "each customer is protected" in told
        assert "real, 0 … 50 in steps of 0.5" in told
        assert "one of Bern, Genf, Lugano" in told
        assert "regions: public" in told
        assert "ε = 200" in told
        assert "c0001" not in told
        assert session.ledger.describe() in told


def test_a_session_is_not_copied(tmp_path):
    with opened(tmp_path) as session:
        assert copy.deepcopy(session) is session
        assert copy.copy(session) is session
        with pytest.raises(dp.Refused):
            pickle.dumps(session)
        assert "customer" in repr(session)


def test_a_session_as_somebody_else_asks_in_it_closes_with_it_and_does_not_close_it(tmp_path):
    session = opened(tmp_path)
    with session.for_principal("bob") as view:
        assert view.principal == "bob"
    view.close()
    assert (session.is_closed, view.is_closed) == (False, False)
    session.sql(COUNT, epsilon=1).release()
    session.close()
    assert view.is_closed
    with pytest.raises(dp.Refused, match="closed"):
        view.sql(COUNT, epsilon=1)


def test_a_closed_session_answers_nothing(tmp_path):
    session = opened(tmp_path)
    plan = session.sql(COUNT, epsilon=1)
    session.close()
    with pytest.raises(dp.Refused, match="closed"):
        plan.release()
    with pytest.raises(dp.Refused, match="closed"):
        session.sql(COUNT, epsilon=1)


def test_the_library_charges_the_same_ledger_where_rows_are_units(tmp_path):
    with opened(tmp_path, unit="row", budget=dp.Budget(epsilon=1)) as session:
        dp.mean([1, 2, 3], bounds=(0, 5), epsilon="0.5", relation=dp.Relation.ADD_REMOVE, session=session)
        assert session.spent.epsilon == dp.Budget(epsilon="0.5").epsilon
        with pytest.raises(dp.InvalidParameter, match="ADD_REMOVE"):
            dp.mean([1, 2], bounds=(0, 5), epsilon="0.1", relation=dp.Relation.REPLACE_ONE, session=session)
        with pytest.raises(dp.BudgetExceeded):
            dp.count([1], epsilon="0.6", relation=dp.Relation.ADD_REMOVE, session=session)
        assert charges(session) == 1


def test_the_library_cannot_speak_for_people_with_many_rows(tmp_path):
    from discreet.privacy import PureDP

    with opened(tmp_path) as session:
        with pytest.raises(dp.Refused, match=r"session\.sql"):
            dp.count([1], epsilon="0.1", relation=dp.Relation.ADD_REMOVE, session=session)
        session.charge(PureDP(1), relation=dp.Relation.ADD_REMOVE, purpose="training", unit="customer")
        assert charges(session) == 1


def test_limits_of_one_question_are_those_of_the_clause_and_only_tighten(tmp_path):
    asked = "SELECT {} city, COUNT(*) AS n FROM orders GROUP BY city"
    clause = asked.format("WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1, max_rows_contributed = 1)")
    with opened(tmp_path) as session:
        plain, wide = asked.format(""), session.unit
        assert (wide.max_groups, wide.max_rows_per_group) != (1, 1)
        tight = session.sql(plain, epsilon=1, max_groups=1, max_rows_per_group=1)
        built = session.table("orders").group_by("city").agg(n=dp.query.count())
        assert tight.deviations["n"] == session.sql(clause, epsilon=1).deviations["n"]
        assert tight.deviations["n"] == built.plan(epsilon=1, max_groups=1, max_rows_per_group=1).deviations["n"]
        assert tight.deviations["n"] < session.sql(plain, epsilon=1).deviations["n"]
        # Where the clause and the call disagree, the smaller limit holds.
        assert session.sql(clause, epsilon=1, max_groups=wide.max_groups).deviations == tight.deviations
        for wrong in ({"max_groups": wide.max_groups + 1}, {"max_rows_per_group": 99}):
            with pytest.raises(dp.InvalidParameter, match="may only be tightened: the unit allows at most"):
                session.sql(plain, epsilon=1, **wrong)
        for wrong in (0, -1, 1.5, "2"):
            with pytest.raises(dp.InvalidParameter, match="max_groups"):
                session.sql(plain, epsilon=1, max_groups=wrong)


def test_limits_of_a_question_about_rows_are_refused(tmp_path):
    with opened(tmp_path, unit="row") as session, pytest.raises(dp.InvalidParameter, match="is for a unit column"):
        session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1, max_groups=1)


def test_the_clause_of_bigquery_is_understood_and_only_tightens(tmp_path):
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) city, COUNT(*) AS n FROM orders GROUP BY city"
    with opened(tmp_path) as session:
        alone = session.sql(clause.format("epsilon = 2, max_groups_contributed = 1"))
        assert alone.cost == "ε = 2"
        assert alone.question == session.sql(clause.format("epsilon = 1")).question
        assert session.sql(clause.format("epsilon = 1e20"), epsilon=1).cost == "ε = 1"
        with pytest.raises(dp.Refused, match="policy allows"):
            session.sql(clause.format("epsilon = 1, max_groups_contributed = 9"))
    by_age = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-9, group_selection_strategy = {}) "
    by_age += "age, COUNT(*) AS n FROM orders GROUP BY age"
    with opened(tmp_path, columns={}) as session:
        session.sql(by_age.format("LAPLACE_THRESHOLD"))
        with pytest.raises(dp.Refused, match="PUBLIC_GROUPS"):
            session.sql(by_age.format("PUBLIC_GROUPS"))
        session.sql(by_age.format("PUBLIC_GROUPS"), keys={"age": [18, 25]})


def test_what_a_session_made_shows_itself_after_it_is_closed(tmp_path):
    session = opened(tmp_path)
    plan = session.sql(COUNT, epsilon=1)
    joint = session.batch({"all": plan}, idempotency_key=None, purpose="test")
    assert "n  " in repr(plan)
    assert "<table>" in plan._repr_html_()
    spent, ledger = session.spent, session.ledger
    session.close()
    assert session.is_closed
    assert repr(session) == "Session(orders; unit customer; closed)"
    assert repr(plan).endswith("; closed)")
    assert repr(joint) == "JointPlan(all; closed)"
    assert plan._repr_html_() is None
    assert repr(ledger).endswith(", closed)")
    assert repr(spent) == str(spent)


def test_answers_of_a_batch_stand_under_their_names_and_nothing_in_them_is_html(tmp_path):
    with opened(tmp_path) as session:
        plans = {"<b>all</b>": session.sql(COUNT, epsilon=1)}
        release = session.batch(plans, idempotency_key=None, purpose="test").release()
    assert repr(release).startswith("<b>all</b>\n")
    assert release._repr_html_().startswith("<h4>&lt;b&gt;all&lt;/b&gt;</h4><table>")


def test_a_description_shows_its_lines_where_it_is_named(tmp_path):
    with opened(tmp_path) as session:
        told = session.describe()
    assert isinstance(told, str)
    assert repr(told) == str(told)
    assert told.count("\n") >= 3
    assert copy.deepcopy(told).tables == told.tables


def test_a_description_is_tables_in_a_notebook_and_no_name_or_value_is_code(tmp_path):
    wicked = "<script>alert(1)</script>"
    rows = pa.table({"customer": ["a"], wicked: [1], "city": ["Bern"]})
    columns = {wicked: dp.between(0, 5, whole=True), "city": dp.categories([wicked, "Bern"])}
    with opened(tmp_path, {"orders": rows}, columns=columns) as session:
        told, money = session.describe(), session.ledger.describe()
    (orders, budget) = told.tables
    assert orders.heads == ("column", "type", "publicly known")
    assert orders.rows[1:] == ((wicked, "integer", "0 … 5"), ("city", "text", f"one of {wicked}, Bern"))
    assert budget.rows[0] == ("guarantee", str(money).split(". Spent")[0])
    assert (budget,) == money.tables
    assert [name for name, _ in budget.rows] == ["guarantee", "spent", "left"]
    shown = told._repr_html_()
    assert shown.count("<table>") == 2
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 2
    assert repr(money) == str(money)
