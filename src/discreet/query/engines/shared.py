"""Stages that share a scan: the engine hands over what any of them needs, once; each is bounded by itself."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, final
from unicodedata import is_normalized

from discreet.errors import AnswerFailed
from discreet.query.bounding import BoundedColumn, ContributionBounds, RowChunk, SharedCount, tally_all
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.bounded import BATCH, EngineResources, known_keys, measure_of, numbers
from discreet.query.engines.domains import Lookup
from discreet.query.engines.sharing import Member, Shared
from discreet.query.engines.sources import SqlRelations, write_source
from discreet.query.engines.stages import Index, domain_of, index_of, projected
from discreet.query.engines.writing import Writer
from discreet.query.expressions import Apply, Expression, Literal
from discreet.query.facts import Kind
from discreet.query.operators import Operator
from discreet.query.sources import Filter, Source
from discreet.query.stage import StageColumn, StageKey, Wants

__all__ = ["SharedScan", "run_shared", "write_shared"]

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
