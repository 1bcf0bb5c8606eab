"""Group keys that are publicly known, as an analyst or a custodian lists them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from discreet.errors import InvalidParameter
from discreet.query.policy import Declared

__all__ = ["Keys", "listed_keys"]

Keys: TypeAlias = Mapping[str, Sequence[Hashable] | Declared]


def listed_keys(keys: Keys | None) -> dict[str, list[Hashable]]:
    """Return the values of each key in the order of the answer; a declaration of categories lists them too."""
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        raise InvalidParameter("keys must be a dictionary from a column to its public values")
    return {name: _values(name, values) for name, values in keys.items()}


def _values(name: str, values: Sequence[Hashable] | Declared) -> list[Hashable]:
    if isinstance(values, Declared):
        if values.facts.members is None:
            raise InvalidParameter(f"the declaration of key {name!r} does not list values: use categories([…])")
        return list(values.facts.members)
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidParameter(f"the public values of key {name!r} must be a list")
    if not values or len(set(values)) != len(values):
        raise InvalidParameter(f"the public values of key {name!r} must be at least one, and distinct")
    return list(values)
