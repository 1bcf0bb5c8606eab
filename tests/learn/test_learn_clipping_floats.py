"""What floats do to clipped sums stays inside the proven bounds, for nasty rows too; looser arithmetic is caught."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import isqrt, ldexp

import pytest
import torch
from torch import Tensor, nn

from discreet.learn.torch.clipping import float_error, gradient_forms
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.clipping.float_error import factors_down
from discreet.learn.torch.clipping.gradient_forms import Form, Outer, Pairs, Positions, RowGradients, combine
from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, Flat

ROWS, CLIP = 96, Fraction(1, 10)
RULES: list[Clip] = [Flat(CLIP), Automatic(CLIP), AdaptiveClip("0.03")]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(11)


def _nasty(*shape: int) -> Tensor:
    """Rows of all sizes, with entries of all sizes: huge, tiny, denormal, zero, infinite and not a number."""
    values = torch.randn(ROWS, *shape)
    each = (-1,) + (1,) * len(shape)
    values *= torch.pow(10.0, torch.randint(-12, 8, (ROWS,)).float()).reshape(each)
    values[0:8] *= torch.pow(10.0, torch.randint(-6, 6, (8, *shape)).float())
    for row, special in enumerate((0.0, 1e-40, 1e-23, 3e38, -1e19, float("inf"), float("nan"), 1e12), start=8):
        values[row].view(-1)[0] = special
    values[16], values[17], values[18], values[19] = 1e-42, 1e38, 0.0, 1e-20
    return values


def _cancelling(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Let the second position of half of the rows undo the first one but for the last bits."""
    left[20:60, 1], right[20:60, 1] = -left[20:60, 0] * (1 + 2.0**-20), right[20:60, 0]
    left[60:70, 1], right[60:70, 1] = -left[60:70, 0], right[60:70, 0]
    return left, right


def _forms() -> dict[str, Form]:
    few = Positions(*_cancelling(_nasty(2, 40), _nasty(2, 50)))
    many = Positions(*_cancelling(_nasty(9, 5), _nasty(9, 7)))
    picked = Pairs(_nasty(2, 6), torch.randint(0, 6, (ROWS, 3)), _nasty(5, 4), 6)
    return {
        "rows": RowGradients(_nasty(150)),
        "outer": Outer(_nasty(7), _nasty(130)),
        "pairs": combine([few]),
        "formed": combine([many]),
        "picked": picked,
    }


def _exact_square(form: Form, row: int) -> Fraction | None:
    """Return the squared norm of a row's gradient without any rounding; None if it is not finite."""
    if isinstance(form, RowGradients):
        terms = [(torch.ones(1), form.values[row])]
    elif isinstance(form, Outer):
        terms = [(form.left[row], form.right[row])]
    else:
        units = torch.eye(form.height)[form.picked[row]]
        terms = list(zip([*form.left[row], *units], form.right[row], strict=True))
    if not all(bool(torch.isfinite(side).all()) for term in terms for side in term):
        return None
    sides = [(_whole(left), _whole(right)) for left, right in terms]
    total = sum(_inner(a, c) * _inner(b, d) for a, b in sides for c, d in sides)
    return Fraction(total, 1 << (4 * 149))


def _whole(values: Tensor) -> list[int]:
    """Return floats as whole multiples of 2^-149, the smallest positive float32."""
    return [int(ldexp(value, 149)) for value in values.tolist()]


def _inner(left: list[int], right: list[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _largest_excess(form: Form, clip: Clip) -> Fraction:
    """Return the largest (factor times exact norm / bound)^2 - 1 over all rows, and check that bad rows get zero."""
    squares, sizes = form.squares_up(), form.sizes()
    share = float_error.share_down(clip, 1)
    threshold = float(clip.initial) if isinstance(clip, AdaptiveClip) else share
    scale = factors_down(clip, threshold, share, squares, torch.zeros_like(squares) if sizes is None else sizes)
    excess = Fraction(-1)
    for row, factor in enumerate(scale.tolist()):
        square = _exact_square(form, row)
        if square is None:
            assert factor == 0.0
        else:
            excess = max(excess, Fraction(factor) ** 2 * square / clip.bound**2 - 1)
    return excess


@pytest.mark.parametrize("clip", RULES, ids=lambda clip: type(clip).__name__)
@pytest.mark.parametrize("name", ["rows", "outer", "pairs", "formed", "picked"])
def test_no_contribution_exceeds_the_clip_in_exact_arithmetic(name: str, clip: Clip) -> None:
    excess = _largest_excess(_forms()[name], clip)
    assert -1e-4 < excess <= 0  # Never above, and some row is near: the bound is not met by shrinking everything.


def _swallowed() -> RowGradients:
    """Return rows with many squares that are each lost beside the square of one."""
    values = torch.full((1, 4096), (0.49 * 2.0**-23) ** 0.5)
    values[:, :64] = 1.0
    return RowGradients(values)


@pytest.mark.parametrize("size", [1, 3, 63, float_error.CHUNK, float_error.CHUNK + 1, 5 * float_error.CHUNK])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-22])
def test_squared_norms_are_never_below_the_true_ones(size: int, scale: float) -> None:
    """In exact arithmetic, row by row; squares below the range of float32 are there, too."""
    values = torch.randn(ROWS, size) * scale
    found = gradient_forms.squares_up(values).tolist()
    exact = [sum((Fraction(one) ** 2 for one in row), Fraction(0)) for row in values.tolist()]
    assert all(Fraction(above) >= true for above, true in zip(found, exact, strict=True))


