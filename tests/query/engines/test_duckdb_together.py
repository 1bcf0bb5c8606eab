"""The embedded engine answers several stages as it answers each, and reads what they share once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine_small import small_world
from engine_together import TogetherContract, family, together

from discreet.query.ast import Filter
from discreet.query.engine import StageKey
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.shared_scans import share


class TestDuckDBTogether(TogetherContract):
    @classmethod
    def make(cls, tables: dict[str, Any], **options: Any) -> DuckDBEngine:
        return DuckDBEngine(tables, **options)


def test_stages_of_a_release_are_one_scan(monkeypatch):
    (shared,) = share(family(max_groups=1, max_rows=1))
    assert [member.place for member in shared.members] == list(range(8))
    assert [len(member.conditions) for member in shared.members] == [0, 0, 0, 0, 1, 2, 1, 0]
    asked: list[str] = []
    engine = DuckDBEngine(small_world())
    original = engine._ask
    monkeypatch.setattr(engine, "_ask", lambda *given: asked.append("scan") or original(*given))
    together(engine, family(max_groups=1, max_rows=1))
    assert asked == ["scan"]
    engine.close()


def test_filters_that_all_have_are_filters_of_the_scan():
    stages = [family(max_groups=1, max_rows=1)[4]] * 3
    (shared,) = share(stages)
    assert [member.conditions for member in shared.members] == [()] * 3
    assert Filter(shared.source, *shared.conditions) == stages[0].source


def test_stages_with_very_many_groups_are_not_in_memory_at_once():
    few, many = family(max_groups=1, max_rows=1)[1:3]
    huge = replace(
        many, keys=tuple(StageKey(expression=key.expression, domain=tuple(range(1 << 21))) for key in many.keys)
    )
    assert [[member.place for member in shared.members] for shared in share([few, huge, few, huge])] == [[0, 2]]
