"""The attack lab: re-identification, differencing, reconstruction and inference attacks on your own data.

Every result is about real people: it is `NotPrivate`, for whoever holds the data, and never part of a release.
"""

from discreet.lab.attacks.attribute_inference import (
    attributes,
    attributes_of_table,
    membership_of_table,
    through_model,
    through_table,
)
from discreet.lab.attacks.averaging import averaging, averaging_curve
from discreet.lab.attacks.count_tables import AxisLevel, published_counts, tabulate
from discreet.lab.attacks.differencing import differencing
from discreet.lab.attacks.floating_point_attack import floating_point
from discreet.lab.attacks.lab_tables import read_columns
from discreet.lab.attacks.linkage import linkage
from discreet.lab.attacks.marginal_reconstruction import marginal_reconstruction
from discreet.lab.attacks.membership import membership, membership_by_scores
from discreet.lab.attacks.populations import coins, gaussian_counts, genome, halves, indicators
from discreet.lab.attacks.scoreboard import Rule, item_counts, scoreboard
from discreet.lab.attacks.sticky_noise import sticky
from discreet.lab.attacks.subset_reconstruction import Decoder, reconstruction
from discreet.lab.attacks.tracing import Score, least_deviation, plot_power, tracing, tracing_power
from discreet.lab.attacks.uniqueness_search import lone_cells, singling_out, uniqueness

__all__ = [
    "AxisLevel",
    "Decoder",
    "Rule",
    "Score",
    "attributes",
    "attributes_of_table",
    "averaging",
    "averaging_curve",
    "coins",
    "differencing",
    "floating_point",
    "gaussian_counts",
    "genome",
    "halves",
    "indicators",
    "item_counts",
    "least_deviation",
    "linkage",
    "lone_cells",
    "marginal_reconstruction",
    "membership",
    "membership_by_scores",
    "membership_of_table",
    "plot_power",
    "published_counts",
    "read_columns",
    "reconstruction",
    "scoreboard",
    "singling_out",
    "sticky",
    "tabulate",
    "through_model",
    "through_table",
    "tracing",
    "tracing_power",
    "uniqueness",
]
