"""Planning: a question and a spend become a plan with a price, and the plan, once paid, a table of answers."""

from discreet.query.plan.draft import Spend
from discreet.query.plan.explain import Explanation
from discreet.query.plan.planner import PricedQuery, joint_event, plan

__all__ = ["Explanation", "PricedQuery", "Spend", "joint_event", "plan"]
