"""Privacy budgets and quotas, and exact sums of what was spent of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, final

from discreet.errors import InvalidParameter, LedgerDamaged
from discreet.exact import Number, exact_or_none, positive, probability
from discreet.formatting import record

__all__ = [
    "AGENT",
    "EACH",
    "EXPECTED",
    "GRID",
    "UNIT",
    "Budget",
    "EventPrice",
    "Expect",
    "Kind",
    "Quota",
    "Sums",
    "Window",
    "as_written",
    "canonical",
    "digest",
    "on_grid",
    "readable",
    "units_up",
]

# --- budget ---
# Budgets and quotas: how much may be spent in all, and below that by whom and when; and the one form of a record.


# --- canonical: One way to write a record, and its hash. ---


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    """Write JSON in the one form that is hashed: sorted keys, no blanks, ASCII only, no NaN."""
    return _ENCODER.encode(value)


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- budget: How much may be spent: an exact number of epsilon, of epsilon and delta, or of rho. ---


Kind = Literal["pure", "approximate", "concentrated", "unlimited"]
Expect = Literal["gaussian", "pure", "training", "mixed"]
EXPECTED: tuple[Expect, ...] = ("gaussian", "pure", "training", "mixed")
_LEAST, _MOST = Fraction(1, 10**300), Fraction(10**300)  # What orders are chosen for, in floats.


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """What a data set, a project or a window may spend. There is no default.

    `Budget(epsilon=1)` is pure, `Budget(epsilon=1, delta=1e-6)` approximate, `Budget(rho=0.5)` zero-concentrated.
    `Budget()` says that there is no limit: only a data set with a quota per window may have it.
    The delta of an approximate budget is split once, when an account is opened, and the split never moves: `expect`
    says which charges it shall suit best: "gaussian" noise, "pure" events and Laplace noise, "training" on samples, or
    "mixed", where many events have a delta of their own. Any charge is accounted for under any split. `approximate` is
    the share of delta that is kept for events with a delta of their own, if it shall be another one.

    Args:
        epsilon: The bound on the privacy loss.
        delta: The chance that the bound does not hold, with epsilon.
        rho: The parameter of zero-concentrated privacy, instead of epsilon.
        approximate: The share of delta that is kept for events with a delta of their own.
        expect: Which charges the split of delta shall suit best: "gaussian", "pure", "training" or "mixed".

    Raises:
        InvalidParameter: If the numbers are out of range, or do not go together.

    Examples:
        >>> dp.Budget(epsilon=1).kind, dp.Budget(epsilon=1, delta=1e-6).kind, dp.Budget(rho=0.5).kind
        ('pure', 'approximate', 'concentrated')
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    approximate: Fraction | None
    expect: Expect | None

    __repr__ = record

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        *,
        approximate: Number | None = None,
        expect: Expect | None = None,
    ) -> None:
        given = _read_delta(exact_or_none(delta, name="delta"))
        if expect is not None and expect not in EXPECTED:
            raise InvalidParameter(f"expect must be one of {', '.join(map(repr, EXPECTED))}, or left out")
        if expect is not None and not given:
            raise InvalidParameter("expect says how delta is split: it needs a delta, Budget(epsilon=…, delta=…)")
        share = None if approximate is None else probability(approximate, name="approximate")
        values = {
            "epsilon": None if epsilon is None else positive(epsilon, name="epsilon"),
            "delta": given,
            "rho": None if rho is None else positive(rho, name="rho"),
        }
        if values["rho"] is not None and (epsilon is not None or delta is not None):
            raise InvalidParameter("a budget is either rho or epsilon (with or without delta), not both")
        if delta is not None and epsilon is None:
            raise InvalidParameter("delta needs an epsilon: say Budget(epsilon=…, delta=…)")
        for name, value in values.items():
            if value is not None and not _LEAST <= value <= _MOST:
                raise InvalidParameter(f"{name} must lie between 1e-300 and 1e300")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "approximate", share if given else None)
        object.__setattr__(self, "expect", expect)

    @property
    def kind(self) -> Kind:
        """Which account is kept for it."""
        if self.rho is not None:
            return "concentrated"
        if self.epsilon is None:
            return "unlimited"
        return "pure" if self.delta is None else "approximate"

    def describe(self) -> str:
        """Return the budget as people read it."""
        match self.kind:
            case "pure":
                return f"ε = {readable(self.epsilon)}, pure"
            case "approximate":
                return f"ε = {readable(self.epsilon)}, δ = {readable(self.delta)}"
            case "concentrated":
                return f"ρ = {readable(self.rho)}, zero-concentrated"
            case _:
                return "no lifetime limit"

    def to_json(self) -> str:
        """Write the budget with exact fractions; `from_json` reads it back equal."""
        return json.dumps(self.packed(), sort_keys=True)

    def packed(self) -> dict[str, str]:
        """Return what JSON writes: the numbers that were said, as text."""
        names = ("epsilon", "delta", "rho", "approximate")
        said = {name: str(getattr(self, name)) for name in names if getattr(self, name) is not None}
        return said if self.expect is None else said | {"expect": self.expect}

    @classmethod
    def from_json(cls, text: str) -> Budget:
        """Read a budget that `to_json` wrote."""
        try:
            return cls.unpacked(json.loads(text))
        except (ValueError, RecursionError):
            raise InvalidParameter("a budget must be a JSON object") from None

    @classmethod
    def unpacked(cls, packed: object) -> Budget:
        """Read what `packed` returned."""
        known = {"epsilon", "delta", "rho", "approximate", "expect"}
        if not isinstance(packed, dict) or not packed.keys() <= known:
            raise InvalidParameter("a budget has epsilon, delta, rho, approximate and expect, nothing else")
        return cls(**packed)

    def __str__(self) -> str:
        return self.describe()


