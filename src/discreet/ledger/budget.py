"""How much may be spent: an exact number of epsilon, of epsilon and delta, or of rho."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, positive, probability

__all__ = ["EXPECTED", "Budget", "Expect", "Kind", "readable"]

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
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    approximate: Fraction | None
    expect: Expect | None

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
                raise InvalidParameter(f"{name} must be of a sane size: between 1e-300 and 1e300")
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
