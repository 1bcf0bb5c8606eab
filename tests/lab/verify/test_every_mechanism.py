"""No public mechanism goes unverified: each has a small world, in which its Renyi claim holds too.

That its (epsilon, delta) claim holds there is part of the contract of mechanisms.
"""

from __future__ import annotations

from typing import Any

import pytest
from mechanisms.subjects import SUBJECTS, Subject

from discreet import mechanisms
from discreet.lab import verify
from discreet.privacy.relation import Relation

PUBLIC = [getattr(mechanisms, name) for name in mechanisms.__all__]
MECHANISMS = [kind for kind in PUBLIC if isinstance(kind, type) and hasattr(kind, "release")]
_LONG = {("Variance", Relation.ADD_REMOVE)}  # Three noisy numbers in one outcome: many outcomes.


def renyi_case(subject: Subject) -> Any:
    key = type(subject.mechanism).__name__, subject.mechanism.relation
    return pytest.param(subject, id=subject.name, marks=[pytest.mark.slow] if key in _LONG else [])


def test_every_public_mechanism_has_a_small_world() -> None:
    verified = {type(subject.mechanism) for subject in SUBJECTS}
    assert len(MECHANISMS) >= 15
    assert [kind.__name__ for kind in MECHANISMS if kind not in verified] == []


@pytest.mark.parametrize("kind", MECHANISMS)
def test_every_public_mechanism_says_what_it_spends_and_lists_its_law(kind: Any) -> None:
    assert all(hasattr(kind, name) for name in ("event", "relation", "distribution"))


@pytest.mark.some(20)
@pytest.mark.parametrize("subject", [renyi_case(subject) for subject in SUBJECTS])
def test_the_renyi_claim_holds_on_small_worlds(subject: Subject) -> None:
    result = verify.check_renyi(subject.mechanism, subject.worlds, query=subject.given, orders=[2])
    assert result.holds, str(result)
    assert result.lower > 0