def _read_delta(delta: Fraction | None) -> Fraction | None:
    if delta is not None and not 0 <= delta < 1:
        raise InvalidParameter("delta must be at least 0 and below 1")
    return delta or None  # A delta of zero is a pure budget.


def readable(value: Fraction | None) -> str:
    """Write a number as a short decimal where that is exact, else as a ratio or, if that is long, rounded down."""
    if value is None:
        return "unbounded"
    try:
        short = f"{float(value):.12g}"
    except OverflowError:
        return str(value)
    if Fraction(short) == value:
        return short
    ratio = str(value)
    return ratio if len(ratio) <= 12 else f"{_cut(value)}"


def _cut(value: Fraction) -> str:
    """Round towards zero to six significant digits."""
    text = f"{float(value):.6e}"
    mantissa, _, power = text.partition("e")
    scale = Fraction(10) ** (int(power) - 5)
    return f"{float((value // scale if value >= 0 else -(-value // scale)) * scale):.6g}" if mantissa else text


# --- quota: Limits below the lifetime budget: for a project, for an analyst, for a window of time. ---


EACH = "*"  # Each project, or each analyst, has a quota of its own.
AGENT = "agent:"  # How the names of principals begin that are programs, to whom a person granted a cap.
Window = timedelta | str | None
_SECOND = 1_000_000  # Times are whole microseconds since 1970, in UTC.
_NAMED = {"day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MONDAY = 4 * 86_400  # 1970 began on a Thursday.


@final
@dataclass(frozen=True, slots=True)
class Quota:
    """A budget for some of the charges. All quotas and the lifetime budget are enforced at once.

    `project` and `principal` name one of them, `"*"` means each one apart, None all of them together. `window` is
    "day", "week", "month", "quarter", "year" (in UTC) or a `timedelta`; a quota without one never starts anew.

    Args:
        budget: What the charges of one scope may spend.
        project: The project that it is for; `"*"` each one apart, None all together.
        principal: The user that it is for; `"*"` each one apart, None all together.
        window: "day", "week", "month", "quarter", "year" or a `timedelta`; None never starts anew.

    Raises:
        InvalidParameter: If the window is none of these.

    Examples:
        >>> quota = dp.Quota(dp.Budget(epsilon=0.1), principal="*", window="day")
        >>> quota.covers(project="audit", principal="ana")
        True
    """

    budget: Budget
    project: str | None
    principal: str | None
    window: str | None  # "day", "week", "month", "quarter", "year" or whole seconds

    __repr__ = record

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

    @property
    def is_guarantee(self) -> bool:
        """Whether it is for all charges of a window: without a lifetime budget this is what is guaranteed."""
        return self.window is not None and self.project is None and self.principal is None

    @property
    def is_grant(self) -> bool:
        """Whether it is the cap of one agent, which a person granted: it never starts anew."""
        return self.window is None and self.project is None and (self.principal or "").startswith(AGENT)

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
        if self.window in _MONTHS:
            moment = datetime.fromtimestamp(time // _SECOND, UTC)
            return (12 * moment.year + moment.month - 1) // _MONTHS[self.window]
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
    if window is None or window in _NAMED or window in _MONTHS:
        return window  # type: ignore[return-value]
    if not isinstance(window, timedelta) or window < timedelta(seconds=1) or window % timedelta(seconds=1):
        raise InvalidParameter(
            "window must be 'day', 'week', 'month', 'quarter', 'year' or a timedelta of whole seconds"
        )
    return str(window // timedelta(seconds=1))


def _whom(name: str) -> str:
    return "each" if name == EACH else name


# --- exact_sums: What a charge costs and what all charges cost so far: exact sums that only grow. ---
#
# Epsilon, delta and rho live on one fixed public grid, so that a sum has a bounded size whatever is charged: a number
# with a denominator that divides `GRID` is kept exactly, any other one is rounded up to the next grid point, which
# is less than 10^-80 away. What is kept beside them, the mu^2 of the Gaussian rule and Rényi divergences, are whole
# multiples of 2^-64, rounded up.


GRID = math.lcm(*range(1, 65)) * 2**64 * 10**60  # Decimals, small ratios and most floats are exact on it.
UNIT = 2**64
_NOTHING = Fraction(0)
_MOST_KNOWN = 256
_known: dict[str, Sums] = {}


def on_grid(value: Fraction) -> Fraction:
    """Return the smallest point of the grid that is not below `value`."""
    if GRID % value.denominator == 0:
        return value
    return Fraction(-(-value.numerator * GRID // value.denominator), GRID)


def units_up(value: float) -> int | None:
    """Return a number in units of 2^-64, rounded up; None if it has no bound."""
    return math.ceil(Fraction(value) * UNIT) if math.isfinite(value) else None


@final
@dataclass(frozen=True, slots=True)
class EventPrice:
    """What one event costs. None means that no bound of this kind is proven."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None = None
    kept: tuple[int | None, ...] = ()  # in units of 2^-64: mu^2 if the account keeps it, and one for each of its orders

    def packed(self) -> list[object]:
        """Return what JSON writes."""
        return [*map(_text, (self.epsilon, self.delta, self.rho)), list(self.kept)]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> EventPrice:
        """Read what `packed` returned."""
        epsilon, delta, rho, kept = packed
        return cls(_number(epsilon), Fraction(delta), _number(rho), tuple(kept))

    @property
    def is_free(self) -> bool:
        """Tell whether the event says nothing about anybody."""
        return self.epsilon == 0 and self.delta == 0


@final
@dataclass(frozen=True, slots=True)
class Sums:
    """What was spent. None means that something without a bound of this kind is among the charges."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    kept: tuple[int | None, ...]
    charges: int

    @classmethod
    def nothing(cls, kept: int) -> Sums:
        """Start with nothing spent."""
        return cls(_NOTHING, _NOTHING, _NOTHING, (0,) * kept, 0)

    def plus(self, price: EventPrice, times: int = 1) -> Sums:
        """Add charges of one price. Every kind of sum is added here and nowhere else."""
        return Sums(
            _added(self.epsilon, price.epsilon, times),
            self.delta if not price.delta else self.delta + (price.delta if times == 1 else price.delta * times),
            _added(self.rho, price.rho, times),
            tuple(
                None if so_far is None or more is None else so_far + more * times
                for so_far, more in zip(self.kept, price.kept, strict=True)
            ),
            self.charges + times,
        )

    def text(self) -> str:
        """Write the sums exactly."""
        # As `canonical` writes it, at a third of the time.
        exact = ",".join("null" if each is None else f'"{each}"' for each in (self.epsilon, self.delta, self.rho))
        kept = ",".join("null" if each is None else str(each) for each in self.kept)
        text = f"[{exact},[{kept}],{self.charges}]"
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[text] = self  # The next charge reads what this one wrote.
        return text

    @classmethod
    def from_text(cls, text: str) -> Sums:
        """Read what `text` wrote."""
        return _known.get(text) or _read(text)


def _added(so_far: Fraction | None, more: Fraction | None, times: int) -> Fraction | None:
    if so_far is None or more is None:
        return None
    if not more:  # Fractions add and multiply slowly, and most kinds of most prices are nothing.
        return so_far
    return so_far + (more if times == 1 else more * times)


@contextmanager
def as_written() -> Iterator[None]:
    """Call damaged what a ledger holds and cannot be read: what is written to it can be."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise LedgerDamaged("an entry, or what is kept beside the entries, cannot be read: it was changed") from None


@as_written()
def _read(text: str) -> Sums:
    epsilon, delta, rho, kept, charges = json.loads(text)
    return Sums(_number(epsilon), Fraction(delta), _number(rho), tuple(kept), charges)


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _number(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
