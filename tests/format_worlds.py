"""What vectors of stored formats are made with, and compared with: tables, a session, events, plans of training."""

from __future__ import annotations

from dataclasses import fields
from datetime import date, datetime
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

import discreet as dp
from discreet import privacy
from discreet.cli.schemas import ANSWERS, schema_of
from discreet.lab.attacks.differencing import Differencing, Isolation
from discreet.lab.attacks.linkage import Linkage
from discreet.lab.attacks.scoreboard import ItemCounts, Scoreboard, ScoreboardTrial
from discreet.lab.attacks.uniqueness_search import LoneCells
from discreet.lab.audit.self_audit.audit_run import Row
from discreet.lab.audit.training_audit import TrainingAudit
from discreet.learn.torch import PrivateTraining, make_private
from discreet.learn.torch.layers.layer_report import Layer
from discreet.learn.training import AdaptiveClip, Automatic, Flat, PerLayer, TrainingPlan
from discreet.learn.training.stream_plan import StreamPlan
from discreet.ledger import Account, Ledger, Quota
from discreet.ledger.charge_record import ReadClaim
from discreet.query import Session, Unit, between, boolean, categories, policy_schema, public, text
from discreet.release import release_plan_schema
from discreet.synth import Category, Domain, Images, Numeric

FORMATS = Path(__file__).parent / "vectors" / "formats"
ASKED = {
    "by_city": "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY city",
    "spent": "SELECT COUNT(*) AS orders, SUM(amount) AS amount FROM orders",
}


class Level(IntEnum):
    """Members of a domain that somebody declares by classes of their own."""

    LOW = 1
    HIGH = 2


class Hand(StrEnum):
    """The same with texts."""

    LEFT = "left"
    RIGHT = "right"


COLUMNS = {
    "people": {
        "age": between(0, 100),
        "income": between(0.0, 100_000.0, step="0.01"),
        "city": categories(["Bern", "Basel", "Chur"]),
        "member": boolean(),
        "born": between(date(1990, 1, 1), date(2019, 12, 31)),
        "name": text(),
        "country": text(),
        "score": between(-5, 5, missing=0),
        "joined": between(date(2020, 1, 1), date(2021, 12, 31), format="%d/%m/%Y"),
        "level": categories(Level),
        "hand": categories(Hand),
    },
    "orders": {
        "amount": between(0, 500),
        "placed": between(datetime(2020, 1, 1), datetime(2021, 12, 31)),
        "country": text(),
        "discount": between(0.0, 0.1),
    },
}


def tables(rows: int = 40) -> dict[str, Any]:
    """Small tables about nobody, the same every time."""
    number = list(range(rows))
    return {
        "people": pa.table(
            {
                "uid": number,
                "age": [n * 7 % 90 for n in number],
                "income": [n * 997.25 for n in number],
                "city": [("Bern", "Basel", "Chur")[n % 3] for n in number],
                "member": [n % 2 == 0 for n in number],
                "born": [date(1990 + n % 29, 1 + n % 12, 1 + n % 28) for n in number],
                "name": [f"n{n % 5}" for n in number],
                "country": [("CH", "DE", "FR")[n % 3] for n in number],
                "weight": [n * 1.5 for n in number],
                "score": [n % 11 - 5 for n in number],
                "joined": [f"{1 + n % 28:02}/{1 + n % 12:02}/2020" for n in number],
                "level": [1 + n % 2 for n in number],
                "hand": [("left", "right")[n % 2] for n in number],
            }
        ),
        "orders": pa.table(
            {
                "uid": [n % 20 for n in number],
                "amount": [n * 13 % 500 for n in number],
                "placed": [datetime(2020 + n % 2, 1 + n % 12, 1, n % 24) for n in number],
                "country": [("CH", "DE")[n % 2] for n in number],
                "discount": [n % 10 / 100 for n in number],
            }
        ),
        "countries": public(pa.table({"code": ["CH", "DE", "FR"], "size": [3, 9, 7]})),
    }


def session(ledger: str | Path = "memory", *, unit: str = "uid", version: str | None = "2026-01") -> Session:
    """A session on these tables; where rows are protected, on one of them."""
    given, by_row = tables(), unit == "row"
    listed = {name: given[name] for name in (("people", "countries") if by_row else given)}
    return Session(
        listed,
        unit=Unit("row") if by_row else Unit(unit, 3, 2),
        budget=dp.Budget(100, "1e-4"),
        ledger=ledger,
        dataset="formats",
        principal="ana",
        columns={name: COLUMNS[name] for name in listed if name in COLUMNS},
        version=version,
    )


