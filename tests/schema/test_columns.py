"""One declaration of a column, as statistics, robust regression, SQL, learning and synthesis take it."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.learn.sklearn.bounds import is_by_place, read_bounds
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.histogram import read_bins
from discreet.query.session.requests import listed_keys
from discreet.robust.named_bounds import bounds_in_order
from discreet.robust.regression_design import Design
from discreet.schema.columns import Declared, Kind, as_pairs, declaration_of, listed_values, pair_of
from discreet.statistics.budget_and_payment import grid_from

AGE = dp.between(0, 120, whole=True)
PAY = dp.between(0, 5000, step="0.5", missing=100)
DAYS = dp.between(date(2025, 1, 1), date(2025, 12, 31))
CITY = dp.categories(["Amsterdam", "Berlin"])


class _Found:
    """Bounds that somebody found, with their declaration."""

    declared = AGE


def test_a_pair_and_a_declaration_say_the_same_bounds() -> None:
    assert pair_of((0, 120)) == pair_of(AGE) == pair_of(_Found()) == (0, 120)
    assert pair_of(dp.boolean()) == (0, 1)
    assert as_pairs({"age": AGE, "pay": (0, 1)}) == {"age": (0, 120), "pay": (0, 1)}
    assert as_pairs((AGE, (0, 1))) == [(0, 120), (0, 1)]
    assert as_pairs((0, 120)) == (0, 120)
    assert as_pairs(None) is None


@pytest.mark.parametrize("said", [DAYS, CITY, dp.text(), (1, 2, 3), 5])
def test_what_has_no_bounds_of_numbers_is_refused(said: object) -> None:
    with pytest.raises(InvalidParameter, match="x_bounds must be a pair"):
        pair_of(said, name="x_bounds")


def test_only_declarations_are_declarations() -> None:
    assert declaration_of(AGE) is AGE
    assert declaration_of(_Found()) is AGE
    for other in (None, (0, 120), ["declared"], {"declared": AGE}, Grid.between(0, 1)):
        assert declaration_of(other) is None


def test_listed_values_are_those_of_categories_and_truth_values() -> None:
    assert listed_values(CITY) == ("Amsterdam", "Berlin")
    assert listed_values(dp.boolean()) == (False, True)
    assert listed_values(["x"]) == ["x"]
    with pytest.raises(InvalidParameter, match="use categories"):
        listed_values(AGE)


def test_statistics_take_bounds_step_and_missing_from_a_declaration() -> None:
    assert grid_from(AGE, step=None, missing=None) == Grid.between(0, 120, step=1)
    assert grid_from(PAY, step=None, missing=None) == Grid.between(0, 5000, step="0.5", default=100)
    assert grid_from(PAY, step=1, missing=7) == Grid.between(0, 5000, step=1, default=7)
    assert grid_from(dp.between(0, 5), step=None, missing=None) == Grid.between(0, 5)
    with pytest.raises(InvalidParameter, match="step must be"):
        grid_from(PAY, step=0, missing=None)


def test_calls_take_declarations() -> None:
    ages = list(range(100)) * 20
    mean = dp.mean(ages, bounds=AGE, relation="replace-one", epsilon=10)
    assert abs(mean.value - Fraction(99, 2)) < 5
    counts = dp.histogram(["Berlin"] * 500, bins=CITY, relation="add-remove", epsilon=10)
    assert counts.labels == ("Amsterdam", "Berlin")
    assert read_bins(CITY) == read_bins(["Amsterdam", "Berlin"])  # type: ignore[arg-type]
    assert listed_keys({"city": CITY}) == {"city": ["Amsterdam", "Berlin"]}


def test_regressions_and_estimators_take_declarations() -> None:
    pairs, wide = [(0, 120), (0, 5000)], dp.between(0, 5000)
    assert Design.between([AGE, wide], AGE) == Design.between(pairs, (0, 120))  # type: ignore[list-item]
    by_name = bounds_in_order({"pay": wide, "age": AGE}, ["age", "pay"])
    assert by_name == pairs
    assert read_bounds({"pay": wide, "age": AGE}, 2, names=["age", "pay"]) == read_bounds(pairs, 2)
    assert read_bounds(AGE, 2) == read_bounds((0, 120), 2)
    assert is_by_place([AGE, wide])
    assert not is_by_place(AGE)
    assert not is_by_place({"age": AGE})
    scaler = dp.learn.sklearn.MinMaxScaler(epsilon=1, bounds=[AGE]).fit(np.arange(50.0).reshape(-1, 1))
    assert scaler.privacy_spent_.epsilon <= 1


def test_a_domain_takes_declarations_with_a_cell_for_missing_values() -> None:
    domain = dp.synth.Domain({"age": AGE, "day": DAYS, "city": CITY, "ill": dp.boolean(), "real": dp.between(0, 1)})
    assert domain.columns["age"] == dp.synth.Numeric(0, 120, whole=True, null=True)
    assert domain.columns["day"] == dp.synth.Numeric.dates(date(2025, 1, 1), date(2025, 12, 31), null=True)
    assert domain.columns["city"] == dp.synth.Category(["Amsterdam", "Berlin"], null=True)
    assert domain.columns["ill"] == dp.synth.Category([False, True], null=True)
    assert domain.columns["real"] == dp.synth.Numeric(0, 1, null=True)  # Nothing is rounded unless somebody says so.


@pytest.mark.parametrize("column", [dp.text(), PAY, dp.between(date(2025, 1, 1), date(2025, 2, 1), format="%d.%m.%Y")])
def test_a_domain_refuses_what_it_has_no_cells_for(column: Declared) -> None:
    with pytest.raises(InvalidParameter, match="column 'x': a domain takes"):
        dp.synth.Domain({"x": column})  # type: ignore[dict-item]


def test_columns_of_a_domain_are_declarations_for_the_other_parts() -> None:
    age, day = (
        dp.synth.Numeric(0, 120, whole=True, bins=4),
        dp.synth.Numeric.dates(date(2025, 1, 1), date(2025, 12, 31)),
    )
    assert declaration_of(age) == AGE
    assert declaration_of(day) == DAYS
    assert declaration_of(dp.synth.Numeric(0, 1)) == dp.between(0, 1, whole=False)
    assert declaration_of(dp.synth.Category(["Amsterdam", "Berlin"], other=True)) == CITY
    assert declaration_of(dp.synth.Category([True, False])) == dp.boolean()
    assert declaration_of(dp.synth.Category.unlisted()) == dp.text()


def test_sql_takes_columns_of_a_domain_and_what_was_found() -> None:
    import pyarrow as pa

    domain = dp.synth.Domain({"age": AGE, "city": CITY})
    with dp.Session(
        pa.table({"age": [30, 40] * 50, "city": ["Berlin"] * 100}),
        unit="row",
        budget=dp.Budget(epsilon=4),
        columns={**domain.columns, "age": _Found()},  # type: ignore[dict-item]
        ledger="memory",
        dataset="people",
        principal="ana",
    ) as session:
        facts = {name: column.facts for name, column in session.catalogue.tables["people"].columns.items()}
    assert (facts["age"].kind, facts["age"].low, facts["age"].high) == (Kind.INTEGER, 0, 120)
    assert facts["city"].members == ("Amsterdam", "Berlin")


USED_NOWHERE_ELSE = [dp.between(0, 10, step="0.5"), dp.between(0, 10, missing=3)]


@pytest.mark.parametrize("declared", USED_NOWHERE_ELSE)
def test_step_and_missing_are_honoured_or_refused_and_never_dropped(declared: Any) -> None:
    """Statistics honour both; what takes bounds alone refuses them."""
    from discreet import adaptive, robust
    from discreet.learn.sklearn import LinearRegression, StandardScaler

    rows, spent = [[1.0], [2.5], [3.0]], {"relation": "add-remove", "epsilon": 1}
    assert dp.mean([1.2, None], bounds=declared, **spent).value is not None
    tries = [
        lambda: robust.location([1.0], bounds=declared, **spent),
        lambda: robust.location_and_scale([1.0], bounds=declared, relation="add-remove", rho=1),
        lambda: dp.histogram([1.0], bins=3, bounds=declared, **spent),
        lambda: StandardScaler(epsilon=1, delta=1e-6, bounds=declared).fit(rows),
        lambda: LinearRegression(epsilon=1, delta=1e-6, bounds=[declared], target_bounds=(0, 1)).fit(rows, [0, 1, 0]),
        lambda: LinearRegression(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=declared).fit(rows, [0, 1, 0]),
        lambda: adaptive.local_sensitivity([1.0], bounds=declared, statistic="median", relation="add-remove"),
    ]
    for attempt in tries:
        with pytest.raises(InvalidParameter, match="not used here"):
            attempt()


def test_categories_take_numbers_and_texts_of_numpy() -> None:
    assert dp.categories(np.array([3, 1])).facts == dp.categories([3, 1]).facts
    assert dp.categories(np.array(["b", "a"])).facts == dp.categories(["b", "a"]).facts
    assert all(type(member) is int for member in dp.categories([np.int64(3)]).facts.members or ())
    for wrong in (np.array([1.5]), np.array([True]), [np.array([1, 2])], [1, np.str_("a")]):
        with pytest.raises((InvalidParameter, TypeError)):
            dp.categories(wrong)


def test_bounds_take_days_and_times_as_texts() -> None:
    assert dp.between("2025-01-01", "2025-12-31") == DAYS
    assert dp.between("2025-01-01 00:00", "2025-12-31T12:30:00").facts.kind is Kind.TIMESTAMP
    assert dp.between("0.5", "1.5").facts.low == Fraction(1, 2)
    with pytest.raises(InvalidParameter, match=r"date\(2025, 1, 31\)"):
        dp.between("2025-01-01", "2025-13-31")
    with pytest.raises(InvalidParameter, match="two dates or two timestamps"):
        dp.between("2025-01-01", "2025-12-31 12:00")


def test_a_declaration_shows_itself_as_it_is_said() -> None:
    assert repr(PAY) == "between(0, 5000, step=0.5, missing=100)"
    assert repr(DAYS) == "between(2025-01-01, 2025-12-31)"
    assert repr(CITY) == "categories(['Amsterdam', 'Berlin'])"
    assert [repr(dp.boolean()), repr(dp.text())] == ["boolean()", "text()"]
