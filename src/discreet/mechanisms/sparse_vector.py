"""The sparse vector technique (above threshold): pay for the few yes, not for the many no. [DNRRV09]"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, final

from discreet import noise
from discreet.balls import ball, bounds
from discreet.errors import InvalidParameter, Refused
from discreet.exact import integer, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.parameters import read_flag, read_share, settle
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.noise.limits import check_noise_scale
from discreet.privacy import events
from discreet.privacy.outcomes import CUTOFF, Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["AboveThreshold", "Asking"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """Tell for one answer after the other whether it is above a threshold, up to `positives` times yes.

    The threshold gets noise once, each answer its own; only yes and no come out, never a number. `start` begins.

    Guarantee   epsilon, pure, for the whole run, however many times the answer is no.
    Theorem     Shifting the noisy threshold by the sensitivity pays for all no at once; each yes pays for two shifts
                of its own noise, or one where all answers move the same way. [LSL17]
    Utility     to find a few large answers among many small ones.

    Args:
        epsilon: What the whole run spends.
        sensitivity: How far one unit moves any answer, in grid steps.
        threshold: The public threshold, in grid steps.
        relation: The neighbouring relation.
        positives: How many times yes until the run is over.
        monotone: Whether one unit moves all answers the same way, as counts under add-remove.
        threshold_share: The part of epsilon that is spent on the threshold.

    Raises:
        InvalidParameter: If a field is out of range, or `monotone` is said under replace-one.

    Examples:
        >>> svt = dp.mechanisms.AboveThreshold(
        ...     epsilon=1, sensitivity=1, threshold=1000, relation=dp.Relation.ADD_REMOVE, monotone=True
        ... )
        >>> svt.release([0, 0, 5000, 0]).value
        (False, False, True)
    """

    epsilon: Fraction
    sensitivity: int  # of every answer, in grid steps, for one unit
    threshold: int  # in grid steps
    relation: Relation
    positives: int = 1
    monotone: bool = False
    threshold_share: Fraction = Fraction(1, 2)  # of epsilon, for the threshold

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            threshold_share=read_share(self.threshold_share, name="threshold_share"),
            sensitivity=positive_integer(self.sensitivity, name="sensitivity"),
            positives=positive_integer(self.positives, name="positives"),
            threshold=integer(self.threshold, name="threshold"),
        )
        settle(self, relation=read_relation(self.relation))
        if read_flag(self.monotone, name="monotone") and self.relation is Relation.REPLACE_ONE:
            raise InvalidParameter("no answer is monotone under REPLACE_ONE: leave monotone out")
        check_noise_scale(self.threshold_scale)
        check_noise_scale(self.answer_scale)

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of the noise on the threshold."""
        return self.sensitivity / (self.epsilon * self.threshold_share)

    @property
    def answer_scale(self) -> Fraction:
        """The scale of the noise on each answer."""
        shifts = self.positives * (1 if self.monotone else 2)
        return shifts * self.sensitivity / (self.epsilon * (1 - self.threshold_share))

    @property
    def event(self) -> events.PureDP:
        return events.PureDP(self.epsilon)

    def start(self, *, session: Payer | None = None) -> Asking:
        """Pay for the whole run and draw the noisy threshold."""
        guard = paid(session, self, purpose="above threshold")
        with guard:
            return Asking(self, guard)

    def release(self, answers: Sequence[int]) -> Release[tuple[bool, ...]]:
        """Ask for a list of private answers, in order, until the run is over."""
        run, replies = self.start(), []
        for answer in answers:
            if not run.over:
                replies.append(run.ask(answer))
        return Release(
            value=tuple(replies),
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(reason="yes or no has no confidence interval: nothing more was paid for"),
        )

    def distribution(self, answers: Sequence[int]) -> Outcomes:
        """List the law of the replies to these answers, asked in this order until the run is over."""
        law = DiscreteLaplaceLaw(self.threshold_scale)
        reach = law.half_width(1 - CUTOFF)
        masses: dict[tuple[bool, ...], arb] = {}
        for shift in range(-reach, reach + 1):
            for replies, mass in self._replies(answers, self.threshold + shift).items():
                weighted = law.pmf(shift) * mass
                masses[replies] = masses[replies] + weighted if replies in masses else weighted
        return Outcomes(masses, min(Fraction(1), 2 * bounds(law.survival(reach))[1]))

    def _replies(self, answers: Sequence[int], threshold: int) -> dict[tuple[bool, ...], arb]:
        """List the replies given the noisy threshold; they are then independent up to the end of the run."""
        law = DiscreteLaplaceLaw(self.answer_scale)
        listed: dict[tuple[bool, ...], arb] = {(): ball(1)}
        for answer in answers:
            yes = law.survival(threshold - answer - 1)
            no = law.cdf(threshold - answer - 1)
            grown: dict[tuple[bool, ...], arb] = {}
            for replies, mass in listed.items():
                if sum(replies) == self.positives:
                    grown[replies] = mass
                else:
                    grown[*replies, True], grown[*replies, False] = mass * yes, mass * no
            listed = grown
        return listed


@final
class Asking:
    """A run of `AboveThreshold`. It cannot be copied or carried to another process: its threshold is spent once.

    Args:
        mechanism: Its public parameters; `AboveThreshold.start` also pays.

    Examples:
        >>> run = dp.mechanisms.AboveThreshold(
        ...     epsilon=1, sensitivity=1, threshold=1000, relation=dp.Relation.ADD_REMOVE
        ... ).start()
        >>> run.ask(0), run.ask(5000), run.over
        (False, True, True)
    """

    __slots__ = ("_guard", "_left", "_lock", "_mechanism", "_process", "_threshold")

    def __init__(self, mechanism: AboveThreshold, guard: AbstractContextManager[None, None]) -> None:
        self._mechanism, self._guard = mechanism, guard
        self._threshold = mechanism.threshold + noise.discrete_laplace(mechanism.threshold_scale)
        self._left = mechanism.positives
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def over(self) -> bool:
        """Whether the last yes is used up; it follows from the replies."""
        return self._left == 0

    def ask(self, answer: int) -> bool:
        """Tell whether a private whole number is above the threshold, up to noise on both."""
        if os.getpid() != self._process:
            raise Refused("this run belongs to another process: start a new one there")
        with self._lock:
            if self._left == 0:
                raise Refused("this run is over: every yes that was paid for is used; start a new one")
            with self._guard:
                drawn = noise.discrete_laplace(self._mechanism.answer_scale)
                above = integer(answer, name="answer") + drawn >= self._threshold
                self._left -= above
                return above

    def __repr__(self) -> str:
        return f"Asking({self._mechanism}; {self._left} more may be above)"  # The noisy threshold stays a secret.

    def __reduce__(self) -> NoReturn:
        raise Refused("a run cannot be copied or stored: it would answer twice with one threshold")
