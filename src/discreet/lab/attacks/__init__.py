"""The attack lab: point it at your own table or release on your own machine, and see who falls.

Every result is about real people: it is `NotPrivate`, for whoever holds the data, and never part of a release.
"""

from discreet.lab.attacks.attribute_inference import (
    Attributes,
    attributes,
    attributes_of_table,
    membership_of_scores,
    membership_of_table,
    through_model,
    through_table,
)
from discreet.lab.attacks.averaging import Averaging, AveragingCurve, averaging, averaging_curve
from discreet.lab.attacks.count_tables import AxisLevel, CountNoise, CountTable, noised, published_counts, tabulate
from discreet.lab.attacks.differencing import Differencing, Isolation, differencing
from discreet.lab.attacks.floating_point_attack import FloatingPoint, floating_point
from discreet.lab.attacks.lab_tables import read_columns
from discreet.lab.attacks.linkage import Linkage, linkage
from discreet.lab.attacks.marginal_reconstruction import (
    MarginalReconstruction,
    Marginals,
    PeopleBlock,
    block_of,
    marginal_reconstruction,
)
from discreet.lab.attacks.membership import (
    Membership,
    lira_scores,
    logit_scores,
    loss_scores,
    membership,
    membership_by_scores,
    rmia_scores,
    softmax_regression,
    softmax_regressions,
)
from discreet.lab.attacks.populations import (
    Indicators,
    Population,
    VectorRelease,
    coins,
    gaussian_counts,
    genome,
    halves,
    indicators,
)
from discreet.lab.attacks.scoreboard import ItemCounts, Rule, Scoreboard, ScoreboardTrial, item_counts, scoreboard
from discreet.lab.attacks.sticky_noise import Sticky, StickyResult, sticky
from discreet.lab.attacks.subset_reconstruction import Decoder, Reconstruction, guessing_ceiling, reconstruction
from discreet.lab.attacks.success_rates import Attacker, FoundRate, Success, judge
from discreet.lab.attacks.tracing import (
    Score,
    Tracing,
    TracingPower,
    least_deviation,
    plot_power,
    tracing,
    tracing_power,
)
from discreet.lab.attacks.uniqueness_search import (
    Combination,
    LoneCells,
    SingledOut,
    Uniqueness,
    lone_cells,
    singling_out,
    uniqueness,
)

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
