"""The attack lab: point it at your own table or release on your own machine, and see who falls.

Every result is about real people: it is `NotPrivate`, for whoever holds the data, and never part of a release.
"""

from discreet.attacks.axes import Level
from discreet.attacks.counts import CountTable, Noise, tabulate
from discreet.attacks.differencing import Differencing, Isolation, differencing
from discreet.attacks.linkage import Linkage, linkage
from discreet.attacks.published import published_counts
from discreet.attacks.results import Success

__all__ = [
    "CountTable",
    "Differencing",
    "Isolation",
    "Level",
    "Linkage",
    "Noise",
    "Success",
    "differencing",
    "linkage",
    "published_counts",
    "tabulate",
]
