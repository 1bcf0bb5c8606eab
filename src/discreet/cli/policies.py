"""From a file that says whom to protect to what it protects: its policy, its ledger, a session on its tables."""

from __future__ import annotations

import getpass
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast, final

from discreet.cli.output import note, working
from discreet.errors import DiscreetError, InvalidParameter, NotAuthorised, Refused
from discreet.exact import positive
from discreet.formatting import enumerated, plain
from discreet.pages import progress

if TYPE_CHECKING:
    from discreet.ledger import Account, Budget, Ledger
    from discreet.ledger.server_address import LedgerPlace
    from discreet.query import Policy, Session
    from discreet.schema.csv_file import CsvFile

__all__ = [
    "FilePlace",
    "asker",
    "declared_in",
    "is_plan",
    "named_ledger",
    "needed",
    "open_ledger",
    "open_place",
    "open_session",
    "read_any_policy",
    "release_delta",
    "unit_names",
    "with_progress",
]

_MEMORY = "memory"  # instead of the path of a ledger
_OF_PLANS = ("publish", "release", "running", "schedule", "output", "levels", "invariants")


def read_any_policy(path: Path) -> Policy:
    """Read a policy file, or the policy that a release plan begins with."""
    if is_plan(path):
        from discreet.release import read_release_plan

        return read_release_plan(path).policy
    from discreet.query import read_policy

    return read_policy(path)


def is_plan(path: Path) -> bool:
    """Tell whether a file is a release plan, by what stands in it."""
    try:
        return any(word in tomllib.loads(path.read_text(encoding="utf-8")) for word in _OF_PLANS)
    except PermissionError:
        raise NotAuthorised(f"this user may not read {path.name}: ask whoever holds the data") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False  # Whoever reads it next says what is wrong with it, and where.


def release_delta(path: Path) -> Fraction | None:
    """Return the delta at which a plan prices its releases, so that a price is told as it was agreed to."""
    if named_ledger(path) is not None or not is_plan(path):
        return None
    from discreet.release import read_release_plan

    return read_release_plan(path).allowance.delta


def unit_names(path: Path) -> dict[str, str]:
    """Return what a policy or a plan calls one unit, by what its ledger does; a ledger itself has no names."""
    from discreet.query.policy import called_units

    if named_ledger(path) is not None:
        return {}
    policy = read_any_policy(path)
    return called_units(policy.chain or policy.unit)


def needed(path: Path | None) -> Path:
    """Return the file that was named, or refuse."""
    if path is None:
        raise InvalidParameter("say --policy FILE: a policy file, or a release plan")
    return path


@contextmanager
def open_ledger(path: Path, *, must_exist: bool = False) -> Iterator[Ledger]:
    """Open the ledger of a policy without its data, with the budget that the ledger has: nothing is spent here.

    One that is not there yet is not made. A ledger may also be named itself.
    """
    from discreet.ledger import Ledger

    named = named_ledger(path)
    if named is not None:
        with Ledger.open(named, _only_account(named)) as ledger:
            yield ledger
        return
    policy = read_any_policy(path)
    if must_exist and not policy.ledger.exists():
        raise InvalidParameter(f"there is no ledger {policy.ledger.name} yet: the first release or query makes it")
    place = policy.ledger if policy.ledger.exists() else "memory"
    budget = declared_in(policy.ledger, policy.dataset, anchor=policy.anchor, said=policy.budget) or policy.budget
    account = replace(policy.account, budget=budget)
    with Ledger.open(place, account, anchor=policy.anchor, quotas=policy.quotas) as ledger:
        yield ledger


def declared_in(
    place: LedgerPlace, dataset: str, *, anchor: Path | None = None, said: Budget | None = None
) -> Budget | None:
    """Return the budget that a ledger has for a data set, as `said` if its numbers are the same; None without one."""
    from discreet.ledger.inspect import declared_budget

    found = declared_budget(place, dataset, anchor=anchor)
    if found is None:
        return None
    numbers = ("epsilon", "delta", "rho")
    same = said is not None and all(getattr(said, name) == getattr(found, name) for name in numbers)
    return said if same else found


def named_ledger(path: Path) -> LedgerPlace | None:
    """Return the ledger, if one is named itself: a file, or the address on a server; None for a policy or a plan."""
    from discreet.ledger.server_address import LedgerAddress, as_place

    place = as_place(path)
    if isinstance(place, LedgerAddress):
        return place
    return path if path.suffix == ".ledger" else None


def _only_account(place: LedgerPlace) -> Account:
    from discreet.ledger import look

    seen = look(place)
    if len(seen.datasets) != 1:
        raise InvalidParameter(f"{place.name} has several data sets: name the policy or plan of the one you mean")
    return seen.account(seen.datasets[0])


@contextmanager
def open_session(path: Path, *, principal: str | None, project: str = "", agreed: bool = True) -> Iterator[Session]:
    """Open a session as a policy or a plan says; progress is time, and goes to the terminal.

    Before a price is `agreed` to, a ledger that is not there yet is not made: the session has one in memory.
    """
    from discreet.query import Session

    with working("opening"):
        policy = with_progress(read_any_policy(path))
        if not agreed and declared_in(policy.ledger, policy.dataset, anchor=policy.anchor) is None:
            policy = replace(policy, ledger=cast(Path, _MEMORY), anchor=None)
        opened = Session.from_policy(policy, principal=asker(principal), project=project)
    with opened as session:
        yield session


