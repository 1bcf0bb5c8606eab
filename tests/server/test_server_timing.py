"""What the time of an answer tells of one person's rows: everything without declared times, and with them? (C13)

Two servers run side by side, on tables that differ by one person, who has very many rows; the same questions are asked
of both at the same time. Times are printed with -s: a busy machine must not fail the test. That the check can tell the
tables apart is judged. DISCREET_TIMED_REQUESTS=200 makes it shorter.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack
from statistics import median, quantiles
from threading import Thread

import httpx
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from scipy.stats import ks_2samp
from server_process import ServerProcess

from discreet.server.accounts import AccountRole, Accounts
from discreet.server.state_file import StateFile

pytestmark = pytest.mark.soak
REQUESTS = int(os.environ.get("DISCREET_TIMED_REQUESTS", "2000"))
ASKERS, DECLARED, PEOPLE, ROWS = 6, 1.5, 2_000, 600_000
POLICY = """\
dataset = "one"
ledger = "one.ledger"

[unit]
column = "who"
max_groups = 1
max_rows_per_group = 1

[budget]
epsilon = 100000

[tables.visits]
source = "visits.parquet"

[tables.visits.columns]
age = { low = 0, high = 120, whole = true }
"""
ASKED = {"sql": "SELECT SUM(age) AS s FROM visits", "epsilon": "1"}
AT_ONCE = (
    "import discreet.server.jobs as jobs\njobs.Jobs.__init__.__kwdefaults__['until'] = lambda _, known: known.wait(60)"
)


def site(folder, *, alice):
    """A table with or without one person of very many rows, and tokens of a few analysts."""
    folder.mkdir()
    who = list(range(PEOPLE)) + [PEOPLE] * (ROWS if alice else 0)
    parquet.write_table(pa.table({"who": who, "age": [number % 90 for number in who]}), folder / "visits.parquet")
    (folder / "one.toml").write_text(POLICY)
    state = StateFile(folder / "server.db")
    accounts = Accounts(state)
    said = {"scopes": ["read", "ask", "release"], "datasets": None, "cap": None, "seconds": 86_400.0, "by": "test"}
    tokens = []
    for number in range(ASKERS):
        accounts.add(f"ana{number}", AccountRole.ANALYST, ["one"], by="test")
        tokens.append(accounts.new_token(f"ana{number}", **said))
    state.close()
    return tokens


def asked(address, token, many, seconds, codes):
    """Ask one question after the other, and note how long each answer took."""
    chance = random.Random()
    with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=120) as client:
        for _ in range(many):
            begun = time.monotonic()
            answer = client.post("/v1/datasets/one/releases?wait=60", json=ASKED)
            seconds.append(time.monotonic() - begun)
            codes.append(answer.status_code)
            time.sleep(chance.uniform(0, 0.2))


def timed(folder, mistake):
    """Ask both servers at the same time; return what clients and servers measured, with Alice and without."""
    folder.mkdir()
    heard, told, codes, threads = ([], []), [], [], []
    with ExitStack() as opened:
        for place, alice in enumerate((True, False)):
            tokens = site(folder / str(alice), alice=alice)
            said = {"answer_after": {"one": DECLARED}, "workers": ASKERS, "mistake": mistake}
            server = opened.enter_context(ServerProcess(folder / str(alice), **said))
            for token in tokens:
                more = (server.address, token, REQUESTS // ASKERS, heard[place], codes)
                threads.append(Thread(target=asked, args=more, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for alice in (True, False):
        state = StateFile(folder / str(alice) / "server.db")
        query = (
            "SELECT d.at - j.started AS late FROM jobs j JOIN decisions d ON d.about = j.id AND d.outcome = 'answered'"
        )
        told.append([row["late"] for row in state.rows(query)])
        state.close()
    assert set(codes) <= {200, 500}
    return heard, told


def described(name, pair):
    test = ks_2samp(*pair)
    middles = [f"{1000 * median(one):.1f} ms" for one in pair]
    print(f"{name}: KS {test.statistic:.3f}, p = {test.pvalue:.2g}; medians with {middles[0]} and without {middles[1]}")
    return test


def within(pair, ms):
    both = [second - DECLARED for one in pair for second in one]
    share = sum(abs(late) <= ms / 1000 for late in both) / len(both)
    parts = quantiles(both, n=100)
    return f"{100 * share:.1f} % within ±{ms} ms, p50 {1000 * median(both):.1f} ms, p99 {1000 * parts[98]:.1f} ms late"


def test_neighbours_are_told_apart_without_declared_times_and_not_with_them(tmp_path):
    print(f"\n2 × {REQUESTS} requests, {ASKERS} analysts on each server, one person with {ROWS:,} rows or not")
    heard, _ = timed(tmp_path / "at once", AT_ONCE)
    apart = described("told as soon as known, heard by clients", heard)
    heard, told = timed(tmp_path / "declared", "")
    described("declared, told by the servers ", told)
    described("declared, heard by the clients", heard)
    print(f"declared {DECLARED:g} s: servers told {within(told, 5)}")
    print(f"declared {DECLARED:g} s: clients heard {within(heard, 5)}")
    assert apart.pvalue < 1e-4
