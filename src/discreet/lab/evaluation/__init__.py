"""Evaluation of synthetic data: utility and privacy, in the custodian's report and the publishable ones."""

from discreet.lab.evaluation.exact_report import evaluate
from discreet.lab.evaluation.image_report import evaluate_images, evaluate_images_publicly
from discreet.lab.evaluation.private_report import evaluate_for_a_price, evaluate_publicly

__all__ = [
    "evaluate",
    "evaluate_for_a_price",
    "evaluate_images",
    "evaluate_images_publicly",
    "evaluate_publicly",
]
