"""Every error this library raises.

DiscreetError
├── InvalidParameter      a public parameter is out of range; no data was read
├── UnsupportedEvent      an accountant has no proof for this event; it never guesses
├── Refused               the request cannot be answered privately; says where, why and the way out
├── BudgetExceeded        the ledger refused the charge; carries asked and left
└── NoiseOverflow         a noise value does not fit 64 bits; nothing was released

No message contains a data value, only public parameters.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "DiscreetError",
    "InvalidParameter",
    "NoiseOverflow",
    "Refused",
    "UnsupportedEvent",
]


class DiscreetError(Exception):
    """The root of all errors of this library."""


class InvalidParameter(DiscreetError, ValueError):
    """A public parameter is out of range. No data was read."""


class UnsupportedEvent(DiscreetError, NotImplementedError):
    """No bound is proven for this event under this relation. An accountant never guesses."""


class Refused(DiscreetError):
    """The request cannot be answered privately. The message says why and what to do instead."""


class BudgetExceeded(DiscreetError):
    """The charge does not fit into what is left. Nothing was read."""

    def __init__(self, *, asked: object, left: object) -> None:
        super().__init__(f"the charge {asked} does not fit into what is left: {left}")
        self.asked = asked
        self.left = left


class NoiseOverflow(DiscreetError, OverflowError):
    """A noise value does not fit a 64-bit integer. Nothing was released; a scalar call has no such limit."""
