"""Above threshold: pays for yes only, stops for good, and cannot be asked twice with one threshold."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from fractions import Fraction
from typing import Any

import pytest
from subjects import ADD_REMOVE, REPLACE_ONE

from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.lab.verify import check, worlds
from discreet.mechanisms import AboveThreshold
from discreet.privacy.events import PureDP


def made(**fields: Any) -> AboveThreshold:
    return AboveThreshold(**{"epsilon": 1, "sensitivity": 1, "threshold": 0, "relation": ADD_REMOVE} | fields)


def test_scales_are_those_of_the_correct_algorithm() -> None:
    assert (made().threshold_scale, made().answer_scale) == (2, 4)
    assert made(positives=3).answer_scale == 12
    assert made(positives=3, monotone=True).answer_scale == 6
    assert made(sensitivity=5).threshold_scale == 10
    assert made(threshold_share="1/4").threshold_scale == 4
    assert made(threshold_share="1/4").answer_scale == Fraction(8, 3)


@pytest.mark.parametrize("positives", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_claim_holds_for_answers_that_move_as_far_as_they_may(positives: int, monotone: bool) -> None:
    """Three answers, each from 0 to 1; a neighbour moves each of them by one, all the same way if monotone."""
    mechanism = made(epsilon=4, positives=positives, monotone=monotone, threshold=1)
    every = worlds((0, 1), (3,), ordered=True).data_sets
    moves = [(row, tuple(1 - value for value in row)) for row in every]
    if monotone:
        moves = [((0, 0, 0), (1, 1, 1)), ((0, 0, 0), (1, 0, 1)), ((0, 1, 0), (1, 1, 0))]
    for one, other in moves:
        # A world of two data sets of one record each, which are neighbours.
        report = check(
            mechanism,
            [("one",), ("other",)],
            relation=REPLACE_ONE,
            claim=PureDP(4),
            query=lambda data, pair=(one, other): pair[data != ("one",)],
        )
        assert all(finding.holds for finding in report.findings), str(report)


def test_noise_that_ignores_the_number_of_positives_is_refuted() -> None:
    """The mutant: for a claim of 4, noise of scale 1/2 on the threshold and, for three positives, 1 instead of 3."""
    wrong = made(epsilon=8, positives=3, threshold=1, threshold_share="1/4")
    right = made(epsilon=4, positives=3, threshold=1)
    assert (wrong.threshold_scale, wrong.answer_scale) == (Fraction(1, 2), 1)
    assert (right.threshold_scale, right.answer_scale) == (Fraction(1, 2), 3)
    for mechanism, violated in ((wrong, True), (right, False)):
        report = check(
            mechanism,
            [("one",), ("other",)],
            relation=REPLACE_ONE,
            query=lambda data: (0, 0, 0, 0, 1, 1, 1) if data == ("one",) else (1, 1, 1, 1, 0, 0, 0),
            claim=PureDP(4),
        )
        assert any(finding.violated for finding in report.findings) is violated


def test_a_run_ends_after_its_last_yes_with_one_constant_refusal() -> None:
    run = made(positives=2).start()
    assert [run.ask(10**9), run.ask(-(10**9)), run.ask(10**9)] == [True, False, True]
    assert run.over
    messages = set()
    for answer in (0, 10**9, -(10**9), "x", None):
        with pytest.raises(Refused) as caught:
            run.ask(answer)  # type: ignore[arg-type]
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_a_run_is_paid_before_it_starts() -> None:
    class Empty:
        def charge(
            self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
        ) -> None:
            assert (event, relation) == (PureDP(1), ADD_REMOVE)
            raise BudgetExceeded(asked=event, left=0)

    with pytest.raises(BudgetExceeded):
        made().start(session=Empty())


def test_a_run_cannot_be_copied_or_stored() -> None:
    run = made().start()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Refused):
            attempt(run)


def test_a_run_does_not_continue_in_a_forked_child() -> None:
    run = made().start()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run.ask(0)
            os.write(writing, b"answered")
        except Refused:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"refused"
    os.close(reading)
    os.close(writing)


def test_threads_do_not_get_more_than_was_paid_for() -> None:
    run, answers = made(positives=5).start(), []

    def ask() -> None:
        for _ in range(20):
            try:
                answers.append(run.ask(10**9))
            except Refused:
                answers.append(False)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answers) == 5


def test_a_list_of_answers_is_asked_until_the_run_is_over() -> None:
    release = made().release([-(10**9), 10**9, 10**9])
    assert release.value == (False, True)
    with pytest.raises(Refused):
        release.interval()


@pytest.mark.parametrize(
    "bad",
    [{"positives": 0}, {"sensitivity": 0}, {"threshold": 0.5}, {"threshold_share": 0}, {"threshold_share": 1},
     {"epsilon": 0}, {"relation": REPLACE_ONE, "monotone": True}, {"epsilon": "1e-30"}],
)  # fmt: skip
def test_a_bad_run_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        made(**bad)
