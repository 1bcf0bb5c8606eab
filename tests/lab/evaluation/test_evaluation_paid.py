"""The publishable comparison is priced, charged, and only then read; its sensitivity holds for all neighbours."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from evaluation_world import DELTA, DOMAIN, independent, promise, ward

from discreet.errors import AnswerFailed, BudgetExceeded, InvalidParameter
from discreet.lab.evaluation import evaluate_for_a_price
from discreet.lab.evaluation.noisy_distances import mechanism_for, noisy_distances
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import Relation, epsilon
from discreet.privacy.not_private import HEADING
from discreet.synth.tables.table_shape import marginal


class Watched(dict):
    """A table that writes down when it is read."""

    def __init__(self, columns, seen):
        super().__init__(columns)
        self._seen = seen

    def __getitem__(self, name):
        self._seen.append("read")
        return super().__getitem__(name)


class Payer:
    def __init__(self, seen):
        self.seen, self.events = seen, []

    def charge(self, event, *, relation, purpose, unit="row", idempotency_key=None):
        self.seen.append("charge")
        self.events.append(event)


def paid(table, payer, **more):
    synthetic = independent(ward(500, seed=2))
    asked = {"session": payer, "epsilon": 1, "delta": DELTA, "domain": DOMAIN, "promise": promise()} | more
    return evaluate_for_a_price(synthetic, table, **asked)


def test_the_charge_comes_before_the_first_value_is_read():
    seen = []
    payer = Payer(seen)
    found = paid(Watched(ward(500), seen), payer)
    assert seen[0] == "charge"
    assert "read" in seen
    assert epsilon(payer.events[0], DELTA, relation=Relation.ADD_REMOVE) <= 1
    assert found.priced.spent.event == payer.events[0]
    assert HEADING not in found.html()
    assert "±" in found.html()


def test_what_cannot_be_paid_is_not_read():
    class Poor:
        def charge(self, event, *, relation, purpose, unit="row", idempotency_key=None):
            raise BudgetExceeded(asked=event, left=Fraction(0))

    seen = []
    with pytest.raises(BudgetExceeded):
        paid(Watched(ward(500), seen), Poor())
    assert seen == []


def test_what_fails_after_the_charge_fails_with_one_and_the_same_words():
    broken = ward(500)
    broken["age"] = broken["age"][:100]
    with pytest.raises(InvalidParameter, match="one length"):  # A public shape: refused while nothing is paid.
        paid(broken, Payer([]))
    with pytest.raises(AnswerFailed):
        paid(Failing(ward(500)), Payer([]))


class Failing(dict):
    """A table whose values cannot be read."""

    def __getitem__(self, name):
        raise OSError("the disk is gone, and this says where")


@pytest.mark.parametrize(("relation", "most"), [(Relation.ADD_REMOVE, 1), (Relation.REPLACE_ONE, 2)])
def test_sums_of_distances_change_by_no_more_than_is_claimed_for_all_neighbours(relation, most):
    """All tables of up to three rows over two columns of two cells, and all their neighbours."""
    sizes, cliques = (2, 2), ((0,), (1,), (0, 1))
    made = np.array([[0, 0], [1, 0], [1, 1]], np.int32)
    cells = list(product(range(2), repeat=2))
    seen = 0
    for rows in (table for count in range(4) for table in product(cells, repeat=count)):
        for other in neighbours(rows, cells, relation):
            moved = [abs(a - b) for a, b in zip(*(sums(t, made, sizes, cliques) for t in (rows, other)), strict=True)]
            assert max(moved) <= most
            seen = max(seen, sum(one**2 for one in moved))
    claimed = mechanism_for(len(cliques), epsilon=1, delta=DELTA, relation=relation, rows_per_unit=1)
    assert seen == claimed.squared_sensitivity  # attained, so nothing smaller would do


def neighbours(rows, cells, relation):
    for place in range(len(rows)):
        without = (*rows[:place], *rows[place + 1 :])
        yield from ((*without, cell) for cell in cells) if relation is Relation.REPLACE_ONE else (without,)


def sums(rows, made, sizes, cliques):
    codes = np.array(rows, np.int32).reshape(-1, 2)
    return [int(np.abs(marginal(codes, sizes, one) - marginal(made, sizes, one)).sum()) for one in cliques]


@pytest.mark.statistical
def test_noisy_distances_follow_the_exact_ones():
    """Within 6.5 deviations, which fails once in 10^10; a table with a tenth of its rows changed is told apart."""
    real = np.random.default_rng(1).integers(0, 2, (20_000, 2)).astype(np.int32)
    made, cliques = np.zeros((20_000, 2), np.int32), ((0,), (1,), (0, 1))
    mechanism = mechanism_for(3, epsilon=1, delta=DELTA, relation=Relation.ADD_REMOVE, rows_per_unit=1)
    ways = noisy_distances(mechanism, made, real, (2, 2), cliques)
    values = np.array([value for way in ways for value in way.by_clique.values()])
    reach = 6.5 * float(mechanism.variance) ** 0.5 / 40_000
    assert (np.abs(values - np.array(sums(real, made, (2, 2), cliques)) / 40_000) < reach).all()
    real[:2000] = 1
    assert np.abs(values - np.array(sums(real, made, (2, 2), cliques)) / 40_000).min() > reach
    assert ways[0].error == pytest.approx(float(mechanism.release([0, 0, 0]).plus_minus()[0]) / 40_000)


def test_a_unit_brings_no_more_rows_than_it_pays_for():
    table = {**ward(500), "who": np.zeros(500, np.int64)}
    payer = _Units()
    found = paid(table, payer, unit="who", rows_per_unit=3, promise=replace(promise(), unit="who"))
    assert payer.unit == "who"
    # One person with three rows: nearly all of the 500 synthetic rows are too many, whatever the noise.
    assert found.priced.ways[0].mean > 0.3


class _Units:
    unit = None

    def charge(self, event, *, relation, purpose, unit, idempotency_key=None):
        self.unit = unit


def test_a_ledger_holds_the_charge_and_refuses_the_second():
    account = Account("ward", "row", Relation.ADD_REMOVE, Budget("1.1", "1e-5"))
    with Ledger.open("memory", account) as ledger:
        paid(ward(500), ledger)
        with pytest.raises(BudgetExceeded):
            paid(ward(500), ledger)
