"""Synthetic tables and pictures: every method, tiny."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import discreet as dp

from .flow import Flow, Said
from .made_up import VISITS

__all__ = ["DOMAIN", "flows"]

_S = dp.synth
DOMAIN = _S.Domain(
    {
        "age": _S.Numeric(0, 100, whole=True, bins=10),
        "clinic": _S.Category(["Harbour", "Hillside", "Market", "Old Mill", "Station"]),
        "satisfied": _S.Category(["yes", "no"], null=True),
    }
)
_BOTH: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "progress": False}
_PICTURES = _S.Images(4, 4, classes=[0, 1])


def flows() -> Iterator[Flow]:
    """Every method; floats are rounded, what is drawn from them is not made of them."""
    torch.set_num_threads(1)
    for method in ("independent", "mst", "aim", "auto"):
        yield Flow(f"table {method}", lambda method=method: _table(method), rounded=True)
    yield Flow(
        "table replace-one", lambda: _table("mst", relation=dp.Relation.REPLACE_ONE, public_rows=2000), rounded=True
    )
    yield Flow("table of a unit", lambda: _table("mst", unit="patient", rows_per_unit=2), rounded=True)
    yield Flow("table of found columns", lambda: _found(), rounded=True)
    yield Flow("plan", lambda: _planned())
    yield Flow("merf table", lambda: _merf(), rounded=True)
    for name, method in _image_methods().items():
        yield Flow(name, lambda method=method: _images(method()), rounded=True)


def _table(method: Any, **how: Any) -> Said:
    return _drawn(dp.synthesize(VISITS, method, domain=DOMAIN, **_BOTH, **how))


def _drawn(model: Any) -> Said:
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.safetensors")
        again = _S.load(Path(folder) / "model.safetensors")
        same = again.promise == model.promise
        model.sample(200).to_csv(Path(folder) / "made.csv")
        made = (Path(folder) / "made.csv").read_text("utf-8")
    promise = model.promise
    return Said([made, same, promise.event, promise.epsilon], str(promise))


def _found() -> Said:
    domain = {"age": _S.Numeric(0, 120, whole=True, bins="quantiles"), "clinic": _S.Category.unlisted(most=20)}
    model = dp.synthesize(VISITS, "mst", domain=domain, **{**_BOTH, "epsilon": 4})
    said = _drawn(model)
    return Said([said.numbers, model.domain.columns["clinic"].values], said.texts)


def _planned() -> Said:
    plan = _S.plan(VISITS, "mst", domain=DOMAIN, epsilon=1, delta="1e-6")
    return Said([plan.promise.event, plan.promise.epsilon], [str(plan), plan.description])


def _merf() -> Said:
    from discreet.synth.merf import MerfTables

    return _table(MerfTables(waves=40, steps=20), label="satisfied")


def _image_methods() -> dict[str, Any]:
    from discreet.synth.diffusion import Diffusion, Linear, WarmUp
    from discreet.synth.merf import HermiteImages, MerfImages

    return {
        "merf images": lambda: MerfImages(waves=40, steps=10, hidden=16, codes=4),
        "hermite images": lambda: HermiteImages(order=3, pairs=5, pair_order=2, steps=10, hidden=16, codes=4),
        "diffusion": lambda: Diffusion(network=Linear(hidden=8), steps=2, warm_up=WarmUp(places=4)),
    }


def _images(method: Any) -> Said:
    numbers = np.arange(400)
    classes = numbers % 2
    stripes = np.where(classes[:, None, None], np.eye(4), np.eye(4)[::-1]) * 200
    pictures = (stripes + numbers[:, None, None] % 50).astype(np.uint8)
    how = {**_BOTH, "epsilon": 8, "public_rows": 400}
    model = dp.synthesize((pictures, classes), method, domain=_PICTURES, **how)
    drawn = model.sample(40)
    coarse = drawn.images.astype(int) // 4  # A float that is about halfway may be rounded either way.
    return Said([coarse, drawn.labels, model.promise.event, model.promise.epsilon], str(model.promise))
