"""What every engine must do, whatever it is: subclasses say how to make one."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from engine_small import (
    ARROW,
    EMPTY,
    OF_ORDERED_ROWS,
    OTHER,
    REAL_STATISTICS,
    SHOPS,
    SMALL,
    UNITS,
    as_table,
    check_share,
    of_unit,
    other_source,
    owned,
    placed,
    small_rows,
    small_source,
    small_world,
)
from engine_specials import BOUNDED, FIELDS, ROW, as_read, cases, rows
from engine_trees import column, computed, counted, field, plain, run, stage, table
from recorded import replayed

from discreet import noise
from discreet.mechanisms.grid import Grid
from discreet.query.ast import (
    Apply,
    Expression,
    Field,
    Filter,
    Join,
    JoinKind,
    Named,
    Operator,
    PerUnit,
    Project,
    UnionAll,
    UnitStatistic,
    UnitTotal,
    fields_of,
    walk,
)
from discreet.query.engine import Engine, StageColumn, Wants
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, evaluate, when
from discreet.schema.columns import ExpressionFacts, Kind


def special_table() -> pa.Table:
    """Return all rows of specials as a table."""
    made = rows()
    fields = {**FIELDS, **BOUNDED}
    columns = {name: pa.array([row[name] for row in made], ARROW[one.facts.kind]) for name, one in fields.items()}
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

    @pytest.fixture(scope="class")
    @classmethod
    def small(cls) -> Any:
        engine = cls.make(small_world())
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

    @pytest.mark.parametrize("unit", ["who", None])
    @pytest.mark.parametrize("key", ["city", "shop", "day", "open", "price"])
    def test_unbounded_counts_are_those_of_plain_rows(self, small: Engine, unit: str | None, key: str) -> None:
        rows = small_rows()
        asked = stage(
            small_source(unit),
            unit=unit,
            keys=[(SMALL[key], None)],
            columns=[column(SMALL["amount"], -50, 50)],
            max_groups=1000,
            max_rows=1000,
        )
        assert plain(run(small, asked)) == counted(rows, (key,), "amount", unit)

    @pytest.mark.parametrize("unit", ["who", None])
    def test_known_keys_show_all_their_combinations_and_nothing_else(self, small: Engine, unit: str | None) -> None:
        cities, shops = ("b", "a", "zz", None), (3, 1)
        asked = stage(
            small_source(unit),
            unit=unit,
            keys=[(SMALL["city"], cities), (SMALL["shop"], shops)],
            columns=[column(SMALL["amount"], -50, 50)],
            max_groups=8,
            max_rows=1000,
        )
        tallied = run(small, asked)
        assert tallied.keys(range(8)) == [(city, shop) for city in cities for shop in shops]
        inside = [row for row in small_rows() if row["city"] in cities and row["shop"] in shops]
        meant = counted(inside, ("city", "shop"), "amount", unit)
        empty = {
            "units": 0,
            "rows": 0,
            "columns": [{"count": 0, "total": 0, "squares": 0, "distinct": 0, "values": []}],
        }
        assert plain(tallied) == {key: meant.get(key, empty) for key in tallied.keys(range(8))}

    @pytest.mark.parametrize("unit", ["who", None])
    def test_one_known_key_with_an_unknown_one_still_drops_what_is_outside(
        self, small: Engine, unit: str | None
    ) -> None:
        asked = stage(
            small_source(unit),
            unit=unit,
            keys=[(SMALL["city"], ("a", "b")), (SMALL["shop"], None)],
            max_groups=100,
            max_rows=1000,
        )
        inside = [row for row in small_rows() if row["city"] in ("a", "b")]
        assert plain(run(small, asked)) == counted(inside, ("city", "shop"), None, unit)

    @pytest.mark.parametrize("unit", ["who", None])
    def test_without_keys_there_is_one_group(self, small: Engine, unit: str | None) -> None:
        asked = stage(small_source(unit), unit=unit, columns=[column(SMALL["amount"], -50, 50)], max_rows=1000)
        assert plain(run(small, asked)) == counted(small_rows(), (), "amount", unit)

    @pytest.mark.parametrize("unit", ["who", None])
    def test_nothing_is_counted_where_nothing_is(self, small: Engine, unit: str | None) -> None:
        nobody = Filter(small_source(unit), apply(Operator.LESS, SMALL["amount"], literal(-1000)))
        asked = {"unit": unit, "columns": [column(SMALL["amount"], -50, 50)]}
        assert plain(run(small, stage(nobody, keys=[(SMALL["city"], None)], **asked))) == {}
        one = plain(run(small, stage(nobody, **asked)))
        assert one == {(): {"units": 0, "rows": 0, "columns": [EMPTY]}}

    @pytest.mark.parametrize("unit", ["who", None])
    def test_members_of_a_text_are_its_indices(self, small: Engine, unit: str | None) -> None:
        cities = ("b", "a")
        wanted = StageColumn(expression=SMALL["city"], wants=Wants(values=True), members=cities)
        tallied = run(small, stage(small_source(unit), unit=unit, columns=[wanted], max_rows=1000))
        places = sorted(cities.index(r["city"]) for r in owned(unit) if r["city"] in cities)
        assert plain(tallied)[()]["columns"] == [{"count": len(places), "values": places}]

    @pytest.mark.parametrize("unit", ["who", None])
    def test_texts_without_members_are_counted_apart(self, small: Engine, unit: str | None) -> None:
        wanted = StageColumn(expression=SMALL["city"], wants=Wants(distinct=True))
        tallied = run(small, stage(small_source(unit), unit=unit, columns=[wanted], max_rows=1000))
        known = [r["city"] for r in owned(unit) if r["city"] is not None]
        assert plain(tallied)[()]["columns"] == [{"count": len(known), "distinct": len(set(known))}]

    @pytest.mark.parametrize("step", [Fraction(1, 4), Fraction(1), Fraction(3), Fraction(3, 7), Fraction(1, 10)])
    @pytest.mark.parametrize("name", ["price", "amount", "day", "open", "at"])
    def test_grid_places_are_those_of_the_plan(self, small: Engine, name: str, step: Fraction) -> None:
        if name == "at":
            step *= 86_400_000_000
        low, high = (-21 * step, 60 * step) if name != "at" else (10_000 * step, 40_000 * step)
        grid = Grid(low=low, high=high, step=step, default=low)
        wanted = StageColumn(expression=SMALL[name], wants=Wants(values=True), grid=grid)
        for unit in ("who", None):
            found = plain(run(small, stage(small_source(unit), unit=unit, columns=[wanted], max_rows=1000)))
            meant = sorted(placed(r[name], grid) for r in owned(unit) if r[name] is not None)
            assert found[()]["columns"][0]["values"] == meant

    @pytest.mark.parametrize("step", [Fraction(1, 10), Fraction(1, 3), Fraction(3, 7), Fraction(10, 3)])
    @pytest.mark.parametrize("last", [(1 << 52) - 1, (1 << 48) - 1, 999_999])
    def test_no_place_is_beyond_the_end_of_a_grid(self, last: int, step: Fraction) -> None:
        end = last * step
        ends = [float(end), math.nextafter(float(end), 0), math.nextafter(float(end), math.inf), 1e300]
        who, x = field("who", Kind.INTEGER), Field("x", ExpressionFacts(kind=Kind.REAL, low=-end, high=end))
        values = [*ends, *(-value for value in ends)]
        engine = self.make({"t": pa.table({"who": range(len(values)), "x": values})})
        grid = Grid(low=-end, high=end, step=step, default=Fraction(0))
        wanted = StageColumn(expression=x, wants=Wants(values=True, total=True), grid=grid)
        for unit in ("who", None):
            asked = stage(table("t", who, x, unit=unit), unit=unit, columns=[wanted])
            (found,) = plain(run(engine, asked))[()]["columns"]
            assert found["total"] == sum(found["values"])
            assert max(map(abs, found["values"])) == last

    def test_filters_projections_and_unions_are_row_by_row(self, small: Engine) -> None:
        amount = SMALL["amount"]
        big = Filter(small_source("who"), apply(Operator.GREATER, amount, literal(0)))
        doubled = apply(Operator.MULTIPLY, amount, literal(2))
        renamed = (Field("owner", SMALL["who"].facts), Field("twice", doubled.facts))
        first = Project(big, (Named(renamed[0], SMALL["who"]), Named(renamed[1], doubled)), "owner")
        again = other_source()
        union = UnionAll((first, again), (Field("unit", SMALL["who"].facts), Field("value", doubled.facts)), "unit")
        value = fields_of(union)[1]
        found = plain(run(small, stage(union, unit="unit", columns=[column(value, -200, 200)], max_rows=1000)))
        rows = [{"who": r["who"], "v": 2 * r["amount"]} for r in small_rows() if r["amount"] and r["amount"] > 0]
        rows += [{"who": r["who"], "v": r["points"]} for r in OTHER]
        assert found == counted(rows, (), "v", "who")

    @pytest.mark.parametrize("kind", list(JoinKind))
    def test_join_with_a_public_table_repeats_rows(self, small: Engine, kind: JoinKind) -> None:
        shop, region = field("p.shop", Kind.INTEGER), field("p.region", Kind.TEXT)
        public = table("shops", shop, region, private=False, prefix="p.")
        joined = Join(small_source("who"), public, kind, ((SMALL["shop"], shop),))
        asked = stage(joined, unit="who", keys=[(region, None)], max_groups=100, max_rows=10_000)
        rows = []
        for row in small_rows():
            matches = [s["region"] for s in SHOPS if row["shop"] is not None and s["shop"] == row["shop"]]
            rows += [{**row, "region": match} for match in matches or ([None] if kind is JoinKind.LEFT else [])]
        assert plain(run(small, asked)) == counted(rows, ("region",), None, "who")

    @pytest.mark.parametrize("kind", list(JoinKind))
    def test_join_of_private_tables_is_within_units(self, small: Engine, kind: JoinKind) -> None:
        other = other_source("o.")
        who, points = fields_of(other)
        joined = Join(small_source("who"), other, kind, ((SMALL["who"], who),))
        asked = stage(joined, unit="who", columns=[column(points, -200, 200)], max_rows=10_000)
        rows = []
        for row in (r for r in small_rows() if r["who"] is not None):
            matches = [r["points"] for r in OTHER if r["who"] == row["who"]]
            rows += [{**row, "points": match} for match in matches or ([None] if kind is JoinKind.LEFT else [])]
        assert plain(run(small, asked)) == counted(rows, (), "points", "who")

    @pytest.mark.parametrize("statistic", [one for one in UnitStatistic if one not in OF_ORDERED_ROWS])
    def test_statistics_per_unit_are_exact(self, small: Engine, statistic: UnitStatistic) -> None:
        argument = None if statistic is UnitStatistic.ROWS else SMALL["price"]
        kind = Kind.REAL if statistic in REAL_STATISTICS else Kind.INTEGER
        one = field("one", kind)
        total = UnitTotal(one, statistic, argument, Fraction(1, 4) if argument is not None else None)
        per = PerUnit(small_source("who"), field("unit", Kind.TEXT), (), (total,))
        found = computed(small, per, field("unit", Kind.TEXT), [one])
        assert found == {
            who: (of_unit(statistic, [r["price"] for r in small_rows() if r["who"] == who]),) for who in UNITS
        }

    def test_statistics_per_unit_and_key_have_a_row_for_each(self, small: Engine) -> None:
        shop, rows = field("k", Kind.INTEGER), field("rows", Kind.INTEGER)
        per = PerUnit(
            small_source("who"),
            field("unit", Kind.TEXT),
            (Named(shop, SMALL["shop"]),),
            (UnitTotal(rows, UnitStatistic.ROWS, None),),
        )
        asked = stage(per, unit="unit", columns=[column(rows, 0, 100)], max_rows=1000)
        pairs = Counter((r["who"], r["shop"]) for r in small_rows() if r["who"] is not None)
        meant = [{"who": who, "n": n} for (who, _), n in pairs.items()]
        assert plain(run(small, asked)) == counted(meant, (), "n", "who")

    @pytest.mark.parametrize("statistic", [UnitStatistic.SUM, UnitStatistic.MEAN])
    def test_sums_per_unit_saturate_and_never_wrap(self, statistic: UnitStatistic) -> None:
        rows = [{"who": who, "x": x} for who, x in (("a", 2**63 - 1), ("b", -(2**63)), ("c", 5)) for _ in range(7)]
        engine = self.make({"t": pa.Table.from_pylist(rows)})
        who, x = field("who", Kind.TEXT), field("x", Kind.INTEGER)
        one = field("one", Kind.INTEGER if statistic is UnitStatistic.SUM else Kind.REAL)
        per = PerUnit(table("t", who, x, unit="who"), field("unit", Kind.TEXT), (), (UnitTotal(one, statistic, x),))
        found = computed(engine, per, field("unit", Kind.TEXT), [one])
        mean = 5 if statistic is UnitStatistic.MEAN else 35  # One row is at its end already, and so is their sum.
        assert found == {"a": (2**62,), "b": (-(2**62),), "c": (mean,)}

    def test_rows_without_a_unit_are_as_if_not_there(self) -> None:
        rows = small_rows()
        nobody = [{**row, "who": None} for row in rows * 10][:500]
        found = []
        for some in ([r for r in rows if r["who"] is not None], [*nobody, *rows], [*rows, *nobody]):
            engine = self.make({"small": as_table(some, SMALL)})
            asked = stage(small_source("who"), unit="who", keys=[(SMALL["city"], None)],
                          columns=[column(SMALL["amount"], -50, 50)], max_groups=2, max_rows=2)  # fmt: skip
            with replayed("nobody"):
                found.append(plain(run(engine, asked)))
        assert found[0] == found[1] == found[2]

    @pytest.mark.parametrize("threads", [1, 2, 8])
    def test_order_and_threads_do_not_matter(self, threads: int) -> None:
        rows = small_rows()
        asked = stage(small_source("who"), unit="who", keys=[(SMALL["city"], ("a", "b")), (SMALL["shop"], None)],
                      columns=[column(SMALL["amount"], -50, 50)], max_groups=2, max_rows=2)  # fmt: skip
        found = []
        for turn in range(4):
            with replayed(f"turn {turn}"):
                order = noise.permutation(len(rows))
            engine = self.make({"small": as_table([rows[place] for place in order], SMALL)}, threads=threads)
            with replayed("order"):
                found.append(plain(run(engine, asked)))
        engine = self.make({"small": as_table(rows, SMALL)}, threads=1)
        with replayed("order"):
            assert all(one == plain(run(engine, asked)) for one in found[:1])
        assert all(one == found[0] for one in found)
        with replayed("another order"):
            assert plain(run(engine, asked)) != found[0]

    @pytest.mark.parametrize("unit", ["who", None])
    def test_sums_of_the_largest_numbers_are_exact(self, unit: str | None) -> None:
        end, count = 1 << 52, 3000
        values = [2**63 - 1, -(2**63), 2**62] * (count // 3)
        data = pa.table({"who": pa.array(range(count)), "x": pa.array(values, pa.int64())})
        who, x = field("who", Kind.INTEGER), field("x", Kind.INTEGER)
        wanted = StageColumn(
            expression=x,
            wants=Wants(total=True, squares=True),
            grid=Grid(low=Fraction(-end), high=Fraction(end), step=Fraction(1), default=Fraction(0)),
            centre=-end,
        )
        engine = self.make({"t": data})
        (found,) = plain(run(engine, stage(table("t", who, x, unit=unit), unit=unit, columns=[wanted])))[()]["columns"]
        clamped = [min(max(value, -end), end) + end for value in values]
        assert found == {"count": count, "total": sum(clamped), "squares": sum(value * value for value in clamped)}

    def test_a_whale_changes_no_more_than_its_share(self) -> None:
        self.whale(groups=200, rows=20_000)

    @pytest.mark.slow
    def test_the_largest_whale_changes_no_more_than_its_share(self) -> None:
        self.whale(groups=10_000, rows=1_000_000)

    def whale(self, *, groups: int, rows: int) -> None:
        """One unit is everywhere; without it no more than its limits may differ, of whatever is computed."""
        who, group, x = (
            field("who", Kind.INTEGER),
            field("group", Kind.INTEGER, 0, groups - 1),
            field("x", Kind.INTEGER, -9, 9),
        )
        others = pa.table({"who": [1 + n % 500 for n in range(5000)], "group": [n % groups for n in range(5000)],
                           "x": [n % 19 - 9 for n in range(5000)]})  # fmt: skip
        whale = pa.table({"who": [0] * rows, "group": [n % groups for n in range(rows)], "x": [9] * rows})
        expressions = [x, apply(Operator.NEGATE, x), apply(Operator.MULTIPLY, x, x),
                       apply(Operator.MULTIPLY, x, literal(1000)),
                       when([(apply(Operator.GREATER, x, literal(3)), literal(9))], literal(-9))]  # fmt: skip
        columns = [column(one, -10_000, 10_000) for one in expressions]
        asked = stage(table("t", who, group, x, unit="who"), unit="who", keys=[(group, tuple(range(groups)))],
                      columns=columns, max_groups=3, max_rows=2)  # fmt: skip
        found = []
        for data in (others, pa.concat_tables([others, whale])):
            with replayed("whale"):
                found.append(run(self.make({"t": data}), asked).tally)
        check_share(*found, groups=3, rows=2, ends=[9, 9, 81, 9000, 9])

    def test_unit_identity_is_exact(self) -> None:
        units = {
            pa.uint64(): [2**64 - 1, 2**63, 2**63 - 1, 5],
            pa.int64(): [2**53, 2**53 + 1, -1, -(2**63)],
            pa.string(): ["a", "A", "e\u0301", "é"],
            pa.float64(): [0.1, 0.1 + 2**-56, 1e300, -1.0],
        }
        for kind, values in units.items():
            who = field("who", {"u": Kind.INTEGER, "i": Kind.INTEGER, "s": Kind.TEXT, "d": Kind.REAL}[str(kind)[0]])
            engine = self.make({"t": pa.table({"who": pa.array(values * 3, kind)})})
            found = plain(run(engine, stage(table("t", who, unit="who"), unit="who", max_rows=3)))
            # Those that do not fit 63 bits are as if not there: two of them are never taken for one.
            fit = [v for v in values if not isinstance(v, int) or v < 2**63]
            assert found == {(): {"units": len(set(fit)), "rows": 3 * len(set(fit)), "columns": []}}


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
