"""Connections that are cut and servers that are started again: an answer is paid once, and comes in the end."""

from __future__ import annotations

import pytest
from client_world import NEVER, CuttingProxy, Listening
from server_world import COUNT, prepare

from discreet import http_client
from discreet.client import ServerUnavailable
from discreet.http_client import HttpConnection
from discreet.server.http_limits import RateLimit

# What happens to the requests of one release, which are: ask, wait, fetch.
CUTS = (
    [-1],
    [0],
    [1],
    [60],
    [300],
    [0, 0, 0],
    [-1, 0, 30, -1],
    [NEVER, 0],
    [NEVER, -1, 100],
    [NEVER, NEVER, 0],
    [NEVER, NEVER, 500, 700],
)


@pytest.mark.long
@pytest.mark.parametrize("cuts", CUTS, ids=lambda cuts: "-".join("all" if one == NEVER else str(one) for one in cuts))
def test_a_release_over_a_line_that_is_cut_is_paid_once(served, cuts):
    with CuttingProxy(served.port) as proxy:
        data = served.data(port=proxy.port)
        plan = data.sql(COUNT["sql"], epsilon="0.01")
        before = served.charges
        proxy.cuts.extend(cuts)
        table = plan.release(timeout=100)
        assert proxy.made == sum(one != NEVER for one in cuts)
        assert served.charges == before + 1
        assert table.to_json() == served.world.server.jobs.get(next(data.releases()).id).answer


@pytest.mark.long
@pytest.mark.parametrize("cut", [-1, 0, 40])
def test_a_server_that_is_started_again_while_the_line_is_dead_is_waited_for(tmp_path, cut):
    prepare(tmp_path)
    with Listening(tmp_path) as served, CuttingProxy(served.port, on_cut=served.restart) as proxy:
        plan = served.data(port=proxy.port).sql(COUNT["sql"], epsilon="0.1")
        proxy.cuts.append(cut)
        table = plan.release(timeout=200)
        assert served.charges == 1
        again = served.data().sql(COUNT["sql"], epsilon="0.1", idempotency_key=plan.idempotency_key)
        assert again.release().to_json() == table.to_json()
        assert served.charges == 1


@pytest.mark.long
def test_a_plan_that_gave_up_is_released_again_and_paid_once(tmp_path):
    """By hand, in another connection, after the server was away for longer than anybody waits."""
    prepare(tmp_path)
    with Listening(tmp_path) as served:
        with CuttingProxy(served.port) as proxy:
            plan = served.data(port=proxy.port, patience=0.5).sql(COUNT["sql"], epsilon="0.1")
            proxy.cuts.extend([0] * 50)
            with pytest.raises(ServerUnavailable):
                plan.release()
            proxy.cuts.clear()
            served.restart()
            plan.release(timeout=100)
        assert served.charges == 1


@pytest.mark.long
def test_a_client_that_forgets_its_key_would_be_found(served, monkeypatch):
    """The wrong neighbour: without a key the same cut pays twice."""
    whole = HttpConnection.post

    def forgetful(link, kind, path, said, **more):
        return whole(link, kind, path, {name: one for name, one in said.items() if name != "idempotency_key"}, **more)

    monkeypatch.setattr(HttpConnection, "post", forgetful)
    with CuttingProxy(served.port) as proxy:
        plan = served.data(port=proxy.port).sql(COUNT["sql"], epsilon="0.01")
        before = served.charges
        proxy.cuts.append(0)
        plan.release(timeout=100)
        for job in served.world.server.jobs.of_dataset("one", only="analyst", most=2):
            served.connect().release(job.id).wait(timeout=100)
        assert served.charges == before + 2


@pytest.mark.long
def test_a_busy_server_is_asked_again_later(served, monkeypatch):
    """More requests than an account has: nothing fails, it takes longer, or ends when patience does."""
    monkeypatch.setattr(http_client, "_LONGEST_PAUSE", 0.2)
    data, hasty = served.data(), served.data(patience=0.01)
    monkeypatch.setattr(served.world.server, "rates", RateLimit(5.0, 2))
    assert [data.sql(COUNT["sql"], epsilon="0.1").cost for _ in range(6)] == ["ε = 0.1"] * 6
    monkeypatch.setattr(served.world.server, "rates", RateLimit(1e-9, 1))
    assert hasty.name == "one"
    hasty.money()
    with pytest.raises(ServerUnavailable, match="Too many"):
        hasty.money()
