"""Print how many charges fit an (ε, δ) account: under the first rule, by default, and with what is expected said."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.ledger import Budget
from discreet.ledger.budget import Expect, Sums
from discreet.ledger.delta_shares import Shares, caps, choose_shares
from discreet.ledger.filters import PrivacyFilter, filter_for, held
from discreet.privacy import ApproxDP, Composed, Event, Gaussian, Laplace, PoissonSampled, PureDP, Repeated, epsilon
from discreet.privacy.relation import Relation

ADD, DELTA = Relation.ADD_REMOVE, Fraction("1e-6")
STREAM = Composed([Gaussian(100), PureDP("0.01"), Laplace(100)])
HIDING = Composed([Gaussian(100), ApproxDP(0, "1e-9")])
EVENTS: list[tuple[str, Event, Expect]] = [
    ("Gaussian, noise 100", Gaussian(100), "gaussian"),
    ("pure, ε = 0.01", PureDP("0.01"), "pure"),
    ("Laplace, scale 100", Laplace(100), "pure"),
    ("Gaussian, pure and Laplace in turn", STREAM, "pure"),
    ("Gaussian with δ = 10⁻⁹ of its own", HIDING, "mixed"),
    ("step, noise 2, rate 0.01", PoissonSampled(Gaussian(2), "0.01"), "training"),
    ("step, noise 1, rate 0.01", PoissonSampled(Gaussian(1), "0.01"), "training"),
    ("step, noise 1, rate 0.001", PoissonSampled(Gaussian(1), "0.001"), "training"),
]


def main() -> None:
    """Print the table in Markdown."""
    print("| charges | ε | best in advance | first rule | default | with `expect` |\n|---|---|---|---|---|---|")
    for name, event, expect in EVENTS:
        for level in (1, 4, 10):
            best = in_advance(event, level)
            rules = (first_rule(level), new_rule(level, None), new_rule(level, expect))
            counts = (held(rule, Sums.nothing(rule.shares.kept), event, ADD) for rule in rules)
            told = (f"{count:,} ({count / best:.0%})" for count in counts)
            print(f"| {name} | {level} | {best:,} | {' | '.join(told)}, `{expect}` |", flush=True)


def new_rule(level: int, expect: Expect | None) -> PrivacyFilter:
    budget = Budget(level, DELTA, expect=expect)
    return filter_for(budget, choose_shares(budget))


def first_rule(level: int) -> PrivacyFilter:
    """Split δ as accounts did before: half for events, and nine orders around the best for Gaussian noise."""
    budget = Budget(level, DELTA, approximate="1/2")
    log_delta = math.log(9) - math.log(DELTA / 2)
    best = math.sqrt(log_delta) * (math.sqrt(log_delta + level) + math.sqrt(log_delta)) / level
    around = (1 + best * 2 ** (step / 2) for step in range(-4, 5))
    orders = sorted({Fraction(round(a)) if a >= 4 else max(Fraction(round(8 * a), 8), Fraction(9, 8)) for a in around})
    while True:
        shares = Shares.of_first_rule(budget, tuple(orders))
        useful = [order for order, cap in zip(orders, caps(budget, shares), strict=True) if cap > 0]
        if len(useful) == len(orders):
            return filter_for(budget, shares)
        orders = useful


def in_advance(event: Event, level: int) -> int:
    """Search for the largest number of repetitions that is (ε, δ)-private as a whole, to three digits."""
    low, high = 0, 1
    while epsilon(Repeated(event, high), DELTA, relation=ADD) <= level:
        low, high = high, 2 * high
    while high - low > max(1, low // 2000):
        middle = (low + high) // 2
        fits = epsilon(Repeated(event, middle), DELTA, relation=ADD) <= level
        low, high = (middle, high) if fits else (low, middle)
    return low


if __name__ == "__main__":
    main()
