"""Numbers that are paid together: what is rounded to coarse units is rounded in every number of the bundle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from review_sql import planned

import discreet as dp
from discreet.query.plan.draft import NumberNoise, Spend

MOST = 10**12 + 1
SQL = "SELECT SUM(CASE WHEN a = 1 THEN x END) AS p, SUM(CASE WHEN a = 2 THEN x END) AS q FROM t"


def _moved(noise: NumberNoise, rows: int) -> int:
    """Return how far `rows` rows at the bound move a number after rounding, wherever it was before."""
    before = np.arange(2 * noise.unit)
    return int((noise.rounded(before + rows * MOST) - noise.rounded(before)).max())


@pytest.mark.parametrize("rows", [2, 3, 7])
@pytest.mark.parametrize("spend", [Spend(epsilon=Fraction(1, 100)), Spend(rho=Fraction(1, 10**4))])
def test_rows_spread_over_a_bundle_move_no_more_than_is_paid(rows: int, spend: Spend) -> None:
    tables = {"t": pa.table({"u": [1], "a": [1], "x": [5]})}
    unit, columns = dp.Unit("u", max_rows_per_group=rows), {"x": dp.between(0, MOST)}
    draft = planned(SQL, tables, unit=unit, columns=columns, spend=spend).draft
    assert draft.bundles == ((0, 1),)
    one, other = draft.noising.numbers
    assert one.unit > 1, "nothing is rounded: the case says nothing"
    assert all(_moved(one, some) + _moved(other, rows - some) <= one.change for some in range(rows + 1))
