"""`dp.regression`: every kind of table, the budget, paying first, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet.privacy.events import GDP
from discreet.robust import NoisyStatistics, RefinedRegression

ADD_REMOVE, REPLACE_ONE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
GENERATOR = np.random.default_rng(8)
X = GENERATOR.uniform(-1, 1, size=(4000, 2))
Y = 1 + 2 * X[:, 0] - 3 * X[:, 1] + 0.1 * GENERATOR.normal(size=4000)
BOUNDS: dict[str, Any] = {"x_bounds": [(-1, 1), (-1, 1)], "y_bounds": (-10, 10)}


def fitted(features: Any, response: Any, **fields: Any) -> Any:
    return dp.regression(features, response, **({"relation": ADD_REMOVE, "rho": 10} | BOUNDS | fields))


TABLES: dict[str, tuple[Any, Any]] = {
    "numpy": (X, Y),
    "lists": (X.tolist(), Y.tolist()),
    "tuples": (tuple(map(tuple, X.tolist())), Y),
    "pandas": (pd.DataFrame(X), pd.Series(Y)),
    "polars": (pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}), pl.Series(Y)),
    "arrow": (pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.array(Y)),
    "masked": (np.ma.MaskedArray(X, mask=np.zeros_like(X, dtype=bool)), Y),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("relation", dp.Relation)
def test_every_kind_of_table_is_read_alike(name: str, relation: dp.Relation) -> None:
    found = fitted(*TABLES[name], relation=relation).as_dict()
    assert {key: float(value) for key, value in found.items()} == pytest.approx(
        {"intercept": 1, "x1": 2, "x2": -3}, abs=0.05
    )


@pytest.mark.parametrize("method", ["auto", "refined", "noisy_statistics", "adassp"])
def test_every_method_finds_a_clear_line(method: Any) -> None:
    found = [float(value) for value in fitted(X, Y, method=method, rho=1000).value]
    assert found == pytest.approx([1, 2, -3], abs=0.1)


def test_choice_depends_on_public_facts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    for kind in (RefinedRegression, NoisyStatistics):
        release = kind.release
        monkeypatch.setattr(
            kind, "release", lambda self, rows, r=release: (used.append(type(self).__name__), r(self, rows))[1]
        )
    spend: dict[str, Any] = {"rho": None, "epsilon": "0.1", "delta": "1e-6"}
    fitted(X[:1000], Y[:1000], relation=REPLACE_ONE, **spend)
    fitted(X, Y, relation=REPLACE_ONE, **spend)
    fitted(X, Y, **spend)
    fitted(X[:20], Y[:20], **spend)  # How many there are is private here, and changes nothing.
    fitted(X, Y, public_rows=500, **spend)
    few, many = "NoisyStatistics", "RefinedRegression"
    assert used == [few, many, many, many, few]


def test_deep_point_among_many_fits_is_a_method_too() -> None:
    table = np.tile(X, (5, 1))
    release = fitted(table, np.tile(Y, 5), method="tukey", rho=None, epsilon=2, delta="1e-6")
    assert [float(value) for value in release.value] == pytest.approx([1, 2, -3], abs=0.1)
    assert release.cost == "ε = 2, δ = 1e-6"
    assert str(fitted(X[:9], Y[:9], method="tukey", rho=None, epsilon=2, delta="1e-6").value) == "no answer"


def test_missing_and_wild_values_are_rows_like_others() -> None:
    wild = X.copy()
    wild[:10, 0], wild[10:20, 1] = np.nan, 1e300
    rows: list[Any] = [None, "row", [1], [1, 2, 3], [None, "x"], 7, np.array(3), *X.tolist()]
    assert len(fitted(wild, Y).value) == 3
    assert len(fitted(rows, [0.0] * 7 + Y.tolist()).value) == 3


def test_what_is_spent_is_charged_before_anything_is_read() -> None:
    charged: list[Any] = []

    class Purse:
        def charge(
            self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
        ) -> None:
            charged.append((event, relation, purpose))
            raise dp.BudgetExceeded(asked=event, left="nothing")

    class Unread(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise AssertionError("read before it was paid for")

    with pytest.raises(dp.BudgetExceeded):
        fitted(Unread([[1, 2]]), Unread([1]), session=Purse())
    ((event, relation, purpose),) = charged
    assert isinstance(event, GDP)
    assert event.mu_squared == 20
    assert (relation, purpose) == (ADD_REMOVE, "regression")


def test_a_row_that_fails_is_read_as_one_that_is_none() -> None:
    class Broken:
        def __iter__(self) -> Any:
            raise ValueError("a secret")

    assert len(fitted([*X.tolist()[:200], Broken()], [*Y.tolist()[:200], 1.0]).value) == 3


def test_cost_is_what_was_asked_for() -> None:
    assert fitted(X, Y, rho=None, epsilon="0.5", delta="1e-6").cost == "ε = 0.5, δ = 1e-6"
    assert fitted(X, Y, rho=2).cost == "ρ = 2"
    assert fitted(X, Y, relation=REPLACE_ONE, rho=2).cost == "ρ = 2"


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"x_bounds": None}, dp.Refused),
        ({"y_bounds": None}, dp.Refused),
        ({"x_bounds": [(-1, 1)]}, dp.InvalidParameter),
        ({"x_bounds": [(1, -1), (0, 1)]}, dp.InvalidParameter),
        ({"y_bounds": (0, float("inf"))}, dp.InvalidParameter),
        ({"rho": None}, dp.InvalidParameter),
        ({"rho": None, "epsilon": 1}, dp.InvalidParameter),
        ({"rho": None, "epsilon": 1, "delta": 0}, dp.InvalidParameter),
        ({"rho": None, "epsilon": 1, "delta": "0.01", "public_rows": 4000}, dp.InvalidParameter),
        ({"rho": 0}, dp.InvalidParameter),
        ({"rho": float("nan")}, dp.InvalidParameter),
        ({"method": "ordinary"}, dp.InvalidParameter),
        ({"method": "tukey"}, dp.InvalidParameter),
        ({"method": "tukey", "rho": None, "epsilon": 1, "delta": "0.01", "public_rows": 4000}, dp.InvalidParameter),
        ({"relation": "replace one"}, dp.InvalidParameter),
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        fitted(X, Y, **bad)


@pytest.mark.parametrize("features", [X[:, 0], "table", 3, {"a": [1]}, iter([[1, 2]])])
def test_what_is_no_table_is_refused(features: Any) -> None:
    with pytest.raises(dp.InvalidParameter):
        fitted(features, Y)


def test_lengths_must_agree() -> None:
    for table in (X[:10], X[:10].tolist()):
        with pytest.raises(dp.InvalidParameter):
            fitted(table, Y)
