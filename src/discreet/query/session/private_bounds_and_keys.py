"""Find bounds, contribution limits and group keys in the data, as steps that are priced, charged and visible."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.exact import Number, exact, integer, positive
from discreet.formatting import plain, record
from discreet.query.answer_columns import Cell, cell_text
from discreet.query.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from discreet.query.plan.answers import root_up
from discreet.query.plan.planner import joint_event
from discreet.query.release_table import ReleaseTable
from discreet.query.session.builder import name, word
from discreet.query.session.catalogue_builder import nearest
from discreet.query.session.requests import Offer
from discreet.schema.columns import Bound, Declared, Kind, between, categories

if TYPE_CHECKING:
    from discreet.privacy import Event
    from discreet.query.session.plans import Plan
    from discreet.query.session.session import Session

__all__ = [
    "LimitsPlan",
    "PrivateBounds",
    "PrivateKeys",
    "PrivateLimit",
    "ProposedLimits",
    "UnitHistogram",
    "column_of",
    "plan_limits",
    "private_bounds",
    "private_keys",
    "private_limit",
    "private_table",
    "with_declared",
]

# --- private_bounds ---
# Find bounds and contribution limits in the data, as a step that is priced, charged and visible.


_USUAL = Fraction(98, 100)
# With m rows of each unit ranks are m times as uncertain, and there are at most m times as many: one is never worse.
_ONE_ROW = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 1)"


@final
@dataclass(frozen=True, slots=True)
class PrivateBounds:
    """Bounds that were found privately: a declaration for `columns=`, and the answer that they come from.

    Args:
        declared: The declaration, for `columns=`.
        release: The answer that the bounds come from.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> found = dp.private_bounds(session, "age", within=(0, 1000), epsilon=1)
        >>> found.declared.facts.low <= found.declared.facts.high
        True
        >>> session.close()
    """

    declared: Declared
    release: ReleaseTable

    __repr__ = record

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid

        return grid([("declared", self.declared)], named=True) + self.release._repr_html_()


@final
@dataclass(frozen=True, slots=True)
class PrivateLimit:
    """How much most units have: a number for `max_rows_per_group` or `max_groups`, and where it comes from.

    Args:
        limit: How many rows, or groups, most units have.
        release: The answer that it comes from.
    """

    limit: int
    release: ReleaseTable

    __repr__ = record

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid

        return grid([("limit", self.limit)], named=True) + self.release._repr_html_()


def private_bounds(
    session: Session,
    column: str,
    *,
    within: tuple[Bound, Bound],
    epsilon: Number | None = None,
    rho: Number | None = None,
    table: str | None = None,
    coverage: Number = _USUAL,
    step: Number | None = None,
    whole: bool | None = None,
) -> PrivateBounds:
    """Find bounds of a column privately, between which about a share `coverage` of its values lies.

    `within` are the widest bounds that are publicly certain; the price of a wide range is small, since the error of a
    private quantile, in ranks, grows with the logarithm of the number of grid points. [Smi11] `step` and `whole` are
    those of `between`.

    Args:
        session: The session that pays and reads.
        column: The column.
        within: The widest bounds that are publicly certain.
        epsilon: What to spend; say this or `rho`.
        rho: What to spend of zero-concentrated privacy.
        table: The table, where there are several.
        coverage: The share of values that the bounds shall hold.
        step: The grid of real numbers, as for `between`.
        whole: Whether numbers are whole, as for `between`.

    Returns:
        The declaration, and the answer that it comes from.

    Raises:
        BudgetExceeded: If the session cannot pay; nothing is read.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> found = dp.private_bounds(session, "age", within=(0, 1000), epsilon=1)
        >>> found.declared.facts.low <= found.declared.facts.high
        True
        >>> session.close()
    """
    low, high = within
    widest = between(low, high, step=step, whole=whole)
    known = private_table(session.catalogue, table)
    found = column_of(known, column)
    below = (1 - _share(coverage)) / 2
    ends = ", ".join(
        f"QUANTILE({name(found.name)}, {word(at).sql}) AS {label}"
        for label, at in (("low", below), ("high", 1 - below))
    )
    plan = session._ask(
        f"SELECT {_ONE_ROW} {ends} FROM {name(known.name)}",
        Offer(epsilon=epsilon, rho=rho),
        catalogue=with_declared(session.catalogue, known, found.name, widest),
    )
    release = plan.release()
    first, last = (release[label][0].value for label in ("low", "high"))
    return PrivateBounds(_declared(first, last, widest), release)


def private_limit(
    session: Session,
    *,
    most: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    table: str | None = None,
    groups: str | None = None,
    coverage: Number = _USUAL,
) -> PrivateLimit:
    """Find a contribution limit privately: about a share `coverage` of units has no more rows.

    With `groups`, find in how many groups by that column it is. `most` is the largest limit worth considering.

    Args:
        session: The session that pays and reads.
        most: The largest limit worth considering, at least 2.
        epsilon: What to spend; say this or `rho`.
        rho: What to spend of zero-concentrated privacy.
        table: The table, where there are several.
        groups: The column by which groups are counted; rows are counted if not said.
        coverage: The share of units that shall have no more.

    Returns:
        The limit, and the answer that it comes from.

    Raises:
        InvalidParameter: If rows are the units.
        BudgetExceeded: If the session cannot pay; nothing is read.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"person": [1, 1, 2, 3] * 100}),
        ...     unit=dp.Unit("person"),
        ...     budget=dp.Budget(epsilon=4),
        ...     ledger="memory",
        ...     dataset="visits",
        ...     principal="ana",
        ... )
        >>> 1 <= dp.private_limit(session, most=500, epsilon=1).limit <= 500
        True
        >>> session.close()
    """
    known = private_table(session.catalogue, table)
    if known.unit is None:
        raise InvalidParameter("rows are the units here: each is in one group, once")
    cap = integer(most, name="most")
    if cap < 2:
        raise InvalidParameter("most must be at least 2: below that there is nothing to find")
    counted = "COUNT(*)" if groups is None else f"COUNT(DISTINCT {name(column_of(known, groups).name)})"
    share = word(_share(coverage)).sql
    release = session._ask(
        f"SELECT QUANTILE(GREATEST(1, LEAST(n, {cap})), {share}) AS top FROM "
        f"(SELECT {name(known.unit)}, {counted} AS n FROM {name(known.name)} GROUP BY {name(known.unit)}) AS units",
        Offer(epsilon=epsilon, rho=rho),
    ).release()
    return PrivateLimit(max(1, round(release["top"][0].value)), release)


def _share(coverage: Number) -> Fraction:
    share = exact(coverage, name="coverage")
    if not 0 < share < 1:
        raise InvalidParameter("coverage must lie between 0 and 1")
    return share


def _declared(first: Bound, last: Bound, widest: Declared) -> Declared:
    """Declare what was found. Where both ends are one point, take the widest bounds: there is nothing to clamp to."""
    if not first < last:  # type: ignore[operator]
        return widest
    if isinstance(first, date):
        return between(first, last)
    ends = tuple(Fraction(end) for end in (first, last))  # type: ignore[arg-type]
    if widest.facts.kind is Kind.INTEGER and all(end.denominator == 1 for end in ends):
        return between(*map(int, ends), step=widest.facts.step, whole=widest.whole)
    return between(*ends, step=widest.facts.step)


# --- private_limits ---
# Both contribution limits from private histograms of rows and groups for each unit, in bins that double.


_SURE = Fraction(22, 10)  # Standard deviations of a sum of Laplace or Gaussian noises: at least 95 %, whatever weights.


@final
@dataclass(frozen=True, slots=True)
class UnitHistogram:
    """How many units have up to 1, 2, 4, 8 … rows (or groups), and how many have more than the last, each with noise.

    Theorem     A unit is in one bin: one unit more or less changes one number by one, and all are paid like one.
    """

    ends: tuple[int, ...]  # the largest number of each bin but the last, which is for more than these
    units: tuple[Fraction, ...]  # one more than there are ends
    deviation: Fraction  # of the noise of each
    all_rows: bool = True  # whether all rows of a unit are counted, and not those of one group, or its groups

    @property
    def called(self) -> tuple[str, ...]:
        """What the bins are called: 1, 2, 3 to 4 and so on, and more."""
        firsts = (1, *(end + 1 for end in self.ends[:-1]))
        inside = (f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in zip(firsts, self.ends, strict=True))
        return (*inside, f"more than {self.ends[-1]:,}")

    def limit(self, coverage: Fraction) -> int:
        """Return the least end that a share `coverage` of units does not exceed, as far as noise lets tell."""
        total = max(Fraction(1), sum(self.units, Fraction(0)))
        for place, end in enumerate(self.ends[:-1]):
            above = self.units[place + 1 :]
            unsure = _SURE * root_up(self.deviation**2 * len(above))
            if sum(above, Fraction(0)) <= max((1 - coverage) * total, unsure):
                return end
        return self.ends[-1]

    @property
    def total(self) -> Cell:
        """The number of rows of all units, none with more than the last end: noise, and the width of the bins.

        Raises:
            Refused: If groups were named: then a unit is in the bin of its fullest group, or of its groups.
        """
        if not self.all_rows:
            raise Refused(
                "these bins do not tell how many rows there are",
                reason="where groups are named, a unit is in the bin of its rows in one group, or of its groups",
                way_out="call session.limits without groups, or ask for COUNT(*) with a kept_share",
            )
        tops = (*self.ends, self.ends[-1])
        floors = (1, *(end + 1 for end in self.ends[:-1]), self.ends[-1])
        low, high = (
            sum((weight * units for weight, units in zip(weights, self.units, strict=True)), Fraction(0))
            for weights in (floors, tops)
        )
        off = _SURE * self.deviation * root_up(Fraction(sum(top * top for top in tops)))
        middle = (low + high) / 2
        return Cell(middle, high + off - middle, low - off, high + off)


@final
@dataclass(frozen=True, slots=True)
class ProposedLimits:
    """Contribution limits that most units keep, and the private histograms that they come from.

    Args:
        max_rows_per_group: How many rows most units have in a group; in all, where no groups were named.
        max_groups: In how many groups most units are; 1 where no groups were named.
        rows: Units by rows.
        groups: Units by groups; None where none were named.
        releases: The answers.
    """

    max_rows_per_group: int
    max_groups: int
    rows: UnitHistogram
    groups: UnitHistogram | None
    releases: tuple[ReleaseTable, ...]

    def __repr__(self) -> str:
        return "\n".join([*(f"{name} = {limit}" for name, limit in self.facts.items()), "", *self._told()])

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid, words

        bins = "".join(grid(lines[1:], lines[0], right=(True, True)) for lines in self.tables())
        return grid(list(self.facts.items()), named=True) + bins + f"<p>{words(self.paid)}</p>"

    @property
    def facts(self) -> dict[str, int]:
        """What to declare with the unit of the next session, as policies name it."""
        return {"max_rows_per_group": self.max_rows_per_group, "max_groups": self.max_groups}

    @property
    def paid(self) -> str:
        """How sure the numbers of units are, and what they cost."""
        first = self.releases[0]
        cost = " and ".join(one.cost for one in self.releases)
        return f"± at {plain(100 * first.confidence)} %, {cost}, {first.relation.value}"

    def tables(self) -> Iterator[list[tuple[str, str]]]:
        """List the bins and how many units are in each, below what they are called."""
        for histogram, told, release in zip((self.rows, self.groups), ("rows", "groups"), self.releases, strict=False):
            if histogram is not None:
                what = "rows" if histogram.all_rows else "rows in the fullest group" if told == "rows" else "groups"
                cells = (cell_text(release["units"][place]) for place in range(len(release)))
                yield [(what, "units"), *zip(histogram.called, cells, strict=True)]

    def _told(self) -> Iterator[str]:
        for lines in self.tables():
            wide = [max(len(line[column]) for line in lines) for column in (0, 1)]
            yield from (f"{one:>{wide[0]}}  {many:>{wide[1]}}".rstrip() for one, many in lines)
            yield ""
        yield self.paid


@final
@dataclass(frozen=True, slots=True)
class LimitsPlan:
    """What proposes limits, before it is paid for: one histogram, or one of rows and one of groups."""

    session: Session
    most: int
    coverage: Fraction
    plans: tuple[Plan, ...]

    @property
    def event(self) -> Event:
        """What is spent in all."""
        return joint_event(plan.event for plan in self.plans)

    @property
    def cost(self) -> str:
        return " and ".join(plan.cost for plan in self.plans)

    def release(self) -> ProposedLimits:
        """Charge for all histograms, or for none, and read."""
        if not self.session.affords(self.event, at_once=len(self.plans) == 1):
            raise BudgetExceeded(asked=self.cost, left=self.session.left)
        releases = tuple(plan.release() for plan in self.plans)
        found = [
            _histogram(self.most, plan, told, all_rows=len(releases) == 1)
            for plan, told in zip(self.plans, releases, strict=True)
        ]
        rows, by_group = found[0], found[1] if len(found) > 1 else None
        return ProposedLimits(
            max_rows_per_group=rows.limit(self.coverage),
            max_groups=1 if by_group is None else by_group.limit(self.coverage),
            rows=rows,
            groups=by_group,
            releases=releases,
        )


def plan_limits(
    session: Session,
    *,
    most: int,
    epsilon: Number | None = None,
    rho: Number | None = None,
    table: str | None = None,
    groups: Sequence[str] = (),
    coverage: Number = _USUAL,
) -> LimitsPlan:
    """Price both limits from private histograms; with groups each of the two takes half of what is spent."""
    known = private_table(session.catalogue, table)
    if known.unit is None:
        raise InvalidParameter("rows are the units here: each is in one group, once")
    if session.chain is not None:
        raise Refused(
            "limits are proposed for one unit, and two are protected here, one within the other",
            way_out="find them with dp.private_limit, or in a session on the inner unit alone",
        )
    cap, share = integer(most, name="most"), _share(coverage)
    if not 2 <= cap <= _WIDEST:
        raise InvalidParameter(f"most must be from 2 to {_WIDEST:,}: below there is nothing to find")
    keys = [name(column_of(known, one).name) for one in groups]
    unit, source = name(known.unit), name(known.name)
    pairs = f"SELECT {', '.join([unit, *keys])}, COUNT(*) AS n FROM {source} GROUP BY {', '.join([unit, *keys])}"
    each = f"SELECT {unit}, COUNT(*) AS g, MAX(n) AS m FROM ({pairs}) AS pairs GROUP BY {unit}"
    parts = 2 if keys else 1
    offer = Offer(
        epsilon=None if epsilon is None else positive(epsilon, name="epsilon") / parts,
        rho=None if rho is None else positive(rho, name="rho") / parts,
    )
    plans = [session._ask(_binned(each, what, cap), offer, keys={"bin": _bins(cap)}) for what in "mg"[:parts]]
    return LimitsPlan(session, cap, share, tuple(plans))


_WIDEST = 1 << 30


def _ends(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … below `most`, and itself."""
    doubled = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return (*doubled, most)


