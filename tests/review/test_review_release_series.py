"""A series beside a release without a delta has no epsilon there: it is refused before anything is paid."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from plan_texts import plan_in

from discreet.errors import InvalidParameter
from discreet.release import Period, ReleasePlan, check, next_charge, price, publish

JANUARY = Period(label="2026-01", first=date(2026, 1, 1), end=date(2026, 2, 1))
WARDS = """\
[[publish]]
name = "wards"
sql = "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward"
delta = 1e-8
share = 0.1
"""
SERIES = """\
[[running]]
name = "so_far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 31
rho = 0.1
"""


def plan(folder: Path) -> ReleasePlan:
    return plan_in(folder, ("epsilon = 1\ndelta = 1e-7\n", "epsilon = 1\n"), (WARDS, SERIES))


@pytest.mark.parametrize("asked", [price, check])
def test_a_plan_whose_series_has_no_epsilon_is_refused_with_its_line(tmp_path: Path, asked: object) -> None:
    with pytest.raises(InvalidParameter, match=r"plan.toml, line \d+.*needs the delta of \[release\]"):
        asked(plan(tmp_path))  # type: ignore[operator]


def test_it_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    known = plan(tmp_path)
    for spend in (lambda: next_charge(known, JANUARY), lambda: publish(known, principal="ana", period=JANUARY)):
        with pytest.raises(InvalidParameter, match=r"needs the delta of \[release\]"):
            spend()
    assert not Path(known.policy.ledger).exists()
