"""The planner: a question and a spend become a plan with a price, from public facts only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import exponent, significant_up
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import GDP, Composed, Event, Gaussian, Repeated
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.relation import Relation
from discreet.query import execute
from discreet.query.ast import OutputColumn, Query, ReleasedMeasure, Statistic, is_private, unit_of
from discreet.query.catalogue import Catalogue
from discreet.query.engine import ExactCounts, Stage, StageKey
from discreet.query.plan.answers import ReleasedNumbers, deviations, needs_rows, predicted, variances
from discreet.query.plan.contribution_limits import bound_contributions
from discreet.query.plan.draft import (
    MOST_EPSILON,
    MOST_RHO,
    Bundle,
    CountTerm,
    FinalDraft,
    Number,
    Pick,
    PlanRequest,
    Spend,
    TallySpec,
    Tighter,
    together,
)
from discreet.query.plan.explain import Explanation, explain, notes
from discreet.query.plan.fingerprint import fingerprint
from discreet.query.plan.measurements import bound_changes, choose_measurements
from discreet.query.plan.noise_selection import bundle_numbers, choose_noise
from discreet.query.plan.output_columns import check_posts, columns_of
from discreet.query.plan.residuals import SharedNoise
from discreet.query.release_table import ReleaseTable

__all__ = [
    "PricedQuery",
    "draw_together",
    "errors_of",
    "joint_event",
    "plan",
    "relative_errors_of",
    "rewrite",
    "spend_for",
]

# --- priced_query ---
# A query with its price, and one event for several that are paid together: all decisions made, nothing read.


# --- priced: A plan with its price: all decisions are made, from public facts only, and nothing has been read. ---


@final
@dataclass(frozen=True, slots=True, repr=False)
class PricedQuery:
    """A question, how it will be answered, and what that spends."""

    draft: FinalDraft

    @property
    def question(self) -> Query:
        return self.draft.question

    @property
    def spend(self) -> Spend:
        """What is spent; an error that was asked for has become an epsilon."""
        return self.draft.spend

    @property
    def relation(self) -> Relation:
        return self.draft.relation

    @property
    def measurements(self) -> tuple[Number | Pick, ...]:
        """What is measured and paid once each: numbers of every group, then choices in every group."""
        return (*self.draft.numbers, *self.draft.picks)

    @property
    def stage(self) -> Stage:
        """What an engine must read and add up."""
        draft = self.draft
        unit = None if draft.catalogue.unit.is_row else unit_of(draft.question.source)
        several = unit is not None and draft.max_rows > 1
        asked = any(number.tallying is TallySpec.UNITS for number in draft.numbers)
        return Stage(
            source=draft.question.source,
            unit=unit,
            keys=tuple(StageKey(expression=key.expression, domain=key.domain) for key in draft.question.keys),
            columns=draft.columns,
            max_groups=draft.max_groups,
            max_rows_per_group=draft.max_rows,
            wants_units=asked or (several and draft.groups is None),
            max_inner=None if draft.nesting is None else draft.nesting.most,
            family=draft.family,
        )

    @property
    def event(self) -> Event:
        """What is charged; of a chain, to the outer unit."""
        nesting = self.draft.nesting
        return self._spent(1, 1) if nesting is None else self._spent(nesting.outer, nesting.largest)

    @property
    def alone(self) -> Event:
        """What its answer tells by itself: the charge, but where a family shares its noise, of which it pays a part."""
        noising, shared = self.draft.noising, self.draft.noising.shared
        if shared is None:
            return self.event
        told = zip(noising.numbers, shared.alone, strict=True)
        numbers = tuple(one if variance is None else one.spread_as(variance) for one, variance in told)
        bundles = tuple(Bundle(tuple(numbers[place] for place in bundle)) for bundle in self.draft.bundles)
        told_so = replace(noising, numbers=numbers, bundles=bundles, shared=None)
        return PricedQuery(replace(self.draft, noising=told_so)).event

    @property
    def nested(self) -> tuple[Event, ...]:
        """What is charged to the inner unit of a chain; nothing without one."""
        nesting = self.draft.nesting
        return () if nesting is None else (self._spent(nesting.inner, nesting.largest),)

    def _spent(self, part: int, whole: int) -> Event:
        """Say what the noise spends for whoever changes an answer by a part of what it was fitted to."""
        draft = self.draft
        noising, choosers = draft.noising, draft.choosers
        if part != whole:
            noising = noising.scaled(part, whole)
            choosers = tuple(chooser.scaled(part, whole) for chooser in choosers)
        return together([*noising.events, *(chooser.event(draft.footprint) for chooser in choosers)])

    @property
    def cost(self) -> str:
        """What is spent, in a few words."""
        nesting, chain = self.draft.nesting, self.draft.catalogue.chain
        if nesting is None or chain is None:
            return self._cost(Fraction(1))
        parts = (chain.outer.noun, nesting.outer), (chain.inner.noun, nesting.inner)
        return "; ".join(f"{self._cost(Fraction(part, nesting.largest))} for one {noun}" for noun, part in parts)

    def _cost(self, part: Fraction) -> str:
        """Say what is spent for whoever changes an answer by a part of what noise was fitted to."""
        spend, uses_delta = self.spend, self._uses_delta
        if spend.rho is not None:
            written = f"ρ = {significant_up(spend.rho * part**2)}"
        elif part < 1 and self.draft.noising.gaussian:  # It does not grow in proportion.
            return "less"
        else:
            written = f"ε = {significant_up(_epsilon(spend) * part)}"
        return f"{written}, δ = {significant_up(spend.delta)}" if uses_delta and spend.delta is not None else written

    @property
    def _uses_delta(self) -> bool:
        noising = self.draft.noising
        return noising.selection is not None or (noising.gaussian and self.spend.rho is None)

    @property
    def notes(self) -> tuple[str, ...]:
        return notes(self.draft)

    @property
    def deviations(self) -> Mapping[str, Fraction]:
        """The standard deviation of the noise on each column that is a plain count or sum, rounded up."""
        return deviations(self.draft)

    @property
    def variances(self) -> Mapping[str, Fraction]:
        """Its square, exactly for Gaussian noise of more than a few grid steps and to 15 digits for other noise."""
        return variances(self.draft)

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same question, limits and price, and for no other."""
        draft = self.draft
        # With one row of a unit the limits of a family are those of a table by itself, as they always were.
        chosen = ("family",) if draft.family is not None and draft.max_rows > 1 else ()
        nested = () if draft.nesting is None else (draft.nesting.most,)
        intervals = ("quantile intervals",) if draft.spend.quantile_intervals else ()
        of = ("population",) if draft.spend.population else ()
        limits = draft.max_groups, draft.max_rows, *nested, *chosen, *intervals, *of
        return fingerprint(draft.question, limits, self.event.to_json(), draft.noising, self._priced)

    @property
    def _priced(self) -> tuple[Fraction | None, ...]:
        # What was expected made the price, if anything; it changes no answer.
        return self.spend.epsilon, self.spend.delta, self.spend.rho, self.spend.confidence

    def explain(self, left: str | None = None) -> Explanation:
        """Say how it will be answered and what that costs; free."""
        return explain(self.draft, cost=self.cost, notes=self.notes, left=left)

    def draw(self, tallied: ExactCounts) -> ReleaseTable:
        """Add noise. The charge is the caller's, and comes first; what is drawn is shown once or not at all."""
        return self._table(execute.draw(self.draft, tallied))

    def sharing(self, shared: SharedNoise | None) -> PricedQuery:
        """Return the same at the same price, with noise that is drawn for its whole family at once, or its own."""
        return PricedQuery(replace(self.draft, noising=replace(self.draft.noising, shared=shared)))

    def without_noise(self, tallied: ExactCounts) -> NotPrivate[ReleaseTable]:
        """Return what noise would be added to, for whoever holds the data. What it says of errors is of an answer."""
        return NotPrivate(self._table(execute.without_noise(self.draft, tallied).value))

    def _table(self, numbers: ReleasedNumbers) -> ReleaseTable:
        (columns, rows), shared = columns_of(self.draft, numbers), self.draft.noising.shared
        return ReleaseTable(
            columns=columns,
            rows_shown=rows,
            notes=self.notes,
            event=self.alone,
            relation=self.relation,
            cost=self.cost if shared is None else f"{self.cost} of what all tables of {shared.family!r} spend",
            confidence=self.spend.confidence,
        )

    def __repr__(self) -> str:
        return str(self.explain())


