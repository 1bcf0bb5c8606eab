"""Stages that share a scan: which can, what is handed over once, and how each is bounded by its own limits."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar, final
from unicodedata import is_normalized

from discreet.errors import AnswerFailed, Refused
from discreet.query.ast import (
    Apply,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    Operator,
    PerUnit,
    Project,
    Source,
    Table,
    TableColumn,
    UnionAll,
    WithinUnit,
)
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.shared_counts import SharedCount, tally_all
from discreet.query.engine import Deadline, ExactCounts, Stage, StageColumn, StageKey, Wants, known_keys
from discreet.query.engines.sql_expressions import Lookup
from discreet.query.engines.sql_queries import Index, SqlRelations, domain_of, index_of, projected, write_source
from discreet.query.engines.sql_writer import Writer
from discreet.query.engines.stage_runner import BATCH, EngineResources, measure_of, numbers
from discreet.schema.columns import Kind

__all__ = ["Member", "Shared", "SharedScan", "keys_needed", "run_shared", "share", "write_shared"]

# --- sharing ---
# Which stages can be answered by one scan: those of the same unit whose sources differ in columns and filters only.
#
# More columns change no rows, and a filter on top may as well be looked at later, row by row: all expressions are
# total.


C = TypeVar("C", TableColumn, Named)
_MOST_GROUPS = (
    1 << 21
)  # Of all stages of a scan together: the sums of all of them are in memory at once, in each thread.


@final
@dataclass(frozen=True, slots=True)
class Member:
    """A stage, its place among all, and what its rows must fulfil beyond what all rows of the scan do."""

    place: int
    stage: Stage
    conditions: tuple[Expression, ...]


@final
@dataclass(frozen=True, slots=True)
class Shared:
    """Stages that one scan answers."""

    source: Source  # with all columns that one of them needs
    conditions: tuple[Expression, ...]  # what the rows of all of them fulfil
    unit: str
    members: tuple[Member, ...]

    @property
    def choices(self) -> int:
        """How many secret choices are made of the rows: one for each family, and one for each other stage."""
        families = {member.stage.family for member in self.members}
        return len(families - {None}) + sum(member.stage.family is None for member in self.members)


def share(stages: Sequence[Stage]) -> tuple[Shared, ...]:
    """Find stages that can share a scan; those that share theirs with none are left out, unless they are of a family.

    All stages of a family share one, or it is an error: there is one choice for all of them.
    """
    groups: list[tuple[Source, list[Member]]] = []
    for place, stage in enumerate(stages):
        if not _can_be_shared(stage):
            continue
        base, conditions = _peeled(stage.source)
        member = Member(place, stage, conditions)
        begun = [number for number, (_, members) in enumerate(groups) if _has_family(members, stage)]
        for number in begun or range(len(groups)):
            source, members = groups[number]
            wider = _merged(source, base) if begun or _fit(members, stage) else None
            if wider is not None:
                groups[number] = wider, [*members, member]
                break
        else:
            groups.append((base, [member]))
    found = tuple(
        _shared(source, members)
        for source, members in groups
        if len(members) > 1 or members[0].stage.family is not None
    )
    _check_families(stages, found)
    return found


def keys_needed(stages: Sequence[Stage]) -> int:
    """Count the secrets that `Engine.run_all` draws for some stages: for shared scans first, then for each alone."""
    shared = share(stages)
    together = {member.place for one in shared for member in one.members}
    alone = [place for place, stage in enumerate(stages) if stage.unit is not None and place not in together]
    return sum(1 + one.choices for one in shared) + len(alone)


def _check_families(stages: Sequence[Stage], found: Sequence[Shared]) -> None:
    """A family in two scans, or outside of any, would have two choices: its tables would not add up."""
    scans = {member.place: number for number, shared in enumerate(found) for member in shared.members}
    where: dict[str, set[int | None]] = {}
    for place, stage in enumerate(stages):
        if stage.family is not None:
            where.setdefault(stage.family, set()).add(scans.get(place))
    if any(len(numbers) > 1 or None in numbers for numbers in where.values()):
        raise Refused(
            "these tables of one family cannot be counted in one scan",
            reason="all of them count the same rows of a unit, which are chosen once",
            way_out="publish them by their SQL, where each chooses for itself",
        )


def _has_family(members: Sequence[Member], stage: Stage) -> bool:
    return stage.family is not None and any(
        (member.stage.family, member.stage.unit) == (stage.family, stage.unit) for member in members
    )


def _fit(members: Sequence[Member], stage: Stage) -> bool:
    """Whether a stage has the unit of others, and few enough groups besides theirs."""
    groups = sum(_groups(member.stage) for member in members) + _groups(stage)
    return members[0].stage.unit == stage.unit and groups <= _MOST_GROUPS


def _groups(stage: Stage) -> int:
    return prod(len(key.domain or ()) for key in stage.keys)


def _can_be_shared(stage: Stage) -> bool:
    """Whether a unit is a column, and groups and values have public numbers: else a scan of its own lists them."""
    is_known = all(key.domain for key in stage.keys)
    is_open = any(column.grid is None and column.members is None and column.wants.distinct for column in stage.columns)
    return stage.unit is not None and stage.max_inner is None and is_known and not is_open


def _shared(source: Source, members: Sequence[Member]) -> Shared:
    first, *others = members
    common = tuple(one for one in first.conditions if all(one in other.conditions for other in others))
    assert first.stage.unit is not None
    rest = tuple(replace(one, conditions=tuple(c for c in one.conditions if c not in common)) for one in members)
    return Shared(source, common, first.stage.unit, rest)


def _peeled(source: Source) -> tuple[Source, tuple[Expression, ...]]:
    """Take the filters off the top of a source."""
    found: list[Expression] = []
    while isinstance(source, Filter):
        found = [*_conjuncts(source.condition), *found]
        source = source.source
    return source, tuple(dict.fromkeys(found))


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    """Take a condition apart: a row for which a conjunction is true is one for which each of its parts is."""
    if isinstance(condition, Apply) and condition.operator is Operator.AND:
        for argument in condition.arguments:
            yield from _conjuncts(argument)
    else:
        yield condition


def _merged(one: Source, other: Source) -> Source | None:
    """Return a source with the rows of both, which are the same, and the columns of either; None if there is none."""
    wider = _wider(one, other)
    if wider is None or wider == one:
        return wider
    names = list(_names(wider))
    return wider if len(set(names)) == len(names) else None


def _wider(one: Source, other: Source) -> Source | None:
    if one == other:
        return one
    match one, other:
        case Table(), Table() if (one.table, one.private, one.unit) == (other.table, other.private, other.unit):
            columns = _union(one.columns, other.columns)
            return None if columns is None else replace(one, columns=columns)
        case Filter(), Filter() if one.condition == other.condition:
            inner = _wider(one.source, other.source)
            return None if inner is None else replace(one, source=inner)
        case Project(), Project() if one.unit == other.unit:
            inner, named = _wider(one.source, other.source), _union(one.columns, other.columns)
            return None if inner is None or named is None else replace(one, source=inner, columns=named)
        case Join(), Join() if (one.kind, one.pairs) == (other.kind, other.pairs):
            left, right = _wider(one.left, other.left), _wider(one.right, other.right)
            return None if left is None or right is None else replace(one, left=left, right=right)
    return None


def _union(some: Iterable[C], others: Iterable[C]) -> tuple[C, ...] | None:
    """Return the columns of either; None if a name means two things."""
    found = {column.field.name: column for column in some}
    for column in others:
        if found.setdefault(column.field.name, column) != column:
            return None
    return tuple(found.values())


def _names(source: Source) -> Iterator[str]:
    """Name every field that is made anywhere in a source."""
    match source:
        case Table():
            yield from (column.field.name for column in source.columns)
        case Filter():
            yield from _names(source.source)
        case Project():
            yield from (named.field.name for named in source.columns)
            yield from _names(source.source)
        case Join():
            yield from _names(source.left)
            yield from _names(source.right)
        case PerUnit():
            yield source.unit.name
            yield from (named.field.name for named in source.keys)
            yield from (total.field.name for total in source.totals)
            yield from _names(source.source)
        case WithinUnit():
            yield from (window.total.field.name for window in source.columns)
            yield from _names(source.source)
        case UnionAll():
            yield from (column.name for column in source.columns)
            for part in source.sources:
                yield from _names(part)


# --- shared ---
# Stages that share a scan: the engine hands over what any of them needs, once; each is bounded by itself.


T = TypeVar("T", bound=Hashable)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedScan:
    """One SELECT of the unit and of every column that some stage needs, and what each stage takes of it."""

    sql: str
    carried: tuple[BoundedColumn, ...]  # the ranges of the columns after the unit
    parts: tuple[SharedCount, ...]
    lookups: tuple[Lookup, ...]
    parameters: dict[str, str]


def write_shared(shared: Shared, relations: SqlRelations, writer: Writer) -> SharedScan:
    """Write a scan for several stages: keys, columns and conditions that they have in common are written once."""
    keys = _distinct(key for one in shared.members for key in one.stage.keys)
    columns = _distinct(_placed(column) for one in shared.members for column in one.stage.columns)
    conditions = _distinct(condition for one in shared.members for condition in one.conditions)
    listed_keys = {key: one for key in keys for one in shared.conditions if _says_listed(one, key)}
    rows = write_source(_filtered(shared, listed_keys.values()), relations, writer)
    inner = projected(keys, columns, writer.column(shared.unit), rows, writer, conditions, listed_keys)
    domains = [domain_of(key, f"k{number}", writer) for number, key in enumerate(keys, 1)]
    indices = [index_of(column, f"c{number}", writer) for number, column in enumerate(columns, 1)]
    used = [domain for domain in (*domains, *(domain for _, domain in indices)) if domain is not None]
    codes = [domain.code for domain in domains if domain is not None]
    needed = [f"{code} IS NOT NULL" for key, code in zip(keys, codes, strict=True) if key in listed_keys]
    listed = [*codes, *(index.sql for index, _ in indices), *(f"w{number}" for number, _ in enumerate(conditions, 1))]
    carried = [BoundedColumn(low=0, high=len(key.domain or ()) - 1) for key in keys]
    carried += [BoundedColumn(low=index.low, high=index.high) for index, _ in indices]
    carried += [BoundedColumn(low=0, high=0) for _ in conditions]
    places = _ScanPlaces(keys, columns, [index for index, _ in indices], conditions)
    return SharedScan(
        sql=f"SELECT {', '.join(f'{one} AS o{number}' for number, one in enumerate(['u', *listed], 1))} "
        f"FROM ({inner}){''.join(domain.join for domain in used)}{_where(shared.members, conditions, needed)}",
        carried=tuple(carried),
        parts=tuple(places.part(member) for member in shared.members),
        lookups=tuple(domain.lookup for domain in used if domain.lookup is not None),
        parameters=writer.parameters,
    )


def run_shared(
    shared: Shared, scan: SharedScan, connection: Any, deadline: Deadline, resources: EngineResources
) -> dict[int, ExactCounts]:
    """Scan once, bound each unit's share for each stage, add up by group; by the places of the stages."""
    tallies = tally_all(
        _chunks(scan, connection, deadline),
        carried=scan.carried,
        parts=scan.parts,
        memory=resources.memory,
        threads=resources.threads,
        secret=resources.secret,
    )
    return {
        member.place: ExactCounts(groups=part.groups, tally=tally, keys=known_keys(member.stage))
        for member, part, tally in zip(shared.members, scan.parts, tallies, strict=True)
    }


