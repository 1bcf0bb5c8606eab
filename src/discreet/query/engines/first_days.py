"""Who was there when: for each unit, the first of the public groups that it has rows in.

This is for series over time, where what a unit has given before is kept from one day to the next. What comes out names
units; it is private, and goes nowhere but into a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.query.engines.stages import Scan, select

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["first_groups"]


def first_groups(scan: Scan, connection: Any, most: int) -> pa.Table:
    """Return unit, place and group of the first `most` distinct groups of every unit, in the order of the groups.

    A unit is written as text: of whole numbers and texts no two are written alike.
    """
    assert scan.unit is not None
    assert scan.group is not None, "the groups are public"
    rows = select(connection, [f"CAST({scan.unit} AS VARCHAR)", scan.group], scan)
    kept = (
        "SELECT o1 AS unit, place, o2 AS day FROM (SELECT o1, o2, row_number() OVER (PARTITION BY o1 ORDER BY o2) "
        f"AS place FROM (SELECT DISTINCT o1, o2 FROM pairs WHERE o2 IS NOT NULL)) WHERE place <= {most:d}"
    )
    found: pa.Table = rows.query("pairs", kept).to_arrow_table()
    return found
