"""Audit the private training of your own PyTorch model, step by step, with one call."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive, positive_integer
from discreet.lab.audit.training_audit import TrainingAudit, audit_steps
from discreet.learn.training.clip_rules import AdaptiveClip
from discreet.pages.progress import working
from discreet.privacy import Gaussian

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["audit_model"]

_QUIET = "1e-6"  # The noise multiplier of the steps that show in which direction a canary moves the weights.
_LEAST_MOVE = 1e-4  # Of the whole step: a canary that moves it by less shows nothing beside what rounding does.


@working("auditing", terminal=False)
def audit_model(
    model: nn.Module,
    rows: tuple[Tensor, Tensor],
    canary: tuple[Tensor, Tensor],
    *,
    loss: Callable[[Any, Any], Any],
    noise_multiplier: Number,
    clip: Any = 1,
    runs: int = 500,
    steps: int = 1,
    sampling_rate: Number = 1,
    delta: Number,
    error: float = 1e-3,
) -> TrainingAudit:
    """Take many private steps of a model with one more row and without it, and hold what they tell against the claim.

    Every step begins at the weights that the model has now, on all rows, and is taken by `make_private` as in training:
    with your layers, your loss and your clip. Whatever the row moves counts, not only what its own gradient adds: a
    clip that lets twice too much through, noise that is too small, or a layer by which one row moves all others. An
    audit of one whole run sees none of these surely. The model itself is left as it is.

    Theorem     `audit_steps`: a test with false alarms a and misses b refutes every µ below Φ⁻¹(1 - a) - Φ⁻¹(b). The
                direction in which steps are scored is found by other steps, nearly without noise. [NHSB23]

    Args:
        model: Your model, as it is handed to `make_private`.
        rows: Made-up or public rows (x, y), about as many as a batch has.
        canary: One more row (x, y), with the worst that you can think of: a wrong label, values at their bounds.
        loss: loss(model(x), y), one number a row: reduction="none".
        noise_multiplier: What training claims: the standard deviation of the noise over the clip.
        clip: As for `make_private`, but for `AdaptiveClip`: all steps must be alike.
        runs: How many steps are taken with the canary, and how many without it.
        steps: How many steps the whole training has, for the epsilon that is shown.
        sampling_rate: The probability with which a record is in a step of the training.
        delta: The delta at which epsilons are compared.
        error: The chance at most with which a claim that holds is refuted.

    Returns:
        What was shown beside what was claimed, with `refuted`; it prints as a report.

    Raises:
        Refused: If a layer mixes rows, the clip moves from step to step, or the canary moves the weights by nothing.
        InvalidParameter: If a number is out of range.

    Examples:
        >>> import torch
        >>> model, rows = torch.nn.Linear(2, 2), (torch.randn(31, 2), torch.randint(2, (31,)))
        >>> told = dp.audit.audit_model(
        ...     model, rows, (torch.tensor([[3.0, -3.0]]), torch.tensor([1])),
        ...     loss=torch.nn.CrossEntropyLoss(reduction="none"), noise_multiplier=1, delta=1e-5, runs=100,
        ... )
        >>> told.refuted
        False
    """
    from torch import cat

    if any(len(part) != 1 for part in canary):
        raise InvalidParameter("canary must be one row (x, y), each with a first axis of length one: x[:1], y[:1]")
    if any(part.shape[1:] != one.shape[1:] for part, one in zip(rows, canary, strict=True)):
        raise InvalidParameter("canary must have the shape of one of the rows: see x[:1].shape and y[:1].shape of them")
    _require_alike(clip)
    many, claimed = positive_integer(runs, name="runs"), positive(noise_multiplier, name="noise_multiplier")
    joined = cat([rows[0], canary[0]]), cat([rows[1], canary[1]])
    said = {"loss": loss, "clip": clip, "delta": delta, "people": len(joined[0])}
    quiet = [_moves(model, table, many=1, noise_multiplier=_QUIET, **said)[0] for table in (rows, joined)]
    direction = quiet[1] - quiet[0]
    length = float(direction.norm())
    if length <= _LEAST_MOVE * float(quiet[1].norm()):
        raise Refused(
            "this canary moves the weights by nothing, so no audit can show anything",
            way_out="choose a row whose gradient is large: a wrong label, values at their bounds",
        )
    scores = [
        _moves(model, table, many=many, noise_multiplier=claimed, along=direction / length, **said)
        for table in (rows, joined)
    ]
    step = Gaussian(noise_multiplier=claimed)
    return audit_steps(*scores, step=step, steps=steps, sampling_rate=sampling_rate, delta=delta, error=error)


def _require_alike(clip: object) -> None:
    """Refuse a clip that the canary moves over many steps, and with it what all other rows add: no step tells that."""
    if isinstance(clip, AdaptiveClip):
        raise Refused(
            "with AdaptiveClip the steps of an audit are not alike",
            reason="with the canary the clip goes another way than without it, and a claim that holds is refuted",
            way_out="audit one step with the clip that it has: clip=…, a number",
        )


def _moves(
    model: nn.Module,
    table: tuple[Tensor, Tensor],
    *,
    many: int,
    noise_multiplier: Number,
    people: int,
    along: Tensor | None = None,
    **said: Any,
) -> list[Any]:
    """Take steps that leave the weights as they are; return each noisy gradient, or how far it goes along a direction.

    Everybody is in every step, of a number of people that both tables are told: so noise is all that differs.
    """
    from discreet.learn.torch import make_private

    twin = copy.deepcopy(model)
    watching = _watching([one for one in twin.parameters() if one.requires_grad], along)
    make_private(
        twin,
        watching,
        table,
        noise_multiplier=noise_multiplier,
        public_rows=people,
        batch_size=people,
        steps=many,
        **said,
    ).fit(progress=False)
    moves: list[Any] = watching.moves
    return moves


def _watching(parameters: list[Any], along: Tensor | None) -> Any:
    """Return an optimiser that writes down the gradients that it is given, and moves nothing."""
    from torch import cat
    from torch.optim import Optimizer

    class Watching(Optimizer):
        def __init__(self) -> None:
            super().__init__(parameters, {"lr": 1.0})
            self.moves: list[Any] = []

        def step(self, closure: Any = None) -> None:  # type: ignore[override]  # There is no loss to compute again.
            move = cat([one.grad.flatten() for one in parameters])
            self.moves.append(move if along is None else float(move @ along))

    return Watching()
