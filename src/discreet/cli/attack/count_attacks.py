"""What the commands that attack counts share: made-up people, private releases, and their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet.cli.attack.attack_support import Share, listed
from discreet.cli.output import Block
from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.privacy import NotPrivate, Relation

if TYPE_CHECKING:
    from discreet.lab.attacks.averaging import AveragingCurve
    from discreet.lab.attacks.marginal_reconstruction import MarginalReconstruction
    from discreet.lab.attacks.populations import VectorRelease
    from discreet.lab.attacks.subset_reconstruction import Reconstruction
    from discreet.lab.attacks.tracing import Tracing

__all__ = [
    "AveragingAnswer",
    "RowsAnswer",
    "SecretsAnswer",
    "TracedAt",
    "TracingAnswer",
    "averaged",
    "rebuilt_rows",
    "rebuilt_secrets",
    "traced",
]

# --- attacking_counts ---
# What the commands that attack counts share: made-up people, and private releases of the words that were typed.


def traced(
    table: Path | None,
    columns: Sequence[str] | None,
    *,
    people: int,
    attributes: int,
    trials: int,
    genes: bool,
    score: str,
    epsilon: str | None,
    delta: str,
) -> NotPrivate[Tracing]:
    """Trace half of the rows of a table, or people who are made up."""
    from discreet.lab.attacks import Score, coins, genome, halves, indicators, tracing

    if score not in [one.value for one in Score]:
        raise InvalidParameter(f"--score must be one of {', '.join(one.value for one in Score)}")
    if table is not None:
        read = indicators(table, listed(columns))
        change, population, (members, strangers) = read.squared_change, None, halves(read.rows)
    else:
        population = genome(attributes) if genes else coins(attributes)
        change, members, strangers = population.squared_change, population.draw(people), population.draw(400)
    mechanism = _private(members.shape[1], change, epsilon, delta, Relation.REPLACE_ONE)
    most = min(trials, len(members))
    return tracing(members, strangers, mechanism=mechanism, score=Score(score), population=population, trials=most)


def rebuilt_rows(
    table: Path, columns: Sequence[str], *, where: str, ways: int, trials: int | None, epsilon: str | None, delta: str
) -> NotPrivate[MarginalReconstruction]:
    """Rebuild the rows of a block from all its small tables."""
    from discreet.lab.attacks import marginal_reconstruction
    from discreet.lab.attacks.marginal_reconstruction import block_of

    block = block_of(table, listed(columns), ways=ways, where=where)
    plan = block.marginals
    mechanism = _private(plan.cells, len(plan.tables), epsilon, delta, Relation.ADD_REMOVE)
    return marginal_reconstruction(block, plan.columns, mechanism=mechanism, trials=trials)


def rebuilt_secrets(
    people: int, queries: int, *, noise: str | None, epsilon: str | None, delta: str
) -> NotPrivate[Reconstruction]:
    """Rebuild made-up secrets from counts of random subsets."""
    from discreet.lab.attacks import coins, reconstruction
    from discreet.mechanisms import VectorGaussian

    if noise is not None and epsilon is not None:
        raise InvalidParameter("say either --noise or --epsilon")
    mechanism = _private(queries, queries, epsilon, delta, Relation.REPLACE_ONE)
    if noise is not None:
        mechanism = VectorGaussian(
            squared_sensitivity=Fraction(queries),
            variance=exact(noise, name="--noise") ** 2,
            dimension=queries,
            relation=Relation.REPLACE_ONE,
        )
    return reconstruction(coins(people).draw(1)[0], queries=queries, mechanism=mechanism)


def averaged(noise: str, times: str, *, epsilon: str, delta: str) -> AveragingCurve:
    """Return how soon the average of fresh answers tells a secret."""
    from discreet.lab.attacks import averaging_curve
    from discreet.mechanisms import Gaussian, Laplace, RandomizedResponse
    from discreet.privacy import gaussian_sigma

    counts = [exact(word, name="--times") for word in listed([times])]
    if any(count.denominator != 1 for count in counts):
        raise InvalidParameter("--times must be whole numbers, such as 1,10,100")
    asked = [int(count) for count in counts]
    relation = Relation.ADD_REMOVE
    match noise:
        case "randomized-response":
            return averaging_curve(RandomizedResponse.for_epsilon(epsilon), asked)
        case "laplace":
            return averaging_curve(Laplace.for_epsilon(epsilon, sensitivity=1, relation=relation), asked)
        case "gaussian":
            variance = Fraction(gaussian_sigma(epsilon, delta)) ** 2
            mechanism = Gaussian(squared_sensitivity=Fraction(1), variance=variance, relation=relation)
            return averaging_curve(mechanism, asked)
    raise InvalidParameter("--noise must be randomized-response, laplace or gaussian")


def _private(cells: int, change: int, epsilon: str | None, delta: str, relation: Relation) -> VectorRelease | None:
    from discreet.lab.attacks import gaussian_counts

    if epsilon is None:
        return None
    return gaussian_counts(cells, squared_sensitivity=change, epsilon=epsilon, delta=delta, relation=relation)


# --- attack_counts: What came of attacks on counts: tracing, reconstruction and averaging. ---


_RATES = (0.01, 0.05, 0.2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAt:
    """Who is found at one rate of false alarms."""

    false_alarms: float
    found: Share
    accused: Share  # the same people, where they are not in the release
    ceiling: float | None  # null if the release is exact


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracingAnswer:
    """Who is found in published counts."""

    score: str
    people: int
    attributes: int
    deviation: float
    auc: float
    rates: list[TracedAt]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Tracing]) -> TracingAnswer:
        """Read what was found."""
        traced = found.value
        return cls(
            score=traced.score.value,
            people=traced.people,
            attributes=traced.attributes,
            deviation=traced.deviation,
            auc=traced.auc,
            rates=[
                TracedAt(
                    false_alarms=rate,
                    found=Share.of_success(traced.found(rate)),
                    accused=Share.of_success(traced.accused(rate)),
                    ceiling=traced.ceiling(rate),
                )
                for rate in _RATES
            ],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAnswer:
    """Rows rebuilt from published tables."""

    columns: list[str]
    people: int
    tables: int
    cells: int
    deviation: float
    rebuilt: Share
    certain: int | None  # rows that every block has which fits; null if the tables are noisy
    fresh: Share
    without: Share
    ceiling: float | None  # null if the tables are exact
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[MarginalReconstruction]) -> RowsAnswer:
        """Read what was found."""
        rows = found.value
        return cls(
            columns=list(rows.columns),
            people=rows.people,
            tables=rows.tables,
            cells=rows.cells,
            deviation=rows.deviation,
            rebuilt=Share.of_success(rows.rebuilt),
            certain=rows.certain,
            fresh=Share.of_success(rows.fresh),
            without=Share.of_success(rows.without),
            ceiling=rows.ceiling,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsAnswer:
    """Made-up secrets rebuilt from counts of subsets."""

    people: int
    queries: int
    deviation: float
    decoder: str
    right: Share
    commonest: Share
    ceiling: float | None  # null if the counts are exact
    text: str

    @classmethod
    def of(cls, found: NotPrivate[Reconstruction]) -> SecretsAnswer:
        """Read what was found; the secrets were made up, so nothing in it is anybody's."""
        secrets = found.value
        return cls(
            people=secrets.people,
            queries=secrets.queries,
            deviation=secrets.deviation,
            decoder=secrets.decoder.value,
            right=Share.of_success(secrets.right),
            commonest=Share.of_success(secrets.commonest),
            ceiling=secrets.ceiling,
            text=str(secrets),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingAnswer:
    """How soon the average of fresh answers tells a yes or no."""

    times: list[int]
    chances: list[float]
    ceilings: list[float]
    remembered: float  # the chance after any number of answers, if the first one is given again
    text: str

    @classmethod
    def of(cls, curve: AveragingCurve) -> AveragingAnswer:
        """Read a curve."""
        return cls(
            times=list(curve.times),
            chances=list(curve.chances),
            ceilings=list(curve.ceilings),
            remembered=curve.remembered,
            text=str(curve),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
