"""Several plans, one charge: paid once, drawn once, stored as one text, and given again bit by bit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from session_data import CUSTOMERS, charges, opened, shop

import discreet as dp
from discreet.ledger import Ledger
from discreet.privacy import ApproxDP, Composed, Gaussian, Repeated, epsilon, events
from discreet.query import execute
from discreet.query.plan.planner import joint_event
from discreet.query.session.plans import JointRelease
from discreet.query.workers.worker_engine import WorkerEngine

BY_CITY = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"
TOTAL = "SELECT COUNT(*) AS n, SUM(age) AS age FROM orders"
BY_AGE = "SELECT age, COUNT(*) AS n FROM orders GROUP BY age"
KEY = "shop/2026-10"


def plans(session: dp.Session, *, total: str = TOTAL, rho: str = "0.1") -> dict[str, dp.query.Plan]:
    return {"by_city": session.sql(BY_CITY, rho=rho), "total": session.sql(total, rho="0.02")}


def written(released: JointRelease) -> dict[str, str]:
    return {name: table.to_json() for name, table in released.tables.items()}


def test_several_plans_are_one_charge_and_one_answer(tmp_path):
    with opened(tmp_path) as session:
        joint = session.batch(plans(session), idempotency_key=KEY, purpose="a release")
        released = joint.release()
        assert charges(session) == 1
        assert [entry.kind for entry in session.history()][-3:] == ["charge", "reading", "answer"]
        assert tuple(released.tables) == ("by_city", "total")
        charge = session.ledger.charged(KEY)
        assert charge is not None
        assert (charge.index, charge.hash) == (released.charge.id, released.charge.hash)
        assert charge.event == joint.event
        assert charge.content["purpose"] == "a release"
        assert len(released.tables["by_city"]) == 3
        assert released.tables["total"].names == ("n", "age")


def test_answers_are_those_of_the_plans(tmp_path):
    with opened(tmp_path) as session:
        asked = {"by_city": session.sql(BY_CITY, epsilon=90), "total": session.sql(TOTAL, epsilon=90)}
        tables = session.batch(asked, idempotency_key=None, purpose="near exact").release().tables
    rows = shop()
    expected = {city: rows["city"].to_pylist().count(city) for city in ("Bern", "Genf", "Lugano")}
    assert {row["city"]: row["n"].value for row in tables["by_city"]} == pytest.approx(expected, abs=3)
    assert tables["total"][0]["n"].value == pytest.approx(CUSTOMERS * 3 // 2, abs=3)
    assert tables["total"][0]["age"].value == pytest.approx(sum(rows["age"].to_pylist()), abs=200)


def test_the_joint_event_is_one_gaussian_and_costs_less_than_its_parts(tmp_path):
    with opened(tmp_path) as session:
        given = plans(session)
        joint = session.batch(given, idempotency_key=KEY, purpose="a release")
        assert isinstance(joint.event, Gaussian)
        assert joint.event.mu_squared == 2 * Fraction("0.12")
        apart = sum(epsilon(plan.event, "1e-6") for plan in given.values())
        assert epsilon(joint.event, "1e-6") < 0.9 * apart


def test_the_joint_event_does_not_depend_on_the_order_of_plans(tmp_path):
    with opened(tmp_path) as session:
        given = plans(session) | {"ages": session.sql(BY_AGE, epsilon="0.1"), "all": session.sql(TOTAL, epsilon="0.1")}
        one = session.batch(given, idempotency_key=None, purpose="p")
        other = session.batch(dict(reversed(given.items())), idempotency_key=None, purpose="p")
        assert (one.event, one.fingerprint) == (other.event, other.fingerprint)
        assert tuple(other.plans) == tuple(reversed(given))


def test_equal_events_are_counted_and_deltas_stay_apart():
    shown = ApproxDP(0, "1e-9")
    event = joint_event([Composed([Gaussian(2), shown]), Composed([shown, Gaussian(1)]), events.PureDP("0.5")])
    assert isinstance(event, Composed)
    assert event.events[0] == Gaussian(variance=1, squared_sensitivity=Fraction(5, 4))
    assert set(event.events[1:]) == {Repeated(shown, 2), events.PureDP("0.5")}


def test_equal_gaussian_noise_is_paid_as_often_as_it_is_drawn():
    assert joint_event([Gaussian(2)] * 3) == Gaussian(variance=1, squared_sensitivity=Fraction(3, 4))


def test_a_key_replays_bit_by_bit_for_free_whatever_the_data_have_become(tmp_path):
    with opened(tmp_path) as session:
        first = session.batch(plans(session), idempotency_key=KEY, purpose="a release").release()
    with opened(tmp_path, {"orders": shop(100)}) as session:
        joint = session.batch(plans(session), idempotency_key=KEY, purpose="a release")
        assert joint.affordable
        again = joint.release()
        assert written(again) == written(first)
        assert again.charge == first.charge
        assert charges(session) == 1


def test_a_version_replays_without_a_key_and_no_version_pays_again(tmp_path):
    with opened(tmp_path, version="7") as session:
        joint = session.batch(plans(session), idempotency_key=None, purpose="a release")
        assert written(joint.release()) == written(joint.release())
        assert charges(session) == 1
    with opened(tmp_path) as session:
        joint = session.batch(plans(session), idempotency_key=None, purpose="a release")
        assert written(joint.release()) != written(joint.release())
        assert charges(session) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda session: plans(session, rho="0.11"),
        lambda session: plans(session, total="SELECT COUNT(*) AS n, SUM(age) AS years FROM orders"),
        lambda session: plans(session, total="SELECT COUNT(*) AS n, SUM(age) AS age FROM orders WHERE age > 20"),
        lambda session: {"by_city": plans(session)["by_city"]},
        lambda session: plans(session) | {"more": session.sql(BY_AGE, rho="0.1")},
        lambda session: dict(zip(("total", "by_city"), plans(session).values(), strict=True)),
    ],
    ids=["price", "column", "filter", "fewer", "more", "names"],
)
def test_a_key_is_refused_for_a_changed_plan(change, tmp_path):
    with opened(tmp_path) as session:
        session.batch(plans(session), idempotency_key=KEY, purpose="a release").release()
        with pytest.raises(dp.Refused, match="the plan changed since 'shop/2026-10' was charged"):
            session.batch(change(session), idempotency_key=KEY, purpose="a release").release()
        with pytest.raises(dp.Refused, match="another plan"):
            session.sql(BY_CITY, rho="0.1", idempotency_key=KEY).release()
        assert charges(session) == 1


def test_another_principal_is_not_given_the_answer(tmp_path):
    with opened(tmp_path) as session:
        session.batch(plans(session), idempotency_key=KEY, purpose="a release").release()
    with opened(tmp_path, principal="ben") as session, pytest.raises(dp.Refused, match="principal"):
        session.batch(plans(session), idempotency_key=KEY, purpose="a release").release()


def test_a_refused_charge_reads_nothing_and_names_the_whole_price(tmp_path, monkeypatch):
    monkeypatch.setattr(WorkerEngine, "run_all", None)
    with opened(tmp_path, budget=dp.Budget(rho="0.1")) as session:
        joint = session.batch(plans(session), idempotency_key=KEY, purpose="a release")
        assert not joint.affordable
        with pytest.raises(dp.BudgetExceeded, match=r"ρ = 0\.12"):
            joint.release()
        assert charges(session) == 0


def test_one_draw_that_fails_is_no_answer_for_all_and_never_drawn_again(tmp_path, monkeypatch):
    drawn = execute._drawn
    with opened(tmp_path) as session:
        joint = session.batch(plans(session), idempotency_key=KEY, purpose="a release")
        monkeypatch.setattr(
            execute, "_drawn", lambda draft, *given: drawn(draft, *given) if draft.question.keys else 1 / 0
        )
        with pytest.raises(dp.AnswerFailed):
            joint.release()
        monkeypatch.undo()
        with pytest.raises(dp.AnswerFailed):
            joint.release()
        assert charges(session) == 1


def test_a_read_that_was_interrupted_is_made_up_for_without_a_charge_once_it_is_released(tmp_path, monkeypatch):
    def dies(*given, **named):
        raise KeyboardInterrupt

    with opened(tmp_path) as session:
        joint = session.batch(plans(session), idempotency_key=KEY, purpose="a release")
        monkeypatch.setattr(Ledger, "store", dies)
        with pytest.raises(KeyboardInterrupt):
            joint.release()
        monkeypatch.undo()
        with pytest.raises(dp.AnswerFailed):
            joint.release()
        (claim,) = session.ledger.claims()
        session.ledger.release_claim(claim.charge, reason="interrupted by hand", principal="custodian")
        assert written(joint.release()) == written(joint.release())
        assert charges(session) == 1


def test_groups_that_nobody_listed_are_paid_with_a_delta_of_their_own(tmp_path):
    with opened(tmp_path, columns={"age": dp.between(18, 100)}) as session:
        given = {"total": session.sql(TOTAL, rho="0.1"), "by_city": session.sql(BY_CITY, rho="0.1", delta="1e-8")}
        joint = session.batch(given, idempotency_key=KEY, purpose="a release")
        assert isinstance(joint.event, Composed)
        assert {type(part) for part in joint.event.events} == {Gaussian, ApproxDP}
        assert set(joint.release().tables) == {"by_city", "total"}


def test_what_cannot_go_together_is_refused(tmp_path):
    with opened(tmp_path) as session, opened(tmp_path) as other:
        with pytest.raises(dp.InvalidParameter, match="at least one"):
            session.batch({}, idempotency_key=KEY, purpose="a release")
        with pytest.raises(dp.InvalidParameter, match="no plan of this session"):
            session.batch(plans(other), idempotency_key=KEY, purpose="a release")
        with pytest.raises(dp.InvalidParameter, match="key of its own"):
            session.batch(
                {"n": session.sql(TOTAL, rho=1, idempotency_key="k")}, idempotency_key=KEY, purpose="a release"
            )
        with pytest.raises(dp.InvalidParameter, match="name"):
            session.batch({" ": session.sql(TOTAL, rho=1)}, idempotency_key=KEY, purpose="a release")


def test_the_explanation_tells_the_price_of_each_and_of_all(tmp_path):
    with opened(tmp_path) as session:
        joint = session.batch(plans(session), idempotency_key=KEY, purpose="a release")
        told = str(joint.explain())
        assert "ρ = 0.12" in told
        assert "by_city.n" in told
        assert charges(session) == 0
        assert {name: table.names for name, table in joint.dummy().items()} == {
            "by_city": ("city", "n"),
            "total": ("n", "age"),
        }
