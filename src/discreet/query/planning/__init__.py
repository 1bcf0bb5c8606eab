"""Planning: a question and a spend become a plan with a price, and the plan, once paid, a table of answers."""

from discreet.query.planning.explain import Explanation
from discreet.query.planning.joint_event import joint_event
from discreet.query.planning.planner import plan
from discreet.query.planning.priced import PricedQuery
from discreet.query.planning.spend import Spend

__all__ = ["Explanation", "PricedQuery", "Spend", "joint_event", "plan"]
