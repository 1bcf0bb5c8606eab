"""What floats do to clipped sums stays inside the proven bounds, for nasty rows too; looser arithmetic is caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from math import isqrt, ldexp

import numpy as np
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
    values = torch.randn(ROWS if size < 100 else 8, size) * scale
    found = gradient_forms.squares_up(values).tolist()
    exact = [sum((Fraction(one) ** 2 for one in row), Fraction(0)) for row in values.tolist()]
    assert all(Fraction(above) >= true for above, true in zip(found, exact, strict=True))


def _shared() -> list[Form]:
    """What a linear layer gives that has a bias, whose gradient is the left side itself, beside gradients of rows."""
    several = _forms()
    outer = several["outer"]
    assert isinstance(outer, Outer)
    return [several["rows"], outer, RowGradients(outer.left), several["formed"], RowGradients(_nasty(1030))]


def test_digests_tell_one_bit_of_one_record_and_follow_it_to_another_slot() -> None:
    picked = Pairs(torch.zeros(5, 0, 3), torch.arange(10).reshape(5, 2) % 3, torch.randn(5, 2, 4), 3)
    for form in (RowGradients(torch.randn(5, 7)), Outer(torch.randn(5, 3), torch.randn(5, 2)), picked):
        found, name = gradient_forms.digests(form), "values" if isinstance(form, RowGradients) else "right"
        values = getattr(form, name).clone()
        values.view(torch.int32)[3].flatten()[-1] ^= 1
        assert (gradient_forms.digests(replace(form, **{name: values})) != found).tolist() == [
            *[False] * 3,
            True,
            False,
        ]
        sides = {side.name: getattr(form, side.name) for side in fields(form)}
        turned = {name: side.flip(0) for name, side in sides.items() if isinstance(side, Tensor)}
        assert torch.equal(gradient_forms.digests(replace(form, **turned)), found.flip(0))


def test_norms_of_several_parameters_together_are_never_below_the_true_ones() -> None:
    forms = _shared()
    for row, found in enumerate(gradient_forms.joint_squares_up(forms).tolist()):
        squares = [_exact_square(form, row) for form in forms]
        if None in squares:
            assert not found < math.inf
        elif found < math.inf:
            exact = sum(each for each in squares if each is not None)
            assert exact <= Fraction(found) <= exact * Fraction(10_002, 10_000) + Fraction(1, 10**30)


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
    """Positions that undo each other up to a 256th: no factor is lowered for that, and float32 is sure of little."""
    left, right = torch.randn(ROWS, 2, 40), torch.randn(ROWS, 2, 50)
    left[:, 1], right[:, 1] = -left[:, 0] * (1 + 2.0**-8), right[:, 0]
    pairs = Pairs(left, torch.zeros(ROWS, 0, dtype=torch.int64), right, 40)
    assert -1e-4 < _largest_excess(pairs, Flat(CLIP)) <= 0
    monkeypatch.setattr(Tensor, "double", Tensor.float)
    monkeypatch.setattr(gradient_forms, "DOUBLE", Fraction(0))
    assert _largest_excess(pairs, Flat(CLIP)) > 1e-4


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
    return torch.from_numpy(ours.take().whole())


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


# --- Chains: blocks that float32 adds one to the other ----------------------------------------------------------------


def _finished(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """What `addmm_` does where it may be chained: the product first, then one sum."""
    return total.add_(torch.mm(left, right))


def _going_on(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """What other kernels do: add row after row to what is there."""
    for column, row in zip(left.T, right, strict=True):
        total.add_(torch.outer(column, row))
    return total


@pytest.fixture
def _chained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chain sums of any size, as on a machine whose products are finished before they are added."""
    monkeypatch.setattr(gradient_forms, "_SMALL", 0)
    monkeypatch.setattr(gradient_forms, "adds_finished", lambda *_: True)
    monkeypatch.setattr(Tensor, "addmm_", _finished)


