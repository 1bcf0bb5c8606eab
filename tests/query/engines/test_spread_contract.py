"""Units spread over tasks and added up are the numbers of one engine; what is lost, doubled or split is refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engine_contract import EngineContract
from engine_small import OF_ORDERED_ROWS, REAL_STATISTICS, SMALL, other_source, small_source, small_world
from engine_together import TogetherContract, family, together
from engine_trees import column, field, plain, run, stage, table
from recorded import replayed
from spread_here import SpreadHere

from discreet.errors import AnswerFailed
from discreet.query.ast import (
    Field,
    Filter,
    Join,
    JoinKind,
    Operator,
    PerUnit,
    UnionAll,
    UnitStatistic,
    UnitTotal,
    fields_of,
)
from discreet.query.bounding.aggregation import MeasureTally, Tally
from discreet.query.bounding.partial_tally import PartialTally, Wanted, merged
from discreet.query.engine import Engine, Stage, StageColumn, Wants
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply
from discreet.query.spark import partition_tasks
from discreet.query.spark.partition_reports import Report
from discreet.schema.columns import ExpressionFacts, Kind


@pytest.mark.slow
class TestSpread(EngineContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> SpreadHere:
        return SpreadHere(tables, **options)


@pytest.mark.slow
class TestSpreadTogether(TogetherContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> SpreadHere:
        options.pop("memory", None)
        return SpreadHere(tables, **options)


EVERYTHING = {"total": True, "squares": True, "distinct": True, "values": True}


def asked(unit: str | None, **keys: tuple[Any, ...] | None) -> Stage:
    """Ask for everything there is of several columns; limits that cut."""
    columns = [
        column(SMALL["amount"], -50, 50),
        column(SMALL["price"], 0, 10, step=Fraction(1, 4), distinct=True),
        StageColumn(expression=SMALL["city"], wants=Wants(distinct=True)),
        StageColumn(expression=SMALL["city"], wants=Wants(values=True), members=("b", "a")),
    ]
    listed = [(SMALL[name], domain) for name, domain in keys.items()]
    return stage(small_source(unit), unit=unit, keys=listed, columns=columns, max_groups=2, max_rows=2)


def per_unit(statistic: UnitStatistic) -> Stage:
    """Ask for a statistic of every unit's rows."""
    argument = None if statistic is UnitStatistic.ROWS else SMALL["price"]
    one = field("one", Kind.REAL if statistic in REAL_STATISTICS else Kind.INTEGER)
    total = UnitTotal(one, statistic, argument, Fraction(1, 4) if argument is not None else None)
    per = PerUnit(small_source("who"), field("unit", Kind.TEXT), (), (total,))
    return stage(per, unit="unit", keys=[(one, None)], columns=[column(one, -100, 100)], max_rows=2)


def joined() -> Stage:
    other = other_source("o.")
    who, points = fields_of(other)
    both = Join(small_source("who"), other, JoinKind.LEFT, ((SMALL["who"], who),))
    return stage(both, unit="who", keys=[(SMALL["city"], None)], columns=[column(points, -200, 200)], max_rows=3)


def united(unit: str | None) -> Stage:
    facts = ExpressionFacts(kind=Kind.INTEGER)
    both = UnionAll(
        (table("small", SMALL["who"], SMALL["amount"], unit=unit and "who"), replace(other_source(), unit=unit)),
        (Field("unit", SMALL["who"].facts), Field("value", facts)),
        unit and "unit",
    )
    value = fields_of(both)[1]
    key = (apply(Operator.MODULO, value, literal(5)), None)
    return stage(both, unit=unit and "unit", keys=[key], columns=[column(value, -200, 200)], max_rows=3)


STAGES = {
    "unknown keys": asked("who", city=None, shop=None),
    "known keys": asked("who", city=("b", "a", "zz", None), shop=(3, 1)),
    "both": asked("who", city=("a", "b"), shop=None),
    "one group": asked("who"),
    "rows, unknown keys": asked(None, city=None),
    "rows, known keys": asked(None, shop=(3, 1)),
    "join": joined(),
    "union": united("other.who"),
    "rows, union": united(None),
    **{f"per unit: {one.name}": per_unit(one) for one in UnitStatistic if one not in OF_ORDERED_ROWS},
}


