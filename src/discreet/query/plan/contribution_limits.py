"""Pass: contribution limits, how many groups a unit is counted in, and with how many rows in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive_integer
from discreet.query.ast import (
    Apply,
    Case,
    Expression,
    Field,
    Filter,
    Join,
    JoinKind,
    Key,
    Literal,
    Named,
    Operator,
    PerUnit,
    Project,
    Query,
    Source,
    Statistic,
    Table,
    UnionAll,
    UnitStatistic,
    UnitWindow,
    WithinUnit,
    fields_of,
    is_private,
    unit_of,
)
from discreet.query.catalogue import Catalogue
from discreet.query.functions.table import FUNCTIONS
from discreet.query.plan.draft import LimitedDraft, Nesting, PlanRequest, known_as
from discreet.query.policy import FamilyChoice
from discreet.schema.columns import LONGEST_TEXT, Kind

__all__ = [
    "MOST_COPIES",
    "MOST_GROUPS",
    "MOST_WORK",
    "ROWS_OF_A_UNIT",
    "bound_contributions",
    "check_copies",
    "check_work",
    "copies",
    "groups_of_a_unit",
    "has_everybody",
    "matches_once",
    "one_row_per_group",
    "one_row_per_unit",
]

# --- row_cost ---
# How much work one private row can make, by public facts only: copies through joins, texts, and the tree.


# --- copies: How many rows one private row can become by joins. ---
#
# A question that makes millions of copies of one person's row, and none if the person is not there, would run out of
# time or memory by that person alone: its failure would tell. Sizes of public tables are public, so such a question is
# refused before anything is paid or read. How many rows a person has is not: where private tables are joined, a person
# is taken to have up to a hundred in each.


MOST_COPIES = 1_000_000
ROWS_OF_A_UNIT = 100  # In each private table that is joined to another.


def check_copies(source: Source, catalogue: Catalogue) -> None:
    """Refuse joins that could make too many rows of one."""
    made = copies(source, catalogue)
    if made > MOST_COPIES:
        raise Refused(
            f"these joins could make {made:,} rows of one, more than {MOST_COPIES:,}",
            reason="a question that takes long for one person's rows only would tell whether they are there",
            way_out="join public tables on columns that have no duplicates, fewer of them, or smaller ones; of private "
            "tables, join those with one row for each unit: GROUP BY the unit in a sub-query",
        )


def matches_once(join: Join, catalogue: Catalogue) -> bool:
    """Whether the right side is a public table and the pairs name a set of its columns without duplicates."""
    if not isinstance(join.right, Table) or join.right.private:
        return False
    table = catalogue.tables.get(join.right.table)
    names = {column.field.name: column.column for column in join.right.columns}
    paired = {names[right.name] for _, right in join.pairs if isinstance(right, Field) and right.name in names}
    return table is not None and any(key <= paired for key in table.unique)


def one_row_per_unit(source: Source, catalogue: Catalogue) -> bool:
    """Whether a unit surely has one row at most."""
    match source:
        case PerUnit():
            fixed = fixed_in_unit(source.source, catalogue)
            return all(fixed.holds(key.expression) for key in source.keys)
        case Filter():
            return _keeps_one(source) or one_row_per_unit(source.source, catalogue)
        case Project() | WithinUnit():
            return one_row_per_unit(source.source, catalogue)
        case Join() if is_private(source.right):
            # One of the pairs equates the units, so that a unit's row meets one row at most.
            return one_row_per_unit(source.left, catalogue) and one_row_per_unit(source.right, catalogue)
        case Join():
            return one_row_per_unit(source.left, catalogue) and matches_once(source, catalogue)
        case Table() | UnionAll():
            return False


def _keeps_one(source: Filter) -> bool:
    """Whether a filter keeps the row of one place of its unit, and no other: ROW_NUMBER() OVER (…) = 1."""
    condition, places = source.condition, _places(source.source)
    is_all = isinstance(condition, Apply) and condition.operator is Operator.AND
    for one in condition.arguments if isinstance(condition, Apply) and is_all else (condition,):
        match one:
            case Apply(operator=Operator.EQUAL, arguments=(Field(name=name), Literal())) if name in places:
                return True
            case Apply(operator=Operator.LESS_OR_EQUAL, arguments=(Field(name=name), Literal(value=1))):
                return name in places
    return False


def _places(source: Source) -> frozenset[str]:
    """Name the fields that number the rows of a unit, no two of them alike."""
    match source:
        case WithinUnit():
            own = {one.total.field.name for one in source.columns if one.total.statistic is UnitStatistic.PLACE}
            return _places(source.source) | own
        case Filter():
            return _places(source.source)
        case Project():
            below = _places(source.source)
            plain = ((one.field.name, one.expression) for one in source.columns)
            return frozenset(name for name, value in plain if isinstance(value, Field) and value.name in below)
        case Table() | Join() | PerUnit() | UnionAll():  # A join may repeat a row, with its place.
            return frozenset()


# --- fixed ---
# Which values are one for all rows of a unit, so that a key that is made of them puts the unit into one group.
#
# Whoever is in more groups after all would be counted in max_groups of them, like everybody else: a smaller max_groups
# leaves nobody out, and its price does not rest on this. That of units counted in a family does, where rows alone are
# bounded; so whatever is named here must be one for all rows of a unit, whatever the data are.


_COARSER = {  # The windows that each window lies in as a whole, itself among them; weeks lie across months and years.
    "hour": ("hour", "day", "week", "month", "quarter", "year"),
    "day": ("day", "week", "month", "quarter", "year"),
    "week": ("week",),
    "month": ("month", "quarter", "year"),
    "quarter": ("quarter", "year"),
    "year": ("year",),
}
_OF_WINDOW = {  # Parts of a time, by the finest window that they follow from.
    Operator.HOUR: "hour",
    Operator.TO_DATE: "day",
    Operator.DAY: "day",
    Operator.WEEKDAY: "day",
    Operator.DAY_OF_YEAR: "day",
    Operator.WEEK: "week",
    Operator.MONTH: "month",
    Operator.QUARTER: "quarter",
    Operator.YEAR: "year",
}


@final
@dataclass(frozen=True, slots=True)
class FixedInUnit:
    """Fields that have one value for all rows of a unit, and times that all lie in the unit's window."""

    fields: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()  # the unit itself, where it tells which rows meet; it is no key
    window: str | None = None

    def holds(self, expression: Expression) -> bool:
        """Whether an expression surely has one value for all rows of a unit."""
        match expression:
            case Literal():
                return True
            case Field():
                is_day = expression.facts.kind is Kind.DATE and self._follows(expression, "day")
                return expression.name in self.fields or is_day
            case Case():
                return all(map(self.holds, _below(expression)))
            case Apply(operator=Operator.TRUNCATE_TIME, arguments=(Literal(value=str(unit)), time)):
                return self._follows(time, unit) or self.holds(time)
            case Apply(operator=operator, arguments=(time,)) if operator in _OF_WINDOW:
                return self._follows(time, _OF_WINDOW[operator]) or self.holds(time)
            case Apply():
                return all(map(self.holds, expression.arguments))

    def _follows(self, time: Expression, unit: str) -> bool:
        """Whether all of a unit's times lie in one hour, day and so on. Clamping moves them to a bound together."""
        known = () if self.window is None else _COARSER[self.window]
        return isinstance(time, Field) and time.name in self.times and unit in known

    def meets(self, side: Expression) -> bool:
        """Whether all rows of a unit have the same at one side of a join."""
        return self.holds(side) or (isinstance(side, Field) and side.name in self.units)

    def named(self, columns: Iterable[Named]) -> FixedInUnit:
        """Return what holds of computed columns."""
        listed = list(columns)
        below = {one.field.name: one.expression.name for one in listed if isinstance(one.expression, Field)}
        return FixedInUnit(
            fields=frozenset(one.field.name for one in listed if self.holds(one.expression)),
            times=frozenset(name for name, inside in below.items() if inside in self.times),
            units=frozenset(name for name, inside in below.items() if inside in self.units),
            window=self.window,
        )

    def beside(self, other: FixedInUnit) -> FixedInUnit:
        return FixedInUnit(
            fields=self.fields | other.fields,
            times=self.times | other.times,
            units=self.units | other.units,
            window=self.window,
        )