def _lifted_blocks(rows: int) -> Rounded:
    """Return rows whose first half adds up to just below a power of two; then each block is half a spacing above it.

    A record more lifts the sum over the power, and from there on the sum of every block rounds up.
    """
    lifted = torch.zeros(rows)
    lifted[1 : rows // 2] = 1.0
    lifted[rows // 2 + 1 :: 16] = rows // 2 * 2.0**-24 * (1 + 2.0**-6)
    return lifted[:, None] * torch.full((rows, 4), 0.25), torch.full((rows, 4), 0.5)


_LIFTING = torch.full((4,), 0.25), torch.full((4,), 0.5)


@pytest.mark.usefixtures("_chained")
@pytest.mark.parametrize("physical", [64, 128, 256, 1024])
def test_one_record_that_lifts_a_chain_over_a_power_of_two_stays_inside_the_slack(physical: int) -> None:
    change = _change(_lifted_blocks(physical), _LIFTING, 0, physical, Flat("0.500003"))
    assert abs(change) <= float(float_error.slack_of(physical))


@pytest.mark.usefixtures("_chained")
def test_chains_without_end_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    records, clip = _lifted_blocks(4096), Flat("0.500003")
    honest = _change(records, _LIFTING, 0, 4096, clip)
    monkeypatch.setattr(gradient_forms, "_chains", lambda rows, chained: [_of_16(rows)])
    claimed = float(float_error.slack_of(4096))
    assert honest <= claimed < _change(records, _LIFTING, 0, 4096, clip)


@pytest.mark.usefixtures("_chained")
def test_large_sums_in_chains_agree_with_float64_for_batches_of_any_length() -> None:
    for rows in (1, 43, 44, 258, 259, 600, 1033):
        form, factors = Outer(torch.randn(rows, 5), torch.randn(rows, 7)), torch.rand(rows)
        exact = ((form.left * factors[:, None]).double().T @ form.right.double()).flatten()
        total = torch.zeros(35, dtype=torch.float64)
        form.add_to(total, factors)
        assert torch.allclose(total, exact, rtol=1e-5, atol=1e-4)
        assert form.is_large == (rows <= 1032)
        if form.is_large:
            pieces = form.pieces(factors)
            assert len(pieces) == -(-rows // 258)
            assert torch.allclose(torch.stack(pieces).sum(0, dtype=torch.float64), exact, rtol=1e-5, atol=1e-4)


def test_a_chain_has_at_most_six_blocks_of_at_most_43_rows_and_every_row_once() -> None:
    for rows in (*range(1, 600), 1024, float_error.LARGEST_BATCH):
        chains = gradient_forms._chains(rows, chained=True)
        assert max(map(len, chains)) <= float_error.CHAIN
        blocks = [block for chain in chains for block in chain]
        assert max(block.stop - block.start for block in blocks) <= float_error.BLOCK
        assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))


@pytest.mark.parametrize(("rows", "height", "width"), [(44, 2, 3), (256, 9, 30), (600, 4, 5)])
def test_a_product_is_chained_only_where_it_is_finished_before_it_is_added(
    monkeypatch: pytest.MonkeyPatch, rows: int, height: int, width: int
) -> None:
    tried = gradient_forms.adds_finished.__wrapped__  # Without what was found before.
    monkeypatch.setattr(Tensor, "addmm_", _finished)
    assert tried(rows, height, width, 1, True, False)
    monkeypatch.setattr(Tensor, "addmm_", _going_on)
    assert not tried(rows, height, width, 1, True, False)


def test_what_a_kernel_does_is_tried_again_where_another_one_may_run() -> None:
    """oneDNN off, or tiny numbers flushed to zero, since the last trial."""
    left, right = torch.randn(86, 3), torch.randn(86, 5)
    trials = gradient_forms.adds_finished.cache_info
    gradient_forms.adds_finished.cache_clear()
    for _ in range(2):
        gradient_forms.is_chained(left, right)
    assert trials().misses == 1
    with torch.backends.mkldnn.flags(enabled=False):
        gradient_forms.is_chained(left, right)
    assert trials().misses == 2
    if torch.set_flush_denormal(True):
        try:
            gradient_forms.is_chained(left, right)
        finally:
            torch.set_flush_denormal(False)
        assert trials().misses == 3


def test_a_last_block_that_is_not_finished_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def last_goes_on(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
        return (_finished if len(right) == 43 else _going_on)(total, left, right)

    monkeypatch.setattr(Tensor, "addmm_", last_goes_on)
    assert not gradient_forms.adds_finished.__wrapped__(256, 9, 30, 1, True, False)  # 43, 43, 43, 43, 43 and 41 rows


def test_what_is_not_finished_goes_to_float64_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_forms, "_SMALL", 0)
    monkeypatch.setattr(gradient_forms, "adds_finished", lambda *_: False)
    monkeypatch.setattr(Tensor, "addmm_", None)
    form = Outer(torch.randn(100, 5), torch.randn(100, 7))
    total = torch.zeros(35, dtype=torch.float64)
    form.add_to(total, torch.ones(100))
    assert not form.is_large
    assert torch.allclose(total, (form.left.double().T @ form.right.double()).flatten(), rtol=1e-5, atol=1e-4)


def _worst_chain(blocks: int) -> float:
    """Add float16 numbers of at most 1 one to the other so that each sum rounds up as far as it can; what it is off."""
    near_one = np.arange(1024, 2049, dtype=np.float64) / 2048
    total, exact = np.float16(1.0), 1.0
    for _ in range(blocks - 1):
        errors = (total + near_one.astype(np.float16)).astype(np.float64) - (float(total) + near_one)
        chosen = near_one[np.flatnonzero(errors == errors.max())[-1]]
        total, exact = np.float16(total + np.float16(chosen)), exact + chosen
    return float(total) - exact


@pytest.mark.parametrize("blocks", [2, 3, 4, 6])
def test_what_a_chain_rounds_off_is_inside_the_bound_and_near_it(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setattr(float_error, "SINGLE", Fraction(1, 1 << 11))
    worst, claimed = _worst_chain(blocks), float(float_error.chain_error(1, blocks))
    assert claimed * 0.4 <= worst <= claimed


def _most_moved(blocks: int) -> float:
    """Add float16 blocks of a row each, with a record of length 1 in the first slot and without it; what else moves."""
    near_one = np.arange(1024, 2049, dtype=np.float64) / 2048
    without, with_it = np.float16(0.0), np.float16(1.0)
    for _ in range(blocks - 1):
        sums = [total + near_one.astype(np.float16) for total in (without, with_it)]
        moved = sums[1].astype(np.float64) - sums[0].astype(np.float64)
        chosen = np.argmax(moved)
        without, with_it = sums[0][chosen], sums[1][chosen]
    return abs(float(with_it) - float(without) - 1.0)


def test_a_slack_that_forgets_chains_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float_error, "SINGLE", Fraction(1, 1 << 11))
    monkeypatch.setattr(float_error, "BLOCK", 1)
    moved, claimed = _most_moved(float_error.CHAIN), float_error.slack_of(1)
    monkeypatch.setattr(float_error, "chain_error", lambda *_: Fraction(0))
    assert float_error.slack_of(1) < moved <= claimed


def _of_16(rows: int) -> list[slice]:
    return [slice(at, min(at + 16, rows)) for at in range(0, rows, 16)]


@pytest.mark.parametrize("rows", [5, 43, 44, 64, 100, 128, 200, 256, 300, 320, 512])
def test_all_parameters_are_cut_into_blocks_at_the_same_slots(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In column i row i has 2^24 and the next one 1: float32 forgets the 1, so it is kept where a block begins."""
    monkeypatch.setattr(gradient_forms, "adds_finished", lambda *_: False)
    values = torch.eye(rows) * 2.0**24 + torch.eye(rows).roll(1, 0)
    values[0, -1] = 0.0
    ones, found = torch.ones(rows), []
    for width in (1, 1 + gradient_forms._SMALL // rows):
        total = torch.zeros(rows * width, dtype=torch.float64)
        gradient_forms.add_outer(total, values, torch.ones(rows, width))
        found.append(total.reshape(rows, width)[:, 0])
    found.append(torch.zeros(rows, dtype=torch.float64))
    gradient_forms.add_rows(found[-1], values, ones)
    begins = [(1 + (each > 2.0**24).nonzero().flatten()).tolist() for each in found]
    assert begins[0] == begins[1] == begins[2] == [block.start for block in gradient_forms._blocks(rows)][1:]
    chained = [block for chain in gradient_forms._chains(rows, chained=True) for block in chain]
    assert chained == gradient_forms._blocks(rows)
    assert max(len(chain) for chain in gradient_forms._chains(rows, chained=True)) <= float_error.CHAIN


def test_rows_that_share_a_block_for_any_parameter_keep_the_error_of_one_block() -> None:
    """The worst a record can do: each row beside it has its whole norm where the block that both are in is longest."""

    def roundings(rows: int) -> int:
        squares = (rows - 1) * rows * (2 * rows - 1) // 6 + (rows - 1) ** 2
        return squares + 4 * (rows * (rows + 1) // 2 - 1) + 4 * rows

    for rows in (64, 100, 128, 200, 256, 300, 512, 600):
        chains = gradient_forms._chains(rows, chained=True)
        cuts = [gradient_forms._blocks(rows), [block for chain in chains for block in chain]]
        most = [
            sum(
                max(
                    (roundings(b.stop - b.start) for cut in cuts for b in cut if slot in _of(b) and i in _of(b)),
                    default=0,
                )
                for i in range(rows)
            )
            for slot in range(0, rows, 7)
        ]
        assert isqrt(max(most)) * float_error.SINGLE <= float_error.block_error(float_error.BLOCK)


def _of(block: slice) -> range:
    return range(block.start, block.stop)


@pytest.mark.parametrize("sizes", [(5,), (3, 1, 8), (1, 1024)])
@pytest.mark.parametrize("rows", [1, 43, 100])
def test_short_rows_of_several_parameters_are_added_each_in_its_place(sizes: tuple[int, ...], rows: int) -> None:
    """With whole numbers, which floats add exactly, and on top of what is there."""
    several = [torch.randint(-99, 99, (rows, size)) for size in sizes]
    factors = torch.randint(0, 2, (rows,))
    totals = [torch.full((size,), 7.0, dtype=torch.float64) for size in sizes]
    gradient_forms.add_short_rows(
        [(total, values.float()) for total, values in zip(totals, several, strict=True)], factors.float()
    )
    for total, values in zip(totals, several, strict=True):
        assert total.long().tolist() == ((values * factors[:, None]).sum(0) + 7).tolist()
