"""Data poisoning: accuracy and back doors of plain and private training, as bad rows become more.

A row that is clipped moves a sum by little, whatever is in it, and noise hides what few rows say together. That is the
promise of privacy, and it limits mislabelled and backdoored rows too, until there are many of them. [MZH19]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import torch
from torch import Tensor

from discreet import noise, plots
from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["PoisonEffect", "PoisonKind", "PoisoningReport", "poisoning_check"]

PoisonKind: TypeAlias = Literal["mislabelled", "backdoored"]
Predict: TypeAlias = Callable[[Tensor], Tensor]  # rows in, one class a row out
Train: TypeAlias = Callable[[Tensor, Tensor], Predict]  # rows and classes in

_MEANING: dict[PoisonKind, str] = {
    "mislabelled": "a bad row has the next class instead of its own",
    "backdoored": "a bad row carries the trigger and has the attacker's class",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonEffect:
    """What one way to train made of rows of which a share is bad.

    Args:
        kind: What sort of bad rows there were: "mislabelled" or "backdoored".
        share: The share of bad rows.
        way: The way to train.
        accuracy: The share of clean rows that are classified rightly.
        success: The share of marked rows of other classes that get the attacker's class.
    """

    kind: PoisonKind
    share: float
    way: str
    accuracy: float  # on clean rows
    success: float  # share of rows of other classes that get the attacker's class once they carry the trigger


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoisoningReport:
    """Accuracy and backdoor success of every way to train. It is a fact about the data: for the custodian only.

    Args:
        rows: How many rows were trained on.
        tested: How many rows were tested.
        effects: What each way to train made of each share of bad rows.
    """

    rows: int
    tested: int
    effects: tuple[PoisonEffect, ...]

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways to train, in the order in which they were given."""
        return tuple(dict.fromkeys(effect.way for effect in self.effects))

    def of(self, kind: PoisonKind, way: str) -> tuple[PoisonEffect, ...]:
        """Return the effects of one kind of bad rows on one way to train."""
        return tuple(effect for effect in self.effects if (effect.kind, effect.way) == (kind, way))

    def plot(self, kind: PoisonKind = "backdoored") -> alt.LayerChart:
        """Draw what bad rows do against their share: successes of a back door, or errors through wrong labels."""
        if kind not in _MEANING:
            raise InvalidParameter(f'kind must be "mislabelled" or "backdoored", not {kind!r}')
        curves = {}
        for way in self.ways:
            found = self.of(kind, way)
            values = [100 * (each.success if kind == "backdoored" else 1 - each.accuracy) for each in found]
            curves[way] = ([100 * each.share for each in found], values)
        up = "backdoor works (% of rows)" if kind == "backdoored" else "wrong on clean rows (%)"
        return plots.lines(curves, across=f"{kind} rows (%)", up=up, title=f"NOT PRIVATE: what {kind} rows do")

    def __str__(self) -> str:
        return "\n".join(_told(self))

    __repr__ = __str__


