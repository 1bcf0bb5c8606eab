"""What every engine must do with several stages at once: subclasses say how to make one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from engine_small import SMALL, as_table, other_source, small_source, small_world
from engine_trees import LONG, column, field, plain, run, stage, table
from recorded import replayed

from discreet.query.ast import (
    Expression,
    Filter,
    Join,
    JoinKind,
    Named,
    Operator,
    PerUnit,
    Project,
    Table,
    UnitStatistic,
    UnitTotal,
)
from discreet.query.engine import Deadline, Engine, ExactCounts, Stage, StageColumn, Wants
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply
from discreet.schema.columns import Kind

CITIES, SHOPS_THERE = ("b", "a", "zz", None), (3, 1, 0)
MANY = 10_000


def narrowed(*names: str) -> Table:
    """Return the purchases with some columns only, as a question that needs no others has them."""
    whole = small_source("who")
    return replace(whole, columns=tuple(one for one in whole.columns if one.field.name in ("who", *names)))


def positive(name: str, source: Table) -> Filter:
    return Filter(source, apply(Operator.GREATER, SMALL[name], literal(0)))


def both(*conditions: Expression) -> Expression:
    return apply(Operator.AND, *conditions)


def together(engine: Engine, stages: Sequence[Stage]) -> tuple[ExactCounts, ...]:
    return engine.run_all(stages, deadline=Deadline.after(LONG))


def family(*, max_groups: int, max_rows: int) -> list[Stage]:
    """Tables of the same rows with other columns, filters, keys and measures, as a release has them."""
    amount, price, shop = SMALL["amount"], SMALL["price"], SMALL["shop"]
    limits = {"unit": "who", "max_groups": max_groups, "max_rows": max_rows}
    by_city, by_shop = (SMALL["city"], CITIES), (shop, SHOPS_THERE)
    nonzero = apply(Operator.NOT_EQUAL, amount, literal(0))
    cheap = apply(Operator.LESS, price, literal(5))
    text = StageColumn(expression=SMALL["city"], wants=Wants(values=True), members=("a", "b", "c"))
    return [
        stage(narrowed(), **limits),
        stage(narrowed("city"), keys=[by_city], **limits),
        stage(narrowed("amount", "city"), keys=[by_city], columns=[column(amount, -50, 50)], **limits),
        stage(narrowed("city", "shop", "price"), keys=[by_city, by_shop], columns=[column(price, -20, 20)], **limits),
        stage(positive("amount", narrowed("amount", "shop")), keys=[by_shop], **limits),
        stage(Filter(narrowed("amount", "price"), both(nonzero, cheap)), columns=[column(amount, -9, 9)], **limits),
        stage(
            positive("price", narrowed("price", "amount")),
            columns=[column(amount, -50, 50), column(amount, -50, 50, total=True), column(price, -3, 3)],
            **limits,
        ),
        stage(narrowed("city", "open"), columns=[text, StageColumn(expression=SMALL["open"], wants=Wants())], **limits),
    ]


class TogetherContract:
    """The laws of many stages."""

    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> Engine:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def small(cls) -> Any:
        engine = cls.make(small_world())
        yield engine
        engine.close()

    def test_unbounded_numbers_are_those_of_each_stage_alone(self, small: Engine) -> None:
        stages = family(max_groups=12, max_rows=MANY)
        for asked, found in zip(stages, together(small, stages), strict=True):
            assert plain(found) == plain(run(small, asked))

    @pytest.mark.parametrize("limits", [(1, 1), (2, 3)])
    def test_choices_follow_the_law_of_each_stage_alone(self, small: Engine, limits: tuple[int, int]) -> None:
        """Under the same secret words the very same rows are kept."""
        stages = family(max_groups=limits[0], max_rows=limits[1])
        with replayed("together"):
            found = together(small, stages)
        for place, asked in enumerate(stages):
            with replayed("together") as recording:
                recording.read(64 * (1 + place))  # Keys of the scan and of the stages before.
                assert plain(found[place]) == plain(run(small, asked))

    def test_equal_stages_choose_independently(self, small: Engine) -> None:
        one = stage(narrowed("price"), unit="who", columns=[column(SMALL["price"], -20, 20)])
        found = {str(plain(tallied)) for tallied in together(small, [one] * 8)}
        assert len(found) > 4

    def test_stages_that_share_nothing_are_answered_too(self, small: Engine) -> None:
        unit, rows = field("unit", Kind.TEXT), field("rows", Kind.INTEGER, 0, 100)
        per = PerUnit(narrowed(), unit, (), (UnitTotal(rows, UnitStatistic.ROWS, None),))
        other = other_source("o.")
        stages = [
            stage(small_source(None), keys=[(SMALL["city"], CITIES)], columns=[column(SMALL["amount"], -50, 50)]),
            stage(narrowed("city"), unit="who", keys=[(SMALL["city"], None)], max_groups=9, max_rows=MANY),
            stage(per, unit="unit", columns=[column(rows, 0, 100)], max_rows=MANY),
            stage(other, unit="o.who", columns=[column(other.columns[1].field, -50, 60)], max_rows=MANY),
            stage(
                narrowed("city"),
                unit="who",
                columns=[StageColumn(expression=SMALL["city"], wants=Wants(distinct=True))],
                max_rows=MANY,
            ),
            *family(max_groups=12, max_rows=MANY)[:2],
            stage(small_source(None)),
        ]
        for asked, found in zip(stages, together(small, stages), strict=True):
            assert plain(found) == plain(run(small, asked))

    @pytest.mark.parametrize("kind", list(JoinKind))
    def test_joins_and_projections_share_where_they_are_the_same(self, small: Engine, kind: JoinKind) -> None:
        shop, region = field("p.shop", Kind.INTEGER), field("p.region", Kind.TEXT)
        public = table("shops", shop, region, private=False, prefix="p.")
        bare = replace(public, columns=public.columns[:1])
        twice = apply(Operator.MULTIPLY, SMALL["amount"], literal(2))
        owner, doubled = field("owner", Kind.TEXT), field("doubled", Kind.INTEGER, -100, 100)
        pairs = ((SMALL["shop"], shop),)
        projected = Project(narrowed("amount"), (Named(owner, SMALL["who"]), Named(doubled, twice)), "owner")
        stages = [
            stage(
                Join(narrowed("shop"), public, kind, pairs),
                unit="who",
                keys=[(region, ("north", "south", None))],
                max_groups=3,
                max_rows=MANY,
            ),
            stage(
                Join(narrowed("shop", "amount"), bare, kind, pairs),
                unit="who",
                columns=[column(SMALL["amount"], -50, 50)],
                max_rows=MANY,
            ),
            stage(projected, unit="owner", columns=[column(doubled, -100, 100)], max_rows=MANY),
            stage(replace(projected, columns=projected.columns[:1]), unit="owner", max_rows=MANY),
        ]
        for asked, found in zip(stages, together(small, stages), strict=True):
            assert plain(found) == plain(run(small, asked))

    def test_one_name_for_two_things_is_not_mixed_up(self, small: Engine) -> None:
        """Questions name their fields by themselves: the same name may stand for another column."""
        amount, shop = field("x", Kind.INTEGER, -50, 50), field("x", Kind.INTEGER, 0, 9)
        whole = small_source("who")
        named = [replace(whole.columns[0])]
        first = replace(whole, columns=(*named, replace(whole.columns[6], field=amount)))
        second = replace(whole, columns=(*named, replace(whole.columns[2], field=shop)))
        stages = [
            stage(first, unit="who", columns=[column(amount, -50, 50)], max_rows=MANY),
            stage(second, unit="who", columns=[column(shop, 0, 9)], max_rows=MANY),
        ]
        for asked, found in zip(stages, together(small, stages), strict=True):
            assert plain(found) == plain(run(small, asked))

    @pytest.mark.parametrize(
        "listed", [("\u00e9", "a"), ("a", "\u00e9"), ("a", "e\u0301"), ("a",), ("a", "\u00e9", None)]
    )
    def test_texts_that_must_be_listed_are_told_apart_as_alone(self, listed: tuple[str | None, ...]) -> None:
        """Two ways to write an accent are one key, and two texts to a condition."""
        who, city = field("who", Kind.TEXT), field("city", Kind.TEXT)
        texts = ["\u00e9", "e\u0301", "a", "A", "", None, "zz", "\u00e9"]
        rows = [{"who": f"p{number % 5}", "city": text} for number, text in enumerate(texts * 3)]
        source = Filter(table("t", who, city, unit="who"), apply(Operator.IN, city, literal("\u00e9"), literal("a")))
        stages = [
            stage(source, unit="who", keys=[(city, listed)], max_groups=9, max_rows=MANY),
            stage(source, unit="who", max_rows=MANY),
        ]
        engine = self.make({"t": as_table(rows, {"who": who, "city": city})})
        for asked, found in zip(stages, together(engine, stages), strict=True):
            assert plain(found) == plain(run(engine, asked))
        engine.close()

    def test_no_stages_are_no_answers(self, small: Engine) -> None:
        assert together(small, []) == ()

    @pytest.mark.parametrize("threads", [1, 3])
    def test_memory_and_threads_do_not_matter(self, threads: int) -> None:
        stages = family(max_groups=2, max_rows=2)
        found = []
        for options in ({"threads": threads}, {"threads": threads, "memory": 100 << 20}):
            engine = self.make(small_world(), **options)
            with replayed("memory"):
                found.append([plain(one) for one in together(engine, stages)])
            engine.close()
        assert found[0] == found[1]