def test_norms_without_their_own_error_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _largest_excess(_swallowed(), Flat(CLIP)) <= 0
    monkeypatch.setattr(gradient_forms, "_up", lambda length: 1.0)
    monkeypatch.setattr(gradient_forms, "CHUNK", 4096)
    assert _largest_excess(_swallowed(), Flat(CLIP)) > 0


def test_factors_rounded_to_nearest_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float_error, "SHRINK", 1.0)
    monkeypatch.setattr(gradient_forms, "_up", lambda length: 1.0)
    monkeypatch.setattr(gradient_forms, "CHUNK", 1)
    assert _largest_excess(_forms()["rows"], Flat(CLIP)) > 0


def test_inner_products_in_float32_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "double", Tensor.float)
    monkeypatch.setattr(gradient_forms, "DOUBLE", Fraction(0))
    assert _largest_excess(_forms()["pairs"], Flat(CLIP)) > 0


# --- The change of a sum by one record, in the coupled order ---------------------------------------------------------

Rounded = tuple[Tensor, Tensor]  # inputs and gradients of outputs of one linear layer, one row for each record


def _sum_of(records: Rounded, physical: int, grid: Fraction, clip: Clip) -> Tensor:
    """Sum over physical batches for a linear layer whose output gradients are prescribed."""
    inputs, outer = records
    layer = nn.Linear(inputs.shape[-1], outer.shape[-1], bias=False)
    ours = ClippedSums(layer, clip=clip, grid=grid, physical_batch=physical)
    for start in range(0, len(inputs), physical):
        more = max(0, start + physical - len(inputs))
        batch = [_filled(each[start : start + physical], more) for each in records]
        losses = (layer(batch[0]) * batch[1]).flatten(1).sum(1)
        ours.add(losses, torch.arange(physical) < physical - more)
    ours.close()
    return ours.take()


def _filled(values: Tensor, more: int) -> Tensor:
    return torch.cat([values, values.new_zeros(more, *values.shape[1:])])


def _with_record(records: Rounded, record: tuple[Tensor, Tensor], slot: int) -> Rounded:
    """Put a record into a slot; the one that was there goes to the end."""
    moved = []
    for values, new in zip(records, record, strict=True):
        longer = torch.cat([values, values[slot : slot + 1]])
        longer[slot] = new
        moved.append(longer)
    return moved[0], moved[1]


def _change(records: Rounded, record: tuple[Tensor, Tensor], slot: int, physical: int, clip: Clip) -> float:
    """The norm of the change of the sum, less the clip and the share of the grid, as a multiple of the clip."""
    size = records[0].shape[-1] * records[1].shape[-1]
    grid = Fraction(1, 1 << 34)
    before = _sum_of(records, physical, grid, clip)
    after = _sum_of(_with_record(records, record, slot), physical, grid, clip)
    steps = float((after - before).norm())
    return (steps - 2 * size**0.5) * float(grid / clip.bound) - 1


