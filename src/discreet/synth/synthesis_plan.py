"""A synthesis that is planned and priced, and what happens once it is paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from discreet.custodian_debug import ConstantFailure
from discreet.errors import InvalidParameter, Refused
from discreet.exact import up
from discreet.privacy import epsilon as epsilon_of
from discreet.privacy.events import GDP, ApproxDP, Event
from discreet.privacy.payer import Payer, Price, pay
from discreet.privacy.relation import Relation
from discreet.synth.domain.coding import CellSearch, Coder, TableRows
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.domain.source_tables import UnreadTable
from discreet.synth.fitted_models import SyntheticImageModel, SyntheticModel
from discreet.synth.gaussian_prices import epsilon_for, mu_squared_for
from discreet.synth.method import ImageMethod, TableMethod, Terms
from discreet.synth.promise import Promise
from discreet.synth.tables.table_shape import check_rules

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = [
    "IMAGE_METHODS",
    "TABLE_METHODS",
    "SynthesisPlan",
    "choose_for_images",
    "choose_for_table",
    "image_method",
    "is_affordable",
    "model_class",
    "paid",
    "plan_images",
    "plan_table",
    "table_method",
]

_TO_FIND = Fraction(1, 8)  # The share of the budget for cells that nobody declared.
_ROUNDING = 1 - Fraction(1, 1 << 16)  # What an account of several kinds of noise may round up by.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SynthesisPlan:
    """What a synthesis will do and what it costs; nothing is charged or read before `fit`.

    Args:
        promise: What will be promised, and so what it costs.
        description: What will be done, in words.

    Examples:
        >>> domain = dp.synth.Domain({"sex": dp.synth.Category(["f", "m"])})
        >>> plan = dp.synth.plan({"sex": ["f", "m"]}, domain=domain, epsilon=1, delta=1e-6)
        >>> plan.promise.epsilon <= 1
        True
    """

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

    __repr__ = __str__


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
    """Plan to find cells that nobody declared first, for a share of the budget, and to fit with the rest.

    The two are adaptive: what is fitted depends on what was found. What they spend adds up, whatever is found: mu^2,
    where the method's price is one of Gaussian privacy, and else epsilon; and delta.
    """
    finding, rest, chosen = _shared(method, terms)
    # Planned for as many cells as could be found: what it would refuse is refused while nothing is paid.
    planned = chosen.plan(replace(rest, domain=finding.largest))
    _check_rest(planned.event, finding, _promise(planned.event, chosen.name, rest, unit))
    promise = _promise(_together(finding, terms), chosen.name, terms, unit)

    def fit(progress: bool) -> SyntheticModel:
        one_each = replace(terms, rows_per_unit=1)
        settled = replace(rest, domain=finding.settled(_rows(table, one_each, unit)))
        last = chosen.plan(settled)
        _check_rest(last.event, finding, _promise(last.event, chosen.name, rest, unit))
        return SyntheticModel(settled.domain, promise, last.fit(_rows(table, settled, unit), progress=progress))

    description = f"find cells that nobody declared, then: {planned.describe()}"
    return SynthesisPlan(promise, description, session, fit, table.of_session)


def _shared(method: str | TableMethod | ImageMethod, terms: Terms[Any]) -> tuple[CellSearch, Terms[Any], TableMethod]:
    """Divide a budget between finding cells and fitting: in mu^2 where the method's price is Gaussian privacy."""
    finding = CellSearch(
        domain=terms.domain,
        epsilon=terms.epsilon * _TO_FIND,
        delta=terms.delta * _TO_FIND,
        relation=terms.relation,
    )
    rest = replace(terms, epsilon=terms.epsilon * (1 - _TO_FIND), delta=terms.delta * (1 - _TO_FIND))
    largest = replace(rest, domain=finding.largest)
    chosen = _table_method(method, largest)
    if not isinstance(chosen.plan(largest).event, GDP):
        return finding, rest, chosen
    shown = finding.delta if finding.texts else Fraction(0)
    left = terms.delta - shown  # What noise may fail by, in finding and in fitting together.
    whole = mu_squared_for(terms.epsilon * _ROUNDING, left)
    finding = replace(finding, epsilon=Fraction(0), delta=shown, mu_squared=whole * _TO_FIND)
    return finding, replace(rest, epsilon=epsilon_for(whole * (1 - _TO_FIND), left), delta=left), chosen


def _together(finding: CellSearch, terms: Terms[Any]) -> Event:
    """Return what finding and fitting spend in all; in epsilon and delta where an account rounds the rest above them.

    Gaussian privacy of (epsilon, delta - d), and values that are shown with chance d, are (epsilon, delta) together.
    """
    plain = ApproxDP(terms.epsilon, terms.delta)
    if finding.mu_squared is None:
        return plain
    both = replace(finding, mu_squared=finding.mu_squared / _TO_FIND).event
    return both if epsilon_of(both, terms.delta, relation=terms.relation) <= up(terms.epsilon) else plain


def _check_rest(fitting: Event, finding: CellSearch, within: Promise) -> None:
    """Refuse a fit that would spend more than the rest; `within` has compared it with the rest in epsilon."""
    if finding.mu_squared is None:
        return
    most = finding.mu_squared / _TO_FIND - finding.mu_squared
    if not isinstance(fitting, GDP) or fitting.mu_squared > most:
        raise Refused(f"the price of {within.method} is not what is left once cells are found")


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


