"""After the charge every paid call fails in the same way, whatever failed: one class, one text, nothing of the data."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from release.cumulative.running_worlds import day, plan_of, running_of, session_of
from release.publishing_world import JANUARY, world

import discreet as dp
from discreet.custodian_debug import ConstantFailure
from discreet.learn import sklearn as learn
from discreet.ledger import Ledger
from discreet.mechanisms import AboveThreshold, RandomizedResponse
from discreet.mechanisms.local_protocol import Respondent
from discreet.noise.source import Keystream
from discreet.release import advance, publish
from discreet.synth import Category

CANARY = "canary-41d7"
ADD, REPLACE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
COLUMN = [1.0, 2.0, 3.0, 4.0] * 10
TABLE = np.array([[place % 3, place % 5] for place in range(60)], dtype=np.float64)
TARGET = np.arange(60) % 2


class _PrivateError(RuntimeError):
    """What an engine, a model or a driver raises, with a value in its text."""


class Purse:
    """A payer after whose charge nothing works any more."""

    def __init__(self, breaks: Callable[[], None]) -> None:
        self.breaks, self.charges = breaks, 0

    def charge(
        self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.charges += 1
        self.breaks()


def count(purse: Any, folder: Path) -> None:
    dp.count(COLUMN, epsilon=1, relation=ADD, session=purse)


def vector_mean(purse: Any, folder: Path) -> None:
    dp.vector_mean(TABLE, bound=9, dimension=2, epsilon=1, relation=ADD, session=purse)


def select(purse: Any, folder: Path) -> None:
    dp.select("abc", [1, 2, 3], sensitivity=1, epsilon=1, relation=ADD, session=purse)


def linear_regression(purse: Any, folder: Path) -> None:
    bounds: Any = {"x_bounds": [(0, 3), (0, 5)], "y_bounds": (0, 1)}
    dp.regression(TABLE, TARGET, epsilon=1, delta=1e-6, relation=ADD, session=purse, **bounds)


def randomized_response(purse: Any, folder: Path) -> None:
    dp.randomized_response(COLUMN, categories=[1.0, 2.0], epsilon=1, relation=REPLACE, session=purse)


def sparse_vector(purse: Any, folder: Path) -> None:
    AboveThreshold(epsilon=1, sensitivity=1, threshold=5, positives=1, relation=ADD).start(session=purse).ask(3)


def respondent(purse: Any, folder: Path) -> None:
    Respondent(RandomizedResponse.for_epsilon(1), session=purse).answer("smokes", 1)


def most_frequent(purse: Any, folder: Path) -> None:
    dp.mode(COLUMN, epsilon=1, delta=1e-6, relation=ADD, method="stable", session=purse)


def robust_location(purse: Any, folder: Path) -> None:
    dp.robust.location(COLUMN, bounds=(0, 9), epsilon=1, delta=1e-6, relation=ADD, session=purse)


def estimator(purse: Any, folder: Path) -> None:
    learn.GaussianNB(epsilon=1, delta=1e-6, bounds=(0, 5), classes=[0, 1], session=purse).fit(TABLE, TARGET)


def network(purse: Any, folder: Path) -> None:
    made = learn.DPClassifier(
        epsilon=1, delta=1e-6, bounds=(0, 5), classes=[0, 1], public_rows=60, epochs=1, session=purse
    )
    made.fit(TABLE, TARGET)


def training(purse: Any, folder: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 2)
    rows = torch.from_numpy(TABLE).float(), torch.from_numpy(TARGET)
    said: Any = {"epsilon": 1, "delta": 1e-6, "public_rows": 60, "batch_size": 16, "steps": 2, "session": purse}
    optimizer, loss = torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss(reduction="none")
    with dp.make_private(model, optimizer, rows, loss=loss, **said) as private:
        private.fit(progress=False)


def synthesis(purse: Any, folder: Path) -> None:
    domain = {"kind": Category(["a", "b"])}
    table = {"kind": ["a", "b"] * 9}
    dp.synthesize(table, "independent", domain=domain, epsilon=1, delta=1e-6, unit="row", progress=False, session=purse)


PAID = [
    count, vector_mean, select, linear_regression, randomized_response, sparse_vector, respondent, most_frequent,
    robust_location, estimator, network, training, synthesis,
]  # fmt: skip


def query(purse: Any, folder: Path) -> None:
    purse.breaks()
    public: dict[str, Any] = {"unit": dp.Unit("who"), "budget": dp.Budget(epsilon=10), "dataset": "d", "principal": "p"}
    with dp.Session({"t": pa.table({"who": ["a", "b"]})}, ledger=folder / "l.db", **public) as session:
        session.sql("SELECT COUNT(*) FROM t", epsilon=1).release()


def release(purse: Any, folder: Path) -> None:
    plan = world(folder)
    purse.breaks()
    publish(plan, principal="ana", period=JANUARY)


def running_total(purse: Any, folder: Path) -> None:
    """The days are counted; what fails is the draw."""
    plan = plan_of(folder, running_of(days=3))
    with session_of(plan, [(1, 0), (2, 1)]) as session:
        purse.breaks()
        advance(plan, plan.running[0], session, until=day(3))


KINDS = [*PAID, query, release, running_total]


@pytest.mark.parametrize("asks", KINDS)
def test_a_failure_after_the_charge_looks_the_same_for_every_kind_of_call(
    asks: Callable[[Any, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(source: Keystream, count: int) -> bytes:
        raise _PrivateError(CANARY)

    purse = Purse(lambda: monkeypatch.setattr(Keystream, "read", read))
    with pytest.raises(dp.AnswerFailed) as failed:
        asks(purse, tmp_path)
    monkeypatch.undo()
    assert purse.charges == (1 if asks in PAID else 0)
    check_tells_nothing(failed.value)


def check_tells_nothing(failure: BaseException) -> None:
    """The one text, no cause, no context, and no variable of our frames holds what was raised."""
    assert type(failure) is dp.AnswerFailed
    assert str(failure) == str(dp.AnswerFailed())
    assert (failure.__cause__, failure.__context__) == (None, None)
    assert CANARY not in "".join(traceback.format_exception(failure))
    for frame, _ in traceback.walk_tb(failure.__traceback__):
        held = [value for value in frame.f_locals.values() if isinstance(value, _PrivateError)]
        assert held == [], frame.f_code.co_qualname


def test_no_reference_to_what_was_raised_is_left() -> None:
    with pytest.raises(dp.AnswerFailed) as failed, ConstantFailure():
        raise _PrivateError(CANARY)
    check_tells_nothing(failed.value)
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, _PrivateError)]


def test_a_failure_within_another_handler_has_no_context_either() -> None:
    """Whoever retries in an `except` has an exception at hand, and Python would chain it."""
    try:
        raise _PrivateError(CANARY)
    except _PrivateError:
        with pytest.raises(dp.AnswerFailed) as failed, ConstantFailure():
            {}[CANARY]
    assert failed.value.__context__ is None


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(CANARY), TimeoutError(CANARY), dp.Refused(CANARY)])
def test_no_error_is_let_through_because_it_is_not_about_data(error: Exception) -> None:
    with pytest.raises(dp.AnswerFailed), ConstantFailure():
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_process_goes_through(error: type[BaseException]) -> None:
    with pytest.raises(error), ConstantFailure():
        raise error


class Panic(BaseException):
    """What a compiled library raises when it panics: no `Exception`."""


def test_a_panic_is_hidden_like_an_error() -> None:
    with pytest.raises(dp.AnswerFailed) as failed, ConstantFailure():
        raise Panic(CANARY)
    assert CANARY not in "".join(traceback.format_exception(failed.value))


def test_without_a_payer_errors_are_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: Keystream, count: int) -> bytes:
        raise _PrivateError(CANARY)

    monkeypatch.setattr(Keystream, "read", read)
    with pytest.raises(_PrivateError):
        dp.count(COLUMN, epsilon=1, relation=ADD)


SECRET = 0.7123  # A label that the probe of a loss never makes up.


def _fewer(losses: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    return losses[~found]


@pytest.mark.parametrize("change", [_fewer, lambda losses, found: losses.mean(), lambda losses, found: losses.detach()])
def test_a_paid_fit_does_not_tell_the_shape_of_losses(change: Callable[..., torch.Tensor]) -> None:
    """A loss whose shape follows a label would tell how many rows have it, after the charge and without noise."""

    def loss(found: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        losses, here = (found[:, 0] - label) ** 2, label == SECRET
        return change(losses, here) if bool(here.any()) else losses

    def fit(session: Ledger | None) -> None:
        model = torch.nn.Linear(3, 1)
        rows = torch.rand(64, 3), torch.full((64,), SECRET)
        said = {"epsilon": 5, "delta": "1e-5", "public_rows": 64, "batch_size": 32, "epochs": 2}
        with dp.make_private(
            model, torch.optim.SGD(model.parameters(), lr=0.1), rows, loss=loss, session=session, **said
        ) as private:
            private.fit(progress=False)

    account = dp.ledger.Account("v", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=100, delta="1e-3"))
    with Ledger.open("memory", account) as paying, pytest.raises(dp.AnswerFailed) as failed:
        fit(paying)
    assert failed.value.__context__ is None
    with pytest.raises(dp.Refused):
        fit(None)
