"""What a fit will cost, before any data are seen: estimators are asked, not trusted.

Every private estimator charges its session before it reads a value. So a payer that writes down what it is charged, and
stops the fit there, finds the price of any of them, or of a pipeline of them, on a table of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, final

import numpy as np
from sklearn.base import clone

from discreet.errors import DiscreetError, Refused
from discreet.exact import Number, exact
from discreet.learn.sklearn.validation import named
from discreet.privacy.events import Composed, Event
from discreet.privacy.relation import Relation

__all__ = ["Prepaid", "prepared", "private_parameters", "quote", "together"]


class _Priced(DiscreetError):
    """The fit has named its whole price; there is no need to go on."""


@final
@dataclass(slots=True, eq=False)
class _Quoting:
    """A payer that writes down charges and stops at the last one it waits for."""

    waits_for: int
    events: list[Event] = field(default_factory=list)

    def charge(self, event: Event, *, relation: Relation, purpose: str) -> None:
        self.events.append(event)
        if len(self.events) == self.waits_for:
            raise _Priced

    def __deepcopy__(self, memo: dict[int, Any]) -> _Quoting:
        return self


@final
@dataclass(slots=True, eq=False)
class Prepaid:
    """A payer for a fit whose events were quoted and charged before; it takes those and no others."""

    left: list[Event]

    def charge(self, event: Event, *, relation: Relation, purpose: str) -> None:
        if not self.left or self.left.pop(0) != event:
            _refuse()

    def __deepcopy__(self, memo: dict[int, Any]) -> Prepaid:
        return self


def _refuse() -> NoReturn:
    raise Refused(
        "a fit spends something else than what it was charged for",
        reason="its price must follow from its parameters and the number of columns alone",
        way_out="search over estimators of discreet.learn.sklearn, alone or in a Pipeline",
    )


def private_parameters(estimator: Any, name: str) -> list[str]:
    """Return the full names of a parameter in an estimator and in the steps within it."""
    return [key for key in estimator.get_params(deep=True) if key.rpartition("__")[2] == name]


def prepared(estimator: Any, *, factor: Fraction, delta: Number | None, **others: Any) -> Any:
    """Return a copy that spends `factor` times each epsilon and `delta` in each step, with other parameters set."""
    twin = clone(estimator)
    values = twin.get_params(deep=True)
    spent = {key: factor * exact(values[key], name=key) for key in private_parameters(twin, "epsilon")}
    chances = dict.fromkeys(private_parameters(twin, "delta"), delta)
    rest = {key: value for name, value in others.items() for key in private_parameters(twin, name)}
    return twin.set_params(**spent, **chances, **rest)


def quote(estimator: Any, *, rows: int, columns: int, names: Any = None) -> list[Event]:
    """Return the events of a fit on so many rows and columns, in order."""
    sessions = private_parameters(estimator, "session")
    if not sessions:
        raise Refused(
            "this estimator has no session that could be charged, so nothing is known of what it tells",
            way_out="search over estimators of discreet.learn.sklearn, alone or in a Pipeline",
        )
    payer = _Quoting(waits_for=len(sessions))
    twin = clone(estimator).set_params(**dict.fromkeys(sessions, payer))
    try:
        twin.fit(named(np.zeros((rows, columns)), names), np.zeros(rows))
    except _Priced:
        return payer.events
    _refuse()


def together(events: list[Event]) -> Event:
    """Return all of them as one."""
    return events[0] if len(events) == 1 else Composed(events)
