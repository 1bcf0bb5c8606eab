"""People as records: whoever has how many rows moves a step by one clip, and takes part by one coin."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from clipped_models import MODELS, squares
from clipped_reference import GRID, clipped, row_gradients
from inclusion import right_coins
from private_runs import LOSS, flat, model_of, rows, run, silenced
from statistical import fits
from test_learn_plan_coupled import MODELS as COUPLED
from test_learn_plan_coupled import coupled, drawn, loss
from torch import Tensor, nn

import discreet as dp
from discreet.adaptive.bounded_memberships import unit_rows
from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch import batches, make_private_stream
from discreet.learn.torch.batches import PeopleRows, read_rows
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers import prepare
from discreet.learn.torch.private_training import slots_for
from discreet.learn.training import AdaptiveClip, Automatic, Flat, PerLayer, TrainingPlan, plan_training
from discreet.learn.training.sampling import PoissonSampler, cut
from discreet.learn.training.stream_plan import StreamPlan
from discreet.ledger import Account, Budget, Ledger
from discreet.privacy import Relation

torch.set_num_threads(1)
SLOTS = 32
IDS = torch.arange(40) % 7  # seven people with five or six rows
FACTS: dict[str, Any] = {"unit": IDS, "max_rows": 3, "public_rows": None, "public_units": 7, "batch_size": 7}


def people(**chosen: Any) -> Any:
    """A run in which all seven people take part in every step."""
    return run(**(FACTS | chosen))


def whom(ids: Any, each: int) -> Any:
    """Whom these ids tell apart, as a run reads them."""
    return unit_rows(ids.numpy() if isinstance(ids, Tensor) else ids, each, Relation.ADD_REMOVE)


class TestSums:
    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("each", [2, 5])
    def test_the_sum_is_that_of_clipped_means_over_the_rows_of_a_person(self, name: str, each: int) -> None:
        torch.manual_seed(7)
        build, draw = MODELS[name]
        model, inputs, targets = build(), draw(16 * each), torch.rand(16 * each)
        inside = torch.rand(16 * each) < 0.7
        inside[:each], inside[each : 2 * each] = False, True  # nobody at all, and somebody with all rows
        shares = _shares(inside, each)
        each_row = row_gradients(model, inputs, targets, squares)
        person = {
            key: (value * shares[:, None]).reshape(16, each, -1).sum(1) for key, value in each_row.items()
        }  # fmt: skip
        middle = float(torch.cat(list(person.values()), 1).norm(dim=1).median())
        for clip in (Flat(middle), PerLayer(middle), Automatic(middle, gamma=middle / 10), AdaptiveClip(middle)):
            sums = ClippedSums(model, clip=clip, grid=GRID, physical_batch=16, each=each)
            sums.add(squares(model(inputs), targets), inside)
            sums.close()
            _, total = clipped(model, person, clip)
            assert float((torch.from_numpy(sums.take().whole()) * float(GRID) - total).norm()) < 1e-5 * float(
                total.norm()
            )

    @pytest.mark.parametrize("name", COUPLED)
    @pytest.mark.parametrize("each", [1, 2, 5, 50])
    def test_one_person_moves_the_real_sum_by_no_more_than_the_plan_says(self, name: str, each: int) -> None:
        world, largest = World(name, each), Fraction(0)
        for size in (0, 1, SLOTS - 1, SLOTS, SLOTS + 5):
            data, (order, longer) = world.people(size + 1, tame=size == SLOTS), coupled(size)
            moved = world.moved(world.sum_of(data, order), world.sum_of(data, longer))
            assert moved <= world.plan.sensitivity**2
            largest = max(largest, moved)
        assert largest > Fraction(99, 100) ** 2 * world.plan.clip.bound**2  # All of the clip is used.

    @pytest.mark.parametrize("each", [2, 5, 50])
    def test_clipping_rows_is_caught(self, each: int) -> None:
        """Each row clipped by itself, and then added up: a person moves the sum by as many clips as they have rows."""
        world = World("dense", each)
        wrong = World("dense", 1, model=world.model, slots=SLOTS * each)
        data = (torch.ones(1, each, 12), torch.ones(1, each, dtype=torch.bool))
        assert world.moved(0, world.sum_of(data, [0])) <= world.plan.sensitivity**2
        rows_of_one = tuple(part.reshape(each, 1, *part.shape[2:]) for part in data)
        far = wrong.moved(0, wrong.sum_of(rows_of_one, np.arange(each)))
        assert far > (each * Fraction(99, 100) * world.plan.clip.bound) ** 2 > world.plan.sensitivity**2

    def test_padding_adds_exactly_nothing_even_where_its_gradient_is_not_finite(self) -> None:
        """The root of a row of zeros has an infinite slope, which zero times is no number."""
        model = model_of()

        class Root(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(4, 4, bias=False)
                self.inner = model

            def forward(self, x: Tensor) -> Tensor:
                return self.inner(self.first(x).abs().sqrt())

        rooted, (x, y) = Root(), rows(6)
        found = []
        for each, places in ((3, [0, 1, 2, 3, 4, 5]), (4, [0, 1, 2, -1, 3, 4, 5, -1])):
            chosen = torch.tensor(places)
            inside = chosen >= 0
            picked = torch.where(inside[:, None], x[chosen.clamp(min=0)], 0.0)
            sums = ClippedSums(rooted, clip=1, grid=GRID, physical_batch=2, each=each)
            sums.add(LOSS(rooted(picked), y[chosen.clamp(min=0)]), inside)
            found.append(torch.from_numpy(sums.take().whole()))
            sums.close()
        assert found[0].any()
        assert torch.allclose(found[0] * float(GRID), found[1] * float(GRID), rtol=0, atol=1e-6)

    def test_a_row_that_is_no_number_takes_its_person_out_and_nobody_else(self) -> None:
        x, y = rows(40)
        spoilt = x.clone()
        spoilt[3] = torch.nan
        without = IDS != 3
        one = silenced(people(data=(spoilt, y), max_rows=6, steps=1)).fit(progress=False)
        other = silenced(people(data=(x[without], y[without]), unit=IDS[without], max_rows=6, steps=1))
        assert torch.allclose(flat(one.model), flat(other.fit(progress=False).model), atol=1e-6)


class World:
    """A model with its sums and its plan; data are (people, slots, 12) numbers, and which slots are filled."""

    def __init__(self, name: str, each: int, model: nn.Module | None = None, slots: int = SLOTS) -> None:
        self.model = prepare(COUPLED[name]()).model if model is None else model
        self.each, self.slots, clip = each, slots, Flat("0.001")
        count = sum(weight.numel() for weight in self.model.parameters())
        self.plan = _plan(clip, count, Fraction(0))
        self.sums = ClippedSums(self.model, clip=clip, grid=self.plan.grid, physical_batch=slots, each=each)
        self.plan = _plan(clip, count, self.sums.slack)

    def people(self, count: int, tame: bool = False) -> tuple[Tensor, Tensor]:
        """People with all numbers of rows from one to all slots, some of them awful; the last one not, if `tame`."""
        inside = torch.arange(self.each)[None] < 1 + torch.arange(count)[:, None] % self.each
        values = drawn(count * self.each).reshape(count, self.each, 12)
        if tame:  # Whoever has one awful row is left out: without this, all that are tried may be, once in 100 runs.
            values[-1] = values[-1].nan_to_num(1, 1, 1).clamp(-1e4, 1e4)
        return torch.where(inside[:, :, None], values, 0.0), inside

    def sum_of(self, data: tuple[Tensor, Tensor], order: Any) -> Any:
        for batch in cut(np.asarray(order, np.int64), self.slots):
            at, there = torch.from_numpy(batch.indices).clamp(min=0), torch.from_numpy(batch.inside)
            x = torch.where(there[:, None, None], data[0][at], 0.0)
            self.sums.add(loss(self.model(x.flatten(0, 1))), (data[1][at] & there[:, None]).flatten())
        return self.sums.take().whole().astype(np.int64)

    def moved(self, before: Any, after: Any) -> Fraction:
        return sum(int(step) ** 2 for step in after - before) * self.plan.grid**2


def _shares(inside: Tensor, each: int) -> Tensor:
    there = inside.reshape(-1, each).double()
    return (there / there.sum(1, keepdim=True).clamp(min=1)).flatten()


def _plan(clip: Any, parameters: int, slack: Fraction) -> TrainingPlan:
    return plan_training(
        noise_multiplier=1, delta="1e-6", public_rows=1000, batch_size=100, steps=1, clip=clip, parameters=parameters,
        physical_batch=SLOTS, slack=slack,
    )  # fmt: skip


class TestRows:
    def test_a_batch_has_each_person_in_one_place_with_rows_of_their_own(self) -> None:
        x = torch.arange(40.0)[:, None]
        held = PeopleRows(read_rows((x, IDS)), whom(IDS, 4))
        assert held.size == 7
        (found, owner), inside = held.batch(np.array([5, -1, 2]), np.array([True, False, True]))
        assert owner[inside].tolist() == [5] * 4 + [2] * 4
        assert inside.tolist() == [True] * 4 + [False] * 4 + [True] * 4
        assert (IDS[found[inside, 0].long()] == owner[inside]).all()
        assert len(set(found[inside, 0].tolist())) == 8
        assert not found[~torch.from_numpy(inside)].any()

    def test_whoever_has_few_rows_is_in_with_all_of_them(self) -> None:
        held = PeopleRows(read_rows((torch.arange(40.0), IDS)), whom(IDS, 9))
        (found, _), inside = held.batch(np.array([0, 6]), np.ones(2, bool))
        assert inside.sum() == 6 + 5
        assert sorted(found[inside].tolist()) == sorted([*range(0, 40, 7), *range(6, 40, 7)])

    @pytest.mark.statistical
    def test_the_choice_is_fresh_and_uniform_and_the_first_rows_are_not(self) -> None:
        held = PeopleRows(read_rows((torch.arange(5), torch.zeros(5))), whom([1] * 5, 2))
        names = {pair: number for number, pair in enumerate(combinations(range(5), 2))}
        sample = []
        for _ in range(2000):
            (found, _), _ = held.batch(np.array([0]), np.array([True]))
            sample.append(names[tuple(sorted(found.tolist()))])
        assert fits(sample, [Fraction(1, 10)] * 10)
        assert not fits(np.zeros(2000, np.int64), [Fraction(1, 10)] * 10)

    @pytest.mark.statistical
    def test_people_are_sampled_by_one_coin_each_and_not_by_their_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = np.repeat(np.arange(20), np.arange(1, 21))  # from one to twenty rows
        assert right_coins(_members(ids), 0.1)
        for wrong in (lambda _: np.arange(len(ids)), lambda _: 2 * ids + np.arange(len(ids)) % 2):
            monkeypatch.setattr(
                batches, "unit_codes", lambda column, wrong=wrong: np.unique(wrong(column), return_inverse=True)[1]
            )
            assert not right_coins(_members(ids, 300), 0.1)

    def test_no_person_is_in_two_records_of_a_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = np.repeat(np.arange(6), 9)
        assert _most_records(ids) == 1
        split = np.unique(2 * ids + np.arange(len(ids)) % 2, return_inverse=True)[1]
        monkeypatch.setattr(batches, "unit_codes", lambda _: split)
        assert _most_records(ids) == 2
        monkeypatch.setattr(batches, "unit_codes", lambda _: np.arange(len(ids)))
        assert _most_records(ids) == 9


def _drawn(ids: Any, rate: Fraction, steps: int) -> Any:
    """Return who is in which record of which step, by the sampler and the rows of a real run."""
    held = PeopleRows(read_rows((torch.from_numpy(ids), torch.from_numpy(ids))), whom(ids, 3))
    plan = plan_training(
        noise_multiplier=1, delta="1e-9", public_rows=rate.denominator, batch_size=rate.numerator, steps=1, clip=1,
        parameters=3, physical_batch=4,
    )  # fmt: skip
    for _ in range(steps):
        step = []
        for piece in PoissonSampler(plan).draw(held.size):
            (owner, _), inside = held.batch(*piece)
            filled = torch.from_numpy(inside).reshape(4, -1)
            step += [set(one[there].tolist()) for one, there in zip(owner.reshape(4, -1), filled, strict=True)]
        yield [record for record in step if record]


def _members(ids: Any, steps: int = 1000) -> Any:
    found = np.zeros((steps, 20), bool)
    for row, step in zip(found, _drawn(ids, Fraction(1, 10), steps), strict=True):
        row[[person for record in step for person in record]] = True
    return found


def _most_records(ids: Any) -> int:
    step = next(_drawn(ids, Fraction(1), 1))
    assert all(len(record) == 1 for record in step)  # Nobody shares a record.
    return max(Counter(person for record in step for person in record).values())


class TestIds:
    @pytest.mark.parametrize(
        "ids",
        [
            [1, 2, 1, None, 2, 2],
            ["a", "b", "a", None, "b", "b"],
            [7, 8.0, 7.0, None, 8, 8],
            np.ma.array([1, 2, 1, 9, 2, 2], mask=[0, 0, 0, 1, 0, 0]),
            pd.Series([1, 2, 1, pd.NA, 2, 2], dtype="Int64"),
            pd.Series(["a", "b", "a", None, "b", "b"], dtype="category"),
            pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-01", None, "2026-01-02", "2026-01-02"])),
            {"hospital": [1, 1, 1, 1, 2, 2], "patient": [3, 4, 3, None, 3, 3]},
        ],
    )
    def test_ids_of_all_kinds_tell_the_same_people_apart_and_rows_without_one_are_nobodys(self, ids: Any) -> None:
        held = PeopleRows(read_rows((torch.arange(6), torch.arange(6))), whom(ids, 3))
        found = []
        for person in range(held.size):
            (rows_of, _), inside = held.batch(np.array([person]), np.array([True]))
            found.append(sorted(rows_of[inside].tolist()))
        assert sorted(found) == ([[0, 2], [1], [4, 5]] if isinstance(ids, dict) else [[0, 2], [1, 4, 5]])

    def test_ids_are_not_read_before_the_run_is_paid_for(self) -> None:
        class Refusing:
            def charge(self, event: Any, *, relation: Any, purpose: str, unit: str, idempotency_key: Any) -> None:
                seen.append(unit)
                raise Refused("nothing is left")

        class Unread(list[Any]):
            def __iter__(self) -> Any:
                raise AssertionError("an id was read")

            __getitem__ = __iter__

        seen: list[str] = []
        with pytest.raises(Refused, match="nothing is left"):
            people(unit={"patient": Unread([1] * 40)}, session=Refusing())
        assert seen == ["patient"]

    def test_ids_that_do_not_fit_are_refused_without_a_value(self) -> None:
        for wrong, match in (
            ({"unit": IDS[:-1]}, "an id of a unit for each row"),
            ({"unit": {"hospital": IDS, "patient": IDS[1:]}}, "an id of a unit for each row"),
            ({"unit": IDS[:, None]}, "one-dimensional"),
            ({"unit": IDS.float()}, "real numbers"),
            ({"unit": 7}, "not int"),
            ({"unit": {"row": IDS}}, "none of them"),
            ({"max_rows": None}, "with unit=ids say max_rows"),
            ({"max_rows": 0}, "max_rows"),
            ({"public_units": None}, "say public_units"),
            ({"public_rows": 40}, "instead of public_rows say public_units"),
            ({"batch_size": 8}, "must not exceed public_units"),
            ({"delta": Fraction(1, 7)}, "below 1 / public_units"),
        ):
            with pytest.raises(InvalidParameter, match=match):
                people(**wrong)
        for more in ({"max_rows": 3}, {"public_units": 7}):
            with pytest.raises(InvalidParameter, match="unit=ids"):
                run(**more)
        with pytest.raises(InvalidParameter, match="say public_rows"):
            run(public_rows=None)

    def test_models_and_losses_that_mix_rows_are_refused_as_for_rows(self) -> None:
        with pytest.raises(Refused, match="GroupNorm"):
            people(model=nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)))
        with pytest.raises(Refused, match="reduction"):
            people(loss=nn.CrossEntropyLoss())
        with pytest.raises(Refused, match="mixed"):
            people(loss=lambda said, y: LOSS(said, y) - LOSS(said, y).mean())


class TestRuns:
    def test_a_step_moves_the_weights_by_the_mean_over_a_persons_rows(self) -> None:
        x, y = rows(40)
        model = model_of()
        gradients = row_gradients(model, x, y, LOSS)
        person = {key: torch.stack([value[who == IDS].mean(0) for who in range(7)]) for key, value in gradients.items()}
        _, total = clipped(model, person, Flat("0.1"))
        before = flat(model)
        private = silenced(people(model=model, max_rows=6, steps=1, clip="0.1")).fit(progress=False)
        assert torch.allclose(flat(private.model), before - total.float() / 7, atol=1e-5)

    def test_a_loop_does_what_fit_does_and_batches_have_rows_of_people(self) -> None:
        one = silenced(people(max_rows=6)).fit(progress=False)
        other = silenced(people(max_rows=6))
        for x, y in other.batches():
            assert len(x) == len(y) == other.plan.physical_batch * 6
            other.step(LOSS(other.model(x), y))
        assert torch.allclose(flat(one.model), flat(other.model), atol=1e-6)

    def test_the_size_of_physical_batches_changes_nothing(self) -> None:
        found = [flat(silenced(people(max_rows=6, physical_batch=size)).fit(progress=False).model) for size in (4, 16)]
        assert torch.allclose(*found, atol=1e-4)  # Each batch is rounded to the grid.

    def test_steps_epochs_and_the_price_are_counted_in_people(self) -> None:
        plan = people(public_units=70, batch_size=7, steps=None, epochs=2).plan
        alike = run(public_rows=70, batch_size=7, steps=None, epochs=2).plan
        assert (plan.steps, plan.sampling_probability, plan.divisor) == (20, Fraction(1, 10), 7)
        assert plan.event == alike.event

    def test_items_views_and_clips_that_adapt_work_for_people(self) -> None:
        x, y = rows(40)
        items = [(x[at], int(y[at])) if at % 9 else (x[at, :2], 0) for at in range(40)]  # some of another shape
        people(data=items, example=(torch.zeros(4), 0), max_rows=4).fit(progress=False)
        people(augment=lambda row: (row, row), max_rows=4).fit(progress=False)
        adapting = people(clip=AdaptiveClip("0.5", count_noise=2), max_rows=4)
        assert adapting.fit(progress=False).finished

    def test_nobody_at_all_is_a_data_set_too(self) -> None:
        assert people(unit=[None] * 40).fit(progress=False).finished

    @pytest.mark.parametrize("each", [1, 2, 3, 20, 50, 1000])
    def test_physical_batches_are_whole_multiples_of_32_rows_and_about_320(self, each: int) -> None:
        for size in (1, 30, 256, 4000):
            slots = slots_for(None, size, each)
            assert slots * each % 32 == 0
            assert slots * each <= max(320, 32 * each)
        assert slots_for(None, 256) == slots_for(None, 256, 1) == 288


class TestPromises:
    def test_plan_report_and_weights_say_a_person_with_all_their_rows(self, tmp_path: Any) -> None:
        private = people(unit=pd.Series(IDS.numpy(), name="patient"))
        assert "every patient, with at most 3 rows chosen afresh, takes part" in private.plan.describe()
        assert "for adding or removing one patient with all their rows" in str(private.report)
        assert f"{private.plan.physical_batch} times 3 rows at a time" in str(private.report)
        promise = private.fit(progress=False).export(tmp_path / "weights")
        assert promise.unit == "patient"
        assert "one patient with all their rows" in str(promise)
        assert dp.learn.torch.load_weights(model_of(), tmp_path / "weights").unit == "patient"

    def test_plans_of_people_are_stored_and_those_of_rows_as_they_always_were(self) -> None:
        plan = people().plan
        assert (plan.unit, plan.max_rows) == ("person", 3)
        assert TrainingPlan.from_json(plan.to_json()) == plan
        assert "unit" not in run().plan.to_json()
        stream = _stream().plan
        assert StreamPlan.from_json(stream.to_json()) == stream
        with pytest.raises(InvalidParameter, match="together"):
            plan_training(
                noise_multiplier=1, delta="1e-6", public_rows=10, batch_size=1, steps=1, clip=1, parameters=3,
                physical_batch=4, max_rows=2,
            )  # fmt: skip

    def test_a_folder_goes_on_with_the_same_people_and_limits_only(self, tmp_path: Any) -> None:
        chosen = {"checkpoint": tmp_path / "run", "checkpoint_every": 1}
        with people(**chosen) as first:
            for number, batch in enumerate(first.batches()):
                first.step(first.losses(batch))
                if number == 1:
                    break
        for other in ({"max_rows": 4}, {"unit": {"household": IDS}}):
            with pytest.raises(Refused):
                people(**chosen, **other)
        with pytest.raises(Refused):
            run(batch_size=7, public_rows=7, **chosen)
        again = people(**chosen)
        assert again.spent.steps == 2
        assert again.fit(progress=False).steps_taken == 3

    def test_a_payer_is_charged_for_people_and_by_their_name_only(self, tmp_path: Any) -> None:
        account = Account("stays", budget=Budget(epsilon=60, delta=1e-3), unit="patient", relation=Relation.ADD_REMOVE)
        with Ledger.open("memory", account) as ledger:
            for wrong in (
                {"unit": {"visit": IDS}},
                {"unit": "row", "max_rows": None, "public_units": None, "public_rows": 40},
            ):
                with pytest.raises(dp.DiscreetError, match="protects"):
                    people(session=ledger, **wrong)
            with pytest.raises(Refused, match="name their column"):
                people(session=ledger)
            before = ledger.left()
            folder = {"checkpoint": tmp_path / "run", "session": ledger, "unit": {"patient": IDS}}
            people(**folder).fit(progress=False).close()
            after = ledger.left()
            assert after != before
            people(**folder).close()
            assert ledger.left() == after
            people(session=ledger, unit=pd.Series(IDS.numpy(), name="patient")).close()
            assert ledger.left() != after

    def test_weights_that_a_run_of_rows_has_trained_are_refused_before_anything_is_charged(self, tmp_path: Any) -> None:
        class Counting:
            charged = 0

            def charge(self, event: Any, *, relation: Any, purpose: str, unit: str, idempotency_key: Any) -> None:
                self.charged += 1

        model, payer = model_of(), Counting()
        run(model=model).fit(progress=False)
        with pytest.raises(Refused, match="protects somebody else"):
            people(model=model, session=payer, unit={"patient": IDS})
        assert not payer.charged
        people(model=(other := model_of())).fit(progress=False)
        assert "by 2 runs" in str(people(model=other).fit(progress=False).export(tmp_path / "weights"))

    def test_a_stream_has_turns_of_people(self, tmp_path: Any) -> None:
        private = _stream().fit(progress=False)
        assert "every person, with at most 3 rows chosen afresh, has its turn" in private.plan.describe()
        assert "one person with all their rows" in str(private.export(tmp_path / "weights"))


def _stream() -> Any:
    model = model_of()
    return make_private_stream(
        model, torch.optim.SGD(model.parameters(), lr=1.0), rows(40), loss=LOSS, noise_multiplier=1, delta=1e-5,
        unit=IDS, max_rows=3, public_units=8, batch_size=2, epochs=2,
    )  # fmt: skip
