"""Rows of some values alone: the exact conditional law of the model, and a refusal where it has none."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_synth_graphical import full_table, models

import discreet as dp
from discreet.privacy import GDP, Relation
from discreet.synth.domain.category import Category
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.numeric import Numeric
from discreet.synth.fitted_models import SyntheticModel
from discreet.synth.promise import Promise
from discreet.synth.tables.graphical.graphical_model import Graphical
from discreet.synth.tables.table_model import Grouping, TableModel

NEVER = -1e9
DOMAIN = Domain(
    {
        "sex": Category(["f", "m"], null=True),
        "age": Numeric(0, 99, whole=True, bins=4, null=True),
        "day": Numeric.dates(date(2025, 1, 1), date(2025, 1, 10), bins=2),
    }
)


def model() -> SyntheticModel:
    """Two groups of ages, of unlike shares; women are young, and nobody of unknown sex has an age."""
    ages = Grouping(np.array([0, 0, 1, 1, 2], np.int32), np.array([0.25, 0.75, 0.5, 0.5, 1.0]))
    tables = np.log(np.array([[6.0, 2.0, 1.0], [1.0, 6.0, 1.0], [1.0, 1.0, 4.0]]))
    tables[2, :2] = NEVER
    joint = Graphical((3, 3, 2), ((0, 1), (2,)), 200.0, (tables, np.log(np.array([1.0, 3.0]))))
    groupings = (Grouping.none(3), ages, Grouping.none(2))
    promise = Promise.of(
        GDP(mu_squared=Fraction(1, 10)),
        method="mst",
        relation=Relation.ADD_REMOVE,
        delta=Fraction(1, 10**6),
        unit="row",
        rows_per_unit=1,
    )
    return SyntheticModel(DOMAIN, promise, TableModel(DOMAIN, groupings, joint))


@settings(max_examples=40, deadline=None)
@given(found=models(), key=st.integers(0, 10**6))
def test_the_law_given_values_is_the_full_table_of_these_rows_for_all_models(found: Graphical, key: int) -> None:
    source = np.random.default_rng(key)
    columns = source.permutation(len(found.sizes))[: source.integers(1, len(found.sizes) + 1)].tolist()
    weights = {column: source.choice([0.0, 0.3, 1.0], found.sizes[column]) for column in columns}
    wanted = full_table(found)
    for column, kept in weights.items():
        wanted = wanted * kept.reshape([-1 if axis == column else 1 for axis in range(len(found.sizes))])
    law = found.given(weights)
    if not wanted.any():
        assert law is None
        return
    assert law is not None
    assert law.total == pytest.approx(wanted.sum())
    assert full_table(law) == pytest.approx(wanted, abs=1e-9 * found.total)
    assert law.marginal((0,)) == pytest.approx(wanted.sum(axis=tuple(range(1, wanted.ndim))), abs=1e-9 * found.total)


WHERE: list[tuple[dict[str, Any], float]] = [
    ({"sex": "f"}, 200 * 9 / 21),
    ({"sex": ["f", "m"]}, 200 * 17 / 21),
    ({"sex": None}, 200 * 4 / 21),
    ({"age": (0, 9)}, 200 * 7 / 21 * 0.25 * 10 / 25),  # Ten of the 25 years of a bin that has a quarter of its group.
    ({"age": (20, 30)}, 200 * 7 / 21 * (0.25 * 5 / 25 + 0.75 * 6 / 25)),
    ({"age": 60, "sex": "m"}, 200 * 6 / 21 * 0.5 / 25),
    ({"age": None, "sex": "m"}, 200 / 21),
    ({"day": (date(2025, 1, 5), date(2025, 1, 6))}, 200 * (1 / 4 / 5 + 3 / 4 / 5)),
]


@pytest.mark.parametrize(("where", "rows"), WHERE)
def test_as_many_rows_are_expected_as_the_model_has_and_all_are_as_asked(where: dict[str, Any], rows: float) -> None:
    fitted = model().fitted
    assert isinstance(fitted, TableModel)
    assert fitted.given(where).joint.total == pytest.approx(rows)
    drawn = model().sample(300, where=where)
    assert len(drawn) == 300
    assert len(model().sample(where=where)) == max(1, round(rows))
    for name, value in where.items():
        seen = drawn[name].tolist()
        if isinstance(value, tuple):
            low, high = (np.datetime64(end) if isinstance(end, date) else end for end in value)
            assert low <= drawn[name].min() <= drawn[name].max() <= high
        elif value is None:
            assert all(one is None or (isinstance(one, float) and math.isnan(one)) for one in seen)
        else:
            assert set(seen) <= set(value if isinstance(value, list) else [value])


def test_what_else_is_drawn_follows_the_conditional_law() -> None:
    """Counts are expected ones, rounded: no chance is left in them but the rounding."""
    drawn = model().sample(900, where={"sex": "f"})
    old = sum(age is not None and age >= 50 for age in drawn["age"])
    assert abs(old - 200) <= 2
    assert abs(sum(age is None for age in drawn["age"]) - 100) <= 2
    young = model().sample(800, where={"sex": "f", "age": (0, 49)})["age"]
    assert abs(int((young.astype(int) < 25).sum()) - 200) <= 2  # A quarter of the group.


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"sex": None, "age": (0, 99)}, "gives it no chance"),
        ({"sex": "x"}, r"'sex' .*It has: 'f', 'm', None$"),
        ({"age": (200, 300)}, r"'age' .*It has: 0 … 99, None$"),
        ({"day": date(2026, 1, 1)}, r"'day' .*It has: 2025-01-01 … 2025-01-10$"),
        ({"height": 3}, "no column"),
        ({}, "where must name"),
        ("sex", "where must name"),
    ],
)
def test_what_the_model_does_not_have_is_refused(where: Any, words: str) -> None:
    with pytest.raises((dp.Refused, dp.InvalidParameter), match=words):
        model().sample(5, where=where)


def test_a_model_without_a_law_of_its_parts_refuses() -> None:
    class Drawn:
        rows = 3

        def sample(self, rows: int) -> dict[str, Any]:
            raise AssertionError(rows)

        def document(self) -> Any:
            raise AssertionError

    bare = SyntheticModel(DOMAIN, model().promise, Drawn())
    with pytest.raises(dp.Refused, match="some values alone"):
        bare.sample(5, where={"sex": "f"})


def test_a_model_that_breaks_its_rules_draws_no_other_rows_than_asked_for() -> None:
    """A file of somebody else may have rules of which its law knows nothing: what they leave is not what was asked."""
    ruled = Domain(dict(DOMAIN.columns), impossible=[{"sex": "f", "age": (0, 99)}, {"sex": "f", "age": None}])
    strange = SyntheticModel(ruled, model().promise, TableModel(ruled, *model_parts()))
    assert "f" not in strange.sample(50)["sex"].tolist()
    with pytest.raises(dp.Refused, match="keeps the rules"):
        strange.sample(50, where={"sex": "f"})
    assert set(strange.sample(50, where={"sex": "m"})["sex"].tolist()) == {"m"}


def model_parts() -> tuple[tuple[Grouping, ...], Graphical]:
    fitted = model().fitted
    assert isinstance(fitted, TableModel)
    return fitted.groupings, fitted.joint
