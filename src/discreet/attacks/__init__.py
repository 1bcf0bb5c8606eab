"""The attack lab: point it at your own table or release on your own machine, and see who falls.

Every result is about real people: it is `NotPrivate`, for whoever holds the data, and never part of a release.
"""

from discreet.attacks.axes import Level
from discreet.attacks.counts import CountTable, Noise, tabulate
from discreet.attacks.differencing import Differencing, Isolation, differencing
from discreet.attacks.indicators import Indicators, halves, indicators
from discreet.attacks.linkage import Linkage, linkage
from discreet.attacks.membership import Membership, membership, membership_by_scores
from discreet.attacks.populations import Population, coins, genome
from discreet.attacks.published import published_counts
from discreet.attacks.rates import Attacker, Found, judge
from discreet.attacks.results import Success
from discreet.attacks.scoring import lira_scores, logit_scores, loss_scores, rmia_scores
from discreet.attacks.softmax import softmax_regressions
from discreet.attacks.tracing import Tracing, tracing
from discreet.attacks.tracing_power import TracingPower, least_deviation, plot_power, tracing_power
from discreet.attacks.tracing_scores import Score
from discreet.attacks.uniqueness import Combination, Uniqueness, uniqueness
from discreet.attacks.vectors import VectorRelease, gaussian_counts

__all__ = [
    "Attacker",
    "Combination",
    "CountTable",
    "Differencing",
    "Found",
    "Indicators",
    "Isolation",
    "Level",
    "Linkage",
    "Membership",
    "Noise",
    "Population",
    "Score",
    "Success",
    "Tracing",
    "TracingPower",
    "Uniqueness",
    "VectorRelease",
    "coins",
    "differencing",
    "gaussian_counts",
    "genome",
    "halves",
    "indicators",
    "judge",
    "least_deviation",
    "linkage",
    "lira_scores",
    "logit_scores",
    "loss_scores",
    "membership",
    "membership_by_scores",
    "plot_power",
    "published_counts",
    "rmia_scores",
    "softmax_regressions",
    "tabulate",
    "tracing",
    "tracing_power",
    "uniqueness",
]
