"""The type of every exact diagnostic of private data."""

from __future__ import annotations

import html
from typing import Generic, NoReturn, SupportsIndex, TypeVar, final

from discreet.errors import Refused

__all__ = ["HEADING", "NotPrivate"]

T = TypeVar("T")

HEADING = "NOT PRIVATE: for the custodian only, never release"


@final
class NotPrivate(Generic[T]):
    """A value that was computed from private data without protection.

    It prints under a heading that says so, and it cannot be stored, sent, compared or calculated with. Whoever
    needs the value must ask for `.value`, which is easy to find in a review.

    Args:
        value: The unprotected value. It is private.

    Examples:
        >>> print(dp.NotPrivate(3))
        NOT PRIVATE: for the custodian only, never release
        3
        >>> dp.NotPrivate(3).value
        3
    """

    __slots__ = ("_value",)

    _value: T

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_value", value)

    @property
    def value(self) -> T:
        """The value itself, no longer marked."""
        return self._value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a NotPrivate value cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a NotPrivate value cannot be changed")

    def __repr__(self) -> str:
        return f"{HEADING}\n{self._value!r}"

    def __str__(self) -> str:
        return f"{HEADING}\n{self._value}"

    def __format__(self, spec: str) -> str:
        return f"{HEADING}\n{self._value:{spec}}"

    def _repr_html_(self) -> str:
        return f"<p><strong>{HEADING}</strong></p><pre>{html.escape(str(self._value))}</pre>"

    def __eq__(self, other: object) -> NoReturn:
        raise Refused("a NotPrivate value is not compared: ask for .value, if you are the custodian")

    # Two equal values must not be told from two different ones by their hashes either.
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise Refused("a NotPrivate value decides nothing: ask for .value, if you are the custodian")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise Refused("a NotPrivate value is never stored, copied or sent")

    def __reduce__(self) -> NoReturn:
        raise Refused("a NotPrivate value is never stored, copied or sent")
