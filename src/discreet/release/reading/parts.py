"""Each part of a plan file, once its shape is right, as the noun that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none
from discreet.mechanisms.text import significant_up
from discreet.query import Policy
from discreet.query.planning.spend import MOST_EPSILON, MOST_RHO
from discreet.query.session.catalogue_building import nearest
from discreet.release.period import Schedule
from discreet.release.plan import Allowance, Invariant, Level, RunningPlan, TablePlan, Wish
from discreet.release.reading.families import GroupingFamily
from discreet.release.reading.levels import GroupingColumns
from discreet.release.reading.sql_text import check_piece

if TYPE_CHECKING:
    from discreet.release.reading.plan_model import (
        AllowanceModel,
        InvariantModel,
        LevelModel,
        PublishModel,
        RunningModel,
        WishModel,
    )

__all__ = ["allowance_of", "family_of", "invariant_of", "level_of", "running_of", "table_of", "title_of", "wish_of"]

_WISHES = ("share", "epsilon", "rho", "error", "relative_error")
_LEAST_EPSILON, _LEAST_RHO = Fraction(1, 10**6), Fraction(1, 10**12)  # Of what one release may spend.
_OF_FAMILIES = ("source", "where", "by", "groupings", "measures")


def title_of(name: str) -> str:
    """Make a title of a name."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def allowance_of(said: AllowanceModel) -> Allowance:
    """Read what one release may spend."""
    if (said.epsilon is None) == (said.rho is None):
        raise InvalidParameter("say either epsilon (with delta for Gaussian noise, without it pure) or rho")
    if said.rho is not None and said.delta is None:
        raise InvalidParameter("rho needs a delta: the one at which the epsilon of a release is told")
    _check_size("epsilon", said.epsilon, _LEAST_EPSILON, MOST_EPSILON)
    _check_size("rho", said.rho, _LEAST_RHO, MOST_RHO)
    return Allowance(
        epsilon=exact_or_none(said.epsilon, name="epsilon"),
        delta=exact_or_none(said.delta, name="delta"),
        rho=exact_or_none(said.rho, name="rho"),
        split=said.split,
    )


def _check_size(name: str, value: Number | None, least: Fraction, most: Fraction) -> None:
    if value is not None and not least <= exact(value, name=name) <= most:
        raise InvalidParameter(
            f"{name} must be at most {most}, beyond which nobody is protected, and at least {significant_up(least)}, "
            "below which answers are noise alone"
        )


def wish_of(said: WishModel) -> Wish:
    """Read what a table should cost or reach."""
    given = [name for name in _WISHES if getattr(said, name) is not None]
    if len(given) > 1:
        raise InvalidParameter(f"say one of {' and '.join(given)}, not both: one follows from the other")
    return Wish(**{name: exact(getattr(said, name), name=name) for name in given})


def level_of(said: LevelModel) -> Level:
    """Read a level."""
    return Level(name=said.name, of=said.of, members={value: tuple(part) for value, part in said.members.items()})


def invariant_of(said: InvariantModel) -> Invariant:
    """Read an invariant."""
    return Invariant(
        table=said.table,
        column=said.column,
        value=exact(said.value, name="value"),
        where=dict(said.where),
        reason=said.reason,
    )


def table_of(said: PublishModel) -> TablePlan:
    """Read a table that is published by its SQL."""
    assert said.sql is not None
    also = [name for name in _OF_FAMILIES if getattr(said, name)]
    if also:
        named = ", ".join("from" if name == "source" else name for name in also)
        raise InvalidParameter(f"a table is made by sql or by groupings: leave out sql, or else {named}")
    return TablePlan(
        name=said.name,
        title=said.title or title_of(said.name),
        sql=said.sql,
        wish=wish_of(said),
        expected=_expected(said),
        delta=exact_or_none(said.delta, name="delta"),
        keys={name: tuple(values) for name, values in said.keys.items()},
    )


def family_of(said: PublishModel, policy: Policy, levels: Mapping[str, Level], schedule: Schedule) -> GroupingFamily:
    """Read a family of tables."""
    if said.source is None:
        raise InvalidParameter('say how the table is made: sql = "SELECT …", or from, by (or groupings) and measures')
    if (said.by is None) == (said.groupings is None):
        raise InvalidParameter("say what to group by: by = [columns] for one table, or groupings = [[], [columns], …]")
    if said.delta is not None:
        raise InvalidParameter("all groups of a family are public, so it needs no delta: leave it out")
    source = private_source(policy, said.source)
    groupings = [tuple(by) for by in ([said.by] if said.by is not None else said.groupings or [])]
    _check_keys(said, groupings, levels)
    return GroupingFamily(
        name=said.name,
        title=said.title or title_of(said.name),
        source=source,
        where=None if said.where is None else check_piece(said.where),
        groupings=groupings,
        measures={name: check_piece(measure) for name, measure in said.measures.items()},
        axes=GroupingColumns(
            table=source,
            columns=policy.tables[source].columns,
            levels=levels,
            keys={name: tuple(values) for name, values in said.keys.items()},
            schedule=schedule,
        ),
        wish=wish_of(said),
        expected=_expected(said),
    )


def running_of(said: RunningModel, policy: Policy) -> RunningPlan:
    """Read a series of totals so far."""
    return RunningPlan(
        name=said.name,
        title=said.title or title_of(said.name),
        source=private_source(policy, said.source),
        day=said.day,
        first=said.first.isoformat(),
        days=said.days,
        where=None if said.where is None else check_piece(said.where),
        max_days=said.max_days,
        person_day=said.person_day,
        wish=wish_of(said),
    )


def private_source(policy: Policy, name: str) -> str:
    """Return the name of a private table as the policy writes it."""
    private = [table for table, said in policy.tables.items() if not said.public]
    found = next((table for table in private if table.casefold() == name.casefold()), None)
    if found is None:
        raise InvalidParameter(f"there is no private table {name!r}. {nearest(name, private)}")
    return found


def _check_keys(said: PublishModel, groupings: list[tuple[str, ...]], levels: Mapping[str, Level]) -> None:
    used = {name for by in groupings for name in by}
    bases = used | {level.of for level in levels.values()}
    for name, values in said.keys.items():
        if name not in bases:
            raise InvalidParameter(f"keys are listed for {name!r}, which no grouping uses: leave them out")
        if not values or len(set(values)) != len(values):
            raise InvalidParameter(f"the keys of {name!r} must be at least one, and distinct")


def _expected(said: PublishModel) -> dict[str, Fraction]:
    return {name: exact(size, name="an expected value") for name, size in said.expected.items()}
