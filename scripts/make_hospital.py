"""Write the tables of the demo: a made-up county, its hospital stays without names, and its list of voters with names.

    python scripts/make_hospital.py src/discreet/data/hospital

Everybody is invented. The seed is fixed, so the same rows can be made again.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

SEED = 1997
PEOPLE, STAYS = 40_000, 19_200
YEAR = 2025

# Each region has districts; each district has two ZIP codes and a weight.
REGIONS = {
    "Coast": {"Anchor Bay": 9, "Gullhaven": 7, "Netherquay": 6, "Saltmarsh": 5},
    "Hills": {"Brackenfell": 5, "Cairnlow": 6, "Foxhollow": 5, "Upper Tarn": 4},
    "Plain": {"Barley Cross": 7, "Millbrook": 8, "Oxenford": 6, "Windrow": 5},
    "City": {"Castle Gate": 10, "Guildhall": 8, "Lantern Row": 7, "Weavers": 6},
}
AGE_GROUPS = ((18, "0-17"), (40, "18-39"), (60, "40-59"), (75, "60-74"), (95, "75-94"), (200, "95+"))

# Weights by age group, in their order; births are women's only.
DIAGNOSES = {
    "heart disease": (1, 3, 16, 26, 26, 24),
    "stroke": (0, 1, 5, 11, 15, 14),
    "cancer": (2, 5, 16, 19, 11, 6),
    "pneumonia": (22, 6, 7, 9, 14, 20),
    "fracture": (24, 14, 10, 9, 14, 16),
    "diabetes": (6, 5, 10, 9, 6, 4),
    "appendicitis": (24, 15, 7, 3, 1, 1),
    "birth": (0, 36, 2, 0, 0, 0),
    "depression": (12, 14, 12, 5, 3, 3),
    "alcohol dependence": (1, 9, 11, 5, 1, 1),
    "HIV": (1, 5, 4, 2, 0, 0),
    "dementia": (0, 0, 1, 5, 14, 18),
}
NIGHTS = {"birth": 2.5, "appendicitis": 3, "fracture": 6, "depression": 10, "dementia": 9, "stroke": 9, "cancer": 7}
PER_NIGHT = {"cancer": 1400, "heart disease": 1500, "stroke": 1300, "fracture": 1100}

WORDS = {
    "f": (
        "Ada Agnes Alba Alma Amina Anneke Anouk Beatrix Berit Bronwen Carys Cecily Clio Cora Delia Dorothea Edda "
        "Eira Elspeth Enid Esme Fenna Flora Freya Greta Gwen Hanne Hazel Ida Ines Iris Isolde Jette Juno Katla "
        "Keziah Leonie Lioba Lorna Mabel Maren Marit Mina Morag Nadia Nell Odile Olwen Petra Phoebe Rhona "
        "Rosalind Runa Sabra Senna Sibyl Solveig Tamsin Tilda Una Verity Wilma Yara Zelda"
    ),
    "m": (
        "Aldous Alwin Ansel Arlo Barnaby Basil Bertil Bram Caspar Cedric Cyril Dag Denzil Edgar Eino Emrys Ewan "
        "Felix Finlay Gareth Gideon Gustav Hamish Henrik Hugo Idris Ivo Jasper Joren Kasimir Kelvin Lars Leopold "
        "Linus Lorcan Magnus Malachi Matthis Milo Nestor Niall Noam Olaf Orson Oswin Percy Quentin Ragnar Reuben "
        "Rowan Rufus Silas Soren Stellan Tarek Tobias Torben Ulric Valentin Viggo Wendel Wolfram Yannick Zeno"
    ),
    "first": "Alder Ash Birch Black Bram Coal Crow Dun Elder Fern Fox Gold Hart Haw Heron Kestrel Lark Lin Marl Moor",
    "last": "acre bank bourne by combe croft dale den field ford gate grove holm hurst ley mere stead ton wick worth",
    "streets": (
        "Abbey Bell Canal Chandler Cooper Dyer Eel Ferry Glover Hatter Ink Juniper Kiln Linen Miller Needle Orchard"
    ),
}
LISTS = {name: words.split() for name, words in WORDS.items()}
KINDS = ("Street", "Lane", "Row", "Hill")


@dataclass(frozen=True)
class Person:
    """Somebody who does not exist."""

    name: str
    address: str
    zip: str
    district: str
    region: str
    born: date
    sex: str


def people(source: random.Random) -> list[Person]:
    """Invent the county."""
    places = [(region, name, weight) for region, districts in REGIONS.items() for name, weight in districts.items()]
    codes = {name: (f"{37100 + 20 * i:05d}", f"{37107 + 20 * i:05d}") for i, (_, name, _) in enumerate(places)}
    drawn = source.choices(places, weights=[weight for _, _, weight in places], k=PEOPLE)
    return [_person(source, region, district, codes[district]) for region, district, _ in drawn]


def _person(source: random.Random, region: str, district: str, codes: tuple[str, str]) -> Person:
    sex = "f" if source.random() < 0.51 else "m"
    first = source.choice(LISTS[sex])
    last = source.choice(LISTS["first"]) + source.choice(LISTS["last"])
    address = f"{1 + int(source.expovariate(0.04))} {source.choice(LISTS['streets'])} {source.choice(KINDS)}"
    return Person(f"{first} {last}", address, source.choice(codes), district, region, _birth_date(source), sex)


def _birth_date(source: random.Random) -> date:
    """Draw a birth date: as many people of each age up to sixty, then fewer and fewer."""
    age = source.random() * 60 if source.random() < 0.72 else 60 + 42 * (1 - source.random() ** 0.32)
    return date(YEAR, 12, 31) - timedelta(days=int(age * 365.25))


def voters(source: random.Random, everybody: list[Person]) -> list[Person]:
    """Take the adults who registered, in the order of their names."""
    adults = [one for one in everybody if one.born <= date(YEAR - 18, 12, 31)]
    return sorted((one for one in adults if source.random() < 0.63), key=lambda one: (one.name, one.address, one.born))


def stays(source: random.Random, everybody: list[Person]) -> Iterator[dict[str, Any]]:
    """Draw stays, the old more often than the young; a few people come again, nobody more than three times."""
    weights = [_need(one) for one in everybody]
    numbers: dict[int, str] = {}
    times: dict[int, int] = {}
    drawn = source.choices(range(len(everybody)), weights=weights, k=3 * STAYS)
    kept = []
    for who in drawn:
        times[who] = times.get(who, 0) + 1
        if times[who] == 1 or (times[who] <= 3 and source.random() < 0.12):
            kept.append(who)
    pseudonyms = source.sample(range(10_000, 100_000), len(everybody))
    days = sorted(int(source.random() * 364.75) for _ in range(STAYS))  # fewer come on the last day
    for who, day in zip(kept[:STAYS], days, strict=True):
        patient = numbers.setdefault(who, f"P{pseudonyms[who]}")
        yield _stay(source, patient, everybody[who], date(YEAR, 1, 1) + timedelta(days=day))


def _need(one: Person) -> float:
    age = YEAR - one.born.year
    return 0.5 if age < 18 else 1.0 if age < 60 else 2.5 if age < 95 else 3.0


def _stay(source: random.Random, patient: str, one: Person, admitted: date) -> dict[str, Any]:
    born = min(one.born, admitted)
    age = admitted.year - born.year - ((admitted.month, admitted.day) < (born.month, born.day))
    place = next(i for i, (end, _) in enumerate(AGE_GROUPS) if age < end)
    diagnosis = _diagnosis(source, place, one.sex)
    nights = _nights(source, diagnosis)
    return {
        "patient": patient,
        "zip": one.zip,
        "birth_date": born,
        "sex": one.sex,
        "district": one.district,
        "region": one.region,
        "age_group": AGE_GROUPS[place][1],
        "admitted": admitted,
        "nights": nights,
        "diagnosis": diagnosis,
        "cost": 300 + round(nights * PER_NIGHT.get(diagnosis, 800) * (0.7 + 0.6 * source.random())),
    }


def _diagnosis(source: random.Random, place: int, sex: str) -> str:
    names = [name for name in DIAGNOSES if not (name == "birth" and sex == "m")]
    return source.choices(names, weights=[DIAGNOSES[name][place] for name in names])[0]


def _nights(source: random.Random, diagnosis: str) -> int:
    """Draw how long a stay lasts; one in five hundred lasts for four weeks and more."""
    if source.random() < 0.0022:
        return 28 + int(source.expovariate(0.05))
    return min(27, int(source.expovariate(1 / NIGHTS.get(diagnosis, 5)) + 0.5))


def tables() -> dict[str, Any]:
    """Return both tables as Arrow tables, by name."""
    import pyarrow as pa

    source = random.Random(SEED)
    everybody = people(source)
    listed = voters(source, everybody)
    columns = ("name", "address", "zip", "birth_date", "sex")
    return {
        "stays": pa.Table.from_pylist(list(stays(source, everybody))),
        "voters": pa.Table.from_pylist(
            [dict(zip(columns, (v.name, v.address, v.zip, v.born, v.sex), strict=True)) for v in listed]
        ),
    }


def main(folder: Path) -> None:
    """Write both tables as Parquet."""
    import pyarrow.parquet as pq

    for name, table in tables().items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd", compression_level=19)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
