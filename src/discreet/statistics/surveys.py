"""Shares from randomised answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.errors import Refused
from discreet.exact import Number
from discreet.mechanisms.column import Column
from discreet.mechanisms.fields import read_relation
from discreet.mechanisms.histogram import canonical, read_bins
from discreet.mechanisms.local import estimate
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.columns import reader_for
from discreet.statistics.paying import pay

__all__ = ["randomized_response"]


def randomized_response(
    column: Any,
    *,
    relation: Relation,
    categories: Iterable[Hashable],
    epsilon: Number,
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Randomise the answer of every row and estimate the share of each public category.

    What is in no category is taken for the first one. The randomised answers could be published as well; if they
    are collected from people directly, use `mechanisms.Respondent` and `mechanisms.estimate`.
    """
    if read_relation(relation) is Relation.ADD_REMOVE:
        raise Refused(
            "randomised answers tell how many people answered, which is private under ADD_REMOVE: use REPLACE_ONE, "
            "or `histogram`"
        )
    names = read_bins(categories)
    mechanism = RandomizedResponse.for_epsilon(epsilon, categories=len(names))
    reader = reader_for(column)
    pay(mechanism.event, relation=relation, session=session, purpose="randomised answers")
    answers = mechanism.respond_all(_coded(reader(column), names))
    return replace(estimate(answers, mechanism), labels=tuple(map(str, names)))


def _coded(column: Column, names: tuple[Hashable, ...]) -> list[int]:
    codes = {name: code for code, name in enumerate(names)}
    return [codes.get(canonical(value), 0) for value in column.objects()]
