"""What a policy says of its tables is shown as text: no letter of it steers the terminal of an analyst."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.cli.query_support import TypedOffer
from discreet.cli.repl import Sitting


def test_categories_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with dp.Session(
        {"visits": pa.table({"clinic": ["a"]})},
        unit="row",
        budget=dp.Budget(epsilon=1),
        columns={"clinic": dp.categories(["\x1b[2J\x1b]0;owned\x07", "a"])},
        ledger="memory",
        dataset="visits",
        principal="ana",
    ) as session:
        sitting = Sitting(session, TypedOffer(), principal="ana", max_epsilon=None, at_delta=None)
        assert sitting.hear(r"\tables") == 0
    shown = capsys.readouterr().out
    assert "clinic" in shown
    assert not {letter for letter in shown if not letter.isprintable()} - {"\n"}