@final
@dataclass(frozen=True, slots=True)
class FilePlace:
    """What is read and where it is charged, as it was typed: a plain file with its unit, or a policy that says all."""

    source: Path
    unit: str | None
    ledger: Path | None
    lifetime_epsilon: str | None = None
    lifetime_delta: str | None = None
    file: Path | CsvFile | None = None  # the source as it is said to be written

    @property
    def book(self) -> LedgerPlace:
        """The file of the ledger, or its address."""
        if self.ledger is None:
            return self.source.with_suffix(".ledger")
        return named_ledger(self.ledger) or self.ledger

    def lifetime(self, epsilon: str, delta: str | None, *, say: bool = True) -> Budget:
        """Return the lifetime budget: as the ledger has it, as it is said, or as a plan beside the data declares it."""
        found = declared_in(self.book, self.source.stem)
        if self.lifetime_epsilon is not None:
            return self._said(found, delta)
        if found is not None:
            return found
        planned = dict(self._planned())
        if len(set(planned.values())) == 1:
            name, budget = next(iter(planned.items()))
            if say:
                note(f"lifetime budget: {budget.describe()}, as {name} declares it")
            return budget
        raise InvalidParameter(self._how_to_say(epsilon, delta, list(planned)))

    def _said(self, found: Budget | None, delta: str | None) -> Budget:
        from discreet.ledger import Budget

        said = Budget(self.lifetime_epsilon, self.lifetime_delta if self.lifetime_delta is not None else delta)
        if found is not None and found != said:
            raise Refused(
                f"{self.book.name} has a lifetime budget of {found.describe()} for {self.source.stem}, "
                f"not {said.describe()}",
                way_out="leave --lifetime-epsilon out, or raise what the ledger has first: discreet budget raise "
                f'--policy {self.book} --epsilon … --reason "…"',
            )
        return said

    def _planned(self) -> Iterator[tuple[str, Budget]]:
        """Find plans and policies beside the data that charge the same ledger: what they declare is public."""
        for file in sorted(self.source.parent.glob("*.toml")):
            try:
                policy = read_any_policy(file)
            except DiscreetError:
                continue  # Something else, or it is not finished.
            if policy.ledger.resolve() == self.book.resolve() and policy.dataset == self.source.stem:
                yield file.name, policy.budget

    def _how_to_say(self, epsilon: str, delta: str | None, planned: list[str]) -> str:
        if planned:
            return f"{enumerated(planned)} declare different budgets for {self.book.name}: make them agree first"
        more = f" --lifetime-delta {delta}" if delta is not None else ""
        return (
            f"say how much may be spent on {self.source.stem} in all, ever: this and every release and query after "
            f"it. Such as --lifetime-epsilon {plain(4 * positive(epsilon, name='--epsilon'))}{more}; or write a plan "
            "first (discreet init), whose [budget] is taken. It can be raised later, never lowered. Nothing was spent"
        )


@contextmanager
def open_place(
    place: FilePlace, epsilon: str, delta: str | None, *, principal: str | None, agreed: bool
) -> Iterator[Session]:
    """Open a session on a plain file, under its lifetime budget, or as a policy says; this much will be asked of it.

    Before its price is `agreed` to, a ledger that is not there yet is not made: the session has one in memory. So
    whoever says no, or is refused, has declared no lifetime budget.
    """
    from discreet.query import Session, Unit

    source, unit = place.source, place.unit
    if source.suffix == ".toml":
        if any(said is not None for said in (unit, place.ledger, place.lifetime_epsilon, place.lifetime_delta)):
            raise InvalidParameter(
                f"{source.name} says whom to protect and where to charge: leave --unit, --ledger and the lifetime out"
            )
        with open_session(source, principal=principal, agreed=agreed) as session:
            yield session
        return
    if unit is None:
        raise InvalidParameter("say whom to protect: --unit COLUMN, or --unit row if each row is somebody else")
    is_new = declared_in(place.book, source.stem) is None
    with Session(
        place.file or source,
        unit="row" if unit == "row" else Unit(unit),
        budget=place.lifetime(epsilon, delta, say=not agreed),
        ledger=_MEMORY if is_new and not agreed else place.book,
        dataset=source.stem,
        principal=asker(principal),
    ) as session:
        yield session


def with_progress(policy: Policy) -> Policy:
    """Let a policy tell a terminal how the time goes."""
    if not sys.stderr.isatty():
        return policy
    return replace(policy, resources=replace(policy.resources, on_progress=_show_limit))


def asker(principal: str | None) -> str:
    """Return who asks: as they said, or by their login."""
    try:
        return principal or getpass.getuser()
    except (KeyError, OSError):  # A container may have no name for its user.
        raise InvalidParameter("say who asks: --principal NAME") from None


def _show_limit(gone: float, allowed: float) -> None:
    """Say how long it may take, beside the time that is gone; how much is done would tell about the data."""
    progress.show_limit(allowed)