def _chunks(scan: SharedScan, connection: Any, deadline: Deadline) -> Iterator[RowChunk]:
    asked = connection.sql(scan.sql, params=scan.parameters) if scan.parameters else connection.sql(scan.sql)
    for batch in asked.to_arrow_reader(BATCH):
        if not deadline.left:
            raise AnswerFailed
        read = [numbers(column) for column in batch.columns[1:]]
        yield RowChunk(
            units=batch.column(0),
            measures=tuple(values for values, _ in read),
            valid=tuple(valid for _, valid in read),
        )


@final
@dataclass(frozen=True, slots=True)
class _ScanPlaces:
    """Where the columns of a shared scan are: keys first, then measured columns, then conditions."""

    keys: Sequence[StageKey]
    columns: Sequence[StageColumn]
    indices: Sequence[Index]
    conditions: Sequence[Expression]

    def part(self, member: Member) -> SharedCount:
        stage = member.stage
        keys = tuple((self.keys.index(key), len(key.domain or ())) for key in stage.keys)
        places = [self.columns.index(_placed(column)) for column in stage.columns]
        measures = [measure_of(one, self.indices[place]) for one, place in zip(stage.columns, places, strict=True)]
        before = len(self.keys) + len(self.columns)
        part = SharedCount(
            limits=ContributionBounds(max_groups=stage.max_groups, max_rows=stage.max_rows_per_group),
            keys=keys,
            needed=tuple(before + self.conditions.index(condition) for condition in member.conditions),
            measures=tuple((len(self.keys) + place, one) for place, one in zip(places, measures, strict=True)),
            family=stage.family,
        )
        return replace(part, limits=replace(part.limits, max_groups=min(stage.max_groups, part.groups)))


