"""A profile on the command line: of a file by itself, or of a table that a policy declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, note, working
from discreet.cli.policies import asker, open_session
from discreet.cli.spending import PriceTag, agree, limit_of
from discreet.errors import InvalidParameter
from discreet.ledger import Budget
from discreet.query import Session, Unit
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
    source: Path,
    unit: str | None,
    ledger: Path | None,
    wanted: ProfileRequest,
    *,
    principal: str | None,
    max_epsilon: str | None,
    out: Path,
) -> ProfileAnswer:
    """Price a profile, agree, pay, and write its page."""
    with _session(source, unit, ledger, wanted, principal) as session:
        with working("planning"):
            plan = plan_profile(session, **asdict(wanted))
        if all(session.ledger.charged(key) is not None for key in plan.charges):
            note("this profile is paid already: it is written again, for nothing")
        else:
            price = PriceTag(words=plan.cost, epsilon=plan.epsilon)
            if plan.read_as_text:
                note(plan.read_as_text)
            agree(price, limit=limit_of(max_epsilon), what="this profile")
        with working("profiling"):
            found = plan.release()
            return ProfileAnswer.of(found, found.write(out))


@contextmanager
def _session(
    source: Path, unit: str | None, ledger: Path | None, wanted: ProfileRequest, principal: str | None
) -> Iterator[Session]:
    if source.suffix == ".toml":
        if unit is not None or ledger is not None:
            raise InvalidParameter(
                f"{source.name} says whom to protect and where to charge: leave --unit and --ledger out"
            )
        with open_session(source, principal=principal) as session:
            yield session
        return
    if unit is None:
        raise InvalidParameter("say whom to protect: --unit COLUMN, or --unit row if each row is somebody else")
    with Session(
        source,
        unit="row" if unit == "row" else Unit(unit),
        budget=Budget(epsilon=wanted.epsilon, delta=wanted.delta),
        ledger=source.with_suffix(".ledger") if ledger is None else ledger,
        dataset=source.stem,
        principal=asker(principal),
    ) as session:
        yield session


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
