"""The auditor refutes every planted bug, and not its right twin, at a level of one in a billion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted import PLANTED
from planted_tools import Planted, Run

from discreet.lab.audit import audit
from discreet.lab.audit.black_box import Audit

_MOST = 150_000  # runs


def audited(planted: Planted, run: Run) -> Audit:
    return audit(
        run, planted.pairs, claim=planted.claim, relation=planted.relation, runs=planted.runs, many=True, level=1e-9
    )


def test_there_are_many_bugs_each_of_its_own() -> None:
    assert len({planted.name for planted in PLANTED}) == len(PLANTED) >= 55


def case(planted: Planted) -> Any:
    """The finest bugs take so many runs that they wait for the full size."""
    return pytest.param(planted, id=planted.name, marks=[pytest.mark.slow] if planted.runs > _MOST else [])


@pytest.mark.some(20)
@pytest.mark.statistical
@pytest.mark.parametrize("planted", [case(planted) for planted in PLANTED])
def test_the_bug_is_found(planted: Planted) -> None:
    result = audited(planted, planted.wrong)
    assert result.refuted, result


@pytest.mark.statistical
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_right_twin_is_not_refuted(planted: Planted) -> None:
    small = replace(planted, runs=min(planted.runs, 4_000))
    result = audited(small, planted.right)
    assert not result.refuted, result


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_right_twin_is_not_refuted_by_as_many_runs_as_show_the_bug(planted: Planted) -> None:
    result = audited(planted, planted.right)
    assert not result.refuted, result
