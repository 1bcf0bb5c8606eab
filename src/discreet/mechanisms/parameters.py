"""Reading the public fields of a mechanism: exact, in range, or refused before any data is seen."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive_integer, probability
from discreet.privacy.relation import Relation

__all__ = [
    "declared_rows",
    "read_confidence",
    "read_flag",
    "read_share",
    "rows_if_public",
    "settle",
    "small_delta",
]


def settle(target: object, **values: object) -> None:
    """Set the fields of a frozen value while it is being made."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def read_flag(value: bool, *, name: str) -> bool:
    """Read True or False and nothing else: the text "False" is true, and a flag here may halve the noise."""
    if not isinstance(value, bool):
        raise InvalidParameter(f"{name} must be True or False")
    return value


def read_share(value: Number, *, name: str) -> Fraction:
    """Read a share of a budget, strictly between nothing and all."""
    share = exact(value, name=name)
    if not 0 < share < 1:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1")
    return share


def read_confidence(value: Number) -> Fraction:
    """Read how sure an interval must be, strictly between never and always."""
    confidence = exact(value, name="confidence")
    if not 0 < confidence < 1:
        raise InvalidParameter("confidence must lie strictly between 0 and 1")
    return confidence


def rows_if_public(data: Any, relation: Relation) -> int | None:
    """Return the number of rows where it is public, and not even look where it is private."""
    if relation is Relation.ADD_REMOVE:
        return None
    if not hasattr(data, "__len__"):
        raise InvalidParameter("a column must have a length")
    return len(data)


def declared_rows(public_rows: int | None, known: int | None) -> int | None:
    """Return what is publicly said about the number of rows; refuse what is not so, where the number is `known`."""
    if public_rows is None:
        return known or None
    said = positive_integer(public_rows, name="public_rows")
    if known not in (None, said):
        raise InvalidParameter("public_rows is not the number of rows, which is public under replace-one")
    return said


def small_delta(
    delta: Number, *, public_rows: int | None, allow_large_delta: bool = False, said: str = "public_rows"
) -> Fraction:
    """Refuse a delta that lets a mechanism publish one person's record out of the declared number of rows."""
    chance = probability(delta, name="delta")
    if chance == 0 or chance == 1:
        raise InvalidParameter(
            "delta must lie strictly between 0 and 1: say delta=1e-6 or so, much below one over the number of people. "
            "For pure epsilon-DP leave it out where it has a default; what asks for it has no pure version"
        )
    allowed = read_flag(allow_large_delta, name="allow_large_delta")
    people = 0 if public_rows is None else positive_integer(public_rows, name=said)
    if chance * people >= 1 and not allowed:
        raise InvalidParameter(
            f"delta must be below 1 / {said}: at that, publishing the record of one person "
            "chosen at random would be allowed; choose a smaller delta, or say allow_large_delta=True"
        )
    return chance
