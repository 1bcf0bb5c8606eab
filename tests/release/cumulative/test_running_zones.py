"""A series goes on by the same calendar, whatever the time zone of the machine that advances it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from running_worlds import FIRST, plan_of, running_of

from discreet.release.cumulative.advance import opened_state, state_of

ADVANCED = """
import sys
from pathlib import Path
from discreet import Session
from discreet.release import advance
from running_worlds import day, plan_of, running_of

folder, until = Path(sys.argv[1]), int(sys.argv[2])
plan = plan_of(folder, running_of(days=4), unit="row")
policy = plan.policy
with Session({"stays": folder / "stays.parquet"}, unit="row", budget=policy.budget, ledger=policy.ledger,
             dataset=policy.dataset, principal="ana") as session:
    advance(plan, plan.running[0], session, until=day(until))
"""


@pytest.mark.long
def test_rows_are_counted_once_by_machines_in_two_zones(tmp_path: Path) -> None:
    """Five rows an hour, dated by UTC: no day takes rows from its neighbour when the zone changes in between."""
    start = int(datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC).timestamp()) * 10**6
    moments = [start + hour * 3600 * 10**6 for hour in range(96) for _ in range(5)]
    pq.write_table(
        pa.table({"admitted": pa.array(moments).view(pa.timestamp("us", "UTC"))}), tmp_path / "stays.parquet"
    )
    for until, zone in ((2, "Asia/Tokyo"), (4, "America/Los_Angeles")):
        environment = dict(os.environ, TZ=zone, PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), *sys.path]))
        subprocess.run([sys.executable, "-c", ADVANCED, str(tmp_path), str(until)], env=environment, check=True)
    plan = plan_of(tmp_path, running_of(days=4), unit="row")
    with opened_state(state_of(plan, plan.running[0]), may_begin=False) as state:
        assert [count for count, _ in state.days()] == [120] * 4
