"""How often something happens, at most and at least, from how often it was seen to happen."""

from __future__ import annotations

from discreet.errors import InvalidParameter

__all__ = ["MOST_EPSILON", "at_least", "at_most"]

MOST_EPSILON = 300.0  # Its square is still a float; and nothing rarer than one in e^300 is ever seen.


def at_least(seen: int, runs: int, error: float) -> float:
    """Return the lower Clopper-Pearson limit: it is above the truth with probability `error` at most. [CP34]"""
    from scipy.special import betaincinv

    _check(seen, runs, error)
    return 0.0 if seen == 0 else float(betaincinv(seen, runs - seen + 1, error))


def at_most(seen: int, runs: int, error: float) -> float:
    """Return the upper Clopper-Pearson limit: it is below the truth with probability `error` at most. [CP34]"""
    from scipy.special import betainccinv

    _check(seen, runs, error)
    return 1.0 if seen == runs else float(betainccinv(seen + 1, runs - seen, error))


def _check(seen: int, runs: int, error: float) -> None:
    if not 0 <= seen <= runs or runs < 1:
        raise InvalidParameter("what was seen must be between nothing and all of at least one run")
    if not 0 < error < 1:
        raise InvalidParameter("error must be a probability between 0 and 1")
