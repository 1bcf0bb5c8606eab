"""What comes out: an answer with its error, its guarantee and its cost. Everything in it may be published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any, Generic, TypeVar, cast, final, overload

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number
from discreet.mechanisms.accuracy import Accuracy, Interval, NoInterval
from discreet.mechanisms.cost import cost_text
from discreet.mechanisms.fields import read_confidence
from discreet.mechanisms.text import decimal, decimal_up, places_for, plain
from discreet.noise.laws import Law
from discreet.privacy.events import Event
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.relation import Relation

__all__ = ["Release"]

T = TypeVar("T", covariant=True)
Limits = tuple[Fraction | None, Fraction | None]
_SHOWN = 8  # Cells in a line of text; the rest is counted.
_CONFIDENCE = Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Generic[T]):
    """A private answer.

    `interval(confidence)` encloses the exact answer of the bounded data with at least that probability over the
    noise. It comes from public facts only, and so says nothing about sampling error or about clamped values.
    """

    value: T  # exact: int, Fraction, a public label, or a tuple of these
    event: Event
    relation: Relation
    accuracy: Accuracy
    limits: Limits = (None, None)  # where the exact answer surely lies
    labels: tuple[str, ...] | None = None  # public names of the cells of a tuple
    delta: Fraction | None = None  # at which the cost is quoted; it changes nothing else
    method: str | None = None  # how it was found, where there were several ways

    def __post_init__(self) -> None:
        cells = self.value if isinstance(self.value, tuple) else (self.value,)
        if any(isinstance(cell, NotPrivate) for cell in cells):
            raise Refused("an exact diagnostic of private data cannot be released")

    @property
    def cost(self) -> str:
        """What was spent, in a few words."""
        return cost_text(self.event, relation=self.relation, delta=self.delta)

    @property
    def noise(self) -> Law | None:
        """The law of the noise in grid steps, where it is one law with public scale."""
        return self.accuracy.noise

    @property
    def tidy(self) -> T:
        """The value moved to where the exact answer surely lies: no negative counts. Free, but biased."""
        if isinstance(self.value, tuple):
            return cast(T, tuple(self._inside(part) for part in self.value))
        return cast(T, self._inside(self.value))

    @overload
    def interval(
        self: Release[tuple[int, ...]] | Release[tuple[Fraction, ...]], confidence: Number = ...
    ) -> tuple[Interval, ...]: ...

    @overload
    def interval(self: Release[int] | Release[Fraction], confidence: Number = ...) -> Interval: ...

    @overload
    def interval(self, confidence: Number = ...) -> Any: ...

    def interval(self, confidence: Number = _CONFIDENCE) -> Any:
        """Enclose the exact answer, or each cell of it by itself; refuse where nothing honest can be said."""
        found = self.accuracy.interval(self.value, read_confidence(confidence))
        if isinstance(self.value, tuple):
            return tuple((self._inside(low), self._inside(high)) for low, high in found)
        return self._inside(found[0]), self._inside(found[1])

    def plus_minus(self, confidence: Number = _CONFIDENCE) -> Any:
        """Return the larger distance from the value to the ends of the interval, or one for each cell."""
        found = self.interval(confidence)
        if isinstance(self.value, tuple):
            return tuple(_reach(part, ends) for part, ends in zip(self.value, found, strict=True))
        return _reach(self.value, found)

    def as_dict(self) -> dict[str, Any]:
        """Return the cells by their public names."""
        if self.labels is None or not isinstance(self.value, tuple):
            raise InvalidParameter("this release has no named cells")
        return dict(zip(self.labels, self.value, strict=True))

    def to_json(self) -> str:
        """Write everything, numbers as exact text."""
        packed = {
            "value": _packed(self.value),
            "interval": self._packed_interval(),
            "labels": self.labels,
            "event": json.loads(self.event.to_json()),
            "relation": self.relation.value,
            "cost": self.cost,
            "method": self.method,
        }
        return json.dumps(packed, ensure_ascii=False)

    def __repr__(self) -> str:
        return f"{self._line()}, {self.cost}"

    def _repr_html_(self) -> str:
        footer = f"<small>{escape(self.cost)}, {escape(self.relation.value)}</small>"
        if self.labels is None or not isinstance(self.value, tuple):
            return f"<span>{escape(self._line())}</span> {footer}"
        rows = "".join(
            f"<tr><th>{escape(label)}</th><td>{escape(self._cell(part))}</td></tr>"
            for label, part in zip(self.labels, self._cells(), strict=True)
        )
        return f"<table>{rows}</table>{footer}"

    def _inside(self, number: Any) -> Any:
        low, high = self.limits
        if low is not None and number < low:
            return low if isinstance(number, Fraction) else int(low)
        if high is not None and number > high:
            return high if isinstance(number, Fraction) else int(high)
        return number

    def _line(self) -> str:
        if not isinstance(self.value, tuple):
            tail = "" if self._error_of_all() is None else " (95 %)"
            return self._cell((self.value, self._error_of_all())) + tail
        cells = self._cells()
        names = [f"{label}: " for label in self.labels] if self.labels is not None else [""] * len(cells)
        shown = ", ".join(name + self._cell(cell) for name, cell in zip(names, cells[:_SHOWN], strict=False))
        more = f", … {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else ""
        known = cells and cells[0][1] is not None
        return f"({shown}{more})" + (" (95 % each)" if known else "")

    def _cells(self) -> list[tuple[Any, Fraction | None]]:
        assert isinstance(self.value, tuple)
        errors = self._error_of_all()
        return list(zip(self.value, errors or [None] * len(self.value), strict=True))

    def _error_of_all(self) -> Any:
        return None if isinstance(self.accuracy, NoInterval) else self.plus_minus()

    @staticmethod
    def _cell(cell: tuple[Any, Fraction | None]) -> str:
        value, error = cell
        if not isinstance(value, (int, Fraction)):
            return str(value)
        if error is None:
            return plain(value)
        places = places_for(error, Fraction(value))
        return f"{decimal(value, places)} ± {decimal_up(error, places)}"

    def _packed_interval(self) -> Any:
        if isinstance(self.accuracy, NoInterval):
            return {"refused": self.accuracy.reason}
        return {"confidence": str(_CONFIDENCE), "ends": _packed(self.interval())}


def _reach(value: Any, ends: Interval) -> Fraction:
    return Fraction(max(ends[1] - value, value - ends[0]))


def _packed(value: Any) -> Any:
    return [_packed(part) for part in value] if isinstance(value, tuple) else str(value)
