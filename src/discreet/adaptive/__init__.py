"""Data-dependent mechanisms: local and smooth sensitivity, propose-test-release, stability, partition selection."""

from __future__ import annotations

from discreet.adaptive.aggregators import (
    BlockMode,
    block_centre,
    block_median,
    block_trimmed_mean,
    block_winsorised_mean,
)
from discreet.adaptive.approximate_recipes import gaussian, laplace, laplace_log_normal
from discreet.adaptive.block_runner import BlockLimits
from discreet.adaptive.choosing_mechanism import Choosing
from discreet.adaptive.clipped_mean import ClippedMean
from discreet.adaptive.graph_queries import Graph, StarQuery, TriangleQuery
from discreet.adaptive.graph_releases import degree_histogram, stars, triangles
from discreet.adaptive.interquartile_range import propose_interquartile_range
from discreet.adaptive.local_sensitivity_bounds import (
    BoundedLocalSensitivity,
    BoundedSmoothSensitivity,
    LocalQuery,
    local_sensitivity,
    smooth_sensitivity,
)
from discreet.adaptive.no_answer import NO_ANSWER, NoAnswer
from discreet.adaptive.node_private_graphs import node_private_degrees, node_private_edges
from discreet.adaptive.noise_recipes import best_recipe, polynomial, power, student
from discreet.adaptive.order_queries import median_query, quantile_query, trimmed_mean_query, winsorised_mean_query
from discreet.adaptive.partition_selection import OptimalPartitionSelection, partition_probability
from discreet.adaptive.propose_test_release import (
    ProposeTestRelease,
    propose_median,
    propose_quantile,
    propose_trimmed_mean,
)
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.adaptive.smooth_query import DistanceQuery, SmoothlyBoundedQuery
from discreet.adaptive.smoothness_check import check_smoothness
from discreet.adaptive.stability import ReleaseIfStable, StableMode, StableQuery, StableSelection
from discreet.adaptive.subsample_aggregate import SubsampleAndAggregate, release_if_subsampling_stable
from discreet.adaptive.truncated_histogram import TruncatedHistogram

__all__ = [
    "NO_ANSWER",
    "BlockLimits",
    "BlockMode",
    "BoundedLocalSensitivity",
    "BoundedSmoothSensitivity",
    "Choosing",
    "ClippedMean",
    "DistanceQuery",
    "Graph",
    "LocalQuery",
    "NoAnswer",
    "OptimalPartitionSelection",
    "ProposeTestRelease",
    "ReleaseIfStable",
    "SmoothSensitivityMechanism",
    "SmoothlyBoundedQuery",
    "StableMode",
    "StableQuery",
    "StableSelection",
    "StarQuery",
    "SubsampleAndAggregate",
    "TriangleQuery",
    "TruncatedHistogram",
    "best_recipe",
    "block_centre",
    "block_median",
    "block_trimmed_mean",
    "block_winsorised_mean",
    "check_smoothness",
    "degree_histogram",
    "gaussian",
    "laplace",
    "laplace_log_normal",
    "local_sensitivity",
    "median_query",
    "node_private_degrees",
    "node_private_edges",
    "partition_probability",
    "polynomial",
    "power",
    "propose_interquartile_range",
    "propose_median",
    "propose_quantile",
    "propose_trimmed_mean",
    "quantile_query",
    "release_if_subsampling_stable",
    "smooth_sensitivity",
    "stars",
    "student",
    "triangles",
    "trimmed_mean_query",
    "winsorised_mean_query",
]