def events() -> list[privacy.Event]:
    """One of each kind, and some in each other."""
    gaussian = privacy.Gaussian(variance="9/4", squared_sensitivity=2)
    sampled = privacy.PoissonSampled(privacy.Gaussian("1.1"), "0.01")
    return [
        privacy.PureDP("1/3"),
        privacy.ApproxDP("0.5", "1e-6"),
        privacy.ZCDP("0.125"),
        privacy.GDP("1.5"),
        privacy.GDP(mu_squared=2),
        privacy.Laplace("2.5"),
        privacy.DiscreteLaplace("7/2", 3),
        gaussian,
        privacy.DiscreteGaussian(sigma=3, sensitivity=2, dimension=4),
        privacy.RandomizedResponse("1.25", 5),
        privacy.BoundedRange("0.75"),
        sampled,
        privacy.SampledWithoutReplacement(privacy.Laplace(2), 10, 1000),
        privacy.Repeated(sampled, 900),
        privacy.Composed([gaussian, privacy.PureDP(1), privacy.Repeated(gaussian, 2)]),
        privacy.Parallel([privacy.Laplace(1), privacy.Laplace(2)]),
        privacy.Grouped(privacy.Composed([gaussian, privacy.BoundedRange(1)]), 3),
        privacy.RandomlyStopped([gaussian, privacy.PureDP(1)], 1, "1/50"),
    ]


def training_plans() -> list[TrainingPlan | StreamPlan]:
    """A plan with each rule of clipping, and one of a stream."""
    sizes: dict[str, Any] = {"parameters": 42, "physical_batch": 32, "slack": Fraction(1, 4096), "delta": "1e-6"}
    drawn: dict[str, Any] = {"sampling_probability": "1/64", "steps": 90, "noise_multiplier": "1.25", "divisor": 32}
    rules = (
        Flat("0.5"),
        Automatic(1, "0.02"),
        PerLayer(2),
        AdaptiveClip("0.1"),
        AdaptiveClip(1, "0.9", "0.1", count_noise=8),
    )
    turns: dict[str, Any] = {"steps": 80, "period": 20, "band": 4, "noise_multiplier": "0.75", "divisor": "5/2"}
    streams = [StreamPlan(clip=rule, **turns, **sizes) for rule in rules[:3]]
    return [*(TrainingPlan(clip=rule, **drawn, **sizes) for rule in rules), *streams]


def rows_to_learn(count: int = 400) -> tuple[Domain, dict[str, list[Any]]]:
    """A table to learn, and what is declared of it."""
    number = list(range(count))
    domain = Domain(
        {
            "colour": Category(["red", "green", "blue"], null=True),
            "size": Numeric(0, 9, whole=True, bins=5),
            "sold": Category([True, False]),
            "day": Numeric.dates(date(2026, 1, 1), date(2026, 1, 31)),
        },
        impossible=[{"colour": "red", "sold": False}],
    )
    return domain, {
        "colour": [("red", "green", "blue", None)[n % 4] for n in number],
        "size": [n * 7 % 10 for n in number],
        "sold": [n % 4 == 0 or n % 3 == 0 for n in number],
        "day": [date(2026, 1, 1 + n % 31) for n in number],
    }


def image_rows(count: int = 200) -> tuple[Images, tuple[Any, Any]]:
    """Pictures that are brighter on the side that their label names."""
    codes = np.arange(count) % 2
    sides = np.tile([[1, 1, 0, 0], [0, 0, 1, 1]], (1, 4))[codes]
    spots = np.arange(count * 16).reshape(count, 16) * 37 % 60
    return Images(4, 4, classes=("left", "right")), (
        (150 * sides + spots).astype(np.uint8).reshape(count, 4, 4),
        np.array(["left", "right"])[codes],
    )


def methods() -> dict[str, tuple[str, Any]]:
    """Every kind of model that is saved, small."""
    from discreet.synth import diffusion, merf

    quick: dict[str, Any] = {"steps": 2, "batch_size": 32, "physical_batch": 32}
    return {
        "independent": ("table", "independent"),
        "mst": ("table", "mst"),
        "aim": ("table", "aim"),
        "merf_table": ("table", merf.MerfTables(waves=8, steps=2, hidden=4, codes=2)),
        "merf_images": ("images", merf.MerfImages(waves=8, steps=2, hidden=4, codes=2)),
        "hermite_images": ("images", merf.HermiteImages(steps=2, hidden=4, codes=2)),
        "diffusion_linear": (
            "images",
            diffusion.Diffusion(network=diffusion.Linear(hidden=4), warm_up=diffusion.WarmUp(places=3), **quick),
        ),
        "diffusion_convolutional": (
            "images",
            diffusion.Diffusion(
                network=diffusion.Convolutional(channels=8, factors=(1, 1), blocks=1),
                sampler=diffusion.Ddim(steps=3),
                warm_up=None,
                **quick,
            ),
        ),
    }


