"""The attack lab: point it at your own table or release on your own machine, and see who falls.

Every result is about real people: it is `NotPrivate`, for whoever holds the data, and never part of a release.
"""

from discreet.attacks.attribute_guessers import through_model, through_table
from discreet.attacks.attributes import Attributes, attributes
from discreet.attacks.averaging import Averaging, averaging
from discreet.attacks.averaging_curve import AveragingCurve, averaging_curve
from discreet.attacks.axes import AxisLevel
from discreet.attacks.counts import CountNoise, CountTable, tabulate
from discreet.attacks.differencing import Differencing, Isolation, differencing
from discreet.attacks.encoding import read_columns
from discreet.attacks.floating_point import FloatingPoint, floating_point
from discreet.attacks.indicators import Indicators, halves, indicators
from discreet.attacks.item_counts import ItemCounts, item_counts
from discreet.attacks.linkage import Linkage, linkage
from discreet.attacks.lone_cells import LoneCells, lone_cells
from discreet.attacks.marginal_reconstruction import MarginalReconstruction, marginal_reconstruction
from discreet.attacks.marginals import Marginals, PeopleBlock, block_of
from discreet.attacks.membership import Membership, membership, membership_by_scores
from discreet.attacks.noising import noised
from discreet.attacks.populations import Population, coins, genome
from discreet.attacks.published import published_counts
from discreet.attacks.rates import Attacker, FoundRate, judge
from discreet.attacks.reconstruction import Reconstruction, guessing_ceiling, reconstruction
from discreet.attacks.results import Success
from discreet.attacks.scoreboard import Rule, Scoreboard, ScoreboardTrial, scoreboard
from discreet.attacks.scoring import lira_scores, logit_scores, loss_scores, rmia_scores
from discreet.attacks.singling_out import SingledOut, singling_out
from discreet.attacks.softmax import softmax_regression, softmax_regressions
from discreet.attacks.sticky import Sticky, StickyResult, sticky
from discreet.attacks.subset_decoding import Decoder
from discreet.attacks.table_models import attributes_of_table, membership_of_scores, membership_of_table
from discreet.attacks.tracing import Tracing, tracing
from discreet.attacks.tracing_power import TracingPower, least_deviation, plot_power, tracing_power
from discreet.attacks.tracing_scores import Score
from discreet.attacks.uniqueness import Combination, Uniqueness, uniqueness
from discreet.attacks.vectors import VectorRelease, gaussian_counts

__all__ = [
    "Attacker",
    "Attributes",
    "Averaging",
    "AveragingCurve",
    "AxisLevel",
    "Combination",
    "CountNoise",
    "CountTable",
    "Decoder",
    "Differencing",
    "FloatingPoint",
    "FoundRate",
    "Indicators",
    "Isolation",
    "ItemCounts",
    "Linkage",
    "LoneCells",
    "MarginalReconstruction",
    "Marginals",
    "Membership",
    "PeopleBlock",
    "Population",
    "Reconstruction",
    "Rule",
    "Score",
    "Scoreboard",
    "ScoreboardTrial",
    "SingledOut",
    "Sticky",
    "StickyResult",
    "Success",
    "Tracing",
    "TracingPower",
    "Uniqueness",
    "VectorRelease",
    "attributes",
    "attributes_of_table",
    "averaging",
    "averaging_curve",
    "block_of",
    "coins",
    "differencing",
    "floating_point",
    "gaussian_counts",
    "genome",
    "guessing_ceiling",
    "halves",
    "indicators",
    "item_counts",
    "judge",
    "least_deviation",
    "linkage",
    "lira_scores",
    "logit_scores",
    "lone_cells",
    "loss_scores",
    "marginal_reconstruction",
    "membership",
    "membership_by_scores",
    "membership_of_scores",
    "membership_of_table",
    "noised",
    "plot_power",
    "published_counts",
    "read_columns",
    "reconstruction",
    "rmia_scores",
    "scoreboard",
    "singling_out",
    "softmax_regression",
    "softmax_regressions",
    "sticky",
    "tabulate",
    "through_model",
    "through_table",
    "tracing",
    "tracing_power",
    "uniqueness",
]
