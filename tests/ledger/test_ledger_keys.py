"""A key stands for one charge and one draw: its own, and nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import AnswerFailed
from discreet.query.plan.planner import PricedQuery

TABLE = pa.table({"who": list(range(60))})
ASKED = "SELECT COUNT(*) AS n FROM t"


def opened(folder: Path) -> dp.Session:
    return dp.Session(
        {"t": TABLE},
        unit=dp.Unit("who"),
        budget=dp.Budget(10),
        ledger=folder / "ledger",
        dataset="people",
        principal="ana",
        version="1",
    )


def test_a_new_key_is_a_new_charge_after_a_draw_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> None:
        raise RuntimeError

    with opened(tmp_path) as session:
        monkeypatch.setattr(PricedQuery, "draw", fails)
        with pytest.raises(AnswerFailed):
            session.sql(ASKED, epsilon=1, idempotency_key="monday").release()
        monkeypatch.undo()
        for _ in range(3):  # The old key never draws again.
            with pytest.raises(AnswerFailed):
                session.sql(ASKED, epsilon=1, idempotency_key="monday").release()
        assert session.spent.charges == 1
        told = session.sql(ASKED, epsilon=1, idempotency_key="tuesday").release().to_json()
        assert session.spent.charges == 2
        assert session.sql(ASKED, epsilon=1, idempotency_key="tuesday").release().to_json() == told
        with pytest.raises(AnswerFailed):
            session.sql(ASKED, epsilon=1, idempotency_key="monday").release()
        assert session.spent.charges == 2