def draw_together(priced: Sequence[PricedQuery], tallied: Sequence[ExactCounts]) -> tuple[ReleaseTable, ...]:
    """Add noise to several, as `PricedQuery.draw` does to one: families whose noise is shared must be whole."""
    numbers = execute.draw_together([one.draft for one in priced], tallied)
    return tuple(one._table(released) for one, released in zip(priced, numbers, strict=True))


def _epsilon(spend: Spend) -> Fraction:
    assert spend.epsilon is not None
    return spend.epsilon


def rewrite(request: PlanRequest) -> FinalDraft:
    """Run all passes: each takes what the one before it has decided."""
    return choose_noise(bundle_numbers(bound_changes(choose_measurements(bound_contributions(request)))))


# --- joint_event ---
# One event for several plans that are paid together, in a form that does not depend on their order.


def joint_event(events: Iterable[Event]) -> Event:
    """Put events together: one Gaussian for all Gaussian noise, equal events counted, everything else in a fixed order.

    Theorem     Gaussian noise on several vectors is Gaussian noise on one: the squares of mu add up. [DRS22]
    """
    found: Counter[Event] = Counter()
    for event in events:
        found += leaves(event, relation=Relation.ADD_REMOVE)
    if not found:
        raise InvalidParameter("there is nothing to pay for: name at least one plan")
    normal = sum((_mu_squared(event) * count for event, count in found.items()), Fraction(0))
    others = sorted((_times(event, count) for event, count in found.items() if not _is_normal(event)), key=_written)
    parts = [*([Gaussian(variance=1, squared_sensitivity=normal)] if normal else []), *others]
    return parts[0] if len(parts) == 1 else Composed(parts)


