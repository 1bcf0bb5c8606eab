"""No two people become one on the way into the engine: they would share one allowance.

Removing one of them would then let the other fill its place, so that twice as much changes as is paid for. Whoever has
a value that the engine cannot hold exactly is as if not there, which is nobody else's business.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from review_sql import counted

import discreet as dp

_BYTES = pa.array([b"a\xff", b"a\xfe", b"a"], pa.binary())
_BROKEN = pa.Array.from_buffers(pa.string(), 3, _BYTES.buffers())
_NANOS = pa.array([1, 2, 1000], pa.int64()).view(pa.timestamp("ns"))
# Three people each, of whom no more than one can be told by an engine.
UNITS: dict[str, Any] = {
    "nanoseconds": pa.table({"u": _NANOS}),
    "nanoseconds of a zone": pa.table({"u": _NANOS.cast(pa.timestamp("ns", "UTC"))}),
    "nanoseconds of pandas": pd.DataFrame({"u": _NANOS.to_pandas()}),
    "nanoseconds of pandas with a zone": pd.DataFrame({"u": _NANOS.to_pandas().dt.tz_localize("UTC")}),
    "nanoseconds of polars": pl.DataFrame({"u": pl.Series([1, 2, 1000]).cast(pl.Datetime("ns"))}),
    "parts of a day": pa.table({"u": pa.array([1, 2, 86_400_000], pa.int64()).view(pa.date64())}),
    "texts that are none": pa.table({"u": _BROKEN}),
    "words that are none": pa.table({"u": pa.DictionaryArray.from_arrays([0, 1, 2], _BROKEN)}),
    "half pairs of surrogates": pd.DataFrame({"u": pd.Series(["a\ud800", "a\ud801", "a"], dtype=object)}),
    "long decimals": pa.table({"u": pa.array([10**30, 10**30 + 1, 1], pa.decimal128(38, 0))}),
    "longer decimals": pa.table({"u": pa.array([10**40, 10**40 + 1, 1], pa.decimal256(60, 0))}),
    "decimals with decimals": pa.table(
        {"u": pa.array([Decimal(10**30) + Decimal("0.01"), Decimal(10**30), Decimal("0.5")], pa.decimal256(60, 2))}
    ),
    "unsigned": pa.table({"u": pa.array([2**63 + 5, 2**63 + 6, 1], pa.uint64())}),
}


@pytest.mark.parametrize("name", list(UNITS))
def test_no_two_units_become_one(name: str) -> None:
    units = counted("SELECT COUNT(DISTINCT u) AS n FROM t", {"t": UNITS[name]}, unit=dp.Unit("u")).numbers[0]
    rows = counted("SELECT COUNT(*) AS n FROM t", {"t": UNITS[name]}, unit=dp.Unit("u", 1, 9)).numbers[0]
    assert units == rows, "some unit has more than its own row"
    assert units[0] >= 1, "the one that can be told is gone as well"


def test_what_could_only_be_rounded_is_not_offered() -> None:
    frame = pd.DataFrame({"u": [1, 2], "long": np.array([1, 2], np.longdouble)})
    with pytest.raises(dp.Refused, match="no column"):
        counted("SELECT COUNT(long) AS n FROM t", {"t": frame}, unit=dp.Unit("u"))


def test_times_and_decimals_are_measured_as_before() -> None:
    data = pa.table(
        {
            "u": [1, 2, 3],
            "t": pa.array([0, 1500, 86_400_000_000_000], pa.int64()).view(pa.timestamp("ns", "UTC")),
            "d": pa.array([Decimal("0.25"), Decimal(10**40), None], pa.decimal256(60, 2)),
        }
    )
    sql = "SELECT CAST(t AS DATE) AS day, COUNT(*) AS n, SUM(d) AS s FROM t GROUP BY CAST(t AS DATE)"
    columns = {"d": dp.between(0.0, 1.0, step=0.25)}
    found = counted(sql, {"t": data}, unit=dp.Unit("u"), columns=columns)
    assert found.tallied.keys([0, 1]) == [(date(1970, 1, 1),), (date(1970, 1, 2),)]
    assert found.numbers == ([2, 1], [5, 0])
