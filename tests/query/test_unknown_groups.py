"""A key that one unit alone has is shown with probability delta at most, and nothing else tells of it."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.balls import bounds, precision
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.parse.select import read
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.release_table import ReleaseTable
from discreet.query.session.catalogue_builder import build_catalogue

RARE = "RARE-7f3a"
DELTA = Fraction(1, 10**6)
QUERY = "SELECT word, COUNT(*) AS n, AVG(age) AS age FROM notes GROUP BY word"


def notes(*, rare: bool, groups: int = 3) -> pa.Table:
    """Three words that 2,000 people use, and perhaps one that a single person uses."""
    rows = [(unit, f"word {unit % groups}", unit % 90) for unit in range(2000)]
    rows += [(5000, RARE, 50), (5000, "word 1", 51)] if rare else [(5000, "word 1", 51)]
    units, words, ages = zip(*rows, strict=True)
    return pa.table({"id": pa.array(units, pa.int64()), "word": pa.array(words), "age": pa.array(ages, pa.int64())})


def tallied(table: pa.Table, *, max_groups: int = 2) -> tuple[PricedQuery, ExactCounts]:
    unit = dp.Unit("id", max_groups, 1)
    engine = DuckDBEngine({"notes": table}, threads=1)
    catalogue = build_catalogue(engine, {"notes": None}, unit=unit, columns={"age": dp.between(0, 100)})
    priced = plan(read(QUERY, catalogue).question, catalogue, Spend(epsilon=1, delta=DELTA), pure=False)
    found = engine.run(priced.stage, deadline=Deadline.after(60))
    engine.close()
    return priced, found


def everything(table: ReleaseTable) -> bytes:
    """Return all that can be seen of an answer, as bytes."""
    arrow, sink = table.to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    pq.write_table(arrow, sink)
    shown = (table.to_json(), repr(table), table._repr_html_(), str(table.to_pandas()), str(table.to_polars()))
    return sink.getvalue() + "".join(shown).encode()


@pytest.mark.parametrize("max_groups", [1, 2, 8])
def test_one_unit_opens_groups_with_probability_delta_at_most(max_groups: int) -> None:
    priced, _ = tallied(notes(rare=True), max_groups=max_groups)
    selection = _selection(priced)
    with precision(400):
        each = bounds(selection.release_probability(1))[1]
    assert 0 < 1 - (1 - each) ** max_groups <= selection.delta <= DELTA
    looser = replace(selection, delta=selection.delta * 1000)
    with precision(400):
        wrong = bounds(looser.release_probability(1))[0]
    assert 1 - (1 - wrong) ** max_groups > DELTA, "a threshold for a larger delta would be caught"


@pytest.mark.parametrize("runs", [60, pytest.param(10_000, marks=pytest.mark.soak)])
def test_no_byte_of_an_answer_tells_of_a_hidden_key(runs: int) -> None:
    priced, found = tallied(notes(rare=True))
    seen = sum(RARE.encode() in everything(priced.draw(found)) for _ in range(runs))
    assert seen == 0  # By chance less than once in a hundred million such tests at the small size.


def test_a_key_that_is_not_hidden_would_be_found() -> None:
    """The wrong neighbour: with a threshold below one, the same search finds the key."""
    priced, found = tallied(notes(rare=True))
    open_to_all = replace(_selection(priced), delta=Fraction(999, 1000), noise=_huge(priced))
    noising = replace(_noising(priced), selection=open_to_all)
    careless = replace(priced, draft=replace(priced.draft, noising=noising))
    assert sum(RARE.encode() in everything(careless.draw(found)) for _ in range(40)) > 0


def test_neighbours_give_the_same_schema_order_and_notes() -> None:
    (priced, one), (other_priced, other) = tallied(notes(rare=True)), tallied(notes(rare=False))
    for _ in range(20):
        mine, yours = priced.draw(one).to_arrow(), other_priced.draw(other).to_arrow()
        assert mine.schema == yours.schema
        assert mine["word"].to_pylist() == yours["word"].to_pylist() == ["word 0", "word 1", "word 2"]
    assert priced.fingerprint == other_priced.fingerprint
    assert priced.notes == other_priced.notes
    assert str(priced.explain()) == str(other_priced.explain())


def test_an_answer_without_groups_has_the_same_columns() -> None:
    """Nobody's words are common enough: the table is empty and looks like every other."""
    priced, found = tallied(notes(rare=True, groups=2000))
    answer = priced.draw(found)
    assert len(answer) == 0
    full_priced, full = tallied(notes(rare=True))
    assert answer.to_arrow().schema.names == full_priced.draw(full).to_arrow().schema.names
    assert answer.to_arrow().schema.types == full_priced.draw(full).to_arrow().schema.types


def _noising(priced: PricedQuery) -> Any:
    return priced.draft.noising


def _selection(priced: PricedQuery) -> Any:
    assert _noising(priced).selection is not None
    return _noising(priced).selection


def _huge(priced: PricedQuery) -> Any:
    return replace(_selection(priced).noise, epsilon=Fraction(1, 100))
