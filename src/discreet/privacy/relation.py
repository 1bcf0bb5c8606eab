"""The neighbouring relation: add-remove or replace-one."""

from __future__ import annotations

from enum import Enum

from discreet.errors import InvalidParameter

__all__ = ["Relation", "check_member", "read_relation", "read_relation_if_any"]


class Relation(Enum):
    """The neighbouring relation: which two data sets must be hard to tell apart. One account never mixes two.

    Attributes:
        ADD_REMOVE: Neighbours differ by one unit more or less (unbounded); the number of units is private.
        REPLACE_ONE: Neighbours differ in the data of one unit (bounded); the number of units is public.

    Examples:
        >>> dp.Relation("add-remove") is dp.Relation.ADD_REMOVE
        True
    """

    ADD_REMOVE = "add-remove"  # One unit more or one unit less; the number of units is private.
    REPLACE_ONE = "replace-one"  # One unit's data changed; the number of units is public.


# The value is what is stored and printed; the other spelling is that of the member's name.
_BY_NAME = {spelling: one for one in Relation for spelling in (one.value, one.value.replace("-", "_"))}


def read_relation(relation: Relation | str) -> Relation:
    """Read one of the two relations, a member or its name; refuse everything else."""
    if isinstance(relation, Relation):
        return relation
    if isinstance(relation, str) and relation in _BY_NAME:
        return _BY_NAME[relation]
    raise InvalidParameter(
        'relation must be Relation.ADD_REMOVE or Relation.REPLACE_ONE, or its name, "add-remove" or "replace-one"'
    )


def check_member(relation: object) -> None:
    """Refuse what an object of the caller's says about itself by name: it is compared with `is`, and not read first."""
    if not isinstance(relation, Relation):
        raise InvalidParameter("the relation of a query must be Relation.ADD_REMOVE or Relation.REPLACE_ONE itself")


def read_relation_if_any(relation: Relation | str | None) -> Relation | None:
    """Read a relation that may be left out."""
    return None if relation is None else read_relation(relation)
