"""Principal component analysis of a noisy covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.learn.sklearn.base import TrainingTable
from discreet.learn.sklearn.bounds import BoundedArray
from discreet.learn.sklearn.transformers import PrivateTransformer, choice_epsilon, shared_mu_squared
from discreet.learn.sklearn.validation import combined
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_share, settle
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.vector_mean import VectorMean, clip_to_ball
from discreet.noise.limits import check_noise_variance
from discreet.privacy import events
from discreet.privacy.events import Composed, Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.noisy_moments import FINEST, exact_moments, joint_loss
from discreet.robust.regression_design import HALF

__all__ = ["PCA", "Centring", "RowMoments", "RowSums", "covariance", "covariance_error"]

# --- centring ---
# Where rows lie and how far out, found privately: what is needed before their second moments are worth measuring.


Integers: TypeAlias = NDArray[np.int64]

_LEAST = FINEST >> 9  # Steps: the distance of possible radii.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Centring:
    """Find the mean of rows within a ball of FINEST steps, and a radius about it that holds a share of them.

    Guarantee   Gaussian privacy of mu^2 for the mean, and a choice of bounded range for the radius.
    Theorem     See `VectorMean` and `Quantile`: the length of a row about a released mean is a number of that row.
                [DRS22, Smi11]
    Utility     a radius of which about `coverage` is true, where there are more than (20 / epsilon) / (1 - coverage)
                rows.
    """

    dimension: int
    relation: Relation
    size: int | None  # the public number of rows, under replace-one
    coverage: Fraction
    mu_squared: Fraction  # for the mean
    epsilon: Fraction  # for the radius

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            coverage=read_share(self.coverage, name="coverage"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            epsilon=positive(self.epsilon, name="epsilon"),
        )

    @property
    def mean(self) -> VectorMean:
        return VectorMean(
            bound=Fraction(FINEST),
            step=Fraction(1),
            dimension=self.dimension,
            relation=self.relation,
            noise=GaussianNoise(squared_multiplier=1 / self.mu_squared),
            public_rows=self.size,
            count_share=Fraction(1, 8),
        )

    @property
    def radius(self) -> Quantile:
        grid = Grid(low=Fraction(_LEAST), high=Fraction(FINEST), step=Fraction(_LEAST), default=Fraction(FINEST))
        return Quantile(quantile=self.coverage, epsilon=self.epsilon, grid=grid, relation=self.relation)

    @property
    def event(self) -> Composed:
        return Composed([self.mean.event, self.radius.event])

    def find(self, rows: Integers) -> tuple[Integers, int]:
        """Return the centre and the radius, in steps."""
        # The mean lies in the ball; noise may carry it far out, where squares would no longer fit into 64 bits.
        inside = (min(max(round(value), -FINEST), FINEST) for value in self.mean.release(rows).value)
        centre = np.fromiter(inside, dtype=np.int64, count=self.dimension)
        apart = rows - centre
        # Squares are whole numbers and a root is rounded correctly: the length depends on the row alone.
        lengths = np.sqrt((apart * apart).sum(axis=1).astype(np.float64))
        return centre, int(self.radius.release(lengths).value)


# --- row_moments ---
# The count, the sum and the second moments of rows in a ball: one Gaussian release with one joint sensitivity.


Floats: TypeAlias = NDArray[np.float64]


class RowSums(NamedTuple):
    """Noisy moments in steps, with the standard deviations of their noise."""

    rows: float
    total: Floats
    gram: Floats
    count_deviation: float
    total_deviation: float
    gram_deviation: float  # of the diagonal; off it the variance is half as much


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoments:
    """Measure n, the sum of x, and the sum of x x' - centre I, for rows of whole numbers with |x| <= radius.

    The noise on the matrix is symmetric and has half the variance off the diagonal, where an entry counts twice.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for all numbers together.
    Theorem     With precisions q, p and 1 of count, sum and matrix, in units of the radius, one row with t = |x|^2 has
                the squared norm q + p t + t^2 - 2 c t + d c^2. This is convex in t, so it is at most
                q + d c^2 + max(0, p + 1 - 2 c); c = 1 / d takes 1 / d away, and no eigenvector notices. Of two rows the
                count and the centre are the same; what is left is the pair of `Moments`: at most
                2 + 2 p + p^2 / 2 where p <= 2, and 4 p beyond. [DRS22]
    Utility     noise of about sqrt(2 d) radius^2 / mu on every eigenvalue.
    """

    dimension: int
    relation: Relation
    mu_squared: Fraction
    radius: int  # in steps
    weight: Fraction = Fraction(1, 4)  # p: how precise the sum is, next to the matrix
    count_weight: Fraction = Fraction(1, 8)  # q: how precise the count is, next to the matrix

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            dimension=positive_integer(self.dimension, name="dimension"),
            mu_squared=positive(self.mu_squared, name="mu_squared"),
            radius=positive_integer(self.radius, name="radius"),
            weight=positive(self.weight, name="weight"),
            count_weight=positive(self.count_weight, name="count_weight"),
        )
        if self.radius > FINEST:
            raise InvalidParameter(f"radius must be at most {FINEST} steps")
        for variance in (self.count_variance, self.total_variance, self.gram_variance / 2):
            check_noise_variance(variance)

    @property
    def centre(self) -> int:
        """The public number that is taken off the diagonal for each row, in squared steps."""
        return int(self.radius**2 * min(Fraction(1, self.dimension), (1 + self.weight) / 2))

    @property
    def loss(self) -> Fraction:
        """What one row costs, squared, where the matrix has noise of variance one, in units of the radius."""
        if self.relation is Relation.REPLACE_ONE:
            return joint_loss(Fraction(1), self.weight, self.relation)
        shift = Fraction(self.centre, self.radius**2)
        return self.count_weight + self.dimension * shift**2 + max(Fraction(0), self.weight + 1 - 2 * shift)

    @property
    def precision(self) -> Fraction:
        """One over the variance of the diagonal, in units of the radius, as large as mu allows."""
        return self.mu_squared / self.loss

    @property
    def count_variance(self) -> Fraction:
        return 1 / (self.precision * self.count_weight)

    @property
    def total_variance(self) -> Fraction:
        """In squared steps."""
        return self.radius**2 / (self.precision * self.weight)

    @property
    def gram_variance(self) -> Fraction:
        """Of the diagonal, in fourth powers of steps."""
        return self.radius**4 / self.precision

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.loss * self.precision)

    def exact(self, rows: Integers) -> tuple[int, Integers, Integers]:
        """Return the count, the sum and the matrix about its centre. They are private."""
        gram, total = exact_moments(rows, np.ones(len(rows), dtype=np.int64))
        return len(rows), total, gram - len(rows) * self.centre * np.eye(self.dimension, dtype=np.int64)

    def measure(self, rows: Integers) -> RowSums:
        """Add noise; the caller answers for the length of every row."""
        count, total, gram = self.exact(rows)
        if self.relation is Relation.ADD_REMOVE:
            count += noise.rounded_gaussian(variance=self.count_variance)
        total = total + noise.rounded_gaussian(size=self.dimension, variance=self.total_variance)
        gram = gram + self._symmetric_noise() + count * self.centre * np.eye(self.dimension, dtype=np.int64)
        return RowSums(
            rows=float(count),
            total=total.astype(np.float64),
            gram=gram.astype(np.float64),
            count_deviation=sqrt(self.count_variance) if self.relation is Relation.ADD_REMOVE else 0.0,
            total_deviation=sqrt(self.total_variance),
            gram_deviation=sqrt(self.gram_variance),
        )

    def _symmetric_noise(self) -> Integers:
        size = self.dimension
        upper = np.triu_indices(size, 1)
        drawn = np.zeros((size, size), dtype=np.int64)
        drawn[upper] = noise.rounded_gaussian(size=len(upper[0]), variance=self.gram_variance / 2)
        drawn += drawn.T
        drawn[np.diag_indices(size)] = noise.rounded_gaussian(size=size, variance=self.gram_variance)
        return drawn


def covariance(measured: RowSums) -> Floats:
    """Return the covariance that noisy moments tell, in squared steps."""
    count = max(measured.rows, 1.0)
    mean = measured.total / count
    found: Floats = measured.gram / count - np.outer(mean, mean)
    return found


def covariance_error(measured: RowSums, confidence: float, centre: float) -> float:
    """Return how far, in the operator norm, noise has moved the covariance, with at least this probability.

    Three events share what is left. The symmetric noise is a Gaussian orthogonal ensemble of variance v / 2: its norm
    has a mean of at most sqrt(2 d v), by comparison with 2 sqrt(v / 2) g u, and is sqrt(v)-Lipschitz. The length of the
    noise on the sum is at most deviation (sqrt(d) + t), the noise on the count at most deviation t, with the chance
    2 exp(-t^2 / 2). What is left is the triangle inequality. Rounding adds half a step to each entry.
    """
    size, t = len(measured.total), sqrt(2 * log(6 / (1 - confidence)))
    count, off = max(measured.rows, 1.0), measured.count_deviation * t
    if off >= count:
        return float("inf")
    least = count - off
    rounding = size / 2
    matrix = measured.gram_deviation * (sqrt(2 * size) + t) + rounding + centre * off
    mean = float(np.linalg.norm(measured.total)) / count
    apart = (measured.total_deviation * (sqrt(size) + t) + rounding + mean * off) / least
    whole = float(np.linalg.norm(measured.gram, 2)) / count
    return (matrix + whole * off) / least + 2 * mean * apart + apart**2


_MEAN, _RADIUS = Fraction(1, 8), Fraction(1, 16)  # Of the budget, where the centre and the radius are found first.
_CONFIDENCE = 0.95


class _PCAMechanisms(NamedTuple):
    centring: Centring | None
    mu_squared: Fraction  # for the moments; how far out they reach is only known later

    def moments(self, dimension: int, relation: Relation, radius: int) -> RowMoments:
        return RowMoments(dimension=dimension, relation=relation, mu_squared=self.mu_squared, radius=radius)


class PCA(PrivateTransformer, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Find the directions in which rows vary most, from their covariance with symmetric noise.

    Noise grows with the square of the length of the longest row. So the mean of the rows and a radius about it that
    holds a share `coverage` of them are found first; what lies beyond is shortened. With `coverage=None` rows are
    taken as they are, about the middle of the bounds.

    `explained_variance_error_` tells how far noise may have moved each variance, with 95 % confidence, next to the
    variances of the rows as they were shortened. Rows that come out are clamped to `radius_`, and say so.

    Guarantee   (epsilon, delta), for mean, radius and covariance together.
    Theorem     See `RowMoments` and `Centring`. What is done with a noisy matrix is free.
    Utility     noise of about sqrt(2 columns) radius^2 / (mu rows) on each variance; mu is about epsilon / 4.

    Args:
        n_components: How many directions to keep; all if not said.
        epsilon: What a fit spends.
        delta: The delta that goes with epsilon.
        bounds: Public pairs or `dp.between(…)` of the columns, in order or by name; a step before may declare them.
        coverage: The share of rows that the radius shall hold; None takes rows as they are.
        relation: The neighbouring relation, as `Relation` or as "add-remove" or "replace-one".
        public_rows: About how many rows there are, a public number.
        session: Who pays, a `Ledger` or a `Session`; it is charged before the rows are read. Nobody if not said.

    Examples:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(2000, 3)) * [3, 1, 1]
        >>> pca = dp.learn.sklearn.PCA(1, epsilon=5, delta=1e-6, bounds=[(-10, 10)] * 3).fit(X)
        >>> pca.transform(X).shape
        (2000, 1)
    """

    _stored_as: ClassVar[str] = "PCA"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number,
        delta: Number | None = None,
        bounds: Any = None,
        coverage: Number | None = 0.9,
        relation: str | Relation = "add-remove",
        public_rows: int | None = None,
        session: Payer | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.coverage = coverage
        self.relation = relation
        self.public_rows = public_rows
        self.session = session

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, max_rows: int | None = None) -> Self:
        """Measure the covariance and find its eigenvectors; with `unit`, rows weigh one for each person together."""
        table = self._table(X, unit=unit, max_rows=max_rows).filled()
        kept = self._kept()
        delta = self._delta(table.people)
        mechanisms = self._mechanisms(table, delta)
        with self._paid(table.event_of(self._event(mechanisms)), delta=delta, whom=table.whom):
            self.frame_ = table.frame
            rows = self._rows(table)
            centre, radius = (
                (np.zeros(self.n_features_in_, dtype=np.int64), FINEST)
                if mechanisms.centring is None
                else mechanisms.centring.find(rows)
            )
            moments = mechanisms.moments(self.n_features_in_, self._relation(), radius)
            self._settle(moments, moments.measure(clip_to_ball(rows - centre, radius)), centre, kept)
            return self

    def _kept(self) -> int:
        if self.n_components is None:
            return self.n_features_in_
        kept = positive_integer(self.n_components, name="n_components")
        if kept > self.n_features_in_:
            raise InvalidParameter(f"n_components must be at most {self.n_features_in_}, the number of columns")
        return kept

    def _mechanisms(self, table: TrainingTable, delta: Fraction) -> _PCAMechanisms:
        if self.coverage is None:
            return _PCAMechanisms(None, 1 / self._row_gaussian(table).squared_multiplier)
        coverage, relation, slots = read_share(self.coverage, name="coverage"), self._relation(), table.max_rows
        mu_squared = shared_mu_squared(self._epsilon(), delta, relation, share=_RADIUS, choices=1)
        centring = Centring(
            dimension=self.n_features_in_,
            relation=relation,
            size=table.size,
            coverage=coverage,
            mu_squared=_MEAN * mu_squared / slots**2,
            epsilon=choice_epsilon(_RADIUS * mu_squared, 1) / slots,
        )
        return _PCAMechanisms(centring, (1 - _MEAN - _RADIUS) * mu_squared / slots**2)

    def _event(self, mechanisms: _PCAMechanisms) -> Event:
        # The cost of the moments is that of mu, whatever radius will be found.
        moments = mechanisms.moments(self.n_features_in_, self._relation(), FINEST).event
        return moments if mechanisms.centring is None else Composed([mechanisms.centring.event, moments])

    def _unit(self) -> float:
        """Return the size of a step in the units of the data: FINEST of them reach every corner of the bounds."""
        _, half = self._middle_and_half()
        # Rounding moves a row by at most half the root of the number of columns.
        return float(np.linalg.norm(half)) / (FINEST - 1 - sqrt(self.n_features_in_))

    def _rows(self, table: TrainingTable) -> NDArray[np.int64]:
        """Place rows about the middle of the bounds, one step for all columns."""
        _, half = self._middle_and_half()
        rows: NDArray[np.int64] = np.rint(table.steps() * (half / (HALF * self._unit()))).astype(np.int64)
        return clip_to_ball(rows, FINEST)

    def _settle(self, moments: RowMoments, measured: RowSums, centre: NDArray[np.int64], kept: int) -> None:
        unit, (middle, _) = self._unit(), self._middle_and_half()
        values, vectors = np.linalg.eigh(covariance(measured))
        order = np.argsort(values)[::-1][:kept]
        variances = np.maximum(values, 0.0) * unit**2
        self.components_ = _upright(vectors[:, order].T)
        self.explained_variance_ = variances[order]
        self.explained_variance_ratio_ = variances[order] / max(variances.sum(), np.finfo(float).tiny)
        self.explained_variance_error_ = covariance_error(measured, _CONFIDENCE, moments.centre) * unit**2
        self.mean_ = middle + unit * (centre + measured.total / max(measured.rows, 1.0))
        self.radius_ = moments.radius * unit
        self.n_components_ = kept

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> BoundedArray:
        """Return coordinates along the components, clamped to the radius. Rows stay as private as they were."""
        moved = self._moved(X)
        middle, half = self._middle_and_half()
        turned = combined(middle + half * moved - self.mean_, self.components_.T)
        return BoundedArray.clamped(turned, -self.radius_, self.radius_)

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that have these coordinates and no others."""
        found: Floats = np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_
        return found


def _upright(components: Floats) -> Floats:
    """Turn each component so that its largest entry is positive: otherwise its sign is chance."""
    largest = np.abs(components).argmax(axis=1)
    found: Floats = components * np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)[:, None]
    return found
