"""Adaptive clipping: the clip follows a quantile of the gradients' norms, by a noisy count in every step."""

from __future__ import annotations

from typing import final

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import integer
from discreet.learn.training.clip_rules import AdaptiveClip
from discreet.learn.training.training_plan import TrainingPlan

__all__ = ["FollowedClip"]


@final
class FollowedClip:
    """The public clip of the step at hand, in a run whose plan has an `AdaptiveClip`.

    Guarantee   The noise on the count is part of the plan's step: gradient and count together cost its multiplier.
    Theorem     A record adds +1 or -1 to the count, so the count moves by exactly 1. The clip of a step is a function
                of noisy counts of earlier steps, hence public when the step begins. [ATMR21]
    """

    def __init__(self, plan: TrainingPlan, *, current: float | None = None) -> None:
        if not isinstance(plan.clip, AdaptiveClip):
            raise InvalidParameter("the clip of this plan does not adapt")
        self._plan, self._rule = plan, plan.clip
        self.current = float(self._rule.initial) if current is None else current

    def follow(self, count: int) -> float:
        """Move the clip by a private count: norms at most the clip minus norms above it. Return the new clip.

        The noisy share is public: 1/2 + noisy count / (2 expected batch).
        """
        noisy = integer(count, name="count") + noise.rounded_gaussian(variance=self._plan.count_variance)
        share = 0.5 + noisy / float(2 * self._plan.divisor)
        self.current = self._rule.updated(self.current, share)
        return self.current