def fixed_in_unit(source: Source, catalogue: Catalogue) -> FixedInUnit:
    """Find what is one for all rows of a unit: what is declared so, and what follows from its window."""
    match source:
        case Table():
            return _fixed_in_table(source, catalogue)
        case Filter():
            return fixed_in_unit(source.source, catalogue)
        case Project():
            return fixed_in_unit(source.source, catalogue).named(source.columns)
        case PerUnit():
            named = fixed_in_unit(source.source, catalogue).named(source.keys)
            return named.beside(FixedInUnit(units=frozenset({source.unit.name})))
        case WithinUnit():
            whole = (
                one for one in source.columns if not one.running and one.total.statistic is not UnitStatistic.PLACE
            )
            own = FixedInUnit(fields=frozenset(one.total.field.name for one in whole))
            return fixed_in_unit(source.source, catalogue).beside(own)
        case Join():
            return _fixed_in_join(source, catalogue)
        case UnionAll():  # Each side has its own value.
            return FixedInUnit(units=frozenset() if source.unit is None else frozenset({source.unit}))


def _fixed_in_table(table: Table, catalogue: Catalogue) -> FixedInUnit:
    unit = catalogue.unit
    if not table.private or table.unit is None:
        return FixedInUnit()
    fixed = {column.field.name for column in table.columns if column.of_unit}
    parts = {part.casefold() for part in unit.columns} if unit.is_composed else set()
    # As they are stored they are the same in all rows of a unit, so they are however they are read.
    fixed |= {column.field.name for column in table.columns if column.column.casefold() in parts}
    times = {one.field.name for one in table.columns if unit.time and one.column.casefold() == unit.time.casefold()}
    if unit.zone != "UTC":  # Days of SQL are those of UTC: a local day lies in two of them.
        times = set()
    return FixedInUnit(
        fields=frozenset(fixed), times=frozenset(times), units=frozenset({table.unit}), window=unit.window
    )