@pytest.mark.parametrize("name", STAGES)
def test_random_splits_add_up_to_one_tally_bit_by_bit(name: str) -> None:
    with closing(DuckDBEngine(small_world())) as engine, replayed(name):
        meant = plain(run(engine, STAGES[name]))
    assert meant
    for seed, (parts, sources) in enumerate([(1, 2), (5, 3)]):
        with closing(SpreadHere(small_world(), parts=parts, sources=sources, seed=seed)) as engine, replayed(name):
            assert plain(run(engine, STAGES[name])) == meant


def test_stages_of_one_question_keep_their_own_secrets_in_every_part() -> None:
    """A part without a group for one stage must not hand that stage's secret to the next."""
    few = Filter(small_source("who"), apply(Operator.EQUAL, SMALL["who"], literal("person 3")))
    stages = [
        replace(asked("who", city=None), source=few),
        replace(asked("who", shop=None), columns=()),
        *family(max_groups=1, max_rows=1),
        asked("who"),
    ]

    def answers(engine: Engine) -> list[Any]:
        with closing(engine), replayed("stages"):
            return [plain(one) for one in together(engine, stages)]

    assert answers(SpreadHere(small_world(), parts=6)) == answers(DuckDBEngine(small_world()))


# --- mistakes that are planted ---

UNITS = pa.table({"who": pa.array([str(number) for number in range(60)] * 3), "x": pa.array(list(range(180)))})
COUNT = stage(
    table("t", field("who", Kind.TEXT), field("x", Kind.INTEGER), unit="who"),
    unit="who",
    columns=[column(field("x", Kind.INTEGER), 0, 200)],
    max_rows=2,
)


def spoiled(spoil: Callable[[list[Report]], list[Report]]) -> Any:
    with closing(SpreadHere({"t": UNITS}, parts=4, spoil=spoil)) as engine:
        return run(engine, COUNT)


def test_nothing_spoiled_is_counted() -> None:
    assert int(spoiled(lambda reports: reports).tally.units[0]) == 60


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda reports: reports[:-1], id="a dropped part"),
        pytest.param(lambda reports: [], id="all parts dropped"),
        pytest.param(lambda reports: [*reports, reports[0]], id="a task run twice and counted twice"),
        pytest.param(lambda reports: [reports[0], reports[0], *reports[2:]], id="one in the place of another"),
        pytest.param(
            lambda reports: [replace(reports[0], sources=reports[0].sources[:-1]), *reports[1:]], id="a lost source"
        ),
        pytest.param(
            lambda reports: [replace(one, sources=one.sources[:-1]) for one in reports], id="a source lost everywhere"
        ),
        pytest.param(
            lambda reports: [replace(one, parts=(number,)) for number, one in enumerate([reports[1], *reports[1:]])],
            id="the same units under another number",
        ),
    ],
)
def test_what_is_lost_or_doubled_is_refused(spoil: Callable[[list[Report]], list[Report]]) -> None:
    with pytest.raises(AnswerFailed):
        spoiled(spoil)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda reports: reports[1:], id="lost"),
        pytest.param(lambda reports: [one for one in reports if one.parts != reports[-1].parts], id="the last is lost"),
        pytest.param(lambda reports: [*reports, reports[0]], id="doubled"),
        pytest.param(lambda reports: [one for one in reports if one.states], id="no end"),
    ],
)
def test_rows_that_are_units_are_lost_or_doubled_nowhere(spoil: Callable[[list[Report]], list[Report]]) -> None:
    plain_rows = stage(
        table("t", field("who", Kind.TEXT), field("x", Kind.INTEGER)),
        columns=[column(field("x", Kind.INTEGER), 0, 200)],
    )
    with closing(SpreadHere({"t": UNITS}, sources=3, spoil=spoil)) as engine, pytest.raises(AnswerFailed):
        run(engine, plain_rows)


