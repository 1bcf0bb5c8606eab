"""A catalogue holds the custodian's word and schemas, nothing that was read from private rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import InvalidParameter
from discreet.query.catalogue import CatalogueColumn
from discreet.query.engine import Deadline, ExactCounts, Stage
from discreet.query.policy import Unit, public
from discreet.query.session.catalogue_builder import build_catalogue
from discreet.schema.columns import ExpressionFacts, Kind, between, boolean, categories, text

SCHEMAS = {
    "orders": {"Customer_ID": Kind.TEXT, "price": Kind.TEXT, "day": Kind.DATE, "n": Kind.INTEGER},
    "visits": {"customer_id": Kind.TEXT, "price": Kind.REAL},
    "cities": {"city": Kind.TEXT, "region": Kind.TEXT},
}
UNIT = Unit("customer_id")


@dataclass
class SchemaOnly:
    """An engine that would fail if it were asked to read rows."""

    schemas: Mapping[str, Mapping[str, Kind]] = field(default_factory=lambda: SCHEMAS)

    def infers_types(self, table: str) -> bool:
        return False

    def columns(self, table: str) -> Mapping[str, Kind]:
        return self.schemas[table]

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        assert table == "cities"
        return {
            name: CatalogueColumn(name=name, facts=ExpressionFacts(kind=kind)) for name, kind in SCHEMAS[table].items()
        }

    def public_rows(self, table: str) -> int:
        return 1

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        assert table == "cities"
        return "city" in columns

    def run(self, stage: Stage, *, deadline: Deadline) -> ExactCounts:
        raise AssertionError("rows were read")

    def close(self) -> None: ...


def built(names: str = "orders", *, columns: Any = None, unit: Unit = UNIT, engine: SchemaOnly | None = None) -> Any:
    tables = {name: public(None) if name == "cities" else None for name in names.split()}
    return build_catalogue(engine or SchemaOnly(), tables, unit=unit, columns=columns or {})


def test_declared_facts_and_schemas_make_a_catalogue():
    found = built(columns={"price": between(0, "9.5"), "N": between(1, 3, missing=1)})
    table = found.tables["orders"]
    assert table.unit == "Customer_ID"
    assert table.columns["price"].facts == ExpressionFacts(kind=Kind.REAL, low=Fraction(0), high=Fraction(19, 2))
    assert table.columns["n"].missing == 1
    assert table.columns["day"].facts == ExpressionFacts(kind=Kind.DATE)
    assert found.unit == UNIT


def test_rows_as_units_need_no_column():
    assert built(unit=Unit("row")).tables["orders"].unit is None


def test_a_declaration_for_no_table_is_for_all_that_have_the_column():
    found = built("orders visits", columns={"price": between(0, 5), "n": between(0, 1)})
    assert found.tables["orders"].columns["price"].facts == found.tables["visits"].columns["price"].facts
    assert "n" not in found.tables["visits"].columns


def test_a_declaration_for_a_table_is_for_that_table():
    found = built("orders visits", columns={"orders": {"price": between(0, 5)}})
    assert found.tables["visits"].columns["price"].facts == ExpressionFacts(kind=Kind.REAL)


def test_public_tables_are_read_and_their_unique_columns_known():
    table = built("orders cities").tables["cities"]
    assert not table.private
    assert table.unit is None
    assert frozenset(["city"]) in table.unique
    assert frozenset(["region"]) not in table.unique


@pytest.mark.parametrize(
    ("names", "columns", "unit", "words"),
    [
        ("orders", {"prise": between(0, 1)}, UNIT, "did you mean 'price'"),
        ("orders", {"orders": {"prise": between(0, 1)}}, UNIT, "did you mean 'price'"),
        ("orders", {"order": {"price": between(0, 1)}}, UNIT, "did you mean 'orders'"),
        ("orders cities", {"cities": {"city": text()}}, UNIT, "is public"),
        ("orders", {"price": (0, 1)}, UNIT, "between(low, high)"),
        ("orders", {"orders": {"price": (0, 1)}}, UNIT, "must be declared by"),
        ("orders", [1], UNIT, "dictionary"),
        ("orders", {"Customer_id": text()}, UNIT, "taken as it is"),
        ("orders", {}, Unit("nobody"), "mark the table as public"),
        ("orders", {"day": between(0, 5)}, UNIT, "cannot be declared"),
        ("orders", {"n": between(date(2020, 1, 1), date(2021, 1, 1))}, UNIT, "cannot be declared"),
        ("cities", {}, UNIT, "all tables are public"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_there_is(names, columns, unit, words):
    with pytest.raises(InvalidParameter) as refused:
        built(names, columns=columns, unit=unit)
    assert words.lower() in str(refused.value).lower()


def test_names_that_differ_in_case_only_are_refused():
    twice = SchemaOnly({"orders": {"customer_id": Kind.TEXT, "Price": Kind.REAL, "price": Kind.REAL}})
    with pytest.raises(InvalidParameter, match="rename"):
        built(engine=twice)
    with pytest.raises(InvalidParameter, match="rename"):
        build_catalogue(SchemaOnly(), {"orders": None, "Orders": None}, unit=UNIT, columns={})


def test_one_unit_is_of_one_kind_in_all_tables():
    mixed = SchemaOnly({"orders": {"customer_id": Kind.TEXT}, "visits": {"customer_id": Kind.INTEGER}})
    with pytest.raises(InvalidParameter, match="different kinds"):
        built("orders visits", engine=mixed)


def test_texts_can_be_read_as_anything_that_is_declared():
    columns = {"price": boolean(), "n": categories(["1", "2"])}
    assert built(columns=columns).tables["orders"].columns["n"].facts.kind is Kind.TEXT
