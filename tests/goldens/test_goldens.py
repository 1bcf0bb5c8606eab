"""Exact flows give what they gave: no float is in them, so this holds on every machine.

If an output is meant to change, `python scripts/goldens.py record` writes the goldens again; the commit says why.
"""

from __future__ import annotations

from itertools import islice

import pytest

from .flow import Flow, ran
from .keeping import FAMILIES, HERE, QUICK, differences, exact_flows, kept, read

MOST = 80  # Flows of a family, so that this takes a few seconds.


@pytest.mark.parametrize("family", QUICK)
def test_exact_flows_give_what_they_gave(family: str) -> None:
    found = {flow.name: ran(flow, family) for flow in islice(exact_flows(family), MOST)}
    new = kept(found, family)
    assert differences(new, family, only=found) == []


def test_every_family_has_goldens_and_every_golden_a_family() -> None:
    for names in read().values():
        assert {name.split("/")[0] for name in names} <= set(FAMILIES)
    assert {name.split("/")[0] for name in read()["numbers"]} == set(FAMILIES)
    assert sum(file.stat().st_size for file in HERE.glob("*.json")) < 1_500_000


def test_a_changed_output_is_told() -> None:
    name = next(exact_flows("noise")).name
    changed = kept({name: {"numbers": "another"}}, "noise")
    (line,) = differences(changed, "noise", only=[name])
    assert line.startswith(f"numbers noise/{name}")
    assert line.endswith("now another")


def test_a_flow_draws_the_same_whatever_ran_before() -> None:
    flow = next(exact_flows("noise"))
    first = ran(flow, "noise")
    ran(Flow("another", flow.make), "noise")
    assert ran(flow, "noise") == first
