"""Killed at any step, a series neither counts anybody twice nor draws a day twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running_worlds import day, plan_of, running_of, session_of

from discreet import noise
from discreet.errors import AnswerFailed
from discreet.ledger import Ledger
from discreet.query.session.row_streams import DailyRows
from discreet.release import advance
from discreet.release.cumulative import advance as advancing
from discreet.release.cumulative.advance import State, opened_state, running_ledger, state_of
from discreet.release.plan import ReleasePlan

ROWS: list[tuple[object, int]] = [(unit, (unit + later) % 5) for unit in range(40) for later in range(3)]
COUNTS = [24, 24, 16, 16, 0]  # Everybody is there on three days, and counted on the first two.


def killed(*_: object, **__: object) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def at(call: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Do the real thing until the given call, and die there."""
    left = [call]

    def counted(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        return killed() if left[0] < 0 else real(*arguments, **named)

    return counted


def after(call: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Do the real thing, and die after the given call."""
    left = [call]

    def counted(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        left[0] -= 1
        return killed() if left[0] < 0 else found

    return counted


PLACES: dict[str, tuple[object, str, tuple[int, ...]]] = {
    "charge": (Ledger, "charge", (0,)),
    "count a day": (State, "_count", (0, 3)),
    "count all days": (State, "add_units", (0,)),
    "draw": (noise, "rounded_gaussian", (0, 3)),
    "store a day": (Ledger, "store_part", (0, 3)),
    "make the table": (advancing, "table_of", (0,)),
}
# Where it was read and nobody was counted: read again only when whoever holds the data says so.
UNCOUNTED = [("count a day", at), ("count a day", after), ("count all days", at)]
MOMENTS = [(place, how, call) for place in PLACES for how in (at, after) for call in PLACES[place][2]]


@pytest.mark.parametrize(("place", "how", "call"), MOMENTS)
def test_a_series_that_was_killed_goes_on(
    place: str, how: Callable[..., Any], call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, running_of(days=5, max_days=2))
    owner, name, _ = PLACES[place]
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(owner, name, how(call, getattr(owner, name)))
        released(plan)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    before = told(plan)
    if (place, how) in UNCOUNTED:
        with pytest.raises(AnswerFailed):
            released(plan)
        with session_of(plan, ROWS) as session:
            (claim,) = session.ledger.claims()
            session.ledger.release_claim(claim.charge, reason="killed", principal="custodian")
    found = released(plan)
    assert told(plan)[: len(before)] == before
    assert len(told(plan)) == 5
    with opened_state(state_of(plan, plan.running[0]), may_begin=False) as state:
        assert [count for count, _ in state.days()] == COUNTS
    assert released(plan) == found
    with session_of(plan, ROWS) as session:
        assert session.spent.charges == 1
        session.ledger.verify()


def released(plan: ReleasePlan) -> str:
    with session_of(plan, ROWS) as session:
        found = advance(plan, plan.running[0], session, until=day(5))
    assert found is not None
    return found.table.to_json()


def told(plan: ReleasePlan) -> tuple[str, ...]:
    with session_of(plan, ROWS) as session:
        entry = session.ledger.charged("running/hospital/so_far")
        return () if entry is None else session.ledger.parts(entry.index)


def test_two_at_once_count_and_draw_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(days=5, max_days=2))
    with session_of(plan, ROWS):
        pass
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            released(plan)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    with opened_state(state_of(plan, plan.running[0]), may_begin=False) as state:
        assert [count for count, _ in state.days()] == COUNTS
    assert len(told(plan)) == 5


@pytest.mark.parametrize("person_day", [False, True])
def test_a_series_whose_read_failed_is_read_again_only_when_a_custodian_says_so(
    person_day: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, running_of(days=5, max_days=1 if person_day else 2, person_day=person_day))
    reads: list[str] = []

    def fails(*_: object, **__: object) -> None:
        reads.append("read")
        raise RuntimeError("a secret")

    monkeypatch.setattr(DailyRows, "counts", fails)
    monkeypatch.setattr(DailyRows, "first_days", fails)
    for _ in range(3):
        with pytest.raises(AnswerFailed) as failed:
            released(plan)
        assert failed.value.__context__ is None
    assert reads == ["read"]
    monkeypatch.undo()
    with pytest.raises(AnswerFailed):
        released(plan)
    with session_of(plan, ROWS) as session, running_ledger(plan, plan.running[0], session) as book:
        (claim,) = book.claims()
        book.release_claim(claim.charge, reason="mended", principal="custodian")
    assert released(plan)
