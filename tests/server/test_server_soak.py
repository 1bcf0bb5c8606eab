"""Many analysts for a long time, with kills; and what the time of an answer tells of the rows. See `make soak`.

DISCREET_LOAD_MINUTES=2 makes the load shorter; figures are printed with -s.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack

import pytest
from postgres_cluster import own_cluster
from server_load import Load, Reckoning, percentiles
from server_process import ServerProcess
from server_world import CLINICS, POLICY, prepare
from system_parts import needs_postgres

from discreet.server.accounts import AccountRole, Accounts
from discreet.server.state_store import opened_state

pytestmark = pytest.mark.soak
MINUTES = float(os.environ.get("DISCREET_LOAD_MINUTES", "10"))
ANALYSTS = int(os.environ.get("DISCREET_LOAD_ANALYSTS", "50"))
DECLARED = {"one": 2.0, "two": 2.0}
BUDGETS = {"one": "1000", "two": "0.5"}  # The second is used up early: everybody is at the edge at once.


def accounts(state, names):
    """An analyst for each name, and a token."""
    made = Accounts(state)
    for name in names:
        made.add(name, AccountRole.ANALYST, tuple(DECLARED), by="test")
    said = {"scopes": ["read", "ask", "release"], "datasets": None, "cap": None, "seconds": 86_400.0, "by": "test"}
    return {name: made.new_token(name, **said) for name in names}


def policies(folder, ledgers):
    prepare(folder)
    for name, budget in BUDGETS.items():
        written = POLICY.format(name=name, clinics=CLINICS, epsilon=budget)
        (folder / f"{name}.toml").write_text(written.replace(f"{name}.ledger", ledgers[name]))


def judged(load, reckoning):
    """Print what was measured, and say what must not be."""
    codes = sum((one.heard.codes for one in load.analysts), Counter())
    states = Counter(job.state for job in reckoning.jobs)
    late = [told - began for began, told in reckoning.answered]
    heard = [seconds for one in load.analysts for seconds in one.heard.seconds]
    print(f"\n{ANALYSTS} analysts, {load.minutes:g} minutes, {len(load.servers)} servers, kills {dict(load.kills)}")
    print(f"jobs {dict(states)}, heard {dict(codes)}")
    print(f"charges { ({name: sum(one.values()) for name, one in reckoning.charged.items()}) }")
    print("declared 2 s; told after p50 {:.3f} s, p99 {:.3f} s of a job's start".format(*percentiles(late)))
    print("heard after p50 {:.2f} s, p99 {:.2f} s of asking, queue and kills included".format(*percentiles(heard)))
    sizes = [size for _, size in load.memory]
    print(f"memory {min(sizes) >> 20} to {max(sizes) >> 20} MB, growth after warming up {100 * load.growth:.1f} %")
    return reckoning.complaints(load.analysts)


@pytest.mark.parametrize(
    ("kind", "many"),
    [
        ("sqlite", 1),
        pytest.param("postgresql", 1, marks=needs_postgres),
        pytest.param("postgresql", 2, marks=needs_postgres),
    ],
    ids=["sqlite", "postgresql", "two servers"],
)
def test_nothing_is_overspent_or_lost(tmp_path, monkeypatch, kind, many):
    """C24, C44: overspent 0, answers lost 0, memory grows by less than a twentieth."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with ExitStack() as opened:
        place, ledgers = str(tmp_path / "server.db"), {name: f"{name}.ledger" for name in DECLARED}
        if kind == "postgresql":
            dsn = opened.enter_context(opened.enter_context(own_cluster()).database())
            place, ledgers = f"{dsn}?schema=state", {name: f"{dsn}?schema=ledger_{name}" for name in DECLARED}
        policies(tmp_path, ledgers)
        state = opened_state(place)
        opened.callback(state.close)
        tokens = accounts(state, [f"ana{number}" for number in range(ANALYSTS)])
        said = {"answer_after": DECLARED, "workers": 12 // many, "state": place}
        servers = [opened.enter_context(ServerProcess(tmp_path, **said)) for _ in range(many)]
        load = Load(tmp_path, servers, tokens, tuple(DECLARED), MINUTES)
        load.run()
        settled(state)
        for server in servers:
            server.stop()
        reckoning = Reckoning.of(tmp_path, tuple(DECLARED), state.rows)
    assert judged(load, reckoning) == []
    assert load.growth < 0.05
    assert load.kills["server"] > 0


def settled(state):
    """Wait until every job is over."""
    until = time.monotonic() + 300
    while state.row("SELECT 1 FROM jobs WHERE state IN ('queued', 'running')") is not None:
        assert time.monotonic() < until
        time.sleep(0.2)