# --- paying ---
# The charge: all of it, for the right unit, before anything is read; and one failure for whatever comes after it.


_PURPOSE = "synthetic data"
T = TypeVar("T")


def paid(session: Payer | None, promise: Promise, work: Callable[[], T], *, of_session: bool) -> T:
    """Charge, then run what reads rows. Whatever fails after the charge fails with one and the same words.

    Rows that a session holds are read under a claim, since whoever asks may learn from a failure; whoever hands over a
    table of their own knows it.
    """
    if of_session:
        held = cast("Session", session)
        purpose = f"{_PURPOSE}: {promise.method}"
        event = _payable(held, promise)
        return held._read(work, event=event, relation=promise.relation, purpose=purpose, unit=promise.unit)
    if session is not None:
        price = Price(_payable(session, promise), promise.relation)
        pay(session, price, purpose=f"{_PURPOSE}: {promise.method}", unit=promise.unit)
    with ConstantFailure():  # Also where nobody pays: methods of others run in here.
        return work()


def _payable(session: Payer, promise: Promise) -> Event:
    """Return the event, or what it means at its delta where only that fits; both are true, and both are public.

    A ledger adds Rényi divergences or epsilons. The former is cheaper beside other noise, the latter for a single fit
    that takes the whole budget.
    """
    affords = getattr(session, "affords", None)
    if affords is None:
        return promise.event
    plain = ApproxDP(Fraction(promise.epsilon), promise.delta)
    fits = {event: _fits(affords, event) for event in (promise.event, plain)}
    return next((event for wanted in (True, False) for event in fits if fits[event] is wanted), promise.event)


def is_affordable(session: Session, promise: Promise) -> bool:
    """Tell whether what will be charged fits now; what has no price at all is left to the charge to refuse."""
    return _fits(session.affords, _payable(session, promise)) is not False


def _fits(affords: Callable[[Event], bool], event: Event) -> bool | None:
    """Tell whether a ledger could be charged; None if it keeps no account in which such an event has a price."""
    try:
        return affords(event)
    except Refused:
        return None


# --- choosing ---
# Which method, by public facts alone: the columns and cells of a domain, the size of pictures, epsilon.


_FEW, _MANY = 20, 60  # Columns up to which all triples, and all pairs, are looked at again and again within minutes.
_MOST_PAIR = 1 << 20  # Cells of two columns together.
_STRONG = Fraction(2)  # Below this epsilon one noisy embedding says more than many noisy gradients.
_SMALL = 28 * 28  # Pixels that a processor without a graphics card can learn to draw in minutes.


def choose_for_table(terms: Terms[Domain]) -> TableMethod:
    """Take AIM where its model stays small, of pairs only where there are many columns, else MST."""
    columns, largest = len(terms.domain.names), sorted(terms.domain.sizes)[-2:]
    if columns > _MANY or largest[0] * largest[-1] > _MOST_PAIR:
        return table_method("mst")
    if columns <= _FEW:
        return table_method("aim")
    from discreet.synth.tables import AIM

    return AIM(ways=2)


def choose_for_images(terms: Terms[Images]) -> ImageMethod:
    """Take diffusion where epsilon allows it, pictures are small and it can tell how many there are, else DP-MERF."""
    can = terms.relation is Relation.ADD_REMOVE and terms.public_rows is not None
    strong = terms.epsilon >= _STRONG and terms.domain.pixels <= _SMALL
    return image_method("diffusion" if can and strong else "merf")


# --- methods: The methods by name; each is loaded when it is asked for. ---


# name: (method, fitted model), each by its module
TABLE_METHODS = {
    "aim": ("tables.aim:AIM", "tables.table_model:TableModel"),
    "mst": ("tables.mst:MST", "tables.table_model:TableModel"),
    "independent": ("tables.mst:Independent", "tables.table_model:TableModel"),
    "merf": ("merf.merf_tables:MerfTables", "merf.merf_models:MerfTableModel"),
}
IMAGE_METHODS = {
    "merf": ("merf.merf_images:MerfImages", "merf.merf_models:MerfImageModel"),
    "diffusion": ("diffusion.diffusion_method:Diffusion", "diffusion.diffusion_model:DiffusionModel"),
}


def table_method(name: str) -> TableMethod:
    """Return a method for tables with its usual options."""
    return cast(TableMethod, _load(name, TABLE_METHODS, "tables")())


def image_method(name: str) -> ImageMethod:
    """Return a method for pictures with its usual options."""
    return cast(ImageMethod, _load(name, IMAGE_METHODS, "pictures")())


def model_class(name: str, *, images: bool) -> Any:
    """Return the class of what a method fits."""
    return _load(name, IMAGE_METHODS if images else TABLE_METHODS, "pictures" if images else "tables", part=1)


def _load(name: str, methods: dict[str, tuple[str, str]], what: str, *, part: int = 0) -> Any:
    if name not in methods:
        raise InvalidParameter(f'there is no method {name!r} for {what}. There are: "auto", {", ".join(methods)}')
    module, found = methods[name][part].split(":")
    return getattr(import_module(f"discreet.synth.{module}"), found)
