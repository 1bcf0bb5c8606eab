"""Find group keys in the data, as a step that is priced, charged and visible."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.query.policy import Declared, categories
from discreet.query.results import ReleaseTable
from discreet.query.session.spending import Offer
from discreet.query.session.steps import column_of, private_table
from discreet.query.session.words import name

if TYPE_CHECKING:
    from discreet.query.session.session import Session

__all__ = ["PrivateKeys", "private_keys"]


@final
@dataclass(frozen=True, slots=True)
class PrivateKeys:
    """Keys that were found privately, perhaps none, and the answer that they come from. `keys=` takes them."""

    keys: tuple[Hashable, ...]
    release: ReleaseTable

    @property
    def declared(self) -> Declared:
        """The declaration of a column of which these are the categories."""
        if not self.keys:
            raise InvalidParameter("no value was shared by enough people to be named: spend more, or list public keys")
        return categories(self.keys)


def private_keys(
    session: Session,
    column: str,
    *,
    delta: Number,
    epsilon: Number | None = None,
    rho: Number | None = None,
    table: str | None = None,
) -> PrivateKeys:
    """Find the values of a column that enough units have.

    A value that one unit alone has is found with probability `delta` at most; how many were not found is not told.
    """
    known = private_table(session.catalogue, table)
    found = column_of(known, column)
    counted = "COUNT(*)" if known.unit is None else f"COUNT(DISTINCT {name(known.unit)})"
    release = session._ask(
        f"SELECT {name(found.name)} AS key, {counted} AS units FROM {name(known.name)} GROUP BY {name(found.name)}",
        Offer(epsilon=epsilon, rho=rho, delta=delta),
    ).release()
    return PrivateKeys(tuple(row["key"] for row in release if row["key"] is not None), release)
