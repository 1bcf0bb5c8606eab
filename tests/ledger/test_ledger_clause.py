"""A clause of the query may only tighten what the caller offers, down to no delta at all."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import Refused

TABLE = pa.table({"who": list(range(60)), "city": ["a", "b"] * 30})
ASKED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = {}) city, COUNT(*) AS n FROM t GROUP BY city"


def test_a_clause_that_forbids_delta_is_heard() -> None:
    with dp.Session(
        {"t": TABLE},
        unit=dp.Unit("who"),
        budget=dp.Budget(10, "1e-5"),
        ledger="memory",
        dataset="people",
        principal="ana",
    ) as session:
        for delta in (None, "1e-6"):
            with pytest.raises(Refused, match="delta"):
                session.sql(ASKED.format("0"), delta=delta).release()
        assert session.spent.charges == 0
        session.sql(ASKED.format("1e-9"), delta="1e-6").release()
        assert 0 < session.spent.delta <= 1e-9
