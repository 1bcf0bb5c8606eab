"""Tables of counts as an attacker finds them: by which columns, of which rows, how noisy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import privacy
from discreet.attacks.lab_tables import Lab, laboratory
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.noise import discrete_laplace, rounded_gaussian
from discreet.privacy.not_private import NotPrivate

__all__ = ["CountNoise", "CountTable", "Floats", "noised", "published_counts", "tabulate"]

Floats: TypeAlias = NDArray[np.float64]


@final
class CountNoise(Enum):
    """Which noise was added to the counts of a table."""

    NONE = "none"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTable:
    """A published table: how many rows are in each group. A group that is not shown is NaN.

    `where` is the condition, written as in SQL, that its rows fulfil; "" if it counts all rows.
    """

    name: str
    by: tuple[str, ...]
    keys: tuple[tuple[Hashable, ...], ...]
    counts: Floats
    where: str = ""
    noise: CountNoise = CountNoise.NONE
    deviation: float = 0.0  # of the noise

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.counts) or any(len(key) != len(self.by) for key in self.keys):
            raise InvalidParameter(f"table {self.name!r} needs one count for each key, and one value for each column")
        if len(set(self.keys)) != len(self.keys):
            raise InvalidParameter(f"table {self.name!r} has a group twice")
        if not (math.isfinite(self.deviation) and self.deviation >= 0):
            raise InvalidParameter("the deviation of noise is a finite number and not negative")
        if (self.noise is CountNoise.NONE) != (self.deviation == 0):
            raise InvalidParameter("say both the kind of noise and its deviation, or neither")

    def draw(self, size: int) -> Floats:
        """Draw fresh noise of the same law: exact integers, as in a release."""
        match self.noise:
            case CountNoise.NONE:
                return np.zeros(size)
            case CountNoise.GAUSSIAN:
                return np.asarray(rounded_gaussian(self.deviation, size), dtype=np.float64)
            case CountNoise.LAPLACE:
                return np.asarray(discrete_laplace(self.deviation / math.sqrt(2), size), dtype=np.float64)


def tabulate(
    rows: Any,
    by: Sequence[str],
    *,
    where: str = "",
    name: str = "table",
    values: Mapping[str, Sequence[Hashable]] | None = None,
    hide_below: int = 0,
) -> NotPrivate[CountTable]:
    """Count rows exactly, in every combination of values, as a careless release would.

    `values` lists the groups of a column; without it those in the data are taken. Counts from 1 to `hide_below` - 1
    are not shown, which is what many offices do.
    """
    with laboratory({"rows": rows}) as lab:
        found = lab.select(_counting(lab, by, where)).to_pylist()
        listed = {column: _values(lab, column) for column in by} | dict(values or {})
    counted = {tuple(row[f"key_{i}"] for i in range(len(by))): row["rows"] for row in found}
    keys = tuple(product(*(listed[column] for column in by)))
    counts = np.array([_shown(counted.get(key, 0), hide_below) for key in keys], dtype=np.float64)
    return NotPrivate(CountTable(name=name, by=tuple(by), where=where, keys=keys, counts=counts))


def _counting(lab: Lab, by: Sequence[str], where: str) -> str:
    named = "".join(f"{lab.column('rows', column)} AS key_{i}, " for i, column in enumerate(by))
    condition = f" WHERE {lab.condition('rows', where)}" if where else ""
    grouped = f" GROUP BY {', '.join(f'key_{i}' for i in range(len(by)))}" if by else ""
    return f"SELECT {named}count(*) AS rows FROM {lab.relations['rows']}{condition}{grouped}"


def _values(lab: Lab, column: str) -> list[Hashable]:
    """List the values of a column in all rows: also those that no row of a condition has."""
    name = lab.column("rows", column)
    found = lab.select(f"SELECT DISTINCT {name} AS value FROM {lab.relations['rows']} WHERE {name} IS NOT NULL")
    return sorted(found.column("value").to_pylist(), key=str)


def _shown(count: int, hide_below: int) -> float:
    return math.nan if 0 < count < hide_below else float(count)


# --- published: Tables as they were published, read back for an attack: from a bundle, or anybody's. ---


def published_counts(
    table: Any,
    *,
    by: Sequence[str],
    count: str,
    where: str = "",
    name: str = "table",
    noise: CountNoise = CountNoise.GAUSSIAN,
) -> CountTable:
    """Read a published table of counts: its groups, its counts, and how noisy they are.

    A table of a bundle says the deviation of its noise beside each count, in a column such as `patients_noise_sd` for
    `patients`; one without such a column is taken as exact. A count that is not shown is missing.
    """
    with laboratory({"table": table}) as lab:
        deviation = f"{count}_noise_sd"
        noisy = deviation in lab.columns["table"]
        keys = "".join(f"{lab.column('table', column)} AS key_{i}, " for i, column in enumerate(by))
        said = f"CAST({lab.column('table', deviation)} AS DOUBLE)" if noisy else "0.0"
        counts = f"CAST({lab.column('table', count)} AS DOUBLE)"
        rows = lab.select(
            f"SELECT {keys}{counts} AS count, {said} AS deviation FROM {lab.relations['table']}"
        ).to_pylist()
    most = max((row["deviation"] or 0.0 for row in rows), default=0.0)
    return CountTable(
        name=name,
        by=tuple(by),
        where=where,
        keys=tuple(tuple(row[f"key_{i}"] for i in range(len(by))) for row in rows),
        counts=np.array([math.nan if row["count"] is None else row["count"] for row in rows], dtype=np.float64),
        noise=noise if most > 0 else CountNoise.NONE,
        deviation=most,
    )


# --- noising: Exact tables turned into private ones, to be attacked in the same way. ---


def noised(
    tables: Sequence[CountTable], *, epsilon: Number, delta: Number
) -> tuple[tuple[CountTable, ...], privacy.Event]:
    """Return tables with Gaussian noise that costs `epsilon` at `delta` for all of them together, and what it costs.

    Guarantee   for one row more or less, which changes one count of each table by one.
    Theorem     k Gaussian releases of deviation sqrt(k) sigma cost together what one of sigma does. [DRS22]
    """
    if not tables or any(table.noise is not CountNoise.NONE for table in tables):
        raise InvalidParameter("give at least one table, and exact ones")
    alone = privacy.gaussian_sigma(epsilon, exact(delta, name="delta"))
    # The root is rounded up, so that the noise is not too small.
    sigma = Fraction(alone) * Fraction(math.isqrt(len(tables) * 10**18) + 1, 10**9)
    private = [
        replace(
            table,
            counts=table.counts + np.asarray(rounded_gaussian(sigma, len(table.counts)), dtype=np.float64),
            noise=CountNoise.GAUSSIAN,
            deviation=float(sigma),
        )
        for table in tables
    ]
    return tuple(private), privacy.Repeated(privacy.Gaussian(sigma), len(tables))
