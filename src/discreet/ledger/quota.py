"""Limits below the lifetime budget: for a project, for an analyst, for a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.ledger.budget import Budget
from discreet.ledger.canonical import canonical

__all__ = ["EACH", "Quota", "Window"]

EACH = "*"  # Each project, or each analyst, has a quota of its own.
Window = timedelta | str | None
_SECOND = 1_000_000  # Times are whole microseconds since 1970, in UTC.
_NAMED = {"day": 86_400, "week": 604_800}
_MONDAY = 4 * 86_400  # 1970 began on a Thursday.


@final
@dataclass(frozen=True, slots=True)
class Quota:
    """A budget for some of the charges. All quotas and the lifetime budget are enforced at once.

    `project` and `principal` name one of them, `"*"` means each one apart, None all of them together. `window` is
    "day", "week", "month" (in UTC) or a `timedelta`; a quota without one never starts anew.
    """

    budget: Budget
    project: str | None
    principal: str | None
    window: str | None  # "day", "week", "month" or whole seconds

    def __init__(
        self, budget: Budget, *, project: str | None = None, principal: str | None = None, window: Window = None
    ) -> None:
        if not isinstance(budget, Budget) or budget.kind == "unlimited":
            raise InvalidParameter("a quota needs a Budget with a limit")
        if project is None and principal is None and window is None:
            raise InvalidParameter("a quota names a project, a principal or a window; for all charges use the budget")
        for name, value in (("project", project), ("principal", principal)):
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidParameter(f"{name} must be a text, '*' for each one apart, or None for all together")
        values = {"budget": budget, "project": project, "principal": principal, "window": _read_window(window)}
        for name, chosen in values.items():
            object.__setattr__(self, name, chosen)

    def covers(self, *, project: str, principal: str) -> bool:
        """Tell whether a charge counts against this quota."""
        return self.project in (None, EACH, project) and self.principal in (None, EACH, principal)

    def scope(self, *, project: str, principal: str, time: int) -> str:
        """Name the sum that a covered charge is added to."""
        part = [
            self.project if self.project != EACH else f"*{project}",
            self.principal if self.principal != EACH else f"*{principal}",
            self.window,
            self.window_index(time),
            self.budget.packed(),
        ]
        return canonical(part)

    def window_index(self, time: int) -> int:
        """Return which window a time, in microseconds since 1970, lies in."""
        if self.window is None:
            return 0
        if self.window == "month":
            moment = datetime.fromtimestamp(time // _SECOND, UTC)
            return 12 * moment.year + moment.month - 1
        shift = _MONDAY if self.window == "week" else 0
        return (time // _SECOND - shift) // _NAMED.get(self.window, int(self.window) if self.window.isdigit() else 1)

    def describe(self) -> str:
        """Return the quota as people read it."""
        who = [
            f"{what} {_whom(name)}" for what, name in (("project", self.project), ("analyst", self.principal)) if name
        ]
        return f"{', '.join(who) or 'all together'}: {self.budget.describe()}{self.per()}"

    def per(self) -> str:
        """Return " per day" and the like, nothing without a window."""
        if self.window is None:
            return ""
        return f" per {self.window}" if not self.window.isdigit() else f" per {timedelta(seconds=int(self.window))}"

    def packed(self) -> dict[str, Any]:
        """Return what JSON writes."""
        return {
            "budget": self.budget.packed(),
            "project": self.project,
            "principal": self.principal,
            "window": self.window,
        }

    @classmethod
    def unpacked(cls, packed: dict[str, Any]) -> Quota:
        """Read what `packed` returned."""
        window = packed["window"]
        length = timedelta(seconds=int(window)) if window is not None and window.isdigit() else window
        budget = Budget.unpacked(packed["budget"])
        return cls(budget, project=packed["project"], principal=packed["principal"], window=length)


def _read_window(window: Window) -> str | None:
    if window is None or window in ("day", "week", "month"):
        return window  # type: ignore[return-value]
    if not isinstance(window, timedelta) or window < timedelta(seconds=1) or window % timedelta(seconds=1):
        raise InvalidParameter("window must be 'day', 'week', 'month' or a timedelta of whole seconds")
    return str(window // timedelta(seconds=1))


def _whom(name: str) -> str:
    return "each" if name == EACH else name
