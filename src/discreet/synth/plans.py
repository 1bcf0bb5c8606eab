"""A synthesis that is planned and priced, and what happens once it is paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, cast, final

from discreet.errors import InvalidParameter
from discreet.privacy.events import ApproxDP, Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.synth.choosing import choose_for_images, choose_for_table
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.domain.finding import CellSearch
from discreet.synth.domain.images import ImageRows
from discreet.synth.domain.tables import UnreadTable
from discreet.synth.method import ImageMethod, TableMethod, Terms
from discreet.synth.methods import image_method, table_method
from discreet.synth.model import SyntheticImageModel, SyntheticModel
from discreet.synth.paying import paid
from discreet.synth.promise import Promise
from discreet.synth.tables.rules import check_rules

__all__ = ["SynthesisPlan", "plan_images", "plan_table"]

_TO_FIND = Fraction(1, 8)  # The share of epsilon and delta for cells that nobody declared.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SynthesisPlan:
    """What a synthesis will do and what it costs; nothing is charged or read before `fit`."""

    promise: Promise
    description: str
    _session: Payer | None = field(repr=False)
    _fit: Callable[[bool], Any] = field(repr=False)
    _of_session: bool = field(default=False, repr=False)  # whether the rows are those that the session holds

    @property
    def event(self) -> Event:
        """What will be charged."""
        return self.promise.event

    def fit(self, *, progress: bool = True) -> Any:
        """Charge, read, fit: a model. Whatever fails after the charge fails with one and the same words."""
        return paid(self._session, self.promise, lambda: self._fit(progress), of_session=self._of_session)

    def __str__(self) -> str:
        return f"{self.description}\n{self.promise}"


def plan_table(
    table: UnreadTable, method: str | TableMethod | ImageMethod, terms: Terms[Any], unit: str, session: Payer | None
) -> SynthesisPlan:
    """Plan for a table."""
    terms = _with_public_rows(terms, table.rows if unit == "row" else None)
    check_rules(terms.domain)
    if not terms.domain.is_settled:
        return _plan_and_find(table, method, terms, unit, session)
    chosen = _table_method(method, terms)
    planned = chosen.plan(terms)
    promise = _promise(planned.event, chosen.name, terms, unit)

    def fit(progress: bool) -> SyntheticModel:
        return SyntheticModel(terms.domain, promise, planned.fit(_rows(table, terms, unit), progress=progress))

    return SynthesisPlan(promise, planned.describe(), session, fit, table.of_session)


def _plan_and_find(
    table: UnreadTable, method: str | TableMethod | ImageMethod, terms: Terms[Any], unit: str, session: Payer | None
) -> SynthesisPlan:
    """Plan to find cells that nobody declared first, for a share of epsilon and delta, and to fit with the rest.

    The two are adaptive: what is fitted depends on what was found. Their epsilons and deltas add, whatever is found.
    """
    finding = CellSearch(
        domain=terms.domain,
        epsilon=terms.epsilon * _TO_FIND,
        delta=terms.delta * _TO_FIND,
        relation=terms.relation,
    )
    rest = replace(terms, epsilon=terms.epsilon * (1 - _TO_FIND), delta=terms.delta * (1 - _TO_FIND))
    largest = replace(rest, domain=finding.largest)
    chosen = _table_method(method, largest)
    # Planned for as many cells as could be found: what it would refuse is refused while nothing is paid.
    _promise((planned := chosen.plan(largest)).event, chosen.name, rest, unit)
    promise = _promise(ApproxDP(terms.epsilon, terms.delta), chosen.name, terms, unit)

    def fit(progress: bool) -> SyntheticModel:
        one_each = replace(terms, rows_per_unit=1)
        settled = replace(rest, domain=finding.settled(_rows(table, one_each, unit)))
        last = chosen.plan(settled)
        _promise(last.event, chosen.name, rest, unit)
        return SyntheticModel(settled.domain, promise, last.fit(_rows(table, settled, unit), progress=progress))

    description = f"find cells that nobody declared, then: {planned.describe()}"
    return SynthesisPlan(promise, description, session, fit, table.of_session)


def _table_method(method: str | TableMethod | ImageMethod, terms: Terms[Any]) -> TableMethod:
    if isinstance(method, str):
        return choose_for_table(terms) if method == "auto" else table_method(method)
    return cast(TableMethod, method)


def _rows(table: UnreadTable, terms: Terms[Any], unit: str) -> TableRows:
    return TableRows(Coder(terms.domain), table, None if unit == "row" else unit, terms.rows_per_unit)


def plan_images(
    rows: ImageRows, method: str | TableMethod | ImageMethod, terms: Terms[Any], session: Payer | None
) -> SynthesisPlan:
    """Plan for pictures."""
    terms = _with_public_rows(terms, len(rows))
    chosen = cast(ImageMethod, method)
    if isinstance(method, str):
        chosen = choose_for_images(terms) if method == "auto" else image_method(method)
    planned = chosen.plan(terms)
    promise = _promise(planned.event, chosen.name, terms, "row")

    def fit(progress: bool) -> SyntheticImageModel:
        return SyntheticImageModel(terms.domain, promise, planned.fit(rows, progress=progress))

    return SynthesisPlan(promise, planned.describe(), session, fit)


def _promise(event: Event, method: str, terms: Terms[Any], unit: str) -> Promise:
    promise = Promise.of(
        event,
        method=method,
        relation=terms.relation,
        delta=terms.delta,
        unit=unit,
        rows_per_unit=terms.rows_per_unit,
    )
    promise.check_within(terms.epsilon)
    return promise


def _with_public_rows(terms: Terms[Any], rows: int | None) -> Terms[Any]:
    """Under replace-one the number of rows is public; under add-remove it is what somebody said, or unknown."""
    if terms.relation is not Relation.REPLACE_ONE or rows is None:
        return terms
    if terms.public_rows not in (None, rows):
        raise InvalidParameter("public_rows is not the number of rows, which is public under replace-one")
    return replace(terms, public_rows=rows)