def test_a_wrong_partitioner_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that routes by rows puts a unit into two parts: their digests meet at the driver."""
    monkeypatch.setattr(
        partition_tasks._UnitReader, "parts", lambda self, rows: np.arange(rows.num_rows) % self._parts, raising=True
    )
    with pytest.raises(AnswerFailed):
        spoiled(lambda reports: reports)


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_that_do_not_arrive_are_missed(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    add = partition_tasks._Arrived.add
    monkeypatch.setattr(partition_tasks._Arrived, "add", lambda self, batch: add(self, batch.slice(rows)))
    with pytest.raises(AnswerFailed):
        spoiled(lambda reports: reports)


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    written = partition_tasks.Question(
        stages=(COUNT,), types={}, public={}, secrets=(), routing=(b"", b""), parts=1, memory=1, seconds=1.0
    ).to_bytes()
    partition_tasks.Question.from_bytes(written)
    monkeypatch.setattr(partition_tasks, "versions", lambda: ["numpy 0"])
    with pytest.raises(AnswerFailed):
        partition_tasks.Question.from_bytes(written)


# --- spellings of one unit ---


@pytest.mark.parametrize(
    ("kind", "stored", "one"),
    [
        pytest.param(Kind.REAL, pa.array([0.0, -0.0, 0.0, -0.0]), 1, id="-0.0 and 0.0"),
        pytest.param(Kind.INTEGER, pa.array(["1", " 1", "1 ", "1.0"]), None, id="padded texts of a number"),
        pytest.param(Kind.REAL, pa.array(["1", "1.0", "1e0", "01"]), 1, id="texts of a real"),
        pytest.param(Kind.REAL, pa.array([float("nan"), None, float("inf"), 1.0]), 1, id="nobody and one"),
    ],
)
def test_spellings_of_one_unit_meet_in_one_task(kind: Kind, stored: pa.Array, one: int | None) -> None:
    data = pa.table({"who": stored, "x": pa.array([1, 2, 3, 4])})
    who, x = field("who", kind), field("x", Kind.INTEGER)
    asks = stage(table("t", who, x, unit="who"), unit="who", columns=[column(x, 0, 9)], max_rows=1)
    with closing(DuckDBEngine({"t": data})) as engine, replayed("spellings"):
        meant = plain(run(engine, asks))
    assert one is None or meant[()]["units"] == one
    for parts in (9,):
        with closing(SpreadHere({"t": data}, parts=parts, sources=4)) as engine, replayed("spellings"):
            assert plain(run(engine, asks)) == meant


def test_whole_and_real_numbers_that_join_meet_in_one_task() -> None:
    left = pa.table({"who": pa.array(range(50)), "x": pa.array(range(50))})
    right = pa.table({"who": pa.array([float(one) for one in range(50)]), "y": pa.array(range(50))})
    who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
    whom, y = field("o.who", Kind.REAL), field("o.y", Kind.INTEGER)
    both = Join(
        table("a", who, x, unit="who"),
        table("b", whom, y, unit="o.who", prefix="o."),
        JoinKind.INNER,
        ((who, whom),),
    )
    asks = stage(both, unit="who", columns=[column(y, 0, 100)])
    with closing(SpreadHere({"a": left, "b": right}, parts=9)) as engine:
        assert plain(run(engine, asks))[()]["units"] == 50


# --- states ---


def test_sums_of_a_hundred_thousand_million_rows_are_exact() -> None:
    """No limb overflows: a part at the end of its range, merged as often as 10^11 rows have parts of 10^7."""
    rows, end = 10**7, 1 << 52
    none = np.zeros(1, np.int64)
    measure = MeasureTally(
        counts=none + rows,
        total=np.array([-end * rows], object),
        squares=np.array([end * end * rows], object),
        distinct=None,
        values=None,
    )
    part = PartialTally.of(
        Tally(units=none + rows, rows=none + rows, measures=(measure,)), [Wanted(distinct=False, values=False)]
    )
    written = part.to_bytes()
    parts = [PartialTally.from_bytes(written) for _ in range(10**4)]
    whole, found = merged(parts, 1, [Wanted(distinct=False, values=False)])
    assert found is None
    assert int(whole.rows[0]) == int(whole.units[0]) == 10**11
    assert whole.measures[0].total is not None
    assert whole.measures[0].squares is not None
    assert int(whole.measures[0].total[0]) == -end * 10**11
    assert int(whole.measures[0].squares[0]) == end * end * 10**11


def test_a_state_that_is_cut_off_is_an_error() -> None:
    one = np.ones(1, np.int64)
    written = PartialTally.of(Tally(units=one, rows=one, measures=()), []).to_bytes()
    assert PartialTally.from_bytes(written).size == 1
    with pytest.raises(ValueError, match="cut off"):
        PartialTally.from_bytes(written[:-1])


def test_a_group_that_there_is_not_is_an_error() -> None:
    one = np.ones(3, np.int64)
    part = PartialTally.of(Tally(units=one, rows=one, measures=()), [])
    with pytest.raises(ValueError, match="a group that there is not"):
        merged([part], 2, [])
