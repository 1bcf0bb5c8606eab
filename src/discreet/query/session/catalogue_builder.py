"""What a question may name, put together from the custodian's word and from schemas; rows are never looked at."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import AnswerFailed, InvalidParameter
from discreet.formatting import labelled, plain
from discreet.names import check_name, check_path, escaped
from discreet.pages.kit import Described, DescribedTable
from discreet.query.ast import UnitKey
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.plan.measurements import plain_value
from discreet.query.policy import Chain, PublicTable, Unit, clock_changes
from discreet.query.sources.known_sources import identity_of
from discreet.schema.columns import Declared, ExpressionFacts, Kind, declaration_of
from discreet.schema.csv_file import CsvFile

__all__ = [
    "Columns",
    "Schemas",
    "build_catalogue",
    "check_apart",
    "describe_catalogue",
    "named_tables",
    "nearest",
    "written_in",
]

_EXACT = 1 << 53  # Whole numbers up to here are doubles.
_FEW = 8  # Columns of a public table whose pairs are looked at.
Columns = Mapping[str, Declared] | Mapping[str, Mapping[str, Declared]]


class Schemas(Protocol):
    """What an engine tells of tables without looking at private rows."""

    def columns(self, table: str) -> Mapping[str, Kind]: ...

    def infers_types(self, table: str) -> bool: ...

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]: ...

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool: ...

    def public_rows(self, table: str) -> int: ...


def build_catalogue(
    engine: Schemas, tables: Mapping[str, Any], *, unit: Unit, columns: Columns, chain: Chain | None = None
) -> Catalogue:
    """Describe all tables of a session. Public ones are read; of private ones only names and types are asked for.

    Of a chain, `unit` is the inner unit: who is outside follows from it.
    """
    _check_distinct(tables, what="tables")
    private = {name: engine.columns(name) for name, table in tables.items() if not isinstance(table, PublicTable)}
    if not private:
        raise InvalidParameter("all tables are public: a session needs one that is not")
    declared = _per_table(columns, private, list(tables))
    described = {
        name: _private_table(name, schema, declared[name], unit, tables[name], inferred=engine.infers_types(name))
        for name, schema in private.items()
    }
    if chain is not None:
        _check_alike(private, chain)
        described = {name: _within_outer(table, chain) for name, table in described.items()}
    public = {name: _public_table(engine, name) for name in tables if name not in private}
    _check_one_kind_of_unit(described.values(), private)
    if any(engine.infers_types(name) for name in private):
        described = {name: _without_kind_of_unit(table) for name, table in described.items()}
    return Catalogue(tables={name: (described | public)[name] for name in tables}, unit=unit, chain=chain)


def _check_distinct(names: Iterable[str], *, what: str) -> None:
    """SQL does not tell upper from lower case in names, so we cannot have two that differ in nothing else."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidParameter(f"names of {what} must be texts")
        if name.casefold() in seen:
            raise InvalidParameter(f"two {what} are called {name!r} up to upper and lower case: rename one of them")
        seen.add(name.casefold())


def _per_table(
    columns: Columns, private: Mapping[str, Mapping[str, Kind]], tables: list[str]
) -> Mapping[str, Mapping[str, Declared]]:
    """Return the declarations of each private table; those given for no table are for every one that has the column."""
    if not isinstance(columns, Mapping):
        raise InvalidParameter("columns must be a dictionary from names to declarations such as between(0, 100)")
    if all(isinstance(declared, Mapping) for declared in columns.values()) and columns:
        return _checked_tables(columns, private, tables)  # type: ignore[arg-type]
    for name, declared in columns.items():
        if declaration_of(declared) is None:
            raise InvalidParameter(
                f"column {name!r} must be declared by between(low, high), categories([…]), boolean() or text()"
            )
        if not any(_same(name, column) for schema in private.values() for column in schema):
            known = sorted({column for schema in private.values() for column in schema})
            raise InvalidParameter(f"no private table has a column {name!r}. {nearest(name, known)}")
    return {table: _those_in(schema, columns) for table, schema in private.items()}  # type: ignore[arg-type]


