"""How good a synthetic table is, and what it gives away: the custodian's report and the publishable ones."""

from discreet.evaluation.custodian import evaluate
from discreet.evaluation.evaluation import Attacked, Evaluation, Likeness
from discreet.evaluation.images import evaluate_images, evaluate_images_publicly
from discreet.evaluation.paid import evaluate_for_a_price
from discreet.evaluation.publicly import evaluate_publicly
from discreet.evaluation.verdict import Verdict

__all__ = [
    "Attacked",
    "Evaluation",
    "Likeness",
    "Verdict",
    "evaluate",
    "evaluate_for_a_price",
    "evaluate_images",
    "evaluate_images_publicly",
    "evaluate_publicly",
]
