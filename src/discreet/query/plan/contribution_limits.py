"""Pass: how many groups a unit is counted in, and with how many rows in each."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive_integer
from discreet.query.ast import Field, Filter, Join, Key, PerUnit, Project, Source, Table, UnionAll, is_private, unit_of
from discreet.query.catalogue import Catalogue
from discreet.query.plan.draft import PlanDraft
from discreet.query.plan.row_cost import check_copies, check_work, matches_once, one_row_per_unit

__all__ = ["MOST_GROUPS", "bound_contributions"]

MOST_GROUPS = 1_000_000


def bound_contributions(draft: PlanDraft) -> PlanDraft:
    """Take the limits of the policy, those of the analyst if they are tighter, and what the source itself implies."""
    unit, source, keys = draft.catalogue.unit, draft.question.source, draft.question.keys
    groups = _known_groups(keys)
    check_copies(source, draft.catalogue)
    check_work(draft.question, draft.catalogue)
    if unit.is_row:
        _check_rows_are_kept_apart(source, draft.catalogue)
        return replace(draft, max_groups=1, max_rows=1, groups=groups)
    if unit_of(source) is None:
        raise Refused("no column of this source tells whom a row belongs to: keep the unit's column in every part")
    most_groups = _tighter(unit.max_groups, draft, "max_groups")
    most_rows = _tighter(unit.max_rows_per_group, draft, "max_rows_per_group")
    if one_row_per_unit(source, draft.catalogue):
        most_groups = most_rows = 1
    if _one_row_per_group(source, keys):
        most_rows = 1
    return replace(draft, max_groups=min(most_groups, groups or most_groups), max_rows=most_rows, groups=groups)


def _tighter(limit: int, draft: PlanDraft, name: str) -> int:
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


def _one_row_per_group(source: Source, keys: tuple[Key, ...]) -> bool:
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
        case PerUnit():
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
        case Filter() | Project() | PerUnit():
            return _private_tables(source.source)
        case Join():
            return _private_tables(source.left) + _private_tables(source.right)
        case UnionAll():
            return [table for part in source.sources for table in _private_tables(part)]
