"""Reconstruction: too many counts that are too accurate give everybody away; the same code fails on private ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.lab.attacks import Decoder, gaussian_counts, marginal_reconstruction, reconstruction
from discreet.lab.attacks.marginal_reconstruction import (
    Marginals,
    PeopleBlock,
    block_of,
    certain,
    fitted,
    marginals,
    nearest,
)
from discreet.lab.attacks.subset_reconstruction import guessing_ceiling
from discreet.lab.attacks.success_rates import Success
from discreet.mechanisms import VectorGaussian
from discreet.privacy import Event, NotPrivate, PureDP, Relation

FALSE_ALARM = 1e-9
REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE


def coins(people: int) -> np.ndarray:
    return noise.bernoulli("1/2", people)


def noisy(queries: int, deviation: int) -> VectorGaussian:
    """Noise of one size on each count, whatever that costs."""
    return VectorGaussian(
        squared_sensitivity=Fraction(queries), variance=Fraction(deviation**2), dimension=queries, relation=REPLACE
    )


def ours(queries: int, level: str) -> VectorGaussian:
    return gaussian_counts(queries, squared_sensitivity=queries, epsilon=level, delta="1e-6", relation=REPLACE)


@dataclass(frozen=True)
class Claims:
    """Publishes by one mechanism, and claims what another one does."""

    inner: VectorGaussian
    event: Event
    relation: Relation

    def release(self, answer: list[int]) -> object:
        return self.inner.release(answer)


@dataclass(frozen=True)
class Liar:
    """Exact, but for every tenth answer, which is 1,000."""

    event: Event
    relation: Relation = REPLACE

    def release(self, answer: list[int]) -> object:
        return SimpleNamespace(value=[1000 if place % 10 == 0 else value for place, value in enumerate(answer)])


class TestSubsets:
    @pytest.mark.parametrize("decoder", list(Decoder))
    def test_exact_counts_give_everybody_away(self, decoder):
        found = reconstruction(coins(40), queries=200, decoder=decoder).value
        assert found.right == Success(40, 40)
        assert found.ceiling is None
        assert found.expected == 1

    def test_the_decoder_is_chosen_by_size(self):
        assert reconstruction(coins(20), queries=60).value.decoder is Decoder.LINEAR_PROGRAM
        assert reconstruction(coins(100), queries=700).value.decoder is Decoder.LEAST_SQUARES
        with pytest.raises(InvalidParameter, match="least squares"):
            reconstruction(coins(1000), queries=1000, decoder=Decoder.LINEAR_PROGRAM)

    @pytest.mark.statistical
    def test_small_noise_falls_and_the_share_agrees_with_the_formula(self):
        for deviation in (4, 40):
            found = reconstruction(coins(200), queries=3000, mechanism=noisy(3000, deviation)).value
            low, high = found.right.interval(FALSE_ALARM)
            assert found.expected is not None
            assert low - 0.02 < found.expected < high + 0.02
            assert (low > 0.7) == (deviation == 4)

    def test_a_linear_program_bears_answers_that_are_wrong_altogether(self):
        secrets, liar = coins(40), Liar(PureDP(1))
        by_program = reconstruction(secrets, queries=400, mechanism=liar, decoder=Decoder.LINEAR_PROGRAM).value
        by_squares = reconstruction(secrets, queries=400, mechanism=liar, decoder=Decoder.LEAST_SQUARES).value
        assert by_program.right == Success(40, 40)
        assert by_squares.right.hits < 40

    @pytest.mark.statistical
    @pytest.mark.parametrize("level", ["0.1", "1", "10"])
    def test_reconstruction_stays_below_the_ceiling_of_a_private_release(self, level):
        """One person of each of many worlds, so that guesses are independent."""
        hits = []
        mechanism = ours(60, level)
        for _ in range(200):
            secrets = coins(12)
            found = reconstruction(secrets, queries=60, mechanism=mechanism, decoder=Decoder.LEAST_SQUARES).value
            hits.append(found.guesses[0] == secrets[0])
        right = Success(sum(hits), len(hits))
        ceiling = guessing_ceiling(mechanism.event, Fraction(1, 2), relation=REPLACE)
        assert right.interval(FALSE_ALARM)[0] <= ceiling < 1

    @pytest.mark.statistical
    def test_reconstruction_beats_the_ceiling_where_noise_is_calibrated_to_one_query(self):
        """ε = 1 for each of 2,000 counts, said to be ε = 1 for all: the usual mistake."""
        one = gaussian_counts(2000, squared_sensitivity=1, epsilon=1, delta="1e-6", relation=REPLACE)
        found = reconstruction(coins(200), queries=2000, mechanism=one).value
        assert found.ceiling is not None
        assert found.right.interval(FALSE_ALARM)[0] > max(found.ceiling, 0.8)

    def test_the_ceiling_is_the_best_test_of_a_biased_coin(self):
        """For randomized response of odds e^ε the best guess follows the answer where it outweighs the bias."""
        event, keep = PureDP(1), float(np.exp(1) / (1 + np.exp(1)))
        assert guessing_ceiling(event, Fraction(1, 2), relation=REPLACE) == pytest.approx(keep)
        assert guessing_ceiling(event, Fraction(1, 10), relation=REPLACE) == pytest.approx(0.9)
        assert guessing_ceiling(event, Fraction(2, 5), relation=REPLACE) == pytest.approx(keep)
        assert guessing_ceiling(event, Fraction(0), relation=REPLACE) == 1

    @pytest.mark.soak
    def test_a_thousand_people_fall_to_twenty_thousand_questions(self):
        found = reconstruction(coins(1000), queries=20_000, mechanism=noisy(20_000, 10)).value
        assert found.right.share > 0.99
        private = reconstruction(coins(1000), queries=20_000, mechanism=ours(20_000, "1")).value
        assert private.right.share < 0.6

    def test_the_result_says_what_was_rebuilt_and_writes_it(self):
        result = reconstruction(coins(20), queries=100, mechanism=ours(100, "1"))
        assert isinstance(result, NotPrivate)
        assert "no attacker exceeds" in str(result)
        document = json.loads(result.value.to_json())
        assert document["people"] == 20
        assert "guesses" not in document
        assert result.value.plot().to_dict()["layer"]

    @pytest.mark.parametrize(
        ("secrets", "queries"), [([0, 2], 5), ([0], 5), ([0.0, 1.0], 5), ([0, 1], 0), ([[0], [1]], 5)]
    )
    def test_nonsense_is_refused(self, secrets, queries):
        with pytest.raises(InvalidParameter):
            reconstruction(secrets, queries=queries)


def plan(*shape: int, ways: int = 2) -> Marginals:
    names = tuple("abcdef"[: len(shape)])
    return Marginals(columns=names, values=tuple(tuple(map(str, range(size))) for size in shape), ways=ways)


def made_up(shape: tuple[int, ...], people: int, ways: int = 2) -> PeopleBlock:
    codes = [noise.uniform(size, people) for size in shape]
    return PeopleBlock(plan(*shape, ways=ways), np.ravel_multi_index(codes, shape).astype(np.int64))


class TestMarginals:
    def test_tables_count_everybody_once_each(self):
        block = made_up((2, 3, 4), 17)
        assert block.marginals.cells == 2 + 3 + 4 + 6 + 8 + 12 == len(marginals(block))
        assert marginals(block).sum() == 17 * len(block.marginals.tables) == 17 * 6
        codes = np.unravel_index(block.kinds, (2, 3, 4))
        assert marginals(block)[:2].tolist() == np.bincount(codes[0], minlength=2).tolist()

    def test_what_is_certain_agrees_with_all_blocks_that_fit(self):
        """All blocks of four people of eight kinds, by brute force."""
        shape = plan(2, 2, 2)
        for _ in range(5):
            block = made_up((2, 2, 2), 4)
            cells = marginals(block)
            fits = [
                np.bincount(kinds, minlength=8)
                for kinds in combinations_with_replacement(range(8), 4)
                if (marginals(PeopleBlock(shape, np.array(kinds))) == cells).all()
            ]
            found = fitted(shape, cells)
            assert any((found == one).all() for one in fits)
            assert certain(shape, cells, found).tolist() == np.min(fits, axis=0).tolist()

    def test_the_nearest_block_of_exact_tables_fits_them(self):
        block = made_up((2, 6, 4), 20)
        found = nearest(block.marginals, marginals(block).astype(float), people=20)
        assert (block.marginals.matrix() @ found == marginals(block)).all()

    def test_all_three_way_tables_of_a_small_block_give_every_row_away(self):
        block = made_up((2, 60, 8, 2), 24, ways=3)
        found = marginal_reconstruction(block, ()).value
        assert found.rebuilt == found.fresh == Success(24, 24)
        assert found.unique
        assert found.without.share < 0.5
        assert found.ceiling is None

    def test_one_column_at_a_time_leaves_rows_open(self):
        found = marginal_reconstruction(made_up((4, 4, 4), 24, ways=1), (), trials=1).value
        assert not found.unique
        assert found.rebuilt.hits < 24

    @pytest.mark.statistical
    @pytest.mark.parametrize("level", ["0.1", "1", "10"])
    def test_rows_rebuilt_stay_below_the_ceiling_of_a_private_release(self, level):
        block = made_up((2, 6, 4), 20)
        shape = block.marginals
        mechanism = gaussian_counts(
            shape.cells, squared_sensitivity=len(shape.tables), epsilon=level, delta="1e-6", relation=ADD
        )
        found = marginal_reconstruction(block, (), mechanism=mechanism, trials=40).value
        assert found.ceiling is not None
        assert found.fresh.interval(FALSE_ALARM)[0] <= found.ceiling
        assert found.certain is None

    @pytest.mark.long
    @pytest.mark.statistical
    def test_rows_rebuilt_beat_the_ceiling_where_there_is_far_too_little_noise(self):
        block = made_up((2, 10, 4), 24, ways=3)
        shape = block.marginals
        honest = gaussian_counts(
            shape.cells, squared_sensitivity=len(shape.tables), epsilon="0.1", delta="1e-6", relation=ADD
        )
        little = VectorGaussian(
            squared_sensitivity=Fraction(1), variance=Fraction(1, 100), dimension=shape.cells, relation=ADD
        )
        broken = Claims(little, honest.event, ADD)
        found = marginal_reconstruction(block, (), mechanism=broken, trials=48).value
        assert found.ceiling is not None
        assert found.fresh.interval(FALSE_ALARM)[0] > found.ceiling

    def test_a_block_is_read_from_a_table(self):
        table = pa.table({"sex": ["f", "m", None, "f"], "age": [30, 40, 30, 50], "town": ["a", "a", "a", "b"]})
        block = block_of(table, ["sex", "age"], ways=1, where="town = 'a'")
        assert block.marginals.values == (("", "f", "m"), ("30", "40", "50"))
        assert [block.marginals.described(int(kind)) for kind in block.kinds] == [
            {"sex": "f", "age": "30"},
            {"sex": "m", "age": "40"},
            {"sex": "", "age": "30"},
        ]
        with pytest.raises(InvalidParameter, match="not listed"):
            block_of(table, ["sex"], ways=1, values={"sex": ["f", "m"]})
        with pytest.raises(InvalidParameter, match="one to"):
            block_of(table, ["sex"], ways=1, where="town = 'c'")
        with pytest.raises(InvalidParameter, match="ways"):
            block_of(table, ["sex"], ways=2)

    def test_tables_that_contradict_each_other_are_refused(self):
        cells = marginals(made_up((2, 3), 5))
        cells[0] += 1
        with pytest.raises(Refused, match="no block"):
            fitted(plan(2, 3), cells)

    def test_the_result_says_what_was_rebuilt_and_writes_it(self):
        result = marginal_reconstruction(made_up((2, 3, 4), 8), (), examples=2)
        assert isinstance(result, NotPrivate)
        assert "rows rebuilt exactly" in str(result)
        assert len(result.value.examples) == 2
        document = json.loads(result.value.to_json())
        assert document["people"] == 8
        assert "examples" not in document
        assert result.value.plot().to_dict()["layer"]

    def test_a_claim_of_the_other_relation_is_refused(self):
        block = made_up((2, 3), 5)
        mechanism = gaussian_counts(11, squared_sensitivity=6, epsilon=1, delta="1e-6", relation=REPLACE)
        with pytest.raises(InvalidParameter, match="ADD_REMOVE"):
            marginal_reconstruction(block, (), mechanism=mechanism, trials=1)
