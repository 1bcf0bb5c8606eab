"""The questions that all engines must count alike (check C43), each with the small world that it is asked of.

In one place: the corpus, values that engines read in many ways, two writers of random queries under fixed seeds,
rewrites that could lose a unit, and questions about units of several columns, of windows, with columns of their own and
under replace-one. An engine that is new gets all of them from `worlds()`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from query import fuzz_sql, neighbour_grammar

import discreet as dp
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import queries
from benchmarks.corpus.worlds import make_world
from benchmarks.peers.discreet_session import opened
from discreet.query.policy import PublicTable

Tables: TypeAlias = Mapping[str, Any]  # Arrow; public ones are marked as such.
Asked: TypeAlias = tuple[str, str | None]  # SQL, and the delta for keys that are not known

_DELTA = "1e-6"
_BUDGET = dp.Budget(epsilon=100_000, delta="1e-2")


@dataclass(frozen=True)
class AgreementWorld:
    """Tables, how a session is opened on them wherever they are, and what is asked of it."""

    name: str
    tables: Tables
    open: Callable[[Tables], dp.Session]
    asked: tuple[Asked, ...]
    answered: float = 0.5  # At least this share is not refused.


@cache
def worlds() -> Mapping[str, AgreementWorld]:
    """Return all worlds by name."""
    found = [*_of_corpus(), *_of_nasty(), *_of_grammar(), *_of_fuzz(), *_of_rewrites(), *_of_units()]
    return {world.name: world for world in found}


def few() -> Mapping[str, int]:
    """Say which worlds a short run asks, and every how-manyth question: about forty in all."""
    named = [name for name in worlds() if name.startswith(("corpus", "units")) and not name.endswith("whale")]
    named += ["nasty text", "grammar texts", "rewrites"]
    return {name: max(1, len(worlds()[name].asked) // 3) for name in named}


def distinct() -> set[str]:
    """Return all questions as texts, each once however many worlds it is asked of."""
    return {" ".join(sql.split()) for world in worlds().values() for sql, _ in world.asked}


def _opener(unit: Any, columns: Mapping[str, Any]) -> Callable[[Tables], dp.Session]:
    def open_session(tables: Tables) -> dp.Session:
        return dp.Session(
            dict(tables),
            unit=unit,
            budget=_BUDGET,
            columns=dict(columns),
            ledger="memory",
            dataset="agreement",
            principal="analyst",
        )

    return open_session


# --- the corpus ---


def _of_corpus() -> list[AgreementWorld]:
    found = []
    for name, dataset in DATASETS.items():
        asked = tuple(
            (query.sql, _DELTA if query.unknown_keys else None) for query in queries() if query.dataset == name
        )
        for kind in ("whole", "whale"):
            public = {one.name for one in dataset.public}
            tables = {n: dp.public(t) if n in public else t for n, t in make_world(dataset, kind).items()}
            found.append(AgreementWorld(f"corpus {name} {kind}", tables, _corpus_opener(name), asked))
    return found


def _corpus_opener(name: str) -> Callable[[Tables], dp.Session]:
    def open_session(tables: Tables) -> dp.Session:
        bare = {n: t.table if isinstance(t, PublicTable) else t for n, t in tables.items()}
        return opened(DATASETS[name], bare, max_groups=3, max_rows=4, epsilon=100_000)

    return open_session


# --- nasty: Values that engines read in many ways, and questions that tell these ways apart. ---

_CENTS = [None, Decimal("0.01"), Decimal("-99999999.99"), Decimal("1.00"), Decimal("1.05"), Decimal("0.00")]
NASTY = pa.table(
    {
        "who": ["a", "A", "á", "a\u0301", "a ", " a", "", None, "ß", "SS", "İ", "i", "K", "\u212a", "日本", "a\tb"] * 6,
        "city": (["Köln", "KÖLN", "Ko\u0308ln", "Köln ", "", None, "x" * 12_000, "😀"] * 12),
        "small": pa.array(([-32768, 32767, 0, None, 7, -7] * 16), pa.int16()),
        "large": [(1 << 63) - 1, -(1 << 63) + 1, 0, None, (1 << 53) + 1, -(1 << 53) - 1, 5, -5] * 12,
        "real": [0.1, -0.0, 0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308] * 12,
        "single": pa.array([0.1, 2.5, -0.5, None, 16777217.0, 1e-45, 3.4e38, 7.0] * 12, pa.float32()),
        "exact": pa.array(_CENTS * 16, pa.decimal128(12, 2)),
        "day": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), None, date(2024, 2, 29)] * 16,
        "at": [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2000, 1, 1), None, datetime(9999, 12, 31)] * 24,
        "open": [True, False, None] * 32,
    }
)
CONDITIONS = (
    "who = 'a'", "who = 'A'", "who = 'á'", "who <> 'a'", "who = ''", "who IS NOT NULL", "who IN ('a', 'SS', 'K')",
    "city = 'Köln'", "city = 'KÖLN'", "city = 'Köln '", "city LIKE 'K%'", "city IS NULL", "LOWER(city) = 'köln'",
    "LENGTH(city) > 100", "small > 7", "small >= 7", "small = 32767", "small < -7", "small <= -32768", "7 <= small",
    "small <> 0", "small IS NOT NULL", "small BETWEEN -7 AND 7", "large > 5", "large >= 9007199254740993",
    "large = 0", "large < -5", "real > 0", "real = 0", "real < 1e300", "real IS NULL", "single = 0.1", "single > 2.4",
    "exact >= 1", "exact = 0.01", "day = DATE '1970-01-01'", "day < DATE '1970-01-01'", "day >= DATE '2024-02-29'",
    "day IS NOT NULL", "EXTRACT(YEAR FROM day) = 9999", "at < TIMESTAMP '1970-01-01 00:00:00'", "at IS NOT NULL",
    "open", "NOT open", "open IS NULL", "small > 0 AND day IS NOT NULL AND who = 'a'", "small > 0 OR who = 'a'",
)  # fmt: skip
_MEASURES = ("COUNT(*)", "SUM(small)", "AVG(real)", "SUM(exact)", "COUNT(DISTINCT city)", "MEDIAN(small)", "SUM(large)")
NASTY_COLUMNS = {
    "small": dp.between(-7, 1000, whole=True),
    "large": dp.between(-(1 << 53), 1 << 53, whole=True),
    "real": dp.between(-10, 10),
    "single": dp.between(0, 3, step="0.1"),
    "exact": dp.between(-5, 5, step="0.01"),
    "day": dp.between(date(1900, 1, 1), date(2024, 2, 29)),
    "at": dp.between(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    "city": dp.text(),
    "open": dp.boolean(),
}


def _of_nasty() -> list[AgreementWorld]:
    plain: list[Asked] = [
        (f"SELECT {measure} AS m FROM t WHERE {condition}", None)
        for condition, measure in zip(CONDITIONS * 3, itertools.cycle(_MEASURES), strict=False)
    ]
    grouped: list[Asked] = [
        (f"SELECT {key} AS k, COUNT(*) AS n FROM t WHERE {condition} GROUP BY {key}", _DELTA)
        for key, condition in itertools.product(("city", "small", "day", "who"), CONDITIONS[::5])
    ]
    joined: list[Asked] = [
        (f"SELECT COUNT(*) AS n FROM t JOIN t AS u ON t.who = u.who WHERE t.{c}", None) for c in CONDITIONS[13:20]
    ]
    units = {"row": "row", "text": dp.Unit("who", 2, 3), "number": dp.Unit("large", 2, 3)}
    return [
        AgreementWorld(f"nasty {name}", {"t": NASTY}, nasty_opener(unit), (*plain, *grouped, *joined))
        for name, unit in units.items()
    ]


def nasty_opener(unit: Any, *only: str) -> Callable[[Tables], dp.Session]:
    """Open a session on the nasty table, or on some of its columns."""
    left = {n: c for n, c in NASTY_COLUMNS.items() if (unit == "row" or n != unit.column) and (not only or n in only)}
    return _opener(unit, left)


# --- random: What two writers of random queries ask, under fixed seeds. ---

_OWNERS = {"int64": "numbers", "string": "texts", "double": "reals"}


def _of_grammar() -> list[AgreementWorld]:
    """Take one world of each kind of owner, and one where rows are units; and such with units that are exchanged."""
    found: dict[str, AgreementWorld] = {}
    for seed in itertools.count():
        chance = random.Random(f"agreement {seed}")
        tables = neighbour_grammar.draw_tables(chance)
        kind = _OWNERS[str(tables.kind)] if seed % 4 else "rows"
        kind += ", exchanged" if seed % 3 == 0 else ""
        if kind not in found and len(tables.stays) > 8 and len(tables.bills) > 4:
            found[kind] = _grammar_world(kind, chance, tables)
        if len(found) == 8:
            return list(found.values())
    raise AssertionError


def _grammar_world(kind: str, chance: random.Random, tables: neighbour_grammar.Tables) -> AgreementWorld:
    more: dict[str, Any] = {"relation": dp.Relation.REPLACE_ONE, "units": 100} if "exchanged" in kind else {}
    rows = kind.startswith("rows")
    unit = dp.Unit("row", **more) if rows else dp.Unit("who", *chance.choice([(1, 1), (2, 2), (3, 5)]), **more)
    declared = neighbour_grammar.DECLARED
    private = {name: tables.arrow(name) for name in ("stays", "bills")}
    public = {name: dp.public(table) for name, table in neighbour_grammar.PUBLIC.items()}
    grammar = neighbour_grammar.Grammar(chance, rows=rows)
    asked = tuple((grammar.query(), _DELTA) for _ in range(20 if rows else 40))
    opener = _opener(unit, {"stays": declared, "bills": declared})
    return AgreementWorld(f"grammar {kind}", private | public, opener, asked, answered=0.15)


def _people(seed: str, *, without: int | None = None) -> dict[str, Any]:
    people, visits = fuzz_sql.tables(random.Random(seed))
    kept = {"people": people, "visits": visits}
    private = {n: fuzz_sql.as_table([r for r in rows if r["id"] != without]) for n, rows in kept.items()}
    return private | {"towns": dp.public(fuzz_sql.TOWNS), "regions": dp.public(fuzz_sql.REGIONS)}


def _of_fuzz() -> list[AgreementWorld]:
    units = {"units": dp.Unit("id", 2, 2), "single": dp.Unit("id", 1, 1), "rows": dp.Unit("row")}
    found = []
    for name, unit in units.items():
        writer = fuzz_sql.Sql(random.Random(f"agreement {name}"), unit=name != "rows")
        asked = tuple((writer.query(), _DELTA) for _ in range(20 if name == "rows" else 50))
        opener = _opener(unit, fuzz_sql.COLUMNS)
        found.append(AgreementWorld(f"fuzz {name}", _people(f"fuzz {name}"), opener, asked, answered=0.3))
    return found


def _of_rewrites() -> list[AgreementWorld]:
    """Ask what could lose the unit (check C26) of a world and of its neighbour without the unit that is everywhere."""
    file = Path(__file__).parent.parent / "rewrites.sql"
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    asked = tuple((line, _DELTA) for line in lines)
    opener = _opener(dp.Unit("id", 2, 2), fuzz_sql.COLUMNS)
    return [
        AgreementWorld("rewrites", _people("rewrites"), opener, asked, answered=0.4),
        AgreementWorld("rewrites without the whale", _people("rewrites", without=9), opener, asked, answered=0.4),
    ]


# --- units: Of several columns, of windows, with columns of their own, and exchanged. ---

_PLACES = pa.table({"ward": ["A", "B", "C", "C"], "side": ["north", "south", "south", None]})
_STAY_COLUMNS = {
    "born": dp.between(1920, 2020, of_unit=True),
    "sex": dp.categories(["f", "m"], of_unit=True),
    "ward": dp.categories(["A", "B", "C"]),
    "drug": dp.text(),
    "cost": dp.between(0.0, 500.0, step="0.5"),
    "days": dp.between(0, 9),
    "at": dp.between(datetime(2024, 1, 1), datetime(2024, 12, 31)),
    "acute": dp.boolean(),
}


def _stays(rows: int, seed: str) -> pa.Table:
    chance = random.Random(seed)
    drawn = [
        {
            "hospital": chance.choice(["h1", "H1", "h2", "h2 ", None]),
            "patient": chance.choice([1, 2, 3, 4, 5, 6, 6, 6, 6, 6, None]),
            "born": chance.choice([1950, 1961, 2004, 1800, None]),
            "sex": chance.choice(["f", "m", "F", None]),
            "ward": chance.choice(["A", "B", "C", "c", None]),
            "drug": chance.choice(["ASA", "asa", "é", "e\u0301", "", None, "heparin"]),
            "cost": chance.choice([0.25, 12.5, 12.75, 499.9, -3.0, 1e9, float("nan"), None]),
            "days": chance.choice([0, 1, 2, 3, 3, 3, 9, 99, None]),
            "at": chance.choice([None, datetime(2024, 3, 31, 1, 30), datetime(1999, 1, 1)])
            if chance.random() < 0.2
            else datetime(
                2024, chance.randrange(1, 13), chance.randrange(1, 28), chance.randrange(24), 59, 59, 999_999
            ),
            "acute": chance.choice([True, False, None]),
        }
        for _ in range(rows)
    ]
    kinds = {"hospital": pa.string(), "patient": pa.int64(), "born": pa.int32(), "sex": pa.string(),
             "ward": pa.string(), "drug": pa.string(), "cost": pa.float64(), "days": pa.int8(),
             "at": pa.timestamp("us"), "acute": pa.bool_()}  # fmt: skip
    return pa.Table.from_pylist(drawn, schema=pa.schema(kinds.items()))


_OF_ANY_UNIT = (
    "SELECT COUNT(*) AS n FROM stays",
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS c FROM stays GROUP BY ward",
    "SELECT sex, COUNT(*) AS n FROM stays GROUP BY sex",
    "SELECT born, AVG(days) AS d FROM stays GROUP BY born",
    "SELECT drug, COUNT(*) AS n FROM stays GROUP BY drug",
    "SELECT drug, ward, COUNT(*) AS n FROM stays WHERE acute GROUP BY drug, ward",
    "SELECT sex, ward, MEDIAN(cost) AS c FROM stays GROUP BY sex, ward",
    "SELECT QUANTILE(cost, 0.9) AS q, MIN(days) AS a, MAX(days) AS b FROM stays",
    "SELECT QUANTILE(days, [0.25, 0.5, 0.75]) AS q FROM stays",
    "SELECT ward, QUANTILE(days, [0.1, 0.9]) AS q FROM stays GROUP BY ward",
    "SELECT MODE(ward) AS m, MODE(days) AS d FROM stays",
    "SELECT sex, MODE(ward) AS m FROM stays GROUP BY sex",
    "SELECT COUNT(DISTINCT drug) AS d, COUNT(DISTINCT ward) AS w, COUNT(DISTINCT days) AS x FROM stays",
    "SELECT ward, COUNT(DISTINCT drug) AS d FROM stays GROUP BY ward",
    "SELECT VAR_POP(cost) AS v, STDDEV_SAMP(days) AS s FROM stays",
    "SELECT CORR(cost, days) AS r, COVAR_SAMP(days, cost) AS c FROM stays",
    "SELECT ward, COVAR_POP(cost, acute) AS c FROM stays GROUP BY ward",
    "SELECT DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM stays GROUP BY 1",
    "SELECT EXTRACT(HOUR FROM at) AS h, SUM(days) AS d FROM stays GROUP BY 1",
    "SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM stays GROUP BY 1",
    "SELECT DAYOFWEEK(at) AS d, COUNT(*) AS n FROM stays WHERE at >= TIMESTAMP '2024-03-31 01:30:00' GROUP BY 1",
    "SELECT MEDIAN(at) AS m FROM stays",
    "SELECT COUNT(*) AS n FROM stays WHERE at IS NULL OR drug IS NULL",
    "SELECT COALESCE(ward, 'none') AS w, COUNT(*) AS n FROM stays GROUP BY 1",
    "SELECT p.side, COUNT(*) AS n FROM stays s JOIN places p ON s.ward = p.ward GROUP BY p.side",
    "SELECT p.side, SUM(s.days) AS n FROM stays s LEFT JOIN places p ON s.ward = p.ward GROUP BY p.side",
    "SELECT COUNT(*) AS n FROM stays WHERE ward IN (SELECT ward FROM places WHERE side = 'south')",
    "SELECT COUNT(*) AS n FROM stays s, places p WHERE s.ward = p.ward AND p.side IS NULL",
    "SELECT CASE WHEN days > 2 THEN 'long' ELSE 'short' END AS k, AVG(cost) AS c FROM stays GROUP BY 1",
    "SELECT COUNT(*) FILTER (WHERE drug = 'ASA') AS a, COUNT(*) FILTER (WHERE drug = 'asa') AS b FROM stays",
    "SELECT UPPER(drug) AS d, COUNT(*) AS n FROM stays WHERE drug <> '' GROUP BY 1",
    "SELECT LEFT(drug, 1) AS d, COUNT(*) AS n FROM stays GROUP BY 1",
    "SELECT FLOOR(cost / 100) AS f, COUNT(*) AS n FROM stays GROUP BY 1",
    "SELECT SUM(CASE WHEN acute THEN cost ELSE 0 END) AS c, AVG(days * days) AS d FROM stays",
    "SELECT sex, COUNT(*) AS n FROM (SELECT * FROM stays UNION ALL SELECT * FROM stays) AS t GROUP BY sex",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM stays WHERE cost > 12.5) AS t WHERE days < 3",
)
# Of a unit `u`, whatever its columns: sub-queries, windows and joins within a unit.
_OF_ONE_UNIT = (
    "SELECT c, COUNT(*) AS n FROM (SELECT {u}, LEAST(COUNT(*), 9) AS c FROM stays GROUP BY {u}) AS t GROUP BY c",
    "SELECT AVG(s) AS s FROM (SELECT {u}, LEAST(GREATEST(SUM(cost), 0), 900) AS s FROM stays GROUP BY {u}) AS t",
    "SELECT d, COUNT(*) AS n FROM (SELECT {u}, MIN(days) AS d FROM stays GROUP BY {u}) AS t GROUP BY d",
    "SELECT COUNT(*) AS n FROM (SELECT {u}, COUNT(DISTINCT drug) AS d FROM stays GROUP BY {u}) AS t WHERE d > 1",
    "SELECT COUNT(*) AS n FROM (SELECT {u}, MAX(days) AS d FROM stays GROUP BY {u} HAVING COUNT(*) > 2) AS t",
    "SELECT ward, SUM(LEAST(c, 5)) AS n FROM (SELECT {u}, ward, COUNT(*) AS c FROM stays GROUP BY {u}, ward) AS t "
    "GROUP BY ward",
    "SELECT ward, COUNT(*) AS n FROM (SELECT * FROM stays QUALIFY ROW_NUMBER() OVER (PARTITION BY {u} ORDER BY at) = "
    "1) AS t GROUP BY ward",
    "SELECT f, COUNT(*) AS n FROM (SELECT FIRST_VALUE(ward) OVER (PARTITION BY {u} ORDER BY days, cost) AS f FROM "
    "stays) AS t GROUP BY f",
    "SELECT f, COUNT(*) AS n FROM (SELECT LAST_VALUE(drug) OVER (PARTITION BY {u} ORDER BY at ROWS BETWEEN UNBOUNDED "
    "PRECEDING AND UNBOUNDED FOLLOWING) AS f FROM stays) AS t GROUP BY f",
    "SELECT c, COUNT(*) AS n FROM (SELECT LEAST(COUNT(*) OVER (PARTITION BY {u} ORDER BY days), 7) AS c FROM stays) "
    "AS t GROUP BY c",
    "SELECT AVG(s) AS s FROM (SELECT LEAST(GREATEST(SUM(days) OVER (PARTITION BY {u}), 0), 30) AS s FROM stays) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM stays QUALIFY MAX(cost) OVER (PARTITION BY {u}) > 100) AS t",
    "SELECT COUNT(*) AS n FROM stays s JOIN tests t ON s.{u} = t.{u}",
    "SELECT t.ward, COUNT(*) AS n, SUM(s.days) AS d FROM stays s JOIN tests t ON s.{u} = t.{u} GROUP BY t.ward",
    "SELECT t.drug, COUNT(*) AS n FROM stays s LEFT JOIN tests t ON s.{u} = t.{u} GROUP BY t.drug",
    "SELECT COUNT(*) AS n FROM stays s LEFT JOIN tests t ON s.{u} = t.{u} WHERE t.days IS NULL",
    "SELECT COUNT(DISTINCT t.drug) AS d, MEDIAN(t.cost) AS m FROM stays s JOIN tests t ON s.{u} = t.{u} AND "
    "s.ward = t.ward",
    "SELECT p.side, COUNT(*) AS n FROM stays s JOIN tests t ON s.{u} = t.{u} JOIN places p ON t.ward = p.ward "
    "GROUP BY p.side",
)
# Beyond what all worlds above ask: only of a unit of one column.
_OF_ONE_COLUMN = (
    "SELECT COUNT(DISTINCT patient) AS n FROM stays",
    "SELECT ward, COUNT(DISTINCT patient) AS n FROM stays GROUP BY ward",
    "SELECT COUNT(*) AS n FROM stays WHERE patient IN (SELECT patient FROM tests WHERE days > 1)",
    "SELECT COUNT(*) AS n FROM stays WHERE patient NOT IN (SELECT patient FROM tests WHERE acute)",
    "SELECT COUNT(*) AS n FROM stays s WHERE EXISTS (SELECT 1 FROM tests t WHERE t.patient = s.patient AND t.acute)",
    "SELECT s.sex, AVG(m) AS m FROM stays s JOIN (SELECT patient, AVG(cost) AS m FROM tests GROUP BY patient) AS t ON "
    "s.patient = t.patient GROUP BY s.sex",
    "SELECT hospital, COUNT(*) AS n FROM stays GROUP BY hospital",
    "SELECT patient, COUNT(*) AS n FROM stays GROUP BY patient",
)


def _of_units() -> list[AgreementWorld]:
    more: dict[str, Any] = {"relation": dp.Relation.REPLACE_ONE, "units": 100}
    units = {
        "one column": dp.Unit("patient", 2, 3),
        "exchanged": dp.Unit("patient", 2, 2, **more),
        "several columns": dp.Unit(["hospital", "patient"], 2, 3),
        "days": dp.Unit("patient", 2, 3, window="day", time="at"),
        "months in a zone": dp.Unit("patient", 1, 2, window="month", time="at", zone="Europe/Berlin"),
    }
    tables = {"stays": _stays(160, "stays"), "tests": _stays(90, "tests"), "places": dp.public(_PLACES)}
    return [
        AgreementWorld(f"units: {name}", tables, _stay_opener(unit), _of_unit(unit), answered=0.8)
        for name, unit in units.items()
    ]


def _stay_opener(unit: dp.Unit) -> Callable[[Tables], dp.Session]:
    declared = {n: c for n, c in _STAY_COLUMNS.items() if unit.window is None or n != "at"}
    return _opener(unit, {"stays": declared, "tests": declared})


def _of_unit(unit: dp.Unit) -> tuple[Asked, ...]:
    """Ask of a unit by its name, which is `unit` where it has several columns or a window."""
    single = unit.window is None and isinstance(unit.column, str)
    inside = [sql.format(u="patient" if single else "unit") for sql in _OF_ONE_UNIT]
    return tuple((sql, _DELTA) for sql in (*_OF_ANY_UNIT, *inside, *(_OF_ONE_COLUMN if single else ())))