def _placed(column: StageColumn) -> StageColumn:
    """Return what decides the index of a column; what is wanted of it does not."""
    return StageColumn(expression=column.expression, wants=Wants(), grid=column.grid, members=column.members)


def _distinct(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))


def _where(members: Sequence[Member], conditions: Sequence[Expression], needed: Sequence[str]) -> str:
    """Leave out rows without a unit, those without a key that all need, and those that no stage counts."""
    every = ["u IS NOT NULL", *needed]
    if all(member.conditions for member in members):
        names = {condition: f"w{number} IS NOT NULL" for number, condition in enumerate(conditions, 1)}
        either = dict.fromkeys(" AND ".join(names[one] for one in member.conditions) for member in members)
        every.append(f"({' OR '.join(f'({one})' for one in either)})")
    return f" WHERE {' AND '.join(every)}"


def _says_listed(condition: Expression, key: StageKey) -> bool:
    """Whether a condition says no more than that a text is one of the values of a key, all of which are canonical.

    Then whoever looks the key up has looked at the condition: a text that is listed is canonical itself.
    """
    if not (
        isinstance(condition, Apply) and condition.operator is Operator.IN and condition.arguments[0] == key.expression
    ):
        return False
    among = {one.value for one in condition.arguments[1:] if isinstance(one, Literal)}
    texts = [text for text in key.domain or () if isinstance(text, str) and is_normalized("NFC", text)]
    return key.expression.facts.kind is Kind.TEXT and set(key.domain or ()) == among == set(texts)


def _filtered(shared: Shared, looked_at: Collection[Expression]) -> Source:
    source = shared.source
    for condition in shared.conditions:
        source = source if condition in looked_at else Filter(source, condition)
    return source
