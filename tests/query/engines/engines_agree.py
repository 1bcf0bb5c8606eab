"""Whether two engines count the same: the same questions of two sessions under one key, compared before any noise.

    assert agree(world, hand_over) > 0

asks everything of a world of `agreement_questions` here, of DuckDB, and there, where `hand_over` puts the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agreement_questions import AgreementWorld, Asked
from engine_trees import plain
from recorded import replayed

import discreet as dp
from discreet.query.engine import Deadline, Stage

HandOver: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_Planned: TypeAlias = tuple[str, Sequence[Stage], Sequence[Stage]]  # SQL, what is counted here, and there
_SECONDS = 600
_TOGETHER = 16  # Questions that are counted at once, as those of a release are: one job, one transaction.


def agree(world: AgreementWorld, hand_over: HandOver, *, every: int = 1, together: int = _TOGETHER) -> int:
    """Refuse, price and count every so-manyth question alike in both places, or name those that differ.

    Return how many were counted. `hand_over` gets tables of Arrow, with the public ones marked.
    """
    asked = world.asked[::every]
    with world.open(world.tables) as here, world.open(hand_over(world.tables)) as there:
        found, counted = _compare(here, there, asked, together=together)
    assert not found, found
    assert counted >= (world.answered if every == 1 else 0) * len(asked), "refusals alone agree too easily"
    return counted


def differing(here: dp.Session, there: dp.Session, asked: Sequence[Asked], answered: float = 0.5) -> list[str]:
    """Name the questions that two sessions refuse, price or count otherwise; some share must be answered."""
    found, counted = _compare(here, there, asked, together=1)
    assert counted >= answered * (len(asked) - len(found)), "refusals alone agree too easily"
    return found


def _compare(here: dp.Session, there: dp.Session, asked: Sequence[Asked], *, together: int) -> tuple[list[str], int]:
    found, planned = list[str](), list[_Planned]()
    for sql, delta in asked:
        (one, stages), (other, others) = _priced(here, sql, delta), _priced(there, sql, delta)
        if one != other:
            found.append(sql)
        elif stages:
            planned.append((sql, stages, others))
    for start in range(0, len(planned), together):
        some = planned[start : start + together]
        if not _is_counted_alike(here, there, some):
            alone = [one[0] for one in some if not _is_counted_alike(here, there, [one])]
            found += alone or [one[0] for one in some]
    return found, len(planned)


def _priced(session: dp.Session, sql: str, delta: str | None) -> tuple[tuple[Any, ...], Sequence[Stage]]:
    """Return a refusal; or the price with everything that is told of it, and what is to be counted."""
    try:
        plan = session.sql(sql, epsilon=1, delta=delta)
    except (dp.Refused, dp.InvalidParameter) as refused:
        return (type(refused), str(refused)), ()
    return (plan._asked.priced.event, str(plan.explain())), plan._asked.stages


def _is_counted_alike(here: dp.Session, there: dp.Session, asked: Sequence[_Planned]) -> bool:
    """Whether all that is counted under a fixed key is one. Here nothing may fail: two failures are no agreement."""
    label = asked[0][0]
    meant = _counted(here, label, [stage for _, stages, _ in asked for stage in stages])
    try:
        return _counted(there, label, [stage for _, _, stages in asked for stage in stages]) == meant
    except (dp.Refused, dp.AnswerFailed):
        return False


def _counted(session: dp.Session, label: str, stages: Sequence[Stage]) -> list[Any]:
    with replayed(label):
        tallied = session._desk.engine.run_all(stages, deadline=Deadline.after(_SECONDS))
    return [plain(one) for one in tallied]