class Mixed(nn.Module):
    """Layers that a run replaces by its own, which keep torch's names for their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.grow = nn.LSTM(4, 4, batch_first=True)
        self.look = nn.MultiheadAttention(4, 2, batch_first=True)
        self.end = nn.Linear(4, 2)
        with torch.no_grad():
            for weight in self.parameters():
                values = torch.arange(weight.numel(), dtype=torch.float64).add_(0.5).mul_(0.7548776662).frac_()
                weight.copy_((values - 0.5).reshape(weight.shape))

    def forward(self, x: Tensor) -> Tensor:
        grown, _ = self.grow(x)
        looked, _ = self.look(grown, grown, grown, need_weights=False)
        told: Tensor = self.end(looked.mean(1))
        return told


def training_run(model: nn.Module, **chosen: Any) -> PrivateTraining:
    """A run of ten steps with a part of everything that a checkpoint holds."""
    values = torch.arange(40 * 12, dtype=torch.float64).mul_(0.61803398875).frac_()
    x = (2 * values.reshape(40, 3, 4) - 1).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return make_private(
        model,
        optimizer,
        (x, (x.sum((1, 2)) > 0).long()),
        loss=nn.CrossEntropyLoss(reduction="none"),
        noise_multiplier=1,
        delta="1e-5",
        public_rows=40,
        batch_size=20,
        steps=10,
        clip=AdaptiveClip(1, count_noise=8),
        physical_batch=32,
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 3),
        ema=0.9,
        name="formats",
        **chosen,
    )


PEOPLE = Account("people", unit="row", relation=privacy.Relation.ADD_REMOVE, budget=dp.Budget(500, "1e-3"))


def schema_names() -> dict[str, Any]:
    """Titles and names of definitions in the schemas that are published."""
    made = {"policy": policy_schema(), "release-plan": release_plan_schema()}
    made |= {f"cli {name}": schema_of(name) for name in ANSWERS}
    return {
        name: {
            "title": schema["title"],
            "$defs": {key: part.get("title") for key, part in schema.get("$defs", {}).items()},
        }
        for name, schema in made.items()
    }


def ledger_entries() -> list[dict[str, Any]]:
    """Every kind of entry that a ledger writes but the last resort, without what differs from run to run."""
    add, fixed = privacy.Relation.ADD_REMOVE, {"relation": privacy.Relation.ADD_REMOVE, "principal": "ann"}
    quota = Quota(dp.Budget(50, "1e-4"), principal="*")
    with Ledger.open("memory", PEOPLE, quotas=(quota,)) as book:
        charge = book.charge(
            privacy.Laplace(10),
            purpose="a count",
            project="health",
            idempotency_key="k1",
            plan="p1",
            version="v1",
            **fixed,
        )
        book.store(charge, lambda: "an answer")
        book.record_bundle(charge, {"manifest": "00", "plan": "11"})
        series = book.charge(privacy.Gaussian(4), purpose="a series", idempotency_key="k2", parts=2, **fixed)
        book.store_part(series, 0, lambda: "a part")
        claim = book.claim(privacy.PureDP("0.1"), purpose="read", plan="p2", version="v1", seconds=60, **fixed)
        assert isinstance(claim, ReadClaim)
        book.store(claim, lambda: "read")
        lost = book.claim(privacy.PureDP("0.1"), purpose="lost", plan="p3", version="v1", seconds=60, **fixed)
        assert isinstance(lost, ReadClaim)
        book.fail(lost)
        done = book.claim(privacy.PureDP("0.1"), purpose="done", seconds=60, relation=add, principal="ben")
        assert isinstance(done, ReadClaim)
        book.finish(done)
        book.reopen("ann", reason="mended", principal="head")
        book.raise_budget(dp.Budget(600, "1e-3"), reason="more", principal="head")
        book.set_quotas((quota, Quota(dp.Budget(9), project="health", window="day")), reason="fair", principal="head")
        entries = book.history()
    varying = {"process": "", "until": 0}
    return [
        {"index": one.index, "kind": one.kind, "dataset": one.dataset}
        | {name: varying.get(name, value) for name, value in one.content.items()}
        for one in entries
    ]


def report_keys() -> dict[str, list[str]]:
    """The keys of reports in JSON that are the fields of a class: nobody reads them back, but scripts may."""
    reports = {
        "self audit, row": Row,
        "training audit": TrainingAudit,
        "layer": Layer,
        "lone cells": LoneCells,
        "linkage": Linkage,
        "differencing": Differencing,
        "differencing, isolation": Isolation,
        "scoreboard": Scoreboard,
        "scoreboard, trial": ScoreboardTrial,
        "item counts": ItemCounts,
    }
    return {name: [field.name for field in fields(kind)] for name, kind in reports.items()}
