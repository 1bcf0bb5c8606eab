"""What the commands that attack counts share: made-up people, and private releases of the words that were typed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.attacking import listed
from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.privacy import NotPrivate, Relation

if TYPE_CHECKING:
    from discreet.attacks import AveragingCurve, MarginalReconstruction, Reconstruction, Tracing, VectorRelease

__all__ = ["averaged", "rebuilt_rows", "rebuilt_secrets", "traced"]


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
    from discreet.attacks import Score, coins, genome, halves, indicators, tracing

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
    from discreet.attacks import block_of, marginal_reconstruction

    block = block_of(table, listed(columns), ways=ways, where=where)
    plan = block.marginals
    mechanism = _private(plan.cells, len(plan.tables), epsilon, delta, Relation.ADD_REMOVE)
    return marginal_reconstruction(block, plan.columns, mechanism=mechanism, trials=trials)


def rebuilt_secrets(
    people: int, queries: int, *, noise: str | None, epsilon: str | None, delta: str
) -> NotPrivate[Reconstruction]:
    """Rebuild made-up secrets from counts of random subsets."""
    from discreet.attacks import coins, reconstruction
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
    from discreet.attacks import averaging_curve
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
    from discreet.attacks import gaussian_counts

    if epsilon is None:
        return None
    return gaussian_counts(cells, squared_sensitivity=change, epsilon=epsilon, delta=delta, relation=relation)
