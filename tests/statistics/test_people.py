"""Statistics of people with several rows: exact on small worlds of whole people, paid for them, and told so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dp
from discreet.adaptive import bounded_memberships
from discreet.adaptive.bounded_memberships import UnitRows, filled_rows, kept_rows, unit_rows
from discreet.errors import AnswerFailed, BudgetExceeded, InvalidParameter, Refused, UnsupportedEvent
from discreet.frames.column import Column
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.privacy import outcomes
from discreet.privacy.event_tree import grouped
from discreet.privacy.events import ApproxDP, Event
from discreet.statistics import means_and_quantiles, method_choice, one_call

ADD_REMOVE, REPLACE_ONE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
VISITS = pd.DataFrame(
    {
        "patient": pd.array([1, 1, 1, 2, 3, 3, None] * 200, dtype="Int64"),
        "los": [1.0, 2, 3, 4, 5, 6, 7] * 200,
    }
)
VISITS["patient"] += np.repeat(np.arange(200) * 10, 7)

# Each statistic on bits, with the noise or the choice that it makes.
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "count": (dp.count, {"epsilon": 1}),
    "count, Gaussian": (dp.count, {"rho": 1}),
    "sum": (dp.sum, {"bounds": (-1, 1), "step": 1, "epsilon": 1}),
    "mean": (dp.mean, {"bounds": (0, 1), "step": 1, "epsilon": 30}),
    "variance": (dp.variance, {"bounds": (0, 1), "step": 1, "epsilon": 120}),
    "proportion": (dp.proportion, {"epsilon": 30}),
    "histogram": (dp.histogram, {"bins": [0, 1], "epsilon": 10}),
    "histogram, Gaussian": (dp.histogram, {"bins": [0, 1], "rho": 8}),
    "histogram of ranges": (dp.histogram, {"edges": [0, 1, 2], "epsilon": 10}),
    "quantile": (dp.quantile, {"q": 0.25, "bounds": (0, 1), "step": 1, "epsilon": 2}),
    "median": (dp.median, {"bounds": (0, 1), "step": 1, "epsilon": 2}),
    "median, interval": (dp.median, {"bounds": (0, 1), "step": 1, "epsilon": 4, "confidence": 0.5}),
    "median, population": (dp.median, {"bounds": (0, 1), "step": 1, "epsilon": 4, "population": True}),
    "quantiles": (dp.quantiles, {"qs": [0.25, 0.5], "bounds": (0, 1), "step": 1, "epsilon": 4}),
    "quantiles, rho": (dp.quantiles, {"qs": [0.25, 0.5], "bounds": (0, 1), "step": 1, "rho": 2}),
    "mode": (dp.mode, {"candidates": [0, 1], "epsilon": 2}),
    "top k": (dp.top_k, {"k": 1, "candidates": [0, 1, 2], "epsilon": 2}),
}
ONE_ROW = {("median, population", 2)}  # Refused: rows of one person are no sample.
# Their laws are long: with one person, of any rows, more or less.
SEVERAL_NUMBERS = {"mean", "variance", "proportion", "histogram", "histogram, Gaussian", "histogram of ranges"}


class Asked(Exception):
    """What a statistic is about to do, once it is paid for."""

    def __init__(self, mechanism: Any, whom: UnitRows, prepare: Any) -> None:
        self.mechanism, self.whom, self.prepare = mechanism, whom, prepare


def asked(monkeypatch: pytest.MonkeyPatch, name: str, max_rows: int) -> Asked:
    """Stop a statistic right before it pays, and take what it would pay for."""

    def stop(
        mechanism: Any, data: Any, *, whom: Any = None, prepare: Any = lambda column: column, **_rest: Any
    ) -> None:
        raise Asked(mechanism, whom, prepare)

    for module in (one_call, means_and_quantiles, method_choice):
        monkeypatch.setattr(module, "answer", stop)
    function, known = CALLS[name]
    with pytest.raises(Asked) as found:
        function([0], relation=ADD_REMOVE, unit=["a"], max_rows=max_rows, **known)
    if isinstance(found.value.mechanism, dp.mechanisms.Quantiles):  # Its law lists all finer places of all rows.
        found.value.mechanism = replace(found.value.mechanism, fineness=1)
    return found.value


@dataclass(frozen=True)
class OfPeople:
    """The law of a statistic on people, each a tuple of rows, over all secret choices of rows."""

    mechanism: Any
    prepare: Any
    keeps: int
    event: Event
    relation: Any = ADD_REMOVE

    def distribution(self, people: Any) -> outcomes.Outcomes:
        choices = [list(combinations(rows, min(self.keeps, len(rows)))) for rows in people]
        chance = Fraction(1)
        for options in choices:
            chance /= len(options)
        return outcomes.mixture(
            (chance, self.mechanism.distribution(self.prepare(Column([row for rows in kept for row in rows]))))
            for kept in product(*choices)
        )


def people_of(most_rows: int) -> list[tuple[int, ...]]:
    return [rows for size in range(1, most_rows + 1) for rows in combinations_with_replacement((0, 1), size)]


@pytest.mark.some(11)
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "max_rows"), [(name, most) for name in CALLS for most in (1, 2) if (name, most) not in ONE_ROW]
)
def test_the_claim_holds_for_whole_people_and_that_of_rows_does_not(
    name: str, max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(monkeypatch, name, max_rows)
    # Of quantiles at once two people do not use up what is paid: in a third one's gap all of it is seen.
    most = 1 if name in SEVERAL_NUMBERS else 3 if name.startswith("quantiles") else 2
    small = worlds(people_of(max_rows + 1), range(most + 1))
    row = found.mechanism.event
    people = OfPeople(found.mechanism, found.prepare, max_rows, found.whom.event_of(row))
    assert verify.check(people, small).holds
    if max_rows == 1:
        # One row of each, and nobody bounds rows: refuted wherever one row costs all that is claimed.
        unbounded = OfPeople(found.mechanism, found.prepare, 2, people.event)
        assert verify.check(unbounded, small).violated
        return
    # Rows protected, not people: the event of one row is refuted by people with two,
    assert verify.check(OfPeople(found.mechanism, found.prepare, max_rows, row), small).violated
    # and so is the event of people where nobody bounds their rows.
    unbounded = OfPeople(found.mechanism, found.prepare, max_rows + 1, people.event)
    assert verify.check(unbounded, small).violated


@pytest.mark.long
@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize("dimension", [1, 2])
def test_a_mean_of_vectors_keeps_its_claim_for_whole_people(dimension: int, max_rows: int) -> None:
    asked_for: dict[str, Any] = {"bound": 1, "step": 1, "dimension": dimension, "relation": ADD_REMOVE, "rho": 8}
    told = dp.vector_mean([[0] * dimension], unit=["a"], max_rows=max_rows, **asked_for)
    of_row = dp.mechanisms.GaussianNoise.for_rho(8).part(Fraction(1, max_rows**2))
    mechanism = dp.mechanisms.VectorMean(
        bound=Fraction(1), step=Fraction(1), dimension=dimension, relation=ADD_REMOVE, noise=of_row
    )
    rows = [(-1, 0)[:dimension], (0, 1)[:dimension]]
    kinds = [r for size in range(1, max_rows + 2) for r in combinations_with_replacement(rows, size)]
    small = worlds(kinds, range(2))

    def of_people(keeps: int, event: Event) -> OfPeople:
        return OfPeople(mechanism, lambda column: column.objects(), keeps, event)

    assert told.event == grouped(mechanism.event, max_rows)
    assert verify.check(of_people(max_rows, told.event), small).holds
    assert verify.check(of_people(max_rows + 1, told.event), small).violated  # Nobody bounds rows.
    if max_rows > 1:
        assert verify.check(of_people(max_rows, mechanism.event), small).violated  # The event of one row.


def test_slots_are_filled_by_turns_and_by_the_own_rows_over_all_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    units = Column(["a", "a", "b", None, "a"])
    seen: list[tuple[int, ...]] = []
    for order in permutations(range(5)):
        monkeypatch.setattr(bounded_memberships.noise, "permutation", lambda size, order=order: np.array(order))
        seen.append(tuple(filled_rows(units, 2).tolist()))
    assert {kept: seen.count(kept) for kept in seen} == {
        (0, 1, 2, 2): 40,
        (0, 2, 2, 4): 40,
        (1, 2, 2, 4): 40,
    }
    monkeypatch.undo()
    many = filled_rows(Column([*["a"] * 3, *["b"] * 100_000]), 8)
    assert np.bincount(np.minimum(many, 3), minlength=4).tolist()[3] == 8
    assert sorted(np.bincount(many[many < 3]).tolist()) == [2, 3, 3]
    assert len(set(many[many >= 3].tolist())) == 8
    assert filled_rows(Column([]), 3).tolist() == filled_rows(Column([None]), 3).tolist() == []


def test_what_is_kept_of_a_unit_is_uniform_and_its_own_over_all_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    units = Column(["a", "a", "b", None, "a"])
    seen: list[tuple[int, ...]] = []
    for order in permutations(range(5)):
        monkeypatch.setattr(bounded_memberships.noise, "permutation", lambda size, order=order: np.array(order))
        seen.append(tuple(kept_rows(units, 2).tolist()))
    assert {kept: seen.count(kept) for kept in seen} == {(0, 1, 2): 40, (0, 2, 4): 40, (1, 2, 4): 40}


class Purse:
    """A payer that notes what it is charged, and for whom."""

    def __init__(self) -> None:
        self.paid: list[tuple[Event, str]] = []

    def charge(
        self, event: Event, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.paid.append((event, unit))


REAL: dict[str, tuple[Any, dict[str, Any]]] = {
    "count": (dp.count, {"rho": 50}),
    "sum": (dp.sum, {"bounds": (0, 8), "epsilon": 50}),
    "mean": (dp.mean, {"bounds": (0, 8), "epsilon": 50, "delta": 1e-6}),
    "variance": (dp.variance, {"bounds": (0, 8), "epsilon": 50}),
    "std": (dp.std, {"bounds": (0, 8), "epsilon": 50}),
    "histogram": (dp.histogram, {"bins": range(1, 8), "epsilon": 50}),
    "quantile": (dp.quantile, {"q": 0.35, "bounds": (0, 8), "step": 1, "epsilon": 50}),
    "median": (dp.median, {"bounds": (0, 8), "step": 1, "epsilon": 50}),
    "median, interval": (dp.median, {"bounds": (0, 8), "step": 1, "epsilon": 50, "confidence": 0.9}),
    "quantiles": (dp.quantiles, {"qs": [0.25, 0.5], "bounds": (0, 8), "step": 1, "epsilon": 50}),
    "quantiles, rho": (dp.quantiles, {"qs": [0.25, 0.5], "bounds": (0, 8), "step": 1, "rho": 50}),
    "mode": (dp.mode, {"candidates": range(1, 8), "epsilon": 50}),
    "top_k": (dp.top_k, {"k": 3, "candidates": range(1, 8), "epsilon": 50}),
}
TRUTHS = {"count": 1000, "sum": 200 * (4 + 4 + 11), "mean": 3.8, "median": 4, "quantile": 3, "mode": {4, 5, 6}}


@pytest.mark.parametrize("name", REAL)
def test_answers_count_the_kept_rows_and_say_whom_they_protect(name: str) -> None:
    function, known = REAL[name]
    purse = Purse()
    release = function(VISITS["los"], unit=VISITS["patient"], max_rows=2, relation=ADD_REMOVE, session=purse, **known)
    assert purse.paid == [(release.event, "patient")]
    assert (release.unit, release.max_rows) == ("patient", 2)
    assert repr(release).endswith("for one patient, of whom at most 2 rows count")
    if name == "median, interval":
        low, high = release.interval(0.9)
        assert low <= 4 <= high
    wanted = TRUTHS.get(name)
    if isinstance(wanted, set):
        assert release.value in wanted
    elif wanted is not None:
        assert float(release.value) == pytest.approx(wanted, rel=0.1)


def test_a_mean_of_vectors_counts_the_kept_rows_and_is_paid_for_people() -> None:
    purse = Purse()
    for rows in (VISITS[["los", "los"]], VISITS[["los", "los"]].to_numpy(), VISITS[["los", "los"]].to_numpy().tolist()):
        release = dp.vector_mean(
            rows, bound=12, dimension=2, unit=VISITS["patient"], max_rows=2, relation=ADD_REMOVE, rho=50, session=purse
        )
        assert [float(part) for part in release.value] == pytest.approx([3.8, 3.8], rel=0.1)
        assert purse.paid[-1] == (release.event, "patient")
    one = dp.vector_mean(VISITS[["los", "los"]], bound=12, dimension=2, relation=ADD_REMOVE, rho=50)
    assert one.cost == release.cost  # The price is what was asked for, and twice the noise pays for it.
    assert release.plus_minus()[0] / one.plus_minus()[0] > 1.9


@pytest.mark.parametrize("method", ["auto", "noisy_statistics", "adassp", "tukey"])
def test_a_regression_is_paid_for_people_and_counts_each_of_them_once(method: Any) -> None:
    rng = np.random.default_rng(0)
    # A hundred people have nearly all rows, and another line than the others.
    ids = np.concatenate([np.arange(2000), np.repeat(np.arange(2000, 2100), 200)])
    x = rng.uniform(0, 10, len(ids))
    y = 1 + np.where(ids < 2000, 2, -2) * x
    purse = Purse()
    known: dict[str, Any] = {"x_bounds": [(0, 10)], "y_bounds": (-30, 30), "relation": ADD_REMOVE, "method": method}
    for table, target in ((x[:, None], y), (x[:, None].tolist(), y.tolist())):
        release = dp.regression(
            table, target, unit={"patient": ids}, max_rows=50, epsilon=20, delta=1e-6, session=purse, **known
        )
        assert purse.paid[-1] == (release.event, "patient")
        slots = 16 if method in ("adassp", "tukey") else 50
        assert (release.unit, release.max_rows) == ("patient", slots)
        if method != "tukey":
            assert float(release.value[1]) == pytest.approx(2 - 4 / 21, abs=0.2)
    one = dp.regression(x[:, None], y, epsilon=20, delta=1e-6, **known)
    assert one.cost == release.cost
    with pytest.raises(Refused):
        dp.regression(x[:, None], y, unit=ids, epsilon=20, delta=1e-6, **known | {"relation": REPLACE_ONE})


def test_units_of_several_columns_are_told_apart_by_all_of_them() -> None:
    table = pd.DataFrame({"hospital": ["x", "x", "y", "y"] * 50, "patient": [1, 1, 1, 2] * 50})
    for unit in (table, {"hospital": table["hospital"], "patient": table["patient"].to_list()}, pa.table(table)):
        purse = Purse()
        release = dp.count([1] * 200, unit=unit, relation=ADD_REMOVE, epsilon=50, session=purse)
        assert release.value == 3
        assert purse.paid[0][1] == dp.Unit(["hospital", "patient"]).account
        assert release.unit == dp.Unit(["hospital", "patient"]).noun


def person_session(**fields: Any) -> dp.Session:
    said = {"unit": dp.Unit("patient", name="person"), "budget": dp.Budget(epsilon=10)} | fields
    return dp.Session(VISITS, ledger="memory", dataset="visits", principal="ana", **said)


def test_a_session_of_people_pays_for_people_and_for_nobody_else() -> None:
    session = person_session()
    asked_for = {"bounds": (0, 8), "relation": ADD_REMOVE, "epsilon": 1, "session": session}
    release = dp.mean(VISITS["los"], unit=VISITS["patient"], max_rows=2, **asked_for)
    assert "for one person" in repr(release)
    assert session.ledger.spent().epsilon == 1
    refused: list[Any] = [None, {"doctor": VISITS["patient"]}, {"unit": VISITS["patient"]}, VISITS["patient"].to_list()]
    for unit in refused:
        with pytest.raises(Refused):
            dp.mean(VISITS["los"], unit=unit, **asked_for)
    with pytest.raises(AnswerFailed):  # Lengths are private: they fail after the charge, in the words of all failures.
        dp.mean(VISITS["los"], unit=VISITS["patient"][:-1], **asked_for)
    assert session.ledger.spent().epsilon == 2
    with pytest.raises(BudgetExceeded):
        dp.mean(VISITS["los"], unit=VISITS["patient"], **asked_for | {"epsilon": 9})


def test_a_session_of_several_columns_or_of_windows_is_not_paid_by_a_column_that_is_called_unit() -> None:
    composed = dp.Unit(["patient", "ward"])
    table = VISITS.assign(ward="a", at=pd.Timestamp("2026-01-01"))
    for unit in (composed, dp.Unit("patient", window="day", time="at")):
        session = dp.Session(
            table,
            unit=unit,
            columns={"at": dp.between("2026-01-01", "2026-12-31")},
            budget=dp.Budget(epsilon=9),
            ledger="memory",
            dataset="visits",
            principal="ana",
        )
        for ids in ({"unit": table["patient"]}, table["patient"]):
            with pytest.raises(Refused):
                dp.count(table["los"], unit=ids, relation=ADD_REMOVE, epsilon=1, session=session)
        if unit is composed:
            dp.count(table["los"], unit=table[["patient", "ward"]], relation=ADD_REMOVE, epsilon=1, session=session)


def refusals() -> Iterator[tuple[type[Exception], Any]]:
    ids, los = VISITS["patient"], VISITS["los"]
    common: dict[str, Any] = {"relation": ADD_REMOVE, "epsilon": 1}
    yield InvalidParameter, lambda: dp.count(los, max_rows=2, **common)
    yield InvalidParameter, lambda: dp.count(los, unit="patient", **common)
    yield InvalidParameter, lambda: dp.count(los, unit=ids, max_rows=0, **common)
    yield InvalidParameter, lambda: dp.count(los, unit=ids, max_rows=1.5, **common)
    yield InvalidParameter, lambda: dp.count(los, unit={"row": ids}, **common)
    yield InvalidParameter, lambda: dp.count(los, unit={}, **common)
    yield InvalidParameter, lambda: dp.count(los, unit=ids[:-1], **common)
    coded, half = pa.array(los).dictionary_encode(), pa.array(los.to_numpy(np.float16))
    arrow = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([coded])))
    for real in (los, los.astype("category"), coded, arrow, half):  # Several beyond 2^53 are one, coded or not.
        yield InvalidParameter, partial(dp.count, los, unit=real, **common)
    yield Refused, lambda: dp.count(los, unit=ids, relation=REPLACE_ONE, epsilon=1)
    yield Refused, lambda: dp.mean(los, unit=ids, bounds=(0, 8), method="clipped", **common)
    yield Refused, lambda: dp.median(los, unit=ids, bounds=(0, 8), method="paid", **common)
    yield Refused, lambda: dp.median(los, unit=ids, bounds=(0, 8), delta=1e-6, **common)
    yield Refused, lambda: dp.quantiles(los, [0.5], unit=ids, bounds=(0, 8), delta=1e-6, **common)
    yield Refused, lambda: dp.median(los, unit=ids, max_rows=2, bounds=(0, 8), population=True, **common)
    yield Refused, lambda: dp.mode(los, unit=ids, delta=1e-6, **common)


@pytest.mark.parametrize(("error", "ask"), list(refusals()))
def test_what_is_not_proven_for_people_is_refused(error: type[Exception], ask: Any) -> None:
    with pytest.raises(error):
        ask()


def test_no_id_is_read_where_what_is_asked_is_refused_or_unpaid() -> None:
    class Unreadable(list[int]):
        def __len__(self) -> int:
            raise AssertionError("read before it was paid for")

        def __iter__(self) -> Iterator[int]:
            raise AssertionError("read before it was paid for")

    class Poor:
        def charge(self, *_: Any, **__: Any) -> None:
            raise BudgetExceeded(asked="it", left="nothing")

    with pytest.raises(BudgetExceeded):
        dp.count([1], unit={"patient": Unreadable([1])}, relation=ADD_REMOVE, epsilon=1, session=Poor())


def test_events_without_a_group_bound_are_refused_for_people() -> None:
    whom = unit_rows([1, 2], 2, ADD_REMOVE)
    assert whom is not None
    with pytest.raises(UnsupportedEvent):
        whom.event_of(dp.privacy.Composed([ApproxDP(1, Fraction(1, 10**6)), dp.privacy.PureDP(1)]))
