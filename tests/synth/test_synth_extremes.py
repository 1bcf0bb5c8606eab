"""A fit that cannot be done is refused while nothing is paid; whatever is planned can be done."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.synth.gaussian_prices import choice_cost, choice_epsilon

DOMAIN = {"a": dp.synth.Category(["x", "y"]), "b": dp.synth.Category([1, 2, 3])}
TABLE = {"a": ["x", "y", "x"], "b": [1, 2, 2], "who": [1, 1, 2]}


class Purse:
    """A payer that counts."""

    charges = 0

    def charge(
        self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.charges += 1


@pytest.mark.parametrize("method", ["independent", "mst", "aim"])
@pytest.mark.parametrize("terms", [{"epsilon": 10**8}, {"unit": "who", "rows_per_unit": 10**15}])
def test_noise_that_nobody_can_draw_is_refused_before_the_charge(method: str, terms: dict[str, Any]) -> None:
    purse = Purse()
    asked = {"domain": DOMAIN, "epsilon": 1, "delta": 1e-9, "session": purse, "progress": False} | terms
    with pytest.raises(dp.InvalidParameter, match="epsilon"):
        dp.synthesize(TABLE, method, **asked)
    assert purse.charges == 0


@pytest.mark.parametrize("method", ["mst", "aim"])
@pytest.mark.parametrize("epsilon", ["1e-9", "200000"])
def test_what_is_planned_can_be_done(method: str, epsilon: str) -> None:
    purse = Purse()
    model = dp.synthesize(TABLE, method, domain=DOMAIN, epsilon=epsilon, delta=1e-9, session=purse, progress=False)
    assert purse.charges == 1
    assert len(model.sample(7)) == 7


@pytest.mark.parametrize("mu_squared", [Fraction(1, 10**12), Fraction(1), Fraction(10**9)])
def test_a_choice_has_a_price_within_any_budget(mu_squared: Fraction) -> None:
    assert 0 < choice_cost(choice_epsilon(mu_squared)) <= mu_squared