def _is_normal(event: Event) -> bool:
    return isinstance(event, Gaussian | GDP)


def _mu_squared(event: Event) -> Fraction:
    return event.mu_squared if isinstance(event, Gaussian | GDP) else Fraction(0)


def _times(event: Event, count: int) -> Event:
    return event if count == 1 else Repeated(event, count)


def _written(event: Event) -> str:
    return event.to_json()


# --- error_targets ---
# From an error that is wanted to the least epsilon, or the least rho, that reaches it; from public facts only.


_DIGITS = 100  # Numbers have three significant digits: 1.00, 1.01, …
_LEAST_EPSILON, _LEAST_RHO = Fraction(1, 10**9), Fraction(1, 10**15)


def spend_for(request: PlanRequest) -> PlanRequest:
    """Replace an error by the smallest price of three digits for which every column errs no more than that."""
    spend = request.spend
    if spend.error is None:
        return request
    if spend.population and any(measure.statistic is Statistic.MEAN for measure in request.question.measures):
        raise Refused(
            "an error is reached by less noise, and population asks for a ± that covers sampling error, too",
            way_out="say epsilon or rho; or leave population out, for the ± of the counted rows",
        )

    def reaches(price: Fraction) -> bool:
        tried = _spending(spend, price)
        return _worst(rewrite(replace(request, spend=tried)), spend) <= (spend.error or 0)

    return replace(request, spend=_spending(spend, _least(reaches, concentrated=spend.concentrated)))


def errors_of(draft: FinalDraft) -> Mapping[str, Fraction]:
    """Return the ± of each column for which it follows from public facts and from what is expected."""
    found = {output.name: predicted(draft, output, draft.spend.expected) for output in draft.question.outputs}
    return {name: error for name, error in found.items() if error is not None}


