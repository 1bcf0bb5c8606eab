"""What is done to released values. It is read like an expression of a row whose fields are keys and answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from discreet.query.expressions import Apply, Case, Expression, Field, Literal
from discreet.query.facts import ExpressionFacts, Kind
from discreet.query.operators import Operator
from discreet.query.question import Choose, Combine, End, KeyValue, Measure, Post, ReleasedMeasure, Side, Statistic

__all__ = ["ReleasedScope", "post_of"]

_WHOLE = frozenset({Statistic.QUANTILE, Statistic.MODE})


@final
@dataclass(slots=True)
class ReleasedScope:
    """The measures and keys of a question while it is read, each standing for its released value as a field."""

    measures: list[Measure] = field(default_factory=list)
    posts: dict[str, Post] = field(default_factory=dict)

    def key(self, index: int, expression: Expression) -> Field:
        return self._stand_for(f"key {index}", KeyValue(index), expression.facts.kind)

    def answer(self, measure: Measure) -> Field:
        index = self._index(measure)
        return self._stand_for(f"answer {index}", ReleasedMeasure(index), _kind(measure))

    def end(self, measure: Measure, side: Side) -> Field:
        index = self._index(measure)
        return self._stand_for(f"{side.value} {index}", End(index, side), _kind(measure))

    def _index(self, measure: Measure) -> int:
        if measure not in self.measures:
            self.measures.append(measure)
        return self.measures.index(measure)

    def _stand_for(self, name: str, post: Post, kind: Kind) -> Field:
        self.posts[name] = post
        return Field(name, ExpressionFacts(kind=kind))


def _kind(measure: Measure) -> Kind:
    """A released number may be anything: noise knows no bounds, and an average is no whole number."""
    if measure.statistic is Statistic.MODE or (measure.argument is not None and measure.argument.facts.kind.is_time):
        return (
            measure.argument.facts.kind if measure.argument is not None and measure.statistic in _WHOLE else Kind.REAL
        )
    return Kind.REAL


def post_of(released: ReleasedScope, expression: Expression) -> Post:
    """Turn an expression of released values into post-processing."""
    match expression:
        case Field():
            return released.posts[expression.name]
        case Literal():
            return expression
        case Apply():
            return Combine(expression.operator, tuple(post_of(released, part) for part in _arguments(expression)))
        case Case():
            branches = tuple((post_of(released, one), post_of(released, two)) for one, two in expression.branches)
            return Choose(branches, post_of(released, expression.otherwise))


def _arguments(expression: Apply) -> tuple[Expression, ...]:
    """Divide by x where somebody divides by NULLIF(x, 0): division by zero is NULL anyway."""
    if expression.operator is not Operator.DIVIDE:
        return expression.arguments
    over, under = expression.arguments
    return over, _without_zero_guard(under)


def _without_zero_guard(under: Expression) -> Expression:
    if not isinstance(under, Case) or len(under.branches) != 1:
        return under
    (condition, value), rest = under.branches[0], under.otherwise
    guards = (
        isinstance(condition, Apply)
        and condition.operator is Operator.EQUAL
        and condition.arguments[0] == rest
        and isinstance(condition.arguments[1], Literal)
        and condition.arguments[1].value == 0
        and isinstance(value, Literal)
        and value.value is None
    )
    return rest if guards else under
