"""A plan with its price: all decisions are made, from public facts only, and nothing has been read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import final

from discreet.mechanisms.text import significant_up
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.engine import ExactCounts
from discreet.query.planning.allocation import bundle_numbers
from discreet.query.planning.choice import choose_noise
from discreet.query.planning.deviations import deviations, variances
from discreet.query.planning.draft import Number, Pass, Pick, PlanDraft, TallySpec
from discreet.query.planning.drawing import draw
from discreet.query.planning.explain import Explanation, explain
from discreet.query.planning.fingerprint import fingerprint
from discreet.query.planning.limits import bound_contributions
from discreet.query.planning.measurements import choose_measurements
from discreet.query.planning.noises import together
from discreet.query.planning.notes import notes
from discreet.query.planning.outputs import columns_of
from discreet.query.planning.sensitivities import bound_changes
from discreet.query.planning.spend import Spend
from discreet.query.question import Query
from discreet.query.results import ReleaseTable
from discreet.query.sources import unit_of
from discreet.query.stage import Stage, StageKey

__all__ = ["PASSES", "PricedQuery", "rewrite"]

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
        columns, rows = columns_of(self.draft, draw(self.draft, tallied))
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