def relative_errors_of(draft: FinalDraft) -> Mapping[str, Fraction]:
    """Return the ± of each column as a part of its expected value, where one is declared."""
    errors = errors_of(draft)
    sizes = {output.name: _size(draft, output, draft.spend) for output in draft.question.outputs}
    return {name: error / size for name, error in errors.items() if (size := sizes[name]) is not None}


def _spending(spend: Spend, price: Fraction) -> Spend:
    if spend.concentrated:
        return replace(spend, rho=price, error=None, relative=False, concentrated=False)
    return replace(spend, epsilon=price, error=None, relative=False)


def _least(reaches: Callable[[Fraction], bool], *, concentrated: bool) -> Fraction:
    """Search the sorted list of all numbers of three digits; errors fall as the price grows."""
    name, least, most = ("rho", _LEAST_RHO, MOST_RHO) if concentrated else ("epsilon", _LEAST_EPSILON, MOST_EPSILON)
    if not reaches(most):
        raise Refused(f"no {name} up to {most} reaches this error: ask for less, or for fewer columns")
    low, high = _place(least), _place(most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(_candidate(middle)) else (middle + 1, high)
    return _candidate(low)


def _candidate(place: int) -> Fraction:
    power, digit = divmod(place, 9 * _DIGITS)
    return Fraction(_DIGITS + digit, _DIGITS) * Fraction(10) ** power


def _place(number: Fraction) -> int:
    """Return the place of a number among all of three digits; 1 is at the place 0."""
    power = exponent(number)
    return 9 * _DIGITS * power + int(number * _DIGITS / Fraction(10) ** power) - _DIGITS


def _worst(draft: FinalDraft, asked: Spend) -> Fraction:
    """Return the largest error of any column that has one, relative to its expected value where that was asked for."""
    errors = [error for output in draft.question.outputs if (error := _error(draft, output, asked)) is not None]
    if not errors:
        raise Refused("no column of this answer has an error that follows from public facts: say epsilon")
    return max(errors)


def _error(draft: FinalDraft, output: OutputColumn, asked: Spend) -> Fraction | None:
    off = predicted(draft, output, asked.expected)
    if off is None:
        if needs_rows(draft, output):
            raise Refused("the error of a mean or variance depends on how many rows a group has: say expected=…")
        return None
    if not asked.relative:
        return off
    size = _size(draft, output, asked)
    if size is None:
        raise Refused(
            f"a relative error needs an expected size of {output.name}: say expected= the rows of a typical group, or "
            "give sizes by column, as an earlier release has them"
        )
    return off / size


def _size(draft: FinalDraft, output: OutputColumn, asked: Spend) -> Fraction | None:
    """Return the expected value of a column: as an earlier answer had it, or for counts the expected rows."""
    if output.name in asked.sizes:
        return asked.sizes[output.name]
    recipe = draft.recipes[output.value.measure] if isinstance(output.value, ReleasedMeasure) else None
    return Fraction(asked.expected) if isinstance(recipe, CountTerm) and asked.expected is not None else None


_MOST_OUTPUTS = 200


def plan(
    question: Query, catalogue: Catalogue, spend: Spend, *, limits: Tighter | None = None, pure: bool
) -> PricedQuery:
    """Decide everything about an answer. An error that is asked for becomes the least epsilon that reaches it."""
    _check(question)
    request = PlanRequest(question=question, catalogue=catalogue, spend=spend, tighter=limits, pure=pure)
    return PricedQuery(rewrite(spend_for(request)))


def _check(question: Query) -> None:
    if not is_private(question.source):
        raise Refused("nothing here is private: ask the public table itself")
    if not 0 < len(question.outputs) <= _MOST_OUTPUTS:
        raise Refused(f"an answer has from 1 to {_MOST_OUTPUTS} columns")
    check_posts(question)
