"""Tables and sessions for tests of Spark: frames of files, and a session on one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_session import spark_table

import discreet as dp
from discreet.query.policy import PublicTable

FOLDERS = iter(range(10**9))


def frames(session: Any, folder: Path, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Write private tables to files that Spark reads; public ones stay as they are."""
    here = folder / str(next(FOLDERS))
    here.mkdir()
    return {
        name: one if isinstance(one, PublicTable) else spark_table(session, here, name, one)
        for name, one in tables.items()
    }


def session_on(frame: Any, unit: Any = None) -> dp.Session:
    return dp.Session(
        {"v": frame},
        unit=unit or dp.Unit("who", max_groups=1, max_rows_per_group=1),
        budget=dp.Budget(epsilon=10) if unit is None else (dp.Budget(epsilon=10), dp.Budget(epsilon=10)),
        ledger="memory",
        dataset="d",
        principal="p",
        columns={"x": dp.between(0, 9)} if unit is None else {},
    )