def _fixed_in_join(join: Join, catalogue: Catalogue) -> FixedInUnit:
    """Of the right side, what all rows of a unit meet alike: else some are without it, or with another."""
    left, right = fixed_in_unit(join.left, catalogue), fixed_in_unit(join.right, catalogue)
    meets_alike = all(left.meets(one) and right.meets(other) for one, other in join.pairs)
    if is_private(join.right):
        return left.beside(right) if join.kind is JoinKind.INNER or meets_alike else left
    if matches_once(join, catalogue) and all(left.meets(one) for one, _ in join.pairs):
        return left.beside(FixedInUnit(fields=frozenset(field.name for field in fields_of(join.right))))
    return left


def groups_of_a_unit(source: Source, keys: tuple[Key, ...], catalogue: Catalogue) -> int | None:
    """Return in how many groups a unit can be at most; None if data must tell. Keys that are fixed put it into one."""
    fixed = fixed_in_unit(source, catalogue)
    varying = [key for key in keys if not fixed.holds(key.expression)]
    return None if any(key.domain is None for key in varying) else prod(len(key.domain or ()) for key in varying)


def copies(source: Source, catalogue: Catalogue) -> int:
    """Return at most how many rows one private row becomes."""
    match source:
        case Table():
            return 1
        case Filter() | Project() | PerUnit() | WithinUnit():
            return copies(source.source, catalogue)
        case UnionAll():
            return sum(copies(part, catalogue) for part in source.sources)
        case Join() if is_private(source.right):
            sides = (source.left, source.right)
            others = 1 if any(one_row_per_unit(side, catalogue) for side in sides) else ROWS_OF_A_UNIT
            return others * prod(copies(side, catalogue) for side in sides)
        case Join():
            matches = 1 if matches_once(source, catalogue) else _public_rows(source.right, catalogue)
            return copies(source.left, catalogue) * max(1, matches)


def _public_rows(source: Source, catalogue: Catalogue) -> int:
    """Return at most how many rows a public source has."""
    match source:
        case Table():
            table = catalogue.tables.get(source.table)
            return 1 if table is None else table.rows
        case Filter() | Project() | PerUnit() | WithinUnit():
            return _public_rows(source.source, catalogue)
        case UnionAll():
            return sum(_public_rows(part, catalogue) for part in source.sources)
        case Join():
            return prod(_public_rows(side, catalogue) for side in (source.left, source.right))


# --- row_work ---
# How much work one private row can make, by public facts only: the tree, its constants and the sizes of public tables.
#
# A failure that one person's row decides tells whether the row is there, at any price. So a query is refused before it
# is
# paid unless one row more costs little, whatever is in it: then it fails, if it fails, for everybody's rows together.
#
# Work is counted in characters. A node that makes a text costs as many as the text can have, a pattern with _ as many
# as
# the text has for each of its own, any other node one, a row itself a hundred; all of it once for each copy of the row
# that joins make. What a hash table keeps (keys that nobody listed, distinct texts) is counted again.


MOST_WORK = 30_000_000  # characters
_ROW = 100


