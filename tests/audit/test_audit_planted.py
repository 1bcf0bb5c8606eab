"""The auditor refutes every planted bug, and not its right twin."""

from __future__ import annotations

import pytest
from planted import PLANTED, Planted

from discreet.audit import audit


def audited(planted: Planted, run):
    return audit(
        run, planted.pairs, claim=planted.claim, relation=planted.relation, runs=planted.runs, many=True, level=1e-9
    )


@pytest.mark.statistical
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_bug_is_found(planted):
    assert audited(planted, planted.wrong).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_right_twin_is_not_refuted(planted):
    result = audited(planted, planted.right)
    assert not result.refuted, result
