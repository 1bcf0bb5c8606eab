"""Whether two engines count the same: the same questions of two sessions under one key, compared before any noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine_trees import plain
from recorded import replayed

import discreet as dp
from discreet.privacy.events import Event
from discreet.query.engine import Deadline


def differing(
    one: dp.Session, other: dp.Session, asked: Sequence[tuple[str, str | None]], answered: float = 0.5
) -> list[str]:
    """Name the questions, each with its δ, that two sessions refuse, price or count otherwise.

    At least some share of them must be answered: refusals alone agree too easily.
    """
    both = [(sql, told(one, sql, delta), told(other, sql, delta)) for sql, delta in asked]
    assert sum(isinstance(here[0], Event) for _, here, _ in both) >= answered * len(both)
    return [sql for sql, here, there in both if here != there]


def told(session: dp.Session, sql: str, delta: str | None) -> Any:
    """Return a refusal; or the price, and everything that is counted, under a fixed key."""
    try:
        asked = session.sql(sql, epsilon=1, delta=delta)._asked
    except (dp.Refused, dp.InvalidParameter) as refused:
        return type(refused), str(refused)
    with replayed(sql):
        tallied = session._desk.engine.run_all(asked.stages, deadline=Deadline.after(120))
    return asked.priced.event, [plain(one) for one in tallied]