def check_work(question: Query, catalogue: Catalogue) -> None:
    """Refuse a query of which one row could make too much work; say which part makes most of it."""
    parts = list(_parts(question, catalogue))
    if sum(part.work for part in parts) <= MOST_WORK:
        return
    worst = max(parts, key=lambda part: part.work)
    raise Refused(
        f"one row could make {sum(part.work for part in parts):,} characters of work here, more than {MOST_WORK:,}; "
        f"most of it is in {worst.name}: {worst.each:,} characters for each of {worst.copies:,} rows",
        reason="a query that takes much time or memory for one person's row only would tell whether it is there",
        way_out="take the start of a text before you do anything with it, as in LEFT(x, 100), do less to it, or join "
        "public tables on columns that have no duplicates",
    )


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """A clause: what it costs for each row that gets there, and how many of these one row can become."""

    name: str
    each: int
    copies: int

    @property
    def work(self) -> int:
        return self.each * self.copies


def _parts(question: Query, catalogue: Catalogue) -> Iterator[_Part]:
    texts = _Texts()
    yield from _source_parts(question.source, catalogue, texts)
    made = copies(question.source, catalogue)
    yield _Part("the rows themselves", _ROW, made)
    for key in question.keys:
        kept = texts.length(key.expression) if key.domain is None else 0
        yield _Part(f"group key {key.name}", texts.work(key.expression) + kept, made)
    for place, measure in enumerate(question.measures, 1):
        for argument in measure.arguments:
            kept = texts.length(argument) if measure.statistic is Statistic.DISTINCT else 0
            yield _Part(f"aggregate {place} ({measure.statistic.value})", texts.work(argument) + kept, made)


def _source_parts(source: Source, catalogue: Catalogue, texts: _Texts) -> Iterator[_Part]:
    """List the clauses of a source. Those of public tables are there, too, as if for one row: they count for little."""
    match source:
        case Table():
            texts.stored(source)
            yield _Part(f"columns of {source.table}", len(source.columns), 1)
        case Filter():
            yield from _source_parts(source.source, catalogue, texts)
            yield _Part("a condition", texts.work(source.condition), copies(source.source, catalogue))
        case Project():
            yield from _source_parts(source.source, catalogue, texts)
            each = sum(texts.name(one.field, one.expression) for one in source.columns)
            yield _Part("computed columns", each, copies(source.source, catalogue))
        case Join():
            for side, other in ((source.left, 0), (source.right, 1)):
                yield from _source_parts(side, catalogue, texts)
                each = sum(texts.work(pair[other]) for pair in source.pairs)
                yield _Part("join columns", each, copies(side, catalogue))
        case PerUnit():
            yield from _source_parts(source.source, catalogue, texts)
            each = sum(texts.name(one.field, one.expression) + texts.length(one.expression) for one in source.keys)
            for total in source.totals:
                kept = total.statistic is UnitStatistic.DISTINCT and total.argument is not None
                each += texts.work(total.argument) if total.argument is not None else 1
                each += texts.length(total.argument) if kept and total.argument is not None else 0
            yield _Part("a sub-query per unit", each, copies(source.source, catalogue))
        case WithinUnit():
            yield from _source_parts(source.source, catalogue, texts)
            each = sum(_window_work(one, texts) for one in source.columns)
            yield _Part("a window of the unit", each, copies(source.source, catalogue))
        case UnionAll():
            for part in source.sources:
                yield from _source_parts(part, catalogue, texts)
            yield _Part("a union", len(source.columns), copies(source, catalogue))


def _window_work(window: UnitWindow, texts: _Texts) -> int:
    """Count what a window computes and what it keeps to put rows in order."""
    argument, order = window.total.argument, [*(one.value for one in window.order), *window.ties]
    own = 1 if argument is None else texts.name(window.total.field, argument)
    return own + sum(texts.work(one) + texts.length(one) for one in order)


