"""Made-up rows come from public facts alone."""

from __future__ import annotations

from datetime import date, datetime

from engine_trees import column, plain, run, stage, table

from discreet.query.ast import Field
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.engines.made_up_rows import dummy_engine
from discreet.query.policy import Unit
from discreet.schema.columns import between, boolean, categories, text

DECLARED = {
    "who": text(),
    "age": between(18, 99),
    "income": between(0.0, 1000.0),
    "city": categories(["x", "y"]),
    "grade": categories([1, 3, 7]),
    "open": boolean(),
    "note": text(),
    "born": between(date(1990, 1, 1), date(2000, 1, 1)),
    "seen": between(datetime(2020, 1, 1), datetime(2021, 1, 1)),
}
COLUMNS = {name: CatalogueColumn(name=name, facts=declared.facts) for name, declared in DECLARED.items()}
CATALOGUE = Catalogue(
    tables={
        "people": CatalogueTable(name="people", private=True, columns=COLUMNS, unit="who"),
        "list": CatalogueTable(name="list", private=False, columns=COLUMNS),
    },
    unit=Unit("who", 2, 2),
)


def test_made_up_tables_have_the_kinds_and_bounds_of_the_catalogue() -> None:
    engine = dummy_engine(CATALOGUE, rows=500)
    for name in ("people", "list"):
        assert engine.columns(name) == {name: declared.facts.kind for name, declared in DECLARED.items()}
    for name, made in engine.public_columns("list").items():
        declared = DECLARED[name].facts
        if declared.low is not None and made.facts.low is not None:
            assert declared.low <= made.facts.low <= made.facts.high <= declared.high
        if declared.members is not None:
            assert set(made.facts.members or ()) <= set(declared.members)
    engine.close()


def test_made_up_rows_are_fresh_and_answer_questions() -> None:
    fields = {name: Field(name, one.facts) for name, one in COLUMNS.items()}
    asked = stage(
        table("people", *fields.values(), unit="who"),
        unit="who",
        keys=[(fields["city"], ("x", "y"))],
        columns=[column(fields["age"], 18, 99, total=True)],
        max_groups=2,
        max_rows=100,
    )
    first, second = (plain(run(dummy_engine(CATALOGUE), asked)) for _ in range(2))
    assert sum(group["rows"] for group in first.values()) == 1000
    assert first != second
