"""What is asked, before anything is read: which table, which columns, whose rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.privacy.payer import Payer
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.domain.tables import UnreadTable, table_of

__all__ = ["asked_domain", "asked_images", "asked_table", "read_unit"]

_NO_DOMAIN = (
    "say what is publicly known of the table: domain=dp.synth.Domain({…}), or dp.synth.Images(…) for pictures; with a "
    "session, the name of one of its tables whose columns are declared is enough"
)


def asked_domain(table: Any, domain: Any, session: Payer | None) -> Domain | Images:
    """Return the domain that was declared, here or for the session."""
    if isinstance(domain, (Domain, Images)):
        return domain
    if isinstance(domain, Mapping):
        return Domain(domain)
    if domain is None and _is_of_session(table, session):
        from discreet.synth.domain.of_session import domain_of_session

        return domain_of_session(session, table)  # type: ignore[arg-type]
    raise InvalidParameter(_NO_DOMAIN)


def asked_table(table: Any, session: Payer | None, names: tuple[str, ...]) -> UnreadTable:
    """Return the table that is meant, with all these columns; no value is looked at."""
    if _is_of_session(table, session):
        from discreet.synth.domain.files import session_table

        found = session_table(session, table)  # type: ignore[arg-type]
    else:
        found = table_of(table)
    found.check_has(names)
    return found


def asked_images(table: Any, domain: Images) -> ImageRows:
    """Return the pictures that are meant: a pair of arrays, or both under the names images and labels."""
    if isinstance(table, Mapping) and set(table) == {"images", "labels"}:
        return domain.rows(table["images"], table["labels"])
    if isinstance(table, tuple) and len(table) == 2:
        return domain.rows(*table)
    raise InvalidParameter('pictures must be a pair (images, labels), or {"images": …, "labels": …}')


def read_unit(unit: str, rows_per_unit: int | None, domain: Domain | Images) -> int:
    """Return how many rows one unit can bring; where a unit has several, somebody must have said."""
    if not isinstance(unit, str) or not unit:
        raise InvalidParameter('unit must be "row", or the name of the column that tells people apart')
    if unit == "row":
        if rows_per_unit not in (None, 1):
            raise InvalidParameter("a row is one row: leave rows_per_unit out, or name the unit's column")
        return 1
    if isinstance(domain, Images):
        raise InvalidParameter('pictures are protected one by one: say unit="row"')
    if unit in domain.columns:
        raise InvalidParameter(f"column {unit!r} tells people apart, so it cannot be a column of the synthetic table")
    if rows_per_unit is None:
        raise InvalidParameter(
            f"say rows_per_unit: how many rows of one {unit} are used at most. More rows need more noise; "
            "few mean that people with many rows count less"
        )
    return positive_integer(rows_per_unit, name="rows_per_unit")


def _is_of_session(table: Any, session: Payer | None) -> bool:
    catalogue = getattr(session, "catalogue", None)
    return (
        isinstance(table, str)
        and catalogue is not None
        and any(table.casefold() == name.casefold() for name in catalogue.tables)
    )
