"""The guarantee of a synthetic table, in plain words and exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import exact, positive_integer, up
from discreet.formatting import printable, significant_up
from discreet.mechanisms.parameters import settle
from discreet.privacy.events import Event, from_json
from discreet.privacy.relation import Relation

__all__ = ["Promise"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """How little one unit can change what was released: the event, and what it means at one delta.

    Args:
        method: How the model was made.
        event: What was spent.
        relation: The neighbouring relation.
        delta: The delta at which epsilon is quoted.
        epsilon: The epsilon at that delta, rounded up.
        unit: Who is protected: "row", or the column that tells units apart.
        rows_per_unit: How many rows of a unit are used at most.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> model.promise.epsilon <= 1
        True
    """

    method: str
    event: Event
    relation: Relation
    delta: Fraction
    epsilon: float  # rounded up
    unit: str = "row"  # "row", or the column whose values tell units apart
    rows_per_unit: int = 1

    @classmethod
    def of(
        cls, event: Event, *, method: str, relation: Relation, delta: Fraction, unit: str, rows_per_unit: int
    ) -> Promise:
        """Say what an event promises."""
        from discreet.privacy import epsilon

        return cls(
            method=method,
            event=event,
            relation=relation,
            delta=delta,
            epsilon=epsilon(event, delta, relation=relation),
            unit=unit,
            rows_per_unit=rows_per_unit,
        )

    def check_within(self, epsilon: Fraction) -> None:
        """Refuse a plan that would cost more than was asked for."""
        if not self.epsilon <= up(epsilon):
            raise Refused(
                f"this plan would cost ε = {significant_up(self.epsilon)}, more than the "
                f"{significant_up(epsilon)} that was asked for: nothing was charged and nothing read"
            )

    @property
    def change(self) -> str:
        """What may change between two tables that must be hard to tell apart, in words."""
        if self.unit == "row":
            return "one row" if self.relation is Relation.ADD_REMOVE else "the content of one row"
        named = printable(self.unit)  # It may come from a file.
        return f"all rows that share one {named}"

    def __str__(self) -> str:
        done = "leaving out or adding" if self.relation is Relation.ADD_REMOVE else "changing"
        limit = "" if self.unit == "row" else f" At most {self.rows_per_unit} rows of each were used."
        return (
            f"Whatever is done with this synthetic data, {done} {self.change} of the real table changes the chance of "
            f"any result by a factor of at most e^ε with ε = {significant_up(self.epsilon)}, apart from a "
            f"chance of δ = {significant_up(self.delta)}.{limit} No row of the real table was copied: rows are drawn "
            f"from a model ({self.method}) that knows the table through noise alone."
        )

    __repr__ = __str__

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "method": self.method,
            "event": self.event.to_json(),
            "relation": self.relation.value,
            "delta": str(self.delta),
            "epsilon": self.epsilon,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "words": str(self),
        }

    @classmethod
    def restored(cls, document: dict[str, Any]) -> Promise:
        """Read a promise again; what it means is computed again, not believed."""
        found = cls.of(
            from_json(document["event"]),
            method=document["method"],
            relation=Relation(document["relation"]),
            delta=exact(document["delta"], name="delta"),
            unit=document["unit"],
            rows_per_unit=positive_integer(document["rows_per_unit"], name="rows_per_unit"),
        )
        said = document["epsilon"]
        if type(said) is not float or not math.inf > said >= found.epsilon * (1 - 2.0**-20):
            raise InvalidParameter("the file claims more privacy than its event provides")
        if not isinstance(found.unit, str) or not found.unit or (found.unit == "row" and found.rows_per_unit != 1):
            raise InvalidParameter("the file does not say whom it protects")
        settle(found, epsilon=max(found.epsilon, said))
        return found
