"""The local protocol: people randomise their own answers, a collector estimates shares from what they send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import final

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.release import Interval, Release
from discreet.privacy.payer import Payer, paid

__all__ = ["Respondent", "SharesAccuracy", "estimate", "rate_interval"]


@final
class Respondent:
    """One person's side of the protocol: randomises an answer once and repeats it while the truth is unchanged.

    Repeating protects against averaging: a thousand requests for the same unchanged answer cost one. It protects
    against nothing else. When the truth changes, a new answer is drawn and charged; whoever sees the two answers
    differ learns that the truth changed, and after k changes k answers are out.

    Args:
        mechanism: How answers are randomised.
        session: Who pays for each fresh answer; nobody if not said.

    Examples:
        >>> person = dp.mechanisms.Respondent(dp.mechanisms.RandomizedResponse.for_epsilon(1))
        >>> person.answer("smokes?", 1) == person.answer("smokes?", 1)
        True
    """

    __slots__ = ("_mechanism", "_memory", "_session")

    def __init__(self, mechanism: RandomizedResponse, *, session: Payer | None = None) -> None:
        self._mechanism = mechanism
        self._session = session
        self._memory: dict[str, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"Respondent({self._mechanism})"  # Neither questions nor answers: the truth is among them.

    def answer(self, question: str, truth: int) -> int:
        """Return the randomised answer to a question; one charge for each fresh one."""
        known = self._memory.get(question)
        if known is not None and known[0] == truth:
            return known[1]
        with paid(self._session, self._mechanism, purpose="a randomised answer"):
            self._memory[question] = (truth, self._mechanism.respond(truth))
            return self._memory[question][1]


def estimate(answers: Iterable[int], mechanism: RandomizedResponse) -> Release[tuple[Fraction, ...]]:
    """Estimate the share of each category among those who answered, without bias.

    The share of an answer is lie + (keep - lie) times the share of its truth; this is solved for the latter. A
    share may come out below 0 or above 1: `tidy` moves it, at the price of a bias that averages do not undo.

    Args:
        answers: The randomised answers, whole numbers from 0 to categories - 1. They are public.
        mechanism: How they were randomised.

    Returns:
        The share of each category, with intervals.

    Raises:
        InvalidParameter: If there are no answers, or others than those of the mechanism.

    Examples:
        >>> mechanism = dp.mechanisms.RandomizedResponse.warner()
        >>> dp.mechanisms.estimate([1, 0, 0, 0], mechanism).value
        (Fraction(1, 1), Fraction(0, 1))
    """
    counts = Counter(answers)
    total = counts.total()
    if total == 0 or any(answer not in range(mechanism.categories) for answer in counts):
        raise InvalidParameter("answers must be at least one whole number from 0 to categories - 1")
    accuracy = SharesAccuracy(
        mechanism=mechanism, counts=tuple(counts[answer] for answer in range(mechanism.categories))
    )
    return Release(
        value=tuple(accuracy.share(Fraction(count, total)) for count in accuracy.counts),
        event=mechanism.event,
        relation=mechanism.relation,
        accuracy=accuracy,
        limits=(Fraction(0), Fraction(1)),
        labels=tuple(map(str, range(mechanism.categories))),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharesAccuracy:
    """What the coins leave open about the shares among those who answered; sampling error comes on top."""

    mechanism: RandomizedResponse
    counts: tuple[int, ...]  # of the randomised answers, which are public

    @property
    def noise(self) -> None:
        return None

    def share(self, rate: Fraction) -> Fraction:
        """Turn a rate of answers into a share of truths: (rate - lie) / (keep - lie)."""
        lie = self.mechanism.lie
        return (rate - lie) / (self.mechanism.keep - lie)

    def variance(self, share: Fraction) -> Fraction:
        """Return the variance of the estimate where the true share is `share`."""
        keep, lie = self.mechanism.keep, self.mechanism.lie
        coins = share * keep * (1 - keep) + (1 - share) * lie * (1 - lie)
        return coins / (sum(self.counts) * (keep - lie) ** 2)

    def interval(self, value: tuple[Fraction, ...], confidence: Fraction) -> tuple[Interval, ...]:
        """Enclose each share with at least this probability over the coins, however unlikely the truth."""
        rates = (rate_interval(count, sum(self.counts), confidence) for count in self.counts)
        return tuple((self.share(low), self.share(high)) for low, high in rates)


# --- binomial: An interval for the mean rate of independent coins, from how many of them came up. ---


_STEPS = 1 << 50  # Rates are whole numbers of these parts.
_SHARP = 1000  # The ends are found to this part of their distance from the observed rate, on the safe side.


def rate_interval(successes: int, trials: int, confidence: Fraction) -> Interval:
    """Enclose the mean of the chances of `trials` independent coins, of which `successes` came up.

    Theorem     For coins of one chance these are the ends of Clopper and Pearson. For coins of different chances
                with the same mean, a tail at least one away from the mean is no heavier. The two counts next to
                an end, where that does not apply, get the trivial end. [CP34, Hoe56]
    """
    allowed = (1 - confidence) / 2
    low = Fraction(0) if successes <= 1 else 1 - _highest(trials - successes, trials, allowed)
    high = Fraction(1) if successes >= trials - 1 else _highest(successes, trials, allowed)
    return low, high


def _highest(successes: int, trials: int, allowed: Fraction) -> Fraction:
    """Return a rate, rounded up, from which on P[at most `successes`] is below `allowed`."""
    observed = successes * _STEPS // trials
    low, reach = observed, _STEPS // (isqrt(trials) + 1) + 1
    while (high := min(observed + reach, _STEPS)) < _STEPS and not _small(high, successes, trials, allowed):
        low, reach = high, 2 * reach
    while high - low > 1 + (high - observed) // _SHARP:
        middle = (low + high) // 2
        low, high = (low, middle) if _small(middle, successes, trials, allowed) else (middle, high)
    return Fraction(high, _STEPS)


def _small(rate: int, successes: int, trials: int, allowed: Fraction) -> bool:
    """Tell whether P[Binomial(trials, rate) <= successes] is surely below `allowed`."""
    with precision(64):
        # The binomial tail is a regularised incomplete beta function.
        miss = ball(1 - Fraction(rate, _STEPS))
        return bool(miss.beta_lower(trials - successes, successes + 1, regularized=1) < ball(allowed))
