"""How good a synthetic table is, and what it gives away: the custodian's report and the publishable ones."""

from discreet.evaluation.evaluation import Attacked, Evaluation, Likeness, Verdict
from discreet.evaluation.exact_report import evaluate
from discreet.evaluation.image_report import evaluate_images, evaluate_images_publicly
from discreet.evaluation.private_report import evaluate_for_a_price
from discreet.evaluation.public_report import evaluate_publicly

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