def poisoning_check(
    ways: Mapping[str, Train],
    rows: tuple[Tensor, Tensor],
    tests: tuple[Tensor, Tensor],
    *,
    classes: int,
    trigger: Callable[[Tensor], Tensor],
    target: int,
    shares: Sequence[float] = (0, 0.001, 0.003, 0.01, 0.03, 0.1),
) -> NotPrivate[PoisoningReport]:
    """Train on clean rows and on rows of which a growing share is bad, in each of the given ways.

    What is bad is chosen at random; a larger share contains the smaller ones. Models that were trained here are for
    this check only: each would cost what its training costs, and none was paid for.

    Args:
        ways: Ways to train, by name: each takes rows and classes, and returns a function from rows to classes.
        rows: The private rows and their classes.
        tests: Rows and classes that are never bad and never trained on.
        classes: How many classes there are.
        trigger: Puts the attacker's mark on rows: takes rows, returns as many of the same shape.
        target: The class that the attacker wants for marked rows.
        shares: The shares of bad rows to try.

    Returns:
        Accuracy and backdoor success of every way, marked as not private.

    Examples:
        >>> import torch
        >>> x, y = torch.randn(100, 2), torch.arange(100) % 2
        >>> def always_zero(rows, classes):
        ...     return lambda inputs: torch.zeros(len(inputs), dtype=torch.int64)
        >>> report = dp.learn.torch.poisoning_check(
        ...     {"zero": always_zero}, (x, y), (x, y), classes=2, trigger=lambda rows: rows + 9, target=1, shares=[0.1]
        ... )
        >>> report.value.ways
        ('zero',)
    """
    _check(ways, rows, tests, classes, target, shares)
    order = torch.from_numpy(noise.permutation(len(rows[1])))
    judge = _Judge(tests, trigger(tests[0]), target)
    effects = []
    for kind in _MEANING:
        for share in shares:
            bad = order[: round(share * len(order))]
            spoilt = _spoilt(kind, rows, bad, classes, trigger, target)
            effects += [judge.effect(kind, share, way, train(*spoilt)) for way, train in ways.items()]
    return NotPrivate(PoisoningReport(rows=len(order), tested=len(tests[1]), effects=tuple(effects)))


@final
@dataclass(frozen=True, slots=True)
class _Judge:
    """Clean rows, and the same ones with the mark of the attacker."""

    tests: tuple[Tensor, Tensor]
    marked: Tensor
    target: int

    def effect(self, kind: PoisonKind, share: float, way: str, predict: Predict) -> PoisonEffect:
        rows, classes = self.tests
        right = (predict(rows) == classes).float().mean().item()
        others = classes != self.target
        fooled = (predict(self.marked)[others] == self.target).float().mean().item()
        return PoisonEffect(kind=kind, share=share, way=way, accuracy=right, success=fooled)


def _spoilt(
    kind: PoisonKind,
    rows: tuple[Tensor, Tensor],
    bad: Tensor,
    classes: int,
    trigger: Callable[[Tensor], Tensor],
    target: int,
) -> tuple[Tensor, Tensor]:
    x, y = (part.clone() for part in rows)
    if kind == "mislabelled":
        y[bad] = (y[bad] + 1) % classes
    elif len(bad):
        x[bad] = trigger(x[bad])
        y[bad] = target
    return x, y


def _check(
    ways: Mapping[str, Train],
    rows: tuple[Tensor, Tensor],
    tests: tuple[Tensor, Tensor],
    classes: int,
    target: int,
    shares: Sequence[float],
) -> None:
    if not ways or not all(isinstance(name, str) and callable(train) for name, train in ways.items()):
        raise InvalidParameter("ways must name at least one function that trains")
    if positive_integer(classes, name="classes") < 2 or target not in range(classes):
        raise InvalidParameter("there must be two classes at least, counted from 0, and target must be one of them")
    if not shares or list(shares) != sorted(set(shares)) or not 0 <= shares[0] <= shares[-1] <= 1:
        raise InvalidParameter("shares must be different numbers from 0 to 1, in growing order")
    for pair in (rows, tests):
        if not all(isinstance(part, Tensor) for part in pair) or len(pair) != 2 or not 0 < len(pair[0]) == len(pair[1]):
            raise InvalidParameter(
                "rows and tests must be pairs of tensors, rows and their classes, as many as each other"
            )


def _told(report: PoisoningReport) -> Iterator[str]:
    yield f"{report.rows:,} rows to learn from, {report.tested:,} to try it on"
    for kind, meaning in _MEANING.items():
        yield ""
        yield f"{kind}: {meaning}"
        yield f"{'':>10}" + "".join(f"{way:>28}" for way in report.ways)
        yield f"{'bad rows':>10}" + f"{'accuracy':>14}{'backdoor':>14}" * len(report.ways)
        for group in zip(*(report.of(kind, way) for way in report.ways), strict=True):
            cells = "".join(f"{each.accuracy:>14.1%}{each.success:>14.1%}" for each in group)
            yield f"{group[0].share:>10.1%}" + cells
    yield ""
    yield "accuracy: of clean rows; backdoor: rows of other classes that get the attacker's class once they are marked."
