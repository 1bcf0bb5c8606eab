"""What every engine must do, whatever it is: subclasses say how to make one. [no database is named here]"""

from __future__ import annotations

import unicodedata
from typing import Any

import pyarrow as pa
import pytest
from engine_specials import BOUNDED, FIELDS, ROW, as_read, cases, rows
from engine_trees import computed, table

from discreet.query.engine import Engine
from discreet.query.expressions import Apply, Expression, walk
from discreet.query.facts import Kind
from discreet.query.operators import Operator
from discreet.query.reading.evaluation import evaluate

_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


def special_table() -> pa.Table:
    """Return all rows of specials as a table."""
    made = rows()
    fields = {**FIELDS, **BOUNDED}
    columns = {name: pa.array([row[name] for row in made], _ARROW[one.facts.kind]) for name, one in fields.items()}
    return pa.table({"row": pa.array(range(len(made)), pa.int64()), **columns})


SOURCE = table("special", ROW, *FIELDS.values(), *BOUNDED.values(), unit="row")


class EngineContract:
    """The laws of all engines."""

    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> Engine:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def special(cls) -> Any:
        engine = cls.make({"special": special_table()})
        yield engine
        engine.close()

    def test_every_operator_has_an_expression(self) -> None:
        used = {node.operator for case in cases() for node in walk(case) if isinstance(node, Apply)}
        assert used == set(Operator)

    @pytest.mark.parametrize("start", range(0, len(cases()), 12))
    def test_expressions_agree_with_their_meaning(self, special: Engine, start: int) -> None:
        some = cases()[start : start + 12]
        found = computed(special, SOURCE, ROW, some)
        for number, row in enumerate(rows()):
            read = as_read(row)
            for case, value in zip(some, found[number], strict=True):
                assert _same(value, meaning(case, read)), (case, read)


def meaning(case: Expression, row: dict[str, Any]) -> Any:
    """Return what an expression is as a key: a number that does not fit 64 bits is NULL, texts are in normal form."""
    value = evaluate(case, row)
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if case.facts.kind is Kind.INTEGER and value is not None and not -(2**63) <= value < 2**63:
        return None
    return value


def _same(found: Any, meant: Any) -> bool:
    if isinstance(meant, float) and isinstance(found, float):
        return found == meant
    return type(found) is type(meant) and bool(found == meant)