def _bins(most: int) -> list[int]:
    return [*range(len(_ends(most)) + 1)]


def _binned(each: str, what: str, most: int) -> str:
    """Count units by the bin of one of their numbers."""
    cases = " ".join(f"WHEN {what} <= {end} THEN {place}" for place, end in enumerate(_ends(most)))
    bins = f"SELECT CASE {cases} ELSE {len(_ends(most))} END AS bin FROM ({each}) AS units"
    return f"SELECT bin, COUNT(*) AS units FROM ({bins}) AS bins GROUP BY bin"


def _histogram(most: int, plan: Plan, told: ReleaseTable, *, all_rows: bool) -> UnitHistogram:
    units = tuple(Fraction(told["units"][place].value) for place in range(len(told)))
    return UnitHistogram(_ends(most), units, plan.deviations["units"], all_rows)


# --- private_keys: Find group keys in the data, as a step that is priced, charged and visible. ---


@final
@dataclass(frozen=True, slots=True)
class PrivateKeys:
    """Keys that were found privately, perhaps none, and the answer that they come from. `keys=` takes them.

    Args:
        keys: The keys that were found, perhaps none.
        release: The answer that they come from.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> set(dp.private_keys(session, "city", epsilon=1, delta=1e-8).keys) <= {"A", "B"}
        True
        >>> session.close()
    """

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
    """Find group keys privately (partition selection): the values of a column that enough units have.

    A value that one unit alone has is found with probability `delta` at most; how many were not found is not told.

    Args:
        session: The session that pays and reads.
        column: The column.
        delta: The chance that a value is found which one unit alone has.
        epsilon: What to spend; say this or `rho`.
        rho: What to spend of zero-concentrated privacy.
        table: The table, where there are several.

    Returns:
        The keys, and the answer that they come from.

    Raises:
        BudgetExceeded: If the session cannot pay; nothing is read.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> set(dp.private_keys(session, "city", epsilon=1, delta=1e-8).keys) <= {"A", "B"}
        True
        >>> session.close()
    """
    known = private_table(session.catalogue, table)
    found = column_of(known, column)
    counted = "COUNT(*)" if known.unit is None else f"COUNT(DISTINCT {name(known.unit)})"
    release = session._ask(
        f"SELECT {name(found.name)} AS key, {counted} AS units FROM {name(known.name)} GROUP BY {name(found.name)}",
        Offer(epsilon=epsilon, rho=rho, delta=delta),
    ).release()
    return PrivateKeys(tuple(row["key"] for row in release if row["key"] is not None), release)


