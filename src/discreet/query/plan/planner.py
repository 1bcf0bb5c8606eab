"""The planner: a question and a spend become a plan with a price, from public facts only."""

from __future__ import annotations

from discreet.errors import Refused
from discreet.query.ast import Query, is_private
from discreet.query.catalogue import Catalogue
from discreet.query.plan.draft import PlanDraft, Tighter
from discreet.query.plan.error_targets import spend_for
from discreet.query.plan.postprocessing import check_posts
from discreet.query.plan.priced_query import PricedQuery, rewrite
from discreet.query.plan.spend import Spend

__all__ = ["plan"]

_MOST_OUTPUTS = 200


def plan(
    question: Query, catalogue: Catalogue, spend: Spend, *, limits: Tighter | None = None, pure: bool
) -> PricedQuery:
    """Decide everything about an answer. An error that is asked for becomes the least epsilon that reaches it."""
    _check(question)
    draft = PlanDraft(question=question, catalogue=catalogue, spend=spend, tighter=limits, pure=pure)
    return PricedQuery(rewrite(spend_for(draft)))


def _check(question: Query) -> None:
    if not is_private(question.source):
        raise Refused("nothing here is private: ask the public table itself")
    if not 0 < len(question.outputs) <= _MOST_OUTPUTS:
        raise Refused(f"an answer has from 1 to {_MOST_OUTPUTS} columns")
    check_posts(question)
