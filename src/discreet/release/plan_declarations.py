"""What a plan declares, as a catalogue: private files are never opened, so a plan is priced where there are no data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.column_types import Kind
from discreet.query.policy import PublicTable, between, public
from discreet.query.session.catalogue_builder import build_catalogue
from discreet.release.period import Period
from discreet.release.plan import ReleasePlan
from discreet.schema.toml_lines import Place, line_of, parse

if TYPE_CHECKING:
    from discreet.query.engine import Engine
    from discreet.query.session.policy_file import Policy

__all__ = ["catalogue_in", "catalogue_of", "located", "place_of", "told_at"]


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


# --- places: Where a plan file says something, so that what is found wrong later still names the line. ---


def place_of(plan: ReleasePlan, table: str, *words: str) -> Place:
    """Return where a published table is said, down to the first of the words that is there; () if it is not."""
    said = next((one for one in plan.tables if one.name == table), None)
    name = table if said is None or said.family is None else said.family
    for part in ("publish", "running"):
        for index, entry in enumerate(_document(plan).get(part, ())):
            if entry.get("name") == name:
                word = next((word for word in words if word in entry), None)
                return (part, index) if word is None else (part, index, word)
    return ()


def told_at(plan: ReleasePlan, place: Place, text: str, *, below: int = 0) -> str:
    """Say something of a place; `below` is how many lines further down it stands, in a text of many lines."""
    if not plan.written:
        return text
    where = ".".join(map(str, place)) or "the file"
    line = line_of(plan.written, place) + below
    return f"{plan.file or 'plan'}, line {line}, {where}: {text}"


def located(plan: ReleasePlan, place: Place, error: InvalidParameter | Refused) -> InvalidParameter | Refused:
    """Return the same error with its place in the plan file."""
    if isinstance(error, InvalidParameter):
        return InvalidParameter(told_at(plan, place, str(error)))
    below = 0 if error.line is None else _first_line(plan, place) + error.line - 1
    return Refused(
        told_at(plan, place, error.problem, below=below),
        reason=error.reason,
        way_out=error.way_out,
        line=error.line,
        column=error.column,
        excerpt=error.excerpt,
        caret=error.caret,
    )


def _first_line(plan: ReleasePlan, place: Place) -> int:
    """Return how many lines below its name a text begins: one if it begins on a line of its own."""
    if not plan.written:
        return 0
    line = plan.written.splitlines()[line_of(plan.written, place) - 1]
    return 1 if line.rstrip().endswith(('"""', "'''")) else 0


def _document(plan: ReleasePlan) -> dict[str, Sequence[dict[str, object]]]:
    try:
        return parse(plan.written)
    except tomllib.TOMLDecodeError:
        return {}
