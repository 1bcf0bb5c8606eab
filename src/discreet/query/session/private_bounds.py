"""Find bounds and contribution limits in the data, as a step that is priced, charged and visible."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer
from discreet.query.facts import Kind
from discreet.query.policy import Bound, Declared, between
from discreet.query.results import ReleaseTable
from discreet.query.session.spending import Offer
from discreet.query.session.steps import column_of, private_table, with_declared
from discreet.query.session.words import name, word

if TYPE_CHECKING:
    from discreet.query.session.session import Session

__all__ = ["PrivateBounds", "PrivateLimit", "private_bounds", "private_limit"]

_USUAL = Fraction(98, 100)
# With m rows of each unit ranks are m times as uncertain, and there are at most m times as many: one is never worse.
_ONE_ROW = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 1)"


@final
@dataclass(frozen=True, slots=True)
class PrivateBounds:
    """Bounds that were found privately: a declaration for `columns=`, and the answer that they come from."""

    declared: Declared
    release: ReleaseTable


@final
@dataclass(frozen=True, slots=True)
class PrivateLimit:
    """How much most units have: a number for `max_rows_per_group` or `max_groups`, and where it comes from."""

    limit: int
    release: ReleaseTable


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
    """Find bounds of a column between which about a share `coverage` of its values lies.

    `within` are the widest bounds that are publicly certain; the price of a wide range is small, since the error of a
    private quantile, in ranks, grows with the logarithm of the number of grid points. [Smi11] `step` and `whole` are
    those of `between`.
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
    """Find how many rows a unit has, such that about a share `coverage` of units has no more.

    With `groups`, find in how many groups by that column it is. `most` is the largest limit worth considering.
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
