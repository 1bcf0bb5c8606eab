"""One call audits the steps of a user's own model: right ones are not refuted, and broken ones are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import discreet as dp
import discreet.learn.torch as learn
from discreet.errors import InvalidParameter, Refused
from discreet.learn.training import AdaptiveClip

LOSS = torch.nn.CrossEntropyLoss(reduction="none")
MADE = torch.Generator().manual_seed(3)
ROWS = torch.randn(31, 4, generator=MADE), torch.randint(3, (31,), generator=MADE)
CANARY = torch.tensor([[30.0, -30.0, 30.0, -30.0]]), torch.tensor([2])
RIGHT = learn.make_private


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Linear(4, 3)


def told(**fields: Any) -> Any:
    known = {"loss": LOSS, "noise_multiplier": 1, "delta": 1e-5, "runs": 200, "error": 1e-9}
    return dp.audit.audit_model(fields.pop("model", model()), ROWS, CANARY, **(known | fields))


def a_tenth_of_the_noise(*parts: Any, noise_multiplier: Any, **said: Any) -> Any:
    return RIGHT(*parts, noise_multiplier=float(noise_multiplier) / 10, **said)


def eight_times_the_clip(*parts: Any, noise_multiplier: Any, clip: Any, **said: Any) -> Any:
    """Noise for the clip that was said, gradients of eight times that length."""
    return RIGHT(*parts, noise_multiplier=float(noise_multiplier) / 8, clip=8 * clip, **said)


def a_row_that_moves_all_others(twin: Any, optimizer: Any, table: Any, *, public_rows: int, **said: Any) -> Any:
    """The canary's own gradient is clipped well, and everybody else's follows from whether it is there."""
    x, y = table
    moved = torch.cat([-x[:-1], x[-1:]]) if len(x) == public_rows else x
    return RIGHT(twin, optimizer, (moved, y), public_rows=public_rows, **said)


@pytest.mark.long
@pytest.mark.statistical
def test_steps_by_the_book_are_not_refuted_and_show_something() -> None:
    mine = model()
    before = [one.detach().clone() for one in mine.parameters()]
    found = told(model=mine, noise_multiplier=0.125, sampling_rate=0.1, steps=100)
    assert not found.refuted
    assert 1 < found.mu <= found.mu_claimed == 8
    assert 0 < found.epsilon < found.epsilon_claimed
    assert all(torch.equal(one, other) for one, other in zip(before, mine.parameters(), strict=True))


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [a_tenth_of_the_noise, eight_times_the_clip, a_row_that_moves_all_others])
def test_broken_steps_are_refuted(monkeypatch: pytest.MonkeyPatch, wrong: Any) -> None:
    monkeypatch.setattr(learn, "make_private", wrong)
    found = told()
    assert found.refuted
    assert found.mu > 1


def test_a_canary_without_a_gradient_is_refused() -> None:
    still = torch.nn.Linear(4, 3, bias=False)
    with pytest.raises(Refused, match="moves the weights by nothing"):
        dp.audit.audit_model(
            still, ROWS, (torch.zeros(1, 4), CANARY[1]), loss=LOSS, noise_multiplier=1, delta=1e-5, runs=10
        )


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"noise_multiplier": 0}, {"noise_multiplier": "much"}])
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        told(**wrong)


def test_a_canary_is_one_row() -> None:
    """Three rows move a step three times as far, and would refute a claim about one."""
    for canary in ((CANARY[0].repeat(3, 1), CANARY[1].repeat(3)), (CANARY[0][:0], CANARY[1][:0])):
        with pytest.raises(InvalidParameter, match="must be one row"):
            dp.audit.audit_model(model(), ROWS, canary, loss=LOSS, noise_multiplier=1, delta=1e-5, runs=10)


def test_a_canary_has_the_shape_of_a_row() -> None:
    canary = torch.cat([CANARY[0], CANARY[0]], dim=1), CANARY[1]
    with pytest.raises(InvalidParameter, match="shape of one of the rows"):
        dp.audit.audit_model(model(), ROWS, canary, loss=LOSS, noise_multiplier=1, delta=1e-5, runs=10)


def test_a_small_clip_is_audited_like_a_large_one() -> None:
    assert told(clip="0.0005", runs=20, error=1e-3).mu_claimed == 1


def test_a_clip_that_moves_is_refused() -> None:
    """Over many steps the canary moves the clip, and with it all that others add: honest steps were refuted by that."""
    with pytest.raises(Refused, match="not alike"):
        told(clip=AdaptiveClip(initial=1, quantile=0.985, rate=1, count_noise=1))


def test_layers_that_mix_rows_are_refused() -> None:
    mixing = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3))
    with pytest.raises(Refused):
        told(model=mixing)
