"""What is audited: small instances of every mechanism, estimate and session of this library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias, final

from discreet import adaptive, robust, statistics
from discreet.adaptive.choosing_mechanism import PointFunctionLearner
from discreet.adaptive.graph_releases import DegreeHistogram
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms import (
    AboveThreshold,
    CorrelatedGaussian,
    Count,
    Covariance,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    GaussianNoise,
    Grid,
    Histogram,
    Laplace,
    LaplaceNoise,
    MatrixMechanism,
    Mean,
    PermuteAndFlip,
    Proportion,
    Quantile,
    QuantileAmong,
    QuantileInterval,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    Sum,
    TopK,
    Variance,
    VectorGaussian,
    VectorLaplace,
    VectorMean,
)
from discreet.mechanisms.workloads.linear_queries import Factor
from discreet.mechanisms.workloads.strategy_matrix import StrategyFactor, StrategyMatrix
from discreet.privacy.events import Event, PureDP
from discreet.privacy.relation import Relation
from discreet.statistics.population_means import PopulationMean

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = [
    "BlackBox",
    "ListedSubject",
    "Subject",
    "catalogue",
    "of_adaptive",
    "of_mechanisms",
    "of_robust",
    "of_sessions",
    "of_statistics",
    "sizes",
    "small",
]

# --- subject: What can be audited: a mechanism whose law is listed, or anything that gives an output. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSubject:
    """A mechanism that lists its law, and a small world: its claim is compared with all neighbours exactly."""

    part: str
    name: str
    mechanism: Any
    worlds: Worlds
    query: Callable[[Any], Any] | None = None  # from a data set to what `release` takes
    large: bool = False  # for the full size only

    def given(self, data: Any) -> Any:
        """Return what `release` takes for a data set of the world."""
        return list(data) if self.query is None else self.query(data)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBox:
    """Anything that takes a data set and gives an output: it is run, and its outputs are looked at."""

    part: str
    name: str
    run: Callable[[Any], Any]
    claim: Event
    relation: Relation
    pairs: tuple[tuple[Any, Any], ...]
    runs: int  # at the small size; the full one takes ten times as many
    large: bool = False


Subject: TypeAlias = ListedSubject | BlackBox


def sizes(relation: Relation, most: int) -> tuple[int, ...]:
    """Data sets of all sizes up to `most`, or of that size only where the size is public."""
    return tuple(range(most + 1)) if relation is Relation.ADD_REMOVE else (most,)


def small(values: Any, relation: Relation, most: int) -> Worlds:
    """All small data sets over some values."""
    return worlds(values, sizes(relation, most))


# --- catalogue: All of this library, as things to be audited. ---


def catalogue() -> Iterator[Subject]:
    """List every subject, from the ground up."""
    yield from of_mechanisms()
    yield from of_adaptive()
    yield from of_robust()
    yield from of_statistics()
    yield from of_sessions()


# --- of_adaptive: One small instance of each mechanism that looks at the data. ---


_LETTERS = ("a", "b", "c")
_GRID = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(0))
_NODES = 4
_DELTA = Fraction(1, 100)


def of_adaptive() -> Iterator[ListedSubject]:
    """List them: tests of stability, bins found in the data, smooth sensitivity, graphs, bounds found first."""
    for relation in Relation:
        for mechanism in _stable(relation):
            yield _listed(mechanism, small(_LETTERS, relation, 4))
        yield _listed(_selection(relation), small(_LETTERS, relation, 4), _letter_counts)
        yield _listed(_choosing(relation), small(_LETTERS[:2], relation, 6), Counter)
        yield _listed(_learner(relation), small(((1, 1), (2, 1), (1, 0)), relation, 3))
        size = 3 if relation is Relation.REPLACE_ONE else None
        proposed = adaptive.propose_median(
            grid=_GRID, bound=1, epsilon=6, delta="0.05", relation=relation, public_rows=size
        )
        yield _listed(proposed, small((0, 2, 4), relation, 3), name="ProposeTestRelease of a median")
        query = adaptive.median_query(grid=_GRID, relation=relation, public_rows=size)
        smooth = adaptive.SmoothSensitivityMechanism(query=query, recipe=adaptive.polynomial(2, beta="0.4"))
        yield _listed(smooth, small((0, 2, 4), relation, 3), name="SmoothSensitivityMechanism of a median")
    yield _listed(_clipped(), worlds((0, 1, 4), [3]), large=True)
    yield from _of_graphs()


def _listed(mechanism: Any, world: Worlds, query: Any = None, *, name: str = "", large: bool = False) -> ListedSubject:
    known = name or type(mechanism).__name__
    return ListedSubject(part="adaptive", name=known, mechanism=mechanism, worlds=world, query=query, large=large)


def _stable(relation: Relation) -> Iterator[Any]:
    yield adaptive.StableMode(domain=_LETTERS, epsilon=Fraction(1), delta=_DELTA, relation=relation)
    yield adaptive.TruncatedHistogram(noise=LaplaceNoise(epsilon=Fraction(2)), delta=_DELTA, relation=relation)
    yield adaptive.OptimalPartitionSelection(epsilon=Fraction(1), delta=_DELTA, relation=relation)


def _selection(relation: Relation) -> adaptive.StableSelection:
    return adaptive.StableSelection(
        epsilon=Fraction(1), delta=_DELTA, sensitivity=1, candidates=len(_LETTERS), relation=relation
    )


def _choosing(relation: Relation) -> adaptive.Choosing:
    return adaptive.Choosing(epsilon=Fraction(4), delta=_DELTA, growth=1, relation=relation)


def _learner(relation: Relation) -> PointFunctionLearner:
    return PointFunctionLearner(epsilon=Fraction(4), delta=Fraction(1, 20), relation=relation)


def _clipped() -> adaptive.ClippedMean:
    return adaptive.ClippedMean(
        grid=Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(2)),
        relation=Relation.REPLACE_ONE,
        epsilon=Fraction(6),
        public_rows=3,
        likely_radius=Fraction(2),
        centre_share=Fraction(1, 4),
        radius_share=Fraction(1, 2),
    )


def _of_graphs() -> Iterator[ListedSubject]:
    """All graphs of four nodes: a record is an edge."""
    pairs = list(combinations(range(_NODES), 2))
    graphs = tuple(edges for count in range(len(pairs) + 1) for edges in combinations(pairs, count))
    world, recipe = Worlds(graphs, ordered=False), adaptive.polynomial(2, beta="0.4")
    triangles = adaptive.TriangleQuery(nodes=_NODES)
    yield _listed(
        adaptive.SmoothSensitivityMechanism(query=triangles, recipe=recipe), world, name="triangles of a graph"
    )
    degrees = DegreeHistogram(nodes=_NODES, largest=2, noise=LaplaceNoise(epsilon=Fraction(4)))
    yield _listed(degrees, world, large=True)


def _letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in _LETTERS]


# --- of_mechanisms: One small instance of every mechanism of `dp.mechanisms`, under both relations. ---


_OF_MECHANISMS_GRID = Grid(low=Fraction(-1), high=Fraction(2), step=Fraction(1), default=Fraction(0))
_UNIT = Grid(low=Fraction(-1), high=Fraction(1), step=Fraction(1), default=Fraction(0))
_OF_MECHANISMS_LETTERS = ("a", "b", "c")
_NUMBERS = (-1, 0, 2)
_LOUD = GaussianNoise.for_rho(2)


def of_mechanisms() -> Iterator[ListedSubject]:
    """List them: noise on answers, choices, statistics of a column, surveys."""
    for relation in Relation:
        for mechanism in _additive(relation):
            yield _of_mechanisms_listed(mechanism, _OF_MECHANISMS_LETTERS, 2, _counted(mechanism))
        for mechanism in _of_mechanisms_choosing(relation):
            yield _of_mechanisms_listed(mechanism, _OF_MECHANISMS_LETTERS, 3, _of_mechanisms_letter_counts)
        for mechanism, values, most in _of_columns(relation):
            large = isinstance(mechanism, Variance) and relation is Relation.ADD_REMOVE  # Three numbers in one outcome.
            yield _of_mechanisms_listed(mechanism, values, most, None, large=large)
    response = RandomizedResponse.for_epsilon(1, categories=3)
    name = _name(response)
    yield ListedSubject(part="mechanisms", name=name, mechanism=response, worlds=worlds((0, 1, 2), (2,), ordered=True))


def _of_mechanisms_listed(mechanism: Any, values: Any, most: int, query: Any, *, large: bool = False) -> ListedSubject:
    world = small(values, mechanism.relation, most)
    name = _name(mechanism)
    return ListedSubject(part="mechanisms", name=name, mechanism=mechanism, worlds=world, query=query, large=large)


def _name(mechanism: Any) -> str:
    noise = getattr(mechanism, "noise", None)
    kind = {LaplaceNoise: ", Laplace", GaussianNoise: ", Gaussian"}.get(type(noise), "")
    kind += ", monotone" if getattr(mechanism, "monotone", False) else ""
    kind += f", {mechanism.quantile}" if isinstance(mechanism, Quantile) else ""
    kind += ", flips" if getattr(mechanism, "flips", False) else ""
    return type(mechanism).__name__ + kind


def _additive(relation: Relation) -> Iterator[Any]:
    """Noise on counts of letters: one letter that changes moves two of them."""
    changed = 1 if relation is Relation.ADD_REMOVE else 2
    squared = Fraction(changed)
    yield Laplace(sensitivity=1, scale=Fraction(3, 2), relation=relation)
    yield VectorLaplace(sensitivity=changed, scale=Fraction(1, 3), dimension=2, relation=relation)
    yield Gaussian(squared_sensitivity=Fraction(1), variance=Fraction(9, 4), relation=relation)
    yield VectorGaussian(squared_sensitivity=squared, variance=Fraction(1), dimension=2, relation=relation)
    yield DiscreteGaussian(sensitivity=1, variance=Fraction(4), relation=relation)
    # The inverse of the covariance is (1, -1; -1, 2): (1, 0), (0, 1) and (1, -1) have squared norms 1, 2 and 5.
    yield CorrelatedGaussian(
        covariance=((Fraction(2), Fraction(1)), (Fraction(1), Fraction(1))),
        squared_sensitivity=Fraction(2 if relation is Relation.ADD_REMOVE else 5),
        relation=relation,
        fineness=1,
    )
    yield AboveThreshold(epsilon=Fraction(4), sensitivity=1, threshold=1, relation=relation)


def _of_mechanisms_choosing(relation: Relation) -> Iterator[Any]:
    shared: dict[str, Any] = {"candidates": 3, "relation": relation}
    both = (False, True) if relation is Relation.ADD_REMOVE else (False,)
    for monotone in both:
        yield Exponential(sensitivity=Fraction(1), epsilon=Fraction(1), monotone=monotone, **shared)
        yield PermuteAndFlip(sensitivity=Fraction(1), epsilon=Fraction(1), monotone=monotone, **shared)
        yield ReportNoisyMax(sensitivity=1, epsilon=Fraction(3), monotone=monotone, **shared)
        yield TopK(sensitivity=Fraction(1), epsilon=Fraction(1), count=2, monotone=monotone, **shared)


def _workload(noise: Any, shared: dict[str, Any]) -> MatrixMechanism:
    """Two cells by their sum and their difference: columns (1, 1) and (1, -1), which are (0, 2) apart."""
    return MatrixMechanism(
        cells=(_OF_MECHANISMS_LETTERS[:2],),
        queries=(Factor("identity", 2),),
        strategy=StrategyMatrix(factors=(StrategyFactor.of([[1, 1], [1, -1]]),)),
        noise=noise,
        **shared,
    )


def _of_columns(relation: Relation) -> Iterator[tuple[Any, Any, int]]:
    size = 2 if relation is Relation.REPLACE_ONE else None
    shared: dict[str, Any] = {"relation": relation}
    rows = ((1, 0), (0, -1), (0, 0))
    for noise in (_laplace("1/2"), _LOUD):
        yield Count(noise=noise, **shared), (1, None), 3
    yield Sum(grid=_OF_MECHANISMS_GRID, noise=_laplace(1), **shared), _NUMBERS, 3
    yield Mean(grid=_OF_MECHANISMS_GRID, noise=_laplace(8), public_rows=size, **shared), _NUMBERS, 2
    yield Mean(grid=_OF_MECHANISMS_GRID, noise=_LOUD, public_rows=size, **shared), _NUMBERS, 2
    yield Proportion(noise=_laplace(6), public_rows=size, **shared), (True, False), 2
    yield Variance(grid=_UNIT, noise=_laplace(36 if size is None else 2), public_rows=size, **shared), (-1, 0, 1), 2
    yield PopulationMean(grid=_UNIT, noise=_laplace(24), public_rows=size, **shared), (-1, 0, 1), 2
    if size is not None:  # With six numbers in one outcome there are too many to list.
        bits = Grid(low=Fraction(0), high=Fraction(1), step=Fraction(1), default=Fraction(0))
        yield (
            Covariance(grids=(bits, bits), noise=_laplace(36), public_rows=size, **shared),
            ((0, 0), (1, 1), (1, 0)),
            2,
        )
    for noise in (_laplace(4), _LOUD):
        yield Histogram(bins=_OF_MECHANISMS_LETTERS[:2], noise=noise, **shared), _OF_MECHANISMS_LETTERS, 2
        yield _workload(noise, shared), _OF_MECHANISMS_LETTERS, 2
    loud = _laplace(24 if size is None else 6)
    yield VectorMean(bound=Fraction(1), step=Fraction(1), dimension=2, noise=loud, public_rows=size, **shared), rows, 2
    for q in ("0", "1/2", "9/10"):
        yield Quantile(quantile=Fraction(q), epsilon=Fraction(1), grid=_OF_MECHANISMS_GRID, **shared), (-1, 0, 1, 2), 3
    among = (_OF_MECHANISMS_GRID.first, 0, _OF_MECHANISMS_GRID.last)
    yield (
        QuantileAmong(
            candidates=among, quantile=Fraction(1, 2), epsilon=Fraction(1), grid=_OF_MECHANISMS_GRID, **shared
        ),
        (-1, 0, 1, 2),
        3,
    )
    half: dict[str, Any] = {"quantile": Fraction(1, 2), "grid": _OF_MECHANISMS_GRID, **shared}
    yield Quantile(epsilon=Fraction(1), flips=True, **half), (-1, 0, 1, 2), 3
    yield QuantileInterval(epsilon=Fraction(3), confidence=Fraction(1, 10), **half), (-1, 0, 1, 2), 3
    for epsilons in ((Fraction(1), Fraction(2)), (Fraction(3),)):  # by levels, and at once
        yield (
            Quantiles(
                quantiles=(Fraction(1, 4), Fraction(3, 4)),
                epsilons=epsilons,
                grid=_OF_MECHANISMS_GRID,
                fineness=1,
                **shared,
            ),
            (-1, 0, 1, 2),
            3,
        )


def _laplace(epsilon: int | str) -> LaplaceNoise:
    return LaplaceNoise(epsilon=Fraction(epsilon))


def _counted(mechanism: Any) -> Any:
    if isinstance(mechanism, AboveThreshold):
        return _of_mechanisms_letter_counts
    return _two if isinstance(mechanism, (VectorLaplace, VectorGaussian, CorrelatedGaussian)) else _one


def _of_mechanisms_letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in _OF_MECHANISMS_LETTERS]


def _two(data: Any) -> list[int]:
    return _of_mechanisms_letter_counts(data)[:2]


def _one(data: Any) -> int:
    return int(data.count("a"))


# --- measured ---
# What is audited from its outputs alone: one-call statistics, robust estimates, whole sessions.


_ADD, _REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
_MEASURED_LETTERS = ("a", "b", "c")
_MEASURED_NUMBERS = (((), (4.0,)), ((0.0, 0.0, 4.0), (0.0, 4.0)))
_LISTS = (((), ("a",)), (("a", "a", "b"), ("a", "a")))
_SWAPPED = (((0.0, 0.0, 0.0), (0.0, 0.0, 4.0)), ((0.0, 2.0, 4.0), (0.0, 4.0, 4.0)))
_MANY = 30  # Rows of a table for estimates that make no sense of few.
_SPREAD = tuple(float(value % 5) for value in range(_MANY))
_SQL = {
    "COUNT of groups": "SELECT side, COUNT(*) AS n FROM data GROUP BY side",
    "SUM": "SELECT SUM(x) AS total FROM data",
    "AVG and COUNT": "SELECT AVG(x) AS middle, COUNT(*) AS n FROM data WHERE x > 1",
}


def of_statistics() -> Iterator[BlackBox]:
    """One call of each function, on a few tiny columns."""
    added: dict[str, Any] = {"relation": _ADD, "epsilon": 1}
    bounded: dict[str, Any] = {**added, "bounds": (0, 4), "step": 1}
    yield _statistic("count", lambda data: statistics.count(list(data), **added), _LISTS)
    yield _statistic("sum", lambda data: statistics.sum(list(data), **bounded), _MEASURED_NUMBERS)
    yield _statistic("mean", lambda data: statistics.mean(list(data), **bounded), _MEASURED_NUMBERS)
    yield _statistic("variance", lambda data: statistics.variance(list(data), **bounded), _MEASURED_NUMBERS)
    yield _statistic("median", lambda data: statistics.median(list(data), **bounded), _MEASURED_NUMBERS)
    yield _statistic("quantile", lambda data: statistics.quantile(list(data), "0.9", **bounded), _MEASURED_NUMBERS)
    yield _statistic(
        "histogram", lambda data: statistics.histogram(list(data), bins=_MEASURED_LETTERS, **added), _LISTS
    )
    yield _statistic("mode", lambda data: statistics.mode(list(data), candidates=_MEASURED_LETTERS, **added), _LISTS)
    yield _statistic(
        "top_k", lambda data: statistics.top_k(list(data), 2, candidates=_MEASURED_LETTERS, **added), _LISTS
    )
    yield _statistic(
        "proportion", lambda data: statistics.proportion([one > 2 for one in data], **added), _MEASURED_NUMBERS
    )
    yield from _replaced()


def _replaced() -> Iterator[BlackBox]:
    shared: dict[str, Any] = {"relation": _REPLACE, "epsilon": 1}
    bounded: dict[str, Any] = {**shared, "bounds": (0, 4), "step": 1}
    yield _statistic("mean", lambda data: statistics.mean(list(data), **bounded), _SWAPPED, _REPLACE)
    yield _statistic("median", lambda data: statistics.median(list(data), **bounded), _SWAPPED, _REPLACE)
    answers = ((("a", "b"), ("b", "b")), (("a", "a"), ("a", "c")))
    yield _statistic(
        "randomized_response",
        lambda data: statistics.randomized_response(list(data), categories=_MEASURED_LETTERS, **shared),
        answers,
        _REPLACE,
    )


def of_robust() -> Iterator[BlackBox]:
    """Estimates that need some rows: one of them goes, or becomes extreme."""
    fewer = ((_SPREAD, _SPREAD[1:]),)
    moved = ((_SPREAD, (*_SPREAD[1:], 100.0)),)
    plain: dict[str, Any] = {"bounds": (-100, 100), "rho": 2}
    for relation, pairs in ((_ADD, fewer), (_REPLACE, moved)):
        yield _robust("location", _with(robust.location, relation=relation, **plain), pairs, relation)
        yield _robust(
            "location_and_scale", _with(robust.location_and_scale, relation=relation, **plain), pairs, relation
        )
    rows = _with(robust.coinpress_mean, centre=[0], radius=100, deviation=2, relation=_REPLACE, rho=2)
    yield _robust("coinpress_mean", lambda data: rows([[value] for value in data]), moved, _REPLACE)
    yield _robust("regression", _fitted, moved, _REPLACE)


def of_sessions() -> Iterator[BlackBox]:
    """Whole answers to SQL, from a table in memory to the released numbers."""
    for name, sql in _SQL.items():
        yield BlackBox(
            part="query",
            name=f"Session.sql: {name}",
            run=_asked(sql),
            claim=PureDP(2),
            relation=_ADD,
            pairs=((("a", "b", "b"), ("b", "b")),),
            runs=100,
            large=name == "SUM",  # What it does, AVG does too; a session takes a while.
        )


def _statistic(name: str, run: Callable[[Any], Any], pairs: Any, relation: Relation = _ADD) -> BlackBox:
    claim = run(pairs[0][1]).event
    return BlackBox(
        part="statistics", name=f"dp.{name}", run=run, claim=claim, relation=relation, pairs=pairs, runs=600
    )


def _robust(name: str, run: Callable[[Any], Any], pairs: Any, relation: Relation) -> BlackBox:
    claim = run(pairs[0][0]).event
    return BlackBox(
        part="robust", name=f"robust.{name}", run=run, claim=claim, relation=relation, pairs=pairs, runs=100
    )


def _with(function: Callable[..., Any], **words: Any) -> Callable[[Any], Any]:
    return lambda data: function(list(data), **words)


def _fitted(data: Any) -> Any:
    """Fit the values by their places."""
    places = [[place / len(data)] for place in range(len(data))]
    return statistics.regression(
        places, list(data), relation=_REPLACE, x_bounds=[(0, 1)], y_bounds=(-10, 10), rho=2, public_rows=len(data)
    )


def _asked(sql: str) -> Callable[[Any], Any]:
    def run(data: Any) -> Any:
        with _session(data) as session:
            return session.sql(sql, epsilon=2).release().rows

    return run


def _session(data: Any) -> Session:
    import pyarrow as pa

    from discreet.ledger import Budget
    from discreet.query import Session, between, categories

    places = {"a": 4, "b": 2}
    table = pa.table({"side": list(data), "x": [places[letter] for letter in data]})
    return Session(
        table,
        unit="row",
        budget=Budget(epsilon=2),
        columns={"side": categories(["a", "b"]), "x": between(0, 4, step=1)},
        ledger="memory",
        dataset="self-audit",
        principal="auditor",
    )
