"""Files of models that somebody changed: refused in our words, before memory is taken or hours pass."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from discreet.errors import InvalidParameter, Refused
from discreet.privacy import Gaussian, Relation
from discreet.synth.diffusion import Diffusion, Heun, Linear
from discreet.synth.diffusion.denoiser import build
from discreet.synth.diffusion.diffusion_model import DiffusionModel, Start
from discreet.synth.diffusion.warm_up import PictureCoordinates
from discreet.synth.domain.domain_file import domain_document
from discreet.synth.domain.images import Images
from discreet.synth.model_files import load
from discreet.synth.promise import Promise
from discreet.synth.tables.table_model import Grouping

DOMAIN = Images(2, 2, classes=(0, 1))
PROMISE = Promise.of(
    Gaussian(Fraction(5)),
    method="diffusion",
    relation=Relation.ADD_REMOVE,
    delta=Fraction(1, 10**5),
    unit="row",
    rows_per_unit=1,
)


def saved() -> tuple[dict[str, Any], dict[str, Any]]:
    around = PictureCoordinates.guessed(4, 2, 0.5)
    weights = {n: w.numpy() for n, w in build(Linear(hidden=3), DOMAIN, around).network.state_dict().items()}
    model = DiffusionModel(
        domain=DOMAIN,
        network=Linear(hidden=3),
        sampler=Heun(steps=2),
        start=Start(around, np.full(2, 0.5), 7),
        weights=weights,
    )
    said, arrays = model.document()
    head = {"version": 1, "promise": PROMISE.document(), "domain": domain_document(DOMAIN), "model": said}
    return json.loads(json.dumps(head)), arrays


def written(file: Path, head: dict[str, Any], arrays: dict[str, Any]) -> Path:
    file.write_bytes(save(arrays, {"discreet": json.dumps(head).replace("Infinity", "1e999")}))
    return file


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("network", {"hidden": 16_000, "blocks": 60}),  # 120 GB, if it were built
        ("network", {"hidden": 10**12}),
        ("network", {"blocks": 10**9}),
        ("network", {"kind": "convolutional", "channels": 16_000, "factors": [64] * 8, "blocks": 60}),
        ("sampler", {"steps": 10**9}),
    ],
)
def test_networks_and_ways_without_end_are_refused_at_once(part: str, change: Any, tmp_path: Path) -> None:
    head, arrays = saved()
    assert load(written(tmp_path / "good.safetensors", head, arrays)).sample(3).images.shape == (3, 2, 2)
    head["model"][part] = change if "kind" in change else head["model"][part] | change
    with pytest.raises(Refused, match="holds no model"):
        load(written(tmp_path / "bad.safetensors", head, arrays))


def test_groups_that_no_code_has_are_refused_before_they_are_listed() -> None:
    """The number of a group in a file can be two thousand million."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidParameter, match="without gaps"):
            Grouping(np.array([0, 2_000_000], np.int32), np.ones(2))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_numbers_that_turn_infinite_are_refused(tmp_path: Path) -> None:
    head, arrays = saved()
    with pytest.raises(Refused, match="holds no model"):
        load(written(tmp_path / "axes.safetensors", head, arrays | {"axes": np.full((4, 4), 1e300)}))
    head["promise"]["epsilon"] = np.inf
    with pytest.raises(Refused, match="holds no model"):
        load(written(tmp_path / "promise.safetensors", head, arrays))


def test_no_terminal_obeys_the_name_of_a_unit() -> None:
    assert "\x1b" not in str(replace(PROMISE, unit="\x1b[2Jpatient", rows_per_unit=2))


def test_nobody_pays_for_a_network_that_is_never_built() -> None:
    with pytest.raises(InvalidParameter, match="hidden must be at most"):
        Diffusion(network=Linear(hidden=10**9))