def _near_a_power_of_two(rows: int, weight: int) -> Rounded:
    """Return rows that add up to just below a power of two, half of them worth a bit more than half the spacing above.

    If a record more lifts the sum over the power, each of these rounds up by nearly as much again.
    """
    lifted = torch.ones(rows)
    lifted[0] = 0.0
    spacing = weight * 2.0**-23
    lifted[rows // 2 :] = spacing / 2 * (1 + 2.0**-6)
    right = lifted[:, None] * torch.full((rows, 4), 0.25)
    return right, torch.full((rows, 4), 0.5)


@pytest.mark.parametrize("slot", [0, 5, 63])
def test_one_record_changes_a_sum_by_no_more_than_clip_and_slack(slot: int) -> None:
    for positions in ((), (3,), (40,)):
        records = torch.randn(100, *positions, 24), torch.randn(100, *positions, 20)
        record = torch.randn(*positions, 24) * 100, torch.randn(*positions, 20)
        for clip in (Flat("0.001"), Automatic(1)):
            assert _change(records, record, slot, 64, clip) <= float(float_error.slack_of(64))


def test_one_record_that_lifts_a_sum_over_a_power_of_two_stays_inside_the_slack() -> None:
    records = _near_a_power_of_two(32, 16)
    record = torch.full((4,), 0.25), torch.full((4,), 0.5)
    assert 0 < _change(records, record, 0, 32, Flat("0.500003")) <= float(float_error.slack_of(32))


def test_longer_float_sums_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    records = _near_a_power_of_two(1024, 512)
    record = torch.full((4,), 0.25), torch.full((4,), 0.5)
    honest = _change(records, record, 0, 1024, Flat("0.500003"))
    monkeypatch.setattr(gradient_forms, "BLOCK", 1024)
    assert honest <= float(Fraction(3, 10_000)) < _change(records, record, 0, 1024, Flat("0.500003"))


def test_slack_leaves_half_of_a_thousandth_for_the_grid() -> None:
    for physical in (1, 32, 256, float_error.LARGEST_BATCH):
        assert float_error.slack_of(physical) <= Fraction(1, 2000)


def _break(values: Tensor, at: int, special: float) -> Tensor:
    values = values.clone()
    values[at, 0] = special
    return values


@pytest.mark.parametrize("special", [float("nan"), float("inf"), -float("inf"), 3e38])
@pytest.mark.parametrize("spoil", [lambda x, y, s: (_break(x, 3, s), y), lambda x, y, s: (x, _break(y, 3, s))])
def test_a_record_that_is_not_finite_contributes_nothing(
    special: float, spoil: Callable[[Tensor, Tensor, float], Rounded]
) -> None:
    inputs, outer = torch.randn(32, 6), torch.randn(32, 5)
    spoilt = _sum_of(spoil(inputs, outer, special), 32, Fraction(1, 1 << 30), Flat(1))
    inputs[3], outer[3] = 0.0, 0.0
    assert torch.equal(spoilt, _sum_of((inputs, outer), 32, Fraction(1, 1 << 30), Flat(1)))


def test_pairs_that_cancel_beyond_the_ratio_are_lowered_and_kept_inside() -> None:
    left, right = torch.ones(ROWS, 2, 40), torch.ones(ROWS, 2, 50)
    left[:, 1] = -1.0
    right[:, 1] = 1 + 2.0**-18
    form = combine([Positions(left * 1e6, right)])
    assert isinstance(form, Pairs)
    sizes = form.sizes()
    assert sizes is not None
    scale = factors_down(Flat(1), 1.0, 1.0, form.squares_up(), sizes).double()
    assert float((scale * sizes.sqrt()).max()) <= float_error.RATIO


@pytest.mark.parametrize("small", [1, 1 << 15])
def test_sums_over_rows_agree_with_float64_for_blocks_of_any_length(
    monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(gradient_forms, "_SMALL", small)
    for rows in (1, 31, 56, 57, 100, 113):
        left, right = torch.randn(rows, 5), torch.randn(rows, 7)
        outer, weighted = torch.ones(35, dtype=torch.float64), torch.ones(7, dtype=torch.float64)
        gradient_forms.add_outer(outer, left, right)
        gradient_forms.add_rows(weighted, right, left[:, 0])
        assert torch.allclose(outer, 1 + (left.double().T @ right.double()).flatten(), rtol=1e-5, atol=1e-4)
        assert torch.allclose(weighted, 1 + left.double()[:, 0] @ right.double(), rtol=1e-5, atol=1e-4)


def test_block_error_dominates_brute_force_over_all_trees() -> None:
    for leaves in range(1, 13):
        most = max(sum((depth + 2) ** 2 for depth in tree) for tree in _trees(leaves))
        assert float_error.block_error(leaves) >= Fraction(isqrt(leaves * most)) * float_error.SINGLE


@cache
def _trees(leaves: int) -> frozenset[tuple[int, ...]]:
    """Return the depths of the leaves, sorted, of every way to add up so many terms two by two."""
    if leaves == 1:
        return frozenset({(0,)})
    return frozenset(
        tuple(sorted(depth + 1 for depth in (*left, *right)))
        for first in range(1, leaves // 2 + 1)
        for left in _trees(first)
        for right in _trees(leaves - first)
    )


def test_a_chain_is_the_worst_tree() -> None:
    chain = (*range(1, 12), 11)
    assert all(sum((d + 2) ** 2 for d in tree) <= sum((d + 2) ** 2 for d in chain) for tree in _trees(12))
