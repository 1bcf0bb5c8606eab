"""A profile on the command line: of a file by itself, or of a table that a policy declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, note, working
from discreet.cli.policies import FilePlace, open_place
from discreet.cli.spending import PriceTag, agree, limit_of
from discreet.errors import BudgetExceeded
from discreet.release import plan_profile

if TYPE_CHECKING:
    from discreet.release.profiling.profile_results import Profile

__all__ = ["ProfileAnswer", "ProfileRequest", "profiled"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """What is asked of a profile, in the words of `plan_profile`."""

    epsilon: str
    delta: str | None
    table: str | None
    numbers: Sequence[str]
    dates: Sequence[str]
    idempotency_key: str


def profiled(
    place: FilePlace, wanted: ProfileRequest, *, principal: str | None, max_epsilon: str | None, out: Path
) -> ProfileAnswer:
    """Price a profile, agree, pay, and write its page."""
    with open_place(place, wanted.epsilon, wanted.delta, principal=principal, agreed=False) as session:
        with working("planning"):
            plan = plan_profile(session, **asdict(wanted))
        if all(session.ledger.charged(key) is not None for key in plan.charges):
            note("this profile is paid already: it is written again, for nothing")
        else:
            price = PriceTag(words=plan.cost, epsilon=plan.epsilon, budget=session.money())
            if plan.read_as_text:
                note(plan.read_as_text)
            agree(price, limit=limit_of(max_epsilon), what="this profile")
            if not plan.affordable:
                raise BudgetExceeded(asked=plan.cost, left=session.left)
    with open_place(place, wanted.epsilon, wanted.delta, principal=principal, agreed=True) as session:
        with working("profiling"):
            found = plan_profile(session, **asdict(wanted)).release()
            written = found.write(out)
        note(session.money(like=plan.event))  # A profile is one thing, whatever number of charges its rounds are.
        return ProfileAnswer.of(found, written)


# --- profiles: What came of a profile. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAnswer:
    """What was found in every column, and the page that shows it."""

    report: str
    profile: dict[str, Any]
    text: str

    @classmethod
    def of(cls, profile: Profile, page: Path) -> ProfileAnswer:
        """Read a profile."""
        return cls(report=str(page), profile=json.loads(profile.to_json()), text=str(profile))

    def blocks(self) -> Iterator[Block]:
        yield self.text
        yield Styled(f"open {self.report}", "cyan")
