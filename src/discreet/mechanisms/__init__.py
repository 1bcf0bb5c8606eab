"""Mechanisms, one file each: frozen public parameters; private data enters only through `release`."""

from __future__ import annotations

from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Sensitivity
from discreet.mechanisms.correlated_gaussian import CorrelatedGaussian
from discreet.mechanisms.count import Count
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.gaussian import DiscreteGaussian, Gaussian, VectorGaussian
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.joint_quantiles import QuantileInterval, Quantiles
from discreet.mechanisms.laplace import Laplace, VectorLaplace
from discreet.mechanisms.local_protocol import Respondent, estimate
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.noisy_max import PermuteAndFlip, ReportNoisyMax
from discreet.mechanisms.proportion import Proportion
from discreet.mechanisms.quantile import Quantile, QuantileAmong
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.release import Release
from discreet.mechanisms.sparse_vector import AboveThreshold
from discreet.mechanisms.sum import Sum
from discreet.mechanisms.top_k import TopK
from discreet.mechanisms.variance import Covariance, Variance
from discreet.mechanisms.vector_mean import VectorMean
from discreet.mechanisms.workloads.matrix_mechanism import MatrixMechanism

__all__ = [
    "AboveThreshold",
    "CorrelatedGaussian",
    "Count",
    "Covariance",
    "DiscreteGaussian",
    "Exponential",
    "Gaussian",
    "GaussianNoise",
    "Grid",
    "Histogram",
    "Laplace",
    "LaplaceNoise",
    "MatrixMechanism",
    "Mean",
    "PermuteAndFlip",
    "Proportion",
    "Quantile",
    "QuantileAmong",
    "QuantileInterval",
    "Quantiles",
    "RandomizedResponse",
    "Release",
    "ReportNoisyMax",
    "Respondent",
    "Sensitivity",
    "Sum",
    "TopK",
    "Variance",
    "VectorGaussian",
    "VectorLaplace",
    "VectorMean",
    "estimate",
]
