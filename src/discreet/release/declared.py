"""What a plan declares, as a catalogue: private files are never opened, so a plan is priced where there are no data."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.facts import Kind
from discreet.query.policy import PublicTable, between, public
from discreet.query.session.catalogue_building import build_catalogue
from discreet.release.period import Period
from discreet.release.plan import ReleasePlan

if TYPE_CHECKING:
    from discreet.query.engine import Engine
    from discreet.query.session.policy_file import Policy

__all__ = ["catalogue_in", "catalogue_of"]


def catalogue_of(plan: ReleasePlan, tables: Mapping[str, Any] | None = None) -> Catalogue:
    """Describe the tables of a plan from what it declares. Public tables are read, from their source or as handed over.

    A private table has the columns that are declared, and the one that tells units apart, which is taken for text.
    """
    policy, given = plan.policy, dict(tables or {})
    sources = {name: _source(policy, name, given) for name in policy.tables}
    with ExitStack() as opened:
        schemas = _Declared(policy, _public_engine(sources, opened))
        columns = {name: table.columns for name, table in policy.tables.items()}
        return build_catalogue(schemas, sources, unit=policy.unit, columns=columns)


def catalogue_in(catalogue: Catalogue, plan: ReleasePlan, period: Period) -> Catalogue:
    """Narrow the column of the schedule to a period. It is for made-up rows: real ones would be clamped into it."""
    column = (plan.schedule.column or "").casefold()
    if not column or period.first is None or period.end is None:
        return catalogue
    bounds = {
        Kind.DATE: between(period.first, period.end - timedelta(days=1)),
        Kind.TIMESTAMP: between(_moment(period.first), _moment(period.end) - timedelta(microseconds=1)),
    }

    def narrowed(table: CatalogueTable) -> CatalogueTable:
        columns = {
            name: replace(one, facts=bounds[one.facts.kind].facts) if name.casefold() == column else one
            for name, one in table.columns.items()
        }
        return replace(table, columns=columns) if table.private else table

    return replace(catalogue, tables={name: narrowed(table) for name, table in catalogue.tables.items()})


def _moment(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _source(policy: Policy, name: str, given: Mapping[str, Any]) -> Any:
    """Return a public table; of a private one nothing is needed but that it is one."""
    if not policy.tables[name].public:
        return None
    source = given.get(name, policy.tables[name].source)
    if source is None:
        raise InvalidParameter(f"public table {name!r} has no source in the plan: name one, or hand it over in tables=")
    return public(source)


def _public_engine(sources: Mapping[str, Any], opened: ExitStack) -> Engine | None:
    known = {name: table for name, table in sources.items() if isinstance(table, PublicTable)}
    if not known:
        return None
    from discreet.query.engines import DuckDBEngine

    engine = DuckDBEngine(known)
    opened.callback(engine.close)
    return engine


@final
class _Declared:
    """Schemas of private tables as they are declared, and of public ones as they are."""

    def __init__(self, policy: Policy, engine: Engine | None) -> None:
        self._policy, self._engine = policy, engine

    def columns(self, table: str) -> Mapping[str, Kind]:
        unit, declared = self._policy.unit, self._policy.tables[table].columns
        kinds = {name: column.facts.kind for name, column in declared.items()}
        if not kinds and unit.is_row:
            raise InvalidParameter(
                f"nothing is declared of table {table!r}: declare the columns that questions name, such as "
                'age = { low = 0, high = 120 } or note = { kind = "text" }'
            )
        return kinds if unit.is_row else {unit.column: Kind.TEXT} | kinds

    def infers_types(self, table: str) -> bool:
        return False

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        return self._public.public_columns(table)

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        return self._public.public_is_unique(table, columns)

    def public_size(self, table: str) -> int:
        return self._public.public_size(table)

    @property
    def _public(self) -> Engine:
        assert self._engine is not None
        return self._engine
