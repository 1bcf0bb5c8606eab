"""How often a sound mechanism is called broken: at most as often as the level says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted import PLANTED
from planted_tools import LETTERS, ONES, REPLACE_ONE, counting

from discreet.errors import InvalidParameter
from discreet.lab.audit import audit
from discreet.lab.audit.confidence_limits import at_least
from discreet.lab.verify import worlds
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

TIGHT = [one for one in PLANTED if one.name in ("noise of half the scale", "exponential mechanism without the 2")]
SOUND = [replace(one, runs=1_000) for one in PLANTED if one.runs <= 60_000]


def alarms(mechanisms, rounds: int, level: float) -> int:
    """Count refutations of right mechanisms, whatever they are."""
    found = 0
    for number in range(rounds):
        one = mechanisms[number % len(mechanisms)]
        found += audit(
            one.right, one.pairs, claim=one.claim, relation=one.relation, runs=one.runs, many=True, level=level
        ).refuted
    return found


@pytest.mark.statistical
def test_a_few_audits_at_a_high_level_raise_no_more_alarms_than_it_says() -> None:
    rounds, level = 40, 0.1
    small = [replace(one, runs=400) for one in TIGHT]
    assert at_least(alarms(small, rounds, level) or 0, rounds, 1e-9) <= level


@pytest.mark.soak
@pytest.mark.statistical
def test_a_thousand_audits_of_sound_mechanisms_raise_at_most_one_alarm_in_a_hundred() -> None:
    rounds, level = 1_000, 0.01
    found = alarms(SOUND, rounds, level)
    print(f"\nfalse alarms: {found} of {rounds} audits at level {level}")
    assert found <= level * rounds


def test_the_level_covers_both_orders_and_all_pairs() -> None:
    result = audit(counting(1), ONES, claim=PureDP(1), runs=400, many=True, level=1e-3, kept=3)
    assert len(result.findings) == 12  # Three pairs, two orders, two events.
    # Each in two forms, rows of numbers or listed.
    assert 2 * sum(finding.error for finding in result.findings) == pytest.approx(1e-3)


def test_promising_pairs_are_kept_and_the_rest_only_searched() -> None:
    """The one pair in which two letters move is the one that is kept."""
    still = (("c", "c"), ("c", "c"))
    result = audit(
        lambda data, runs: counting("1/9", lambda rows: rows.count("a"))(data, runs),
        [still, still, LETTERS[0], still],
        claim=PureDP(1),
        relation=REPLACE_ONE,
        runs=800,
        many=True,
        kept=1,
    )
    assert result.pairs_searched == 4
    assert {finding.pair for finding in result.findings} == {LETTERS[0], LETTERS[0][::-1]}
    assert result.refuted
    assert result.epsilon_at_least > 1


@pytest.mark.statistical
def test_the_pair_that_shows_a_bug_is_found_in_a_small_world() -> None:
    """Noise that is right for all but the empty data set: two of twelve pairs of neighbours show it."""

    def shy(data, runs):
        return counting(1 if data else "1/9")(data, runs)

    world = worlds((1, 2), range(4))
    result = audit(shy, world, claim=PureDP(1), relation=Relation.ADD_REMOVE, runs=4_000, many=True, level=1e-9)
    assert result.pairs_searched == 12
    assert result.refuted
    assert () in result.worst.pair


def test_a_world_needs_a_relation() -> None:
    with pytest.raises(InvalidParameter, match="relation"):
        audit(counting(1), worlds((1,), range(3)), claim=PureDP(1), runs=400, many=True)


@pytest.mark.parametrize("wrong", [{"pairs": []}, {"pairs": [(1,)]}, {"runs": 3}, {"level": 0.0}, {"level": 1.0}])
def test_an_audit_that_could_show_nothing_is_refused(wrong) -> None:
    words = {"pairs": ONES, "runs": 400, "level": 0.1} | wrong
    with pytest.raises(InvalidParameter):
        audit(counting(1), words.pop("pairs"), claim=PureDP(1), many=True, **words)


def test_a_mechanism_that_returns_too_few_outputs_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="as many outputs"):
        audit(lambda data, runs: [1] * (runs - 1), ONES, claim=PureDP(1), runs=400, many=True)


def test_one_by_one_and_many_at_once_are_the_same_audit() -> None:
    result = audit(lambda data: len(data), ONES[:1], claim=PureDP(1), runs=200)
    assert result.refuted
    assert result.headline.startswith("REFUTED")
    assert "told" not in str(result)
    assert '"refuted": true' in result.to_json()
