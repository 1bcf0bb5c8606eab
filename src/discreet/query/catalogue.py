"""What a question may name: tables, their columns and what is publicly known of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from discreet.formatting import record
from discreet.names import escaped
from discreet.query.ast import UnitKey
from discreet.query.policy import Chain, Unit
from discreet.schema.columns import ExpressionFacts, Kind
from discreet.schema.csv_file import CsvFile

__all__ = ["Catalogue", "CatalogueColumn", "CatalogueTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueColumn:
    """A column: its facts are declared, or follow from its type alone; those of a public table are read from it."""

    name: str  # as in the data
    facts: ExpressionFacts
    missing: Fraction | None = None
    format: str | None = None  # of dates, timestamps and numbers in texts
    labels: tuple[tuple[Hashable, str], ...] = ()  # what values mean, for those who read answers
    unit_key: UnitKey | None = None  # of a unit that is made of several columns
    of_unit: bool = False  # whether every row has the least value of all rows of its unit in the table
    stored: Kind | None = None  # of a private table: the kind of the type that it is stored in, where that is declared

    __repr__ = record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueTable:
    """A table. Names are matched without regard to case, as in SQL; two that differ in case only never get here."""

    name: str
    private: bool
    columns: Mapping[str, CatalogueColumn]
    unit: str | None = None  # the column that identifies the unit; None if public, or if rows are units
    unique: frozenset[frozenset[str]] = frozenset()  # of a public table: sets of columns that have no duplicates
    rows: int = 1  # of a public table: how many it has
    csv: CsvFile | None = None  # how its file is written, where that is declared

    def __repr__(self) -> str:
        kinds = ", ".join(f"{escaped(one.name)} {one.facts.kind.value}" for one in self.columns.values())
        return f"{escaped(self.name)}{'' if self.private else ', public'}: {kinds}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All tables of a session, and whom it protects."""

    tables: Mapping[str, CatalogueTable]
    unit: Unit  # of a chain: the inner one
    chain: Chain | None = None
    keys: Mapping[str, tuple[object, ...]] = field(default_factory=dict)  # found by `private_keys`, by column

    def __repr__(self) -> str:
        return f"Catalogue({'; '.join(map(repr, self.tables.values()))}; unit {escaped(self.unit.noun)})"
