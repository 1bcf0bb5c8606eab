"""Relations are read from members or names by one rule, and nothing else is taken for one."""

from __future__ import annotations

import inspect
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.mechanisms import Count, GaussianNoise, LaplaceNoise, Mean, Proportion
from discreet.mechanisms.grid import Grid
from discreet.privacy.relation import check_member, read_relation, read_relation_if_any

ADD, REPLACE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (ADD, ADD),
        ("add-remove", ADD),
        ("add_remove", ADD),
        (REPLACE, REPLACE),
        ("replace-one", REPLACE),
        ("replace_one", REPLACE),
    ],
)
def test_a_relation_is_a_member_or_its_name(said: Any, meant: dp.Relation) -> None:
    assert read_relation(said) is meant
    assert read_relation_if_any(said) is meant


@pytest.mark.parametrize(
    "said", ["", "ADD_REMOVE", "add remove", "addremove", "substitute", 0, 1, True, b"add-remove", ["add-remove"]]
)
def test_everything_else_is_refused_and_the_names_are_listed(said: Any) -> None:
    for read in (read_relation, read_relation_if_any):
        with pytest.raises(InvalidParameter, match='"add-remove" or "replace-one"'):
            read(said)


def test_what_is_left_out_is_a_relation_only_where_it_may_be() -> None:
    assert read_relation_if_any(None) is None
    with pytest.raises(InvalidParameter, match="add-remove"):
        read_relation(None)  # type: ignore[arg-type]


def test_a_name_is_no_member_where_nothing_reads_it() -> None:
    check_member(ADD)
    with pytest.raises(InvalidParameter, match="itself"):
        check_member("add-remove")


def test_mechanisms_keep_the_member_whatever_was_said() -> None:
    noise = LaplaceNoise(epsilon=Fraction(1))
    for made in (
        Count(relation="add_remove", noise=noise),  # type: ignore[arg-type]
        Proportion(relation="add-remove", noise=noise),  # type: ignore[arg-type]
        Mean(grid=Grid.between(0, 1), relation="add_remove", noise=GaussianNoise.for_rho(1)),  # type: ignore[arg-type]
    ):
        assert made.relation is ADD


def test_statistics_and_accountants_take_names() -> None:
    assert dp.count([1, 2], relation="add_remove", epsilon=1).relation is ADD
    assert dp.mean([1, 2], relation="replace-one", bounds=(0, 3), epsilon=1).relation is REPLACE
    event = dp.privacy.PoissonSampled(dp.privacy.Gaussian(1), "0.1")
    assert dp.privacy.epsilon(event, "1e-6", relation="add-remove") == dp.privacy.epsilon(event, "1e-6", relation=ADD)
    with pytest.raises(InvalidParameter, match="replace-one"):
        dp.privacy.epsilon(event, "1e-6", relation="replace one")
    with pytest.raises(InvalidParameter, match="replace-one"):
        dp.count([1, 2], relation="row", epsilon=1)


MAY_BE_LEFT_OUT = (
    "discreet.privacy.",
    "discreet.statistics.guarantee_charts.",
    "discreet.lab.audit.",
    "discreet.lab.verify.",
    "discreet.robust.locations.location",  # exact without it, and marked as not private
    "discreet.robust.regressions.regression",
    "discreet.query.session.session.Session",  # that of its unit, which has add-remove as its default
)
CARRY_THEIR_PROMISE = (
    "discreet.query.session.",
    "discreet.query.policy.Unit",
    "discreet.synth.",
    "discreet.learn.",
    "discreet.lab.evaluation.",
)


def public_defaults() -> dict[str, object]:
    """Return the default of `relation` of every public call that has one, by where it is defined."""
    found: dict[str, object] = {}
    parts = [getattr(dp, name) for name in dp.__all__]
    for package in [dp, dp.learn.sklearn, *(part for part in parts if inspect.ismodule(part))]:
        for name in getattr(package, "__all__", ()):
            value = getattr(package, name)
            if callable(value) and getattr(value, "__module__", "").startswith("discreet"):
                with suppress(ValueError, TypeError):
                    parameter = inspect.signature(value).parameters.get("relation")
                    if parameter is not None:
                        found[f"{value.__module__}.{value.__qualname__}"] = parameter.default
    return found


def test_every_public_call_follows_one_of_the_three_rules_of_decision_5() -> None:
    defaults = public_defaults()
    assert len(defaults) > 90
    for name, default in defaults.items():
        if default is None:
            assert name.startswith(MAY_BE_LEFT_OUT), f"{name} may not leave its relation out"
        elif default is not inspect.Parameter.empty:
            assert name.startswith(CARRY_THEIR_PROMISE), f"{name} may have no default"
            assert read_relation(default) is ADD, f"{name} has a default other than add-remove"  # type: ignore[arg-type]
