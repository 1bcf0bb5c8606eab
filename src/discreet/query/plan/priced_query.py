"""A query with its price, and one event for several that are paid together: all decisions made, nothing read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import final

from discreet.errors import InvalidParameter
from discreet.formatting import significant_up
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import GDP, Composed, Event, Gaussian, Repeated
from discreet.privacy.relation import Relation
from discreet.query import execute
from discreet.query.ast import Query, unit_of
from discreet.query.engine import ExactCounts, Stage, StageKey
from discreet.query.plan.answers import deviations, variances
from discreet.query.plan.contribution_limits import bound_contributions
from discreet.query.plan.draft import Number, Pass, Pick, PlanDraft, TallySpec
from discreet.query.plan.explain import Explanation, explain, notes
from discreet.query.plan.fingerprint import fingerprint
from discreet.query.plan.measurements import bound_changes, choose_measurements
from discreet.query.plan.noise_plan import together
from discreet.query.plan.noise_selection import bundle_numbers, choose_noise
from discreet.query.plan.output_columns import columns_of
from discreet.query.plan.spend import Spend
from discreet.query.results import ReleaseTable

__all__ = ["PASSES", "PricedQuery", "joint_event", "rewrite"]

# --- priced: A plan with its price: all decisions are made, from public facts only, and nothing has been read. ---


PASSES: tuple[Pass, ...] = (bound_contributions, choose_measurements, bound_changes, bundle_numbers, choose_noise)


@final
@dataclass(frozen=True, slots=True, repr=False)
class PricedQuery:
    """A question, how it will be answered, and what that spends."""

    draft: PlanDraft

    @property
    def question(self) -> Query:
        return self.draft.question

    @property
    def spend(self) -> Spend:
        """What is spent; an error that was asked for has become an epsilon."""
        return self.draft.spend

    @property
    def relation(self) -> Relation:
        return Relation.ADD_REMOVE

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
        )

    @property
    def event(self) -> Event:
        """What is charged."""
        draft = self.draft
        assert draft.noising is not None
        return together([*draft.noising.events, *(chooser.event(draft.max_groups) for chooser in draft.choosers)])

    @property
    def cost(self) -> str:
        """What is spent, in a few words."""
        spend, uses_delta = self.spend, self._uses_delta
        written = (
            f"ρ = {significant_up(spend.rho)}" if spend.rho is not None else f"ε = {significant_up(_epsilon(spend))}"
        )
        return f"{written}, δ = {significant_up(spend.delta)}" if uses_delta and spend.delta is not None else written

    @property
    def _uses_delta(self) -> bool:
        noising = self.draft.noising
        assert noising is not None
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
        limits = draft.max_groups, draft.max_rows
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
        columns, rows = columns_of(self.draft, execute.draw(self.draft, tallied))
        return ReleaseTable(
            columns=columns,
            rows_shown=rows,
            notes=self.notes,
            event=self.event,
            relation=self.relation,
            cost=self.cost,
            confidence=self.spend.confidence,
        )

    def __repr__(self) -> str:
        return str(self.explain())


def _epsilon(spend: Spend) -> Fraction:
    assert spend.epsilon is not None
    return spend.epsilon


def rewrite(draft: PlanDraft, passes: Sequence[Pass] = PASSES) -> PlanDraft:
    """Run all passes."""
    return reduce(lambda current, apply: apply(current), passes, draft)


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