def _checked_tables(
    columns: Mapping[str, Mapping[str, Declared]], private: Mapping[str, Mapping[str, Kind]], tables: list[str]
) -> Mapping[str, Mapping[str, Declared]]:
    by_name = {table.casefold(): table for table in private}
    found: dict[str, Mapping[str, Declared]] = {table: {} for table in private}
    _check_distinct(columns, what="tables with declared columns")
    public = {table.casefold() for table in tables} - by_name.keys()
    for name, declared in columns.items():
        if name.casefold() in public:
            if declared:
                raise InvalidParameter(f"table {name!r} is public: its columns are read, not declared")
            continue
        if name.casefold() not in by_name:
            raise InvalidParameter(f"there is no table {name!r}. {nearest(name, tables)}")
        found[by_name[name.casefold()]] = declared
    return found


def _those_in(schema: Mapping[str, Kind], columns: Mapping[str, Declared]) -> Mapping[str, Declared]:
    return {name: declared for name, declared in columns.items() if any(_same(name, column) for column in schema)}


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def nearest(name: str, known: Iterable[str]) -> str:
    """Say what there is, and what may have been meant."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"{f'Did you mean {near[0]!r}? ' if near else ''}There are: {', '.join(names)}"


def _private_table(
    name: str, schema: Mapping[str, Kind], declared: Mapping[str, Declared], unit: Unit, table: Any, *, inferred: bool
) -> CatalogueTable:
    _check_distinct(schema, what=f"columns of table {name!r}")
    _check_distinct(declared, what=f"declared columns of table {name!r}")
    if not schema:
        raise InvalidParameter(f"table {name!r} has no column of a kind that can be asked")
    owner = None if unit.is_row or unit.is_composed else _unit_column(name, schema, declared, unit)
    if inferred and owner is not None:
        _check_unit_of_frame(name, owner, schema[owner])
    said = {column.casefold(): (column, declaration) for column, declaration in declared.items()}
    columns = {}
    for column, kind in schema.items():
        _, declaration = said.pop(column.casefold(), (column, None))
        if isinstance(table, CsvFile) and column != owner:
            declaration = written_in(table, column, declaration)
        columns[column] = _column(name, column, kind, declaration, inferred=inferred)
    _check_of_unit(name, columns.values(), unit)
    if said:
        missing = next(iter(said.values()))[0]
        raise InvalidParameter(f"table {name!r} has no column {missing!r}. {nearest(missing, schema)}")
    file = table if isinstance(table, CsvFile) else None
    made = CatalogueTable(name=name, private=True, columns=columns, unit=owner, csv=file)
    return _with_composed_unit(made, schema, unit, inferred=inferred) if unit.is_composed else made


def written_in(file: CsvFile, column: str, said: Declared | None) -> Declared | None:
    """Return the declaration of a column with the format that its file declares, unless it says its own."""
    declared = declaration_of(said)
    if declared is None:
        return (
            Declared(facts=ExpressionFacts(kind=Kind.DATE), format=file.date_format(column))
            if (said is None and file.is_date(column))
            else said
        )
    kind, members = declared.facts.kind, declared.facts.members
    if declared.format is not None or members is not None or not (kind.is_time or kind.is_number):
        return declared
    return replace(declared, format=file.date_format(column) if kind.is_time else file.number_format)


def _with_composed_unit(
    table: CatalogueTable, schema: Mapping[str, Kind], unit: Unit, *, inferred: bool
) -> CatalogueTable:
    """Add the column that a unit of several columns, or of a window, has in queries."""
    if any(_same(column, unit.called) for column in schema):
        raise InvalidParameter(
            f"table {table.name!r} has a column {unit.called!r}, and that is what queries call a unit of several "
            "columns or of a window: rename the column"
        )
    columns = tuple(_unit_part(table.name, schema, column, inferred=inferred) for column in unit.columns)
    time = None if unit.time is None else _unit_time(table, unit, unit.time)
    key = UnitKey(
        columns=columns,
        window=unit.window,
        time=None if time is None else time.name,
        kind=None if time is None else time.facts.kind,
        format=None if time is None else time.format,
        zone=None if unit.zone == "UTC" else clock_changes(unit.zone),
    )
    own = CatalogueColumn(name=unit.called, facts=ExpressionFacts(kind=Kind.IDENTITY), unit_key=key)
    return replace(table, columns=dict(table.columns) | {unit.called: own}, unit=unit.called)


def _check_alike(private: Mapping[str, Mapping[str, Kind]], chain: Chain) -> None:
    """Refuse columns of a chain that one table stores as numbers and another as texts: pairs are compared as stored."""
    for column in chain.columns:
        kinds = {schema[_found_column(name, schema, column)].value for name, schema in private.items()}
        if len(kinds) > 1:
            raise InvalidParameter(
                f"column {column!r} tells units of a chain apart, and is stored as {' and as '.join(sorted(kinds))} in "
                "different tables: store it alike in all of them"
            )


def _within_outer(table: CatalogueTable, chain: Chain) -> CatalogueTable:
    """Have the unit of a chain tell the outer unit apart by its first columns."""
    own = table.columns[chain.inner.called]
    assert own.unit_key is not None
    by_name = {column.casefold(): column for column in own.unit_key.columns}
    ordered = tuple(by_name[column.casefold()] for column in chain.columns)
    key = replace(own.unit_key, columns=ordered, outer=len(chain.outer.columns))
    return replace(table, columns=dict(table.columns) | {own.name: replace(own, unit_key=key)})


def _unit_part(table: str, schema: Mapping[str, Kind], wanted: str, *, inferred: bool) -> str:
    found = _found_column(table, schema, wanted)
    if inferred:
        _check_unit_of_frame(table, found, schema[found])
    if schema[found] not in (Kind.INTEGER, Kind.TEXT):
        raise InvalidParameter(
            f"column {found!r} of table {table!r} is stored as {schema[found].value}: the columns of a unit must be "
            "whole numbers or texts, so that equal ones are surely equal"
        )
    return found


def _unit_time(table: CatalogueTable, unit: Unit, wanted: str) -> CatalogueColumn:
    """Find the column with the time of the window; its type or its declaration says that it is a time."""
    if not any(_same(column, wanted) for column in table.columns):
        raise InvalidParameter(
            f"table {table.name!r} has no column {wanted!r}, which time= names: it tells in which {unit.window} a row "
            f"is. There are: {', '.join(map(escaped, table.columns))}"
        )
    found = table.columns[_found_column(table.name, table.columns, wanted)]
    is_moment = unit.window == "hour" or unit.zone != "UTC"  # A date is a day, of no zone.
    if not found.facts.kind.is_time or (is_moment and found.facts.kind is not Kind.TIMESTAMP):
        needed = "a timestamp" if is_moment else "a date or timestamp"
        raise InvalidParameter(
            f"column {found.name!r} of table {table.name!r} tells the window of the unit and must be {needed}: store "
            "it as one, or declare it with dp.between(first, last)"
        )
    return found


def _found_column(table: str, columns: Iterable[str], wanted: str) -> str:
    found = next((column for column in columns if _same(column, wanted)), None)
    if found is None:
        raise InvalidParameter(
            f"table {table!r} has no column {wanted!r}, so it is not known whose rows these are. Add the column, "
            f"or mark the table as public(…) if nobody in it needs protection. There are: {', '.join(columns)}"
        )
    return found


def _check_of_unit(table: str, columns: Iterable[CatalogueColumn], unit: Unit) -> None:
    """Refuse columns with one value for each unit where a row is one, and those that tell units or windows apart."""
    for column in columns:
        if column.of_unit and unit.is_row:
            raise InvalidParameter(
                f"column {column.name!r} of table {table!r} is declared with of_unit=True, and each row is a unit of "
                "its own: leave it out, or name the column that tells people apart as the unit"
            )
        if column.of_unit and any(_same(column.name, part) for part in unit.parts):
            raise InvalidParameter(
                f"column {column.name!r} of table {table!r} tells units apart, so it is taken as it is: leave "
                "of_unit out"
            )


def _unit_column(table: str, schema: Mapping[str, Kind], declared: Mapping[str, Declared], unit: Unit) -> str:
    """Find the column that identifies the unit. It is taken as it is: what merges two units would hide neither."""
    found = _found_column(table, schema, unit.called)
    if any(_same(column, unit.called) for column in declared):
        raise InvalidParameter(f"{unit.called!r} tells units apart and is taken as it is: leave it out of columns")
    return found


def _check_unit_of_frame(table: str, column: str, stored: Kind) -> None:
    """Refuse real numbers: pandas makes them of whole ones if one is missing, and then several people may be one."""
    if stored is Kind.REAL:
        raise InvalidParameter(
            f"column {column!r} of table {table!r} tells units apart and is stored as real numbers in a pandas frame, "
            "which makes them of whole ones if one is missing: beyond 2^53 several would be one. Have it read as "
            f'"Int64" or text (frame.astype({{"{column}": "Int64"}}) if all are small), or hand over Arrow or polars'
        )


def _column(table: str, name: str, kind: Kind, declaration: Declared | None, *, inferred: bool) -> CatalogueColumn:
    """Describe a column. A type that was inferred from rows tells about them, and is not told."""
    stored = None if inferred else kind
    if declaration is None:
        return CatalogueColumn(name=name, facts=ExpressionFacts(kind=stored or Kind.UNDECLARED), stored=stored)
    declaration = declaration_of(declaration)
    if declaration is None:
        raise InvalidParameter(f"column {name!r} of table {table!r} must be declared by between, categories and so on")
    if not _can_become(kind, declaration.facts.kind):
        raise InvalidParameter(
            f"column {name!r} of table {table!r} is stored as {kind.value} and cannot be declared as "
            f"{declaration.facts.kind.value}"
        )
    if inferred:
        _check_inferred(table, name, kind, declaration.stored_as(stored))
    if declaration.format is not None and kind is not Kind.TEXT:
        raise InvalidParameter(
            f"column {name!r} of table {table!r} is stored as {kind.value}: leave format out, which is for texts"
        )
    return CatalogueColumn(
        name=name,
        facts=declaration.stored_as(stored),
        missing=declaration.missing,
        format=declaration.format,
        labels=declaration.labels,
        of_unit=declaration.of_unit,
        stored=stored,
    )


def _check_inferred(table: str, name: str, stored: Kind, declared: ExpressionFacts) -> None:
    """Refuse what would read all values of a frame in another way if one of them changed the type of their column.

    A number that is missing makes real numbers of whole ones, whose texts are others (1.0 for 1) and which are rounded
    beyond 2^53; a text makes texts of all. A number is read alike from all of these, and so is a truth value or a time
    from texts and from its own type; nothing else is.
    """
    number = "a number" if stored.is_number else stored.value
    if stored is not Kind.TEXT and _family(stored) is not _family(declared.kind):
        raise InvalidParameter(
            f"column {name!r} of table {table!r} is stored as {number} in a pandas frame and cannot be declared as "
            f"{declared.kind.value}: one missing value would change how all others are read. Declare it as what it is, "
            f'convert it before (as in frame.astype({{"{name}": "string"}})), or hand the table over as Arrow or polars'
        )
    ends = [abs(end) for end in (declared.low, declared.high) if end is not None]
    if declared.kind is Kind.INTEGER and max(ends, default=0) > _EXACT:
        raise InvalidParameter(
            f"column {name!r} of table {table!r}: whole numbers beyond 2^53 are rounded in a pandas frame as soon as "
            "one is missing. Hand the table over as Arrow or polars, whose types are declared"
        )


def _family(kind: Kind) -> Kind:
    """Return the one of several kinds that stands for all whose values are read alike."""
    if kind.is_number:
        return Kind.REAL
    return Kind.TIMESTAMP if kind.is_time else kind


def _can_become(stored: Kind, declared: Kind) -> bool:
    """Whether values of a stored type can be read as a declared kind. Texts can be read as anything."""
    if stored is declared or Kind.TEXT in (stored, declared):
        return True
    if declared.is_time or stored.is_time:
        return declared.is_time and stored.is_time
    return True


def _public_table(engine: Schemas, name: str) -> CatalogueTable:
    try:
        columns = engine.public_columns(name)
        unique = frozenset(_unique_sets(engine, name, list(columns)))
        rows = engine.public_rows(name)
    except AnswerFailed:
        raise InvalidParameter(f"public table {name!r} could not be read: check the file and its format") from None
    _check_distinct(columns, what=f"columns of table {name!r}")
    return CatalogueTable(name=name, private=False, columns=columns, unique=unique, rows=rows)


def _unique_sets(engine: Schemas, table: str, columns: list[str]) -> Iterator[frozenset[str]]:
    """Find single columns without duplicates and, where it takes few looks, pairs of the others."""
    single = {column for column in columns if engine.public_is_unique(table, frozenset([column]))}
    yield from (frozenset([column]) for column in single)
    others = [column for column in columns if column not in single]
    if len(others) <= _FEW:
        pairs = (frozenset(pair) for pair in combinations(others, 2))
        yield from (pair for pair in pairs if engine.public_is_unique(table, pair))


def _check_one_kind_of_unit(tables: Iterable[CatalogueTable], schemas: Mapping[str, Mapping[str, Kind]]) -> None:
    """One unit has one identity in all tables: 7 in one and '7' in another would be two people to us."""
    kinds = dict(_unit_kinds(tables, schemas))
    if len(set(kinds.values())) > 1:
        found = ", ".join(f"{table}: {' and '.join(kind.value for kind in each)}" for table, each in kinds.items())
        raise InvalidParameter(
            f"the unit column is of different kinds ({found}), so one person would not be recognised in all tables: "
            "store it in one type (columns of CSV files are text)"
        )


def _without_kind_of_unit(table: CatalogueTable) -> CatalogueTable:
    """Keep the kind of the unit to ourselves: it is one in all tables, and one of them was inferred from rows."""
    if table.unit is None:
        return table
    own = replace(table.columns[table.unit], facts=ExpressionFacts(kind=Kind.IDENTITY), stored=None)
    return replace(table, columns=dict(table.columns) | {table.unit: own})


def _unit_kinds(
    tables: Iterable[CatalogueTable], schemas: Mapping[str, Mapping[str, Kind]]
) -> Iterator[tuple[str, tuple[Kind, ...]]]:
    for table in tables:
        if table.unit is not None:
            key = table.columns[table.unit].unit_key
            columns = [table.unit] if key is None else key.columns
            yield table.name, tuple(schemas[table.name][column] for column in columns)


# --- describing: What an analyst may know before asking: tables, columns and what is publicly known of them. ---


_SHOWN = 8  # Categories that are written out.


_HEADS = ("column", "type", "publicly known")


def describe_catalogue(catalogue: Catalogue) -> Described:
    """Write a line for each column of each table."""
    tables = [_table(table, catalogue) for table in catalogue.tables.values()]
    return Described("\n".join(line for table in tables for line in _lines(table)), tables)


def _lines(table: DescribedTable) -> Iterator[str]:
    yield table.title
    width = max((len(name) for name, *_ in table.rows), default=0)
    yield from (f"  {name:<{width}}  {', '.join(filter(None, known))}" for name, *known in table.rows)


def _table(table: CatalogueTable, catalogue: Catalogue) -> DescribedTable:
    unit = catalogue.unit
    limits = f"in at most {_some(unit.max_groups, 'group')}, with {_some(unit.max_rows_per_group, 'row')} in each"
    named = (
        table.unit or "" if unit.name is None and unit.window is None else f"{unit.noun} ({table.unit}{_zone(unit)})"
    )
    whom = "each row is protected" if table.unit is None else f"each {escaped(named)} is protected, counted {limits}"
    if unit.is_exchanged:
        whom = f"{whom}; replace-one, of {unit.known}"
    rows = ((escaped(name), column.facts.kind.value, _known(column)) for name, column in table.columns.items())
    return DescribedTable(f"{table.name}: {whom if table.private else 'public'}", _HEADS, tuple(rows))


def _zone(unit: Unit) -> str:
    return "" if unit.window is None else f"; windows of {unit.time} in {unit.zone}"


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _known(column: CatalogueColumn) -> str:
    parts = [*_bounds(column.facts), *_members(column)]
    if column.format is not None:
        parts.append(f"written as {column.format}")
    if column.missing is not None:
        parts.append(f"{plain(column.missing)} where it is missing")
    if column.of_unit:
        parts.append("one for each unit, the least of its rows")
    return ", ".join(parts)


def _bounds(facts: ExpressionFacts) -> Iterator[str]:
    if facts.members is None and facts.low is not None and facts.high is not None:
        step = "" if facts.step is None else f" in steps of {plain(facts.step)}"
        yield f"{_end(facts.low, facts.kind)} … {_end(facts.high, facts.kind)}{step}"


def _end(value: Fraction, kind: Kind) -> str:
    return str(plain_value(value, kind)) if kind.is_time else plain(value)


def _members(column: CatalogueColumn) -> Iterator[str]:
    facts, labels = column.facts, dict(column.labels)
    if facts.members is not None and facts.kind is not Kind.BOOLEAN:
        more = len(facts.members) - _SHOWN
        shown = ", ".join(escaped(labelled(member, labels)) for member in facts.members[:_SHOWN])
        yield f"one of {shown}" + (f" and {more:,} more" if more > 0 else "")


# --- tables: The tables of a session under their names. ---


_ONLY = "data"  # What a single table is called if neither it nor its data set has a name that can stand in SQL.

_DATABASES = (".duckdb", ".ddb", ".db")


def named_tables(tables: Any, *, dataset: str) -> dict[str, Any]:
    """Return tables by name: as they are named, a file by its own name, any other single table by the data set's."""
    if isinstance(tables, Mapping):
        if not tables:
            raise InvalidParameter("a session needs at least one table")
        return {check_name(name, name="the name of a table"): table for name, table in tables.items()}
    if isinstance(tables, PublicTable):
        raise InvalidParameter("all tables are public: a session needs one that is not")
    if isinstance(tables, CsvFile):
        return {_plain_name(check_path(tables.path, name="a table").name.split(".")[0], dataset): tables}
    if isinstance(tables, (str, Path)):
        if check_path(tables, name="a table").suffix.lower() in _DATABASES:
            raise InvalidParameter('name the tables of a database: {"orders": "shop.duckdb", "people": "shop.duckdb"}')
        return {_plain_name(Path(tables).stem, dataset): tables}
    return {_plain_name(dataset): tables}