@final
@dataclass(frozen=True, slots=True)
class _Texts:
    """Lengths of texts and work of trees; a node that occurs again costs again, and is looked at once."""

    fields: dict[str, int] = field(default_factory=dict)  # of computed texts, by name
    known: dict[int, tuple[Expression, int, int]] = field(default_factory=dict)  # by identity: length, work

    def stored(self, table: Table) -> None:
        """Remember how long the texts of a public table are; of a private one nobody knows, whatever is declared."""
        for column in () if table.private else table.columns:
            members = column.field.facts.members
            if column.field.facts.kind is Kind.TEXT and members is not None:
                self.fields[column.field.name] = max((len(str(member)) for member in members), default=0)

    def name(self, made: Field, expression: Expression) -> int:
        """Remember how long a computed column is, and return what it costs."""
        length, work = self._of(expression)
        self.fields[made.name] = length
        return work

    def length(self, expression: Expression) -> int:
        """Return how many characters a text can have; 0 for anything else."""
        return self._of(expression)[0]

    def work(self, expression: Expression) -> int:
        return self._of(expression)[1]

    def _of(self, expression: Expression) -> tuple[int, int]:
        waiting = [expression]
        while waiting:
            current = waiting[-1]
            missing = [part for part in _below(current) if id(part) not in self.known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if id(current) not in self.known:
                length = min(LONGEST_TEXT, self._length(current)) if current.facts.kind is Kind.TEXT else 0
                work = self._own(current, length) + sum(self.known[id(part)][2] for part in _below(current))
                self.known[id(current)] = current, length, work
        _, length, work = self.known[id(expression)]
        return length, work

    def _length(self, text: Expression) -> int:
        match text:
            case Field():
                return self.fields.get(text.name, LONGEST_TEXT)
            case Literal():
                return len(str(text.value))
            case Case():
                return max(self.known[id(value)][1] for value in (*(one for _, one in text.branches), text.otherwise))
        lengths = [self.known[id(argument)][1] for argument in text.arguments]
        return FUNCTIONS[text.operator].length(text.arguments, lengths)

    def _own(self, node: Expression, length: int) -> int:
        """Return what a node costs by itself: the texts that it makes or looks through."""
        if not isinstance(node, Apply):
            return 1 + (length if isinstance(node, Case) else 0)
        lengths = [self.known[id(argument)][1] for argument in node.arguments]
        return FUNCTIONS[node.operator].work(node.arguments, lengths, length)


def _below(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Apply():
            return node.arguments
        case Case():
            return (*(part for branch in node.branches for part in branch), node.otherwise)
    return ()


MOST_GROUPS = 1_000_000


def bound_contributions(draft: PlanRequest) -> LimitedDraft:
    """Take the limits of the policy, those of the analyst if they are tighter, and what the source itself implies."""
    unit, source, keys = draft.catalogue.unit, draft.question.source, draft.question.keys
    groups = _known_groups(keys)
    check_copies(source, draft.catalogue)
    check_work(draft.question, draft.catalogue)
    if unit.is_row:
        _check_rows_are_kept_apart(source, draft.catalogue)
        return LimitedDraft(**known_as(PlanRequest, draft), max_groups=1, max_rows=1, groups=groups)
    if unit_of(source) is None:
        raise Refused("no column of this source tells whom a row belongs to: keep the unit's column in every part")
    most_groups = _tighter(unit.max_groups, draft, "max_groups")
    most_rows = _tighter(unit.max_rows_per_group, draft, "max_rows_per_group")
    if one_row_per_unit(source, draft.catalogue):
        most_groups = most_rows = 1
    if one_row_per_group(source, keys):
        most_rows = 1
    if draft.tighter is not None and draft.tighter.family is not None:
        return _bound_family(draft, draft.tighter.family, most_rows, groups)
    most_groups = min(most_groups, groups_of_a_unit(source, keys, draft.catalogue) or most_groups)
    return LimitedDraft(
        **known_as(PlanRequest, draft),
        max_groups=most_groups,
        max_rows=most_rows,
        groups=groups,
        nesting=_nesting(draft, groups),
    )


def _nesting(draft: PlanRequest, groups: int | None) -> Nesting | None:
    """Say how many inner units of an outer one are counted; keys that are not public are not proven for chains."""
    chain = draft.catalogue.chain
    if chain is None:
        return None
    if groups is None:
        raise Refused(
            "the keys of these groups are not public, and two units are protected here, one within the other",
            reason="which groups are named is proven for one unit: a household can be alone in more groups than each "
            "of its persons",
            way_out="list the keys (keys={…}), declare them with dp.categories([...]), or join a public table of them",
        )
    return Nesting(_tighter(chain.max_inner, draft, "max_inner"))


def _bound_family(draft: PlanRequest, family: FamilyChoice, most_rows: int, groups: int | None) -> LimitedDraft:
    """Count at most so many rows of a unit in all groups of a table together, the same in every table of a family.

    Without a word about it these are as many as one group may have. Then no number that is added up row by row has
    more noise than in a table with choices of its own, which allows for max_groups >= 1 times as many.
    """
    if groups is None:
        raise Refused(
            "tables of a family have listed groups, and the data would tell these",
            reason="rows whose group is not shown would be in one table and not in another",
            way_out="list the values of its keys, or publish this table by its SQL",
        )
    if draft.catalogue.chain is not None:
        raise Refused(
            "families of several tables are offered for one unit, and two are protected here, one within the other",
            reason="one choice of rows for several tables is proven for one unit",
            way_out="publish each of these tables by its SQL, or protect one unit",
        )
    if draft.catalogue.unit.is_exchanged:
        raise Refused(
            "families of several tables are offered under add-remove, and this plan is replace-one",
            reason="one choice of rows for several tables was not shown to hold where the rows of a unit are exchanged",
            way_out="publish each of these tables by its SQL, with limits of its own",
        )
    rows = most_rows if family.max_rows is None else family.max_rows
    if one_row_per_unit(draft.question.source, draft.catalogue):
        rows = 1
    known = known_as(PlanRequest, draft)
    return LimitedDraft(**known, max_groups=1, max_rows=rows, groups=groups, family=family.name)


def _tighter(limit: int, draft: PlanRequest, name: str) -> int:
    wanted = None if draft.tighter is None else getattr(draft.tighter, name)
    if wanted is None:
        return limit
    if positive_integer(wanted, name=name) > limit:
        raise InvalidParameter(f"{name} may only be tightened: the policy allows at most {limit}")
    return int(wanted)


def _known_groups(keys: tuple[Key, ...]) -> int | None:
    """Count the groups if all keys are public; none of them is more than the product of its domains."""
    if any(key.domain is None for key in keys):
        return None
    groups = prod(len(key.domain or ()) for key in keys)
    if groups > MOST_GROUPS:
        raise Refused(
            f"the public keys make {groups:,} groups, more than {MOST_GROUPS:,}: group by fewer keys or coarser ones"
        )
    if groups == 0:
        raise Refused("a key has no public value at all: there is no group to answer for")
    return groups


def has_everybody(source: Source) -> bool:
    """Whether all units of a private table are in a source: nothing leaves out a unit, whatever its rows are."""
    match source:
        case Table():
            return source.private
        case Project() | PerUnit() | WithinUnit():
            return has_everybody(source.source)
        case Join():
            return source.kind is JoinKind.LEFT and has_everybody(source.left)
        case UnionAll():
            return any(map(has_everybody, source.sources))
        case Filter():
            return False


def one_row_per_group(source: Source, keys: tuple[Key, ...]) -> bool:
    """Whether a unit surely has one row in a group at most: its rows differ in keys that are keys of the answer."""
    while isinstance(source, Filter):
        source = source.source
    grouped = {key.expression.name for key in keys if isinstance(key.expression, Field)}
    return isinstance(source, PerUnit) and all(key.field.name in grouped for key in source.keys)


def _check_rows_are_kept_apart(source: Source, catalogue: Catalogue) -> None:
    """Refuse what could make two rows out of one where rows are the units."""
    match source:
        case Table():
            return
        case Filter() | Project():
            _check_rows_are_kept_apart(source.source, catalogue)
        case PerUnit() | WithinUnit():
            raise Refused("rows are the units here: a sub-query per unit would be the rows themselves; leave it out")
        case Join():
            if is_private(source.right) or not matches_once(source, catalogue):
                raise Refused(
                    "rows are the units here, and this join may repeat a row: join a public table on columns that "
                    "have no duplicates, or protect a unit column"
                )
            _check_rows_are_kept_apart(source.left, catalogue)
        case UnionAll():
            _check_parts(source, catalogue)


def _check_parts(source: UnionAll, catalogue: Catalogue) -> None:
    tables = [table for part in source.sources for table in _private_tables(part)]
    if len(set(tables)) != len(tables):
        raise Refused("rows are the units here, and this union counts the rows of a table twice: name it once")
    for part in source.sources:
        _check_rows_are_kept_apart(part, catalogue)


def _private_tables(source: Source) -> list[str]:
    match source:
        case Table():
            return [source.table] if source.private else []
        case Filter() | Project() | PerUnit() | WithinUnit():
            return _private_tables(source.source)
        case Join():
            return _private_tables(source.left) + _private_tables(source.right)
        case UnionAll():
            return [table for part in source.sources for table in _private_tables(part)]