# --- steps: What the private steps share: finding the table they are about. ---


def private_table(catalogue: Catalogue, table: str | None) -> CatalogueTable:
    """Return the private table that is meant: the one that is named, or the only one."""
    private = {name: found for name, found in catalogue.tables.items() if found.private}
    if table is None:
        if len(private) > 1:
            raise InvalidParameter(f"say which table is meant: table=… There are: {', '.join(private)}")
        return next(iter(private.values()))
    found = next((known for name, known in private.items() if name.casefold() == table.casefold()), None)
    if found is None:
        raise InvalidParameter(f"there is no private table {table!r}. {nearest(table, private)}")
    return found


def column_of(table: CatalogueTable, column: str) -> CatalogueColumn:
    """Return the column that is meant; the unit's own is refused, for it names people."""
    found = next((known for name, known in table.columns.items() if name.casefold() == column.casefold()), None)
    if found is None:
        raise InvalidParameter(f"table {table.name!r} has no column {column!r}. {nearest(column, table.columns)}")
    if table.unit is not None and found.name == table.unit:
        raise InvalidParameter(f"{found.name!r} tells whom a row belongs to, and is not released")
    return found


def with_declared(catalogue: Catalogue, table: CatalogueTable, column: str, declared: Declared) -> Catalogue:
    """Return the catalogue with another declaration of one column."""
    stored = table.columns[column].stored
    changed = CatalogueColumn(
        name=column,
        facts=declared.stored_as(stored),
        missing=declared.missing,
        format=declared.format,
        labels=declared.labels,
        of_unit=table.columns[column].of_unit or declared.of_unit,
        stored=stored,
    )
    tables = dict(catalogue.tables) | {table.name: replace(table, columns=dict(table.columns) | {column: changed})}
    return replace(catalogue, tables=tables)