def _plain_name(*names: str) -> str:
    """Return the first name that stands in SQL without quotes."""
    return next((name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name)), _ONLY)


def check_apart(tables: Mapping[str, Any], *, rows: bool) -> None:
    """Refuse a table that is both private and public, or that is there twice where rows are the units.

    Nobody's rows are protected and known to everybody at once; and a row that is there twice counts twice.
    """
    public = {_identity(name, table.table) for name, table in tables.items() if isinstance(table, PublicTable)}
    private = [_identity(name, table) for name, table in tables.items() if not isinstance(table, PublicTable)]
    if not public.isdisjoint(private):
        raise InvalidParameter("a table is private under one name and public under another: hand it over once")
    if rows and len(set(private)) != len(private):
        raise InvalidParameter("a table is there under two names, and rows are the units: hand it over once")


def _identity(name: str, table: Any) -> Hashable:
    """Return what two names have in common if they mean the same table; a database holds one for each name."""
    source = identity_of(name, table)
    if source is not None:
        return source
    if isinstance(table, CsvFile):
        table = table.path
    if isinstance(table, (str, Path)):
        path = check_path(table, name=f"table {name!r}").resolve()
        return (path, name.casefold()) if path.suffix.lower() in _DATABASES else path
    return (id(table), name.casefold()) if type(table).__name__ == "DuckDBPyConnection" else id(table)
