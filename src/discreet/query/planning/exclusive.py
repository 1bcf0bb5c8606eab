"""Which numbers no row moves together: values and NULLs, and CASE expressions whose conditions exclude each other.

A unit's rows are spread over such numbers: with r_i rows for number i and M rows in all, the sum of r_i s_i / b_i is at
most M times the largest s_i / b_i, and the sum of the squares of r_i s_i / b_i is at most M^2 times the largest square.
"""

from __future__ import annotations

from unicodedata import normalize

from discreet.query.expressions import Apply, Case, Expression, Literal
from discreet.query.operators import Operator
from discreet.query.planning.draft import Number, PlanDraft, TallySpec
from discreet.query.stage import StageColumn

__all__ = ["exclusive"]

_EXACT = 1 << 53  # Larger whole numbers may be equal as doubles.
_LONGEST = 64  # Numbers beyond it are not compared: planning stays quick.


def exclusive(draft: PlanDraft, one: int, other: int) -> bool:
    """Whether a row surely leaves one of two numbers unchanged."""
    if max(one, other) >= _LONGEST:
        return False
    if _are_halves(draft.numbers[one], draft.numbers[other]):
        return True
    first, second = _condition(draft, one), _condition(draft, other)
    return first is not None and second is not None and _contradict(first, second)


def _are_halves(one: Number, other: Number) -> bool:
    """Whether two numbers count the values and the NULLs of one column."""
    halves = {TallySpec.COUNT, TallySpec.NULLS}
    return one.column is not None and one.column == other.column and {one.tallying, other.tallying} == halves


def _condition(draft: PlanDraft, place: int) -> Expression | None:
    """Return what must be true of a row that moves a number; None if nothing is known."""
    number = draft.numbers[place]
    if number.column is None or number.tallying not in (TallySpec.COUNT, TallySpec.TOTAL):
        return None
    column = draft.columns[number.column]
    case = column.expression
    if not isinstance(case, Case) or len(case.branches) != 1 or not isinstance(case.otherwise, Literal):
        return None
    # NULL adds to nothing; zero adds nothing to a total about zero.
    nothing = case.otherwise.value is None or (number.tallying is TallySpec.TOTAL and _is_zero(column, case.otherwise))
    return case.branches[0][0] if nothing else None


def _is_zero(column: StageColumn, value: Literal) -> bool:
    """Whether a constant is counted as zero: it is, and clamping leaves it there."""
    grid = column.grid
    return value.value == 0 and column.centre == 0 and grid is not None and grid.first <= 0 <= grid.last


def _contradict(one: Expression, other: Expression) -> bool:
    """Whether two conditions are never both true of a row: not(a) and a, or a = 1 and a = 2."""
    if any(_is_negation(a, b) for a, b in ((one, other), (other, one))):
        return True
    first, second = _equation(one), _equation(other)
    if first is None or second is None:
        return False
    return first[0] == second[0] and _differ(first[1], second[1])


def _is_negation(one: Expression, other: Expression) -> bool:
    return isinstance(one, Apply) and one.operator is Operator.NOT and one.arguments[0] == other


def _equation(condition: Expression) -> tuple[Expression, Literal] | None:
    """Read x = constant, in either order; IN of constants is left alone."""
    if not isinstance(condition, Apply) or condition.operator is not Operator.EQUAL:
        return None
    left, right = condition.arguments
    if isinstance(right, Literal) and not isinstance(left, Literal):
        return left, right
    return (right, left) if isinstance(left, Literal) and not isinstance(right, Literal) else None


def _differ(one: Literal, other: Literal) -> bool:
    """Whether two constants of one kind surely differ, whichever engine compares."""
    a, b = one.value, other.value
    if isinstance(a, str) and isinstance(b, str):
        return _folded(a) != _folded(b)
    if type(a) is not type(b) or not isinstance(a, int) or not isinstance(b, int):
        return False
    return a != b and max(abs(a), abs(b)) < _EXACT


def _folded(text: str) -> str:
    """Take off what some engine might not compare: case, composition, blanks at the end."""
    return normalize("NFKC", text).casefold().strip()
