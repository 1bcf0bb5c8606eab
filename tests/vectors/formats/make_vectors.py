"""Write vectors of every stored format: `PYTHONPATH=tests python tests/vectors/formats/make_vectors.py [part …]`.

They were written by the release before names in the source tree began to change. `tests/test_formats.py` reads them.
Make one again only for a new version of its format, beside the old one: a vector that is overwritten guards nothing.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from bundle_worlds import HEAD, SERIES, stays
from format_worlds import (
    ASKED,
    FORMATS,
    PEOPLE,
    Mixed,
    events,
    image_rows,
    ledger_entries,
    methods,
    report_keys,
    rows_to_learn,
    schema_names,
    session,
    training_plans,
    training_run,
)
from pyarrow import parquet

from discreet import errors, privacy, release, synthesize
from discreet.cli.exits import Code, kind_of
from discreet.learn import sklearn
from discreet.learn.sklearn.base import PrivateEstimator
from discreet.ledger import Ledger

_PLANS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("uid", "SELECT COUNT(*) FROM people", {"epsilon": "1"}),
    ("uid", "SELECT COUNT(DISTINCT uid) AS people FROM people", {"epsilon": "1"}),
    ("uid", "SELECT city, COUNT(*) AS n FROM people GROUP BY city", {"epsilon": "1"}),
    ("uid", "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1", {"epsilon": "1"}),
    (
        "uid",
        "SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS class, "
        "AVG(income) FROM people GROUP BY class",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT member, age >= 18 AS adult, COUNT(*) FROM people GROUP BY member, age >= 18", {"epsilon": "1"}),
    ("uid", "SELECT DATE_TRUNC('month', born) AS month, COUNT(*) FROM people GROUP BY 1", {"epsilon": "1"}),
    (
        "uid",
        "SELECT EXTRACT(YEAR FROM placed) AS y, QUARTER(placed) AS q, SUM(amount) FROM orders GROUP BY 1, 2",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT c.code, COUNT(*) FROM people p JOIN countries c ON p.country = c.code GROUP BY c.code",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUBSTRING(city, 1, 1) AS letter, UPPER(city) AS big, COUNT(*) FROM people GROUP BY ALL",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 18 AND 65 AND (city = 'Bern' OR city IN ('Basel',"
        " 'Chur')) AND NOT member AND name LIKE 'A%' AND name NOT ILIKE '%z'",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM people WHERE born >= '2000-01-01' AND born < DATE '2000-01-01' + INTERVAL "
        "3 MONTH AND born + 7 > DATE '2000-02-01' - INTERVAL '1' YEAR",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM orders WHERE placed < DATE '2021-01-01' AND CAST(placed AS DATE) <> DATE '2020-12-24'",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM orders WHERE placed > TIMESTAMP '2020-06-01 12:30:00' AND HOUR(placed) > 6"
        " AND MINUTE(placed) < 30 AND SECOND(placed) = 0",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(LEAST(GREATEST(CAST(name AS DOUBLE), 0), 10)) FROM people WHERE name::INT > 3 AND "
        "TRY_CAST(country AS DATE) IS NULL",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM people WHERE CAST(age AS VARCHAR) = '7' AND CAST(name AS BOOLEAN) AND "
        "CAST(name AS TIMESTAMP) IS NOT NULL AND TRIM(LOWER(name)) || 'x' <> 'ax'",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(amount * (1 - discount)), AVG(-amount + 3), SUM(ABS(amount - 250)) FROM orders",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(COALESCE(age, 18)), COUNT(NULLIF(age, 99)), SUM(IIF(member, 1, 0)) FROM people",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FILTER (WHERE age > 30) AS a, COUNT_IF(age > 30) AS b, SUM(age) FILTER (WHERE "
        "member) AS c, SUM(age > 30) AS d FROM people",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT COUNT(1), COUNT(age), COUNT(DISTINCT uid), COUNT(DISTINCT city) FROM people", {"epsilon": "1"}),
    (
        "uid",
        "SELECT AVG(age) AS a, VAR_POP(age) AS b, STDDEV(age) AS c, MIN(age) AS d, MAX(age) AS e, "
        "MEDIAN(age) AS f, QUANTILE(age, 0.9) AS g, MODE(city) AS i FROM people",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC) AS h FROM people", {"epsilon": "1"}),
    (
        "uid",
        "SELECT SUM(income) / NULLIF(COUNT(*), 0) AS mean, ROUND(100.0 * COUNT_IF(member) / COUNT(*), 1)"
        " AS share, CASE WHEN COUNT(*) > 9 THEN 'many' ELSE 'few' END AS size FROM people",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING n > 10 AND AVG(age) < 50 AND city "
        "<> 'Chur' ORDER BY SUM(income) DESC, n, 1 LIMIT 2 OFFSET 1",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT city, COUNT(*) AS n, DP_LOW(n) AS low, DP_HIGH(n) AS high FROM people GROUP BY city",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT AVG(a) FROM (SELECT age + 1 AS a FROM people WHERE member)", {"epsilon": "1"}),
    (
        "uid",
        "WITH p(a, b) AS (SELECT uid, age FROM people) SELECT COUNT(DISTINCT who), AVG(b) FROM (SELECT a"
        " AS who, b FROM p)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT AVG(LEAST(s, 900)) AS spent, COUNT(*) AS people FROM (SELECT uid, SUM(amount) AS s, "
        "COUNT(*) AS n FROM orders GROUP BY uid HAVING COUNT(*) > 1 AND MAX(amount) < 400)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(LEAST(d, 3)), SUM(LEAST(c, 3)), AVG(m), AVG(g) FROM (SELECT uid, COUNT(DISTINCT "
        "country) AS d, COUNT(discount) AS c, MIN(amount) AS m, AVG(amount) AS g FROM orders GROUP BY "
        "uid)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT AVG(LEAST(GREATEST(r, 0), 1)) FROM (SELECT uid, SUM(discount) / COUNT(*) AS r FROM "
        "orders GROUP BY uid)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT p.city, SUM(o.amount) FROM people p JOIN orders o ON p.uid = o.uid AND o.amount > p.age "
        "GROUP BY p.city",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM countries c, orders o, people p WHERE p.uid = o.uid AND c.code = o.country"
        " AND c.size > 3",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*), SUM(COALESCE(c.size, 0)) FROM people p LEFT JOIN countries c ON p.country = "
        "c.code AND c.size > 3",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT uid IS NULL AS nobody, COUNT(*) FROM people JOIN orders USING (uid) GROUP BY 1", {"epsilon": "1"}),
    (
        "uid",
        "SELECT AVG(x) FROM (SELECT country AS k, amount AS x FROM orders UNION ALL SELECT country, "
        "income FROM people)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM people WHERE age > 3 AND uid IN (SELECT uid FROM orders WHERE amount > "
        "100) AND uid NOT IN (SELECT uid FROM orders WHERE amount > 400)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM people WHERE country IN (SELECT code FROM countries) AND country NOT IN "
        "(SELECT code FROM countries WHERE size < 3)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT c, n * 2 AS twice FROM (SELECT city AS c, COUNT(*) AS n FROM people GROUP BY city HAVING"
        " n > 1) AS s WHERE n > 10 ORDER BY twice DESC LIMIT 2",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "WITH s AS (SELECT city, AVG(age) AS a FROM people GROUP BY city) SELECT city, a FROM s WHERE a > 30",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT AVG(weight, contribution_bounds_per_row => (0, 200)) FROM people", {"epsilon": "1"}),
    ("uid", "SELECT STRFTIME(born, '%Y-%m') AS month, COUNT(*) FROM people GROUP BY 1", {"epsilon": "1"}),
    (
        "uid",
        "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.uid = p.uid AND o.amount > 3)",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(LEAST(age // 10, 5)), SUM(age % 7), SUM(SIGN(score)), SUM(CEIL(income / 1000)), "
        "SUM(ROUND(income, 1)) FROM people",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(SQRT(age)), SUM(LN(age + 1)), SUM(EXP(score)), SUM(POWER(score, 2)) FROM people",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(WEEK(born)), SUM(DAY(born)), SUM(DAYOFWEEK(born)), SUM(DAYOFYEAR(born)), "
        "SUM(MONTH(born)) FROM people",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT SUM(DATE_DIFF('day', DATE '1990-01-01', born)) FROM people WHERE born - INTERVAL 2 WEEK "
        "< DATE '2001-01-01'",
        {"epsilon": "1"},
    ),
    (
        "uid",
        "SELECT COUNT(*) FROM people WHERE LENGTH(name) = 3 AND STARTS_WITH(name, 'n') AND REPLACE(name,"
        " 'n', 'm') <> 'm1' AND CONCAT(name, city) LIKE '%B%'",
        {"epsilon": "1"},
    ),
    ("uid", "SELECT COUNT(*) FROM people WHERE age <= 40 AND age >= 3 AND age <> 4", {"epsilon": "1"}),
    ("uid", "SELECT SUM(score) AS s, COUNT(score) AS c FROM people", {"epsilon": "1"}),
    ("uid", "SELECT country, COUNT(*) FROM people GROUP BY country", {"epsilon": "1", "delta": "1e-6"}),
    ("uid", "SELECT DISTINCT country, member FROM people", {"epsilon": "1", "delta": "1e-6"}),
    (
        "uid",
        "SELECT country, AVG(m) FROM (SELECT uid, country, AVG(amount) AS m FROM orders GROUP BY uid, "
        "country) GROUP BY country",
        {"epsilon": "1", "delta": "1e-6"},
    ),
    (
        "uid",
        "SELECT k, AVG(x) FROM (SELECT country AS k, amount AS x FROM orders UNION ALL SELECT country, "
        "income FROM people) GROUP BY k",
        {"epsilon": "1", "delta": "1e-6"},
    ),
    (
        "uid",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, max_groups_contributed = "
        "2, privacy_unit_column = uid) country, SUM(amount, contribution_bounds_per_group => (0, 900)) "
        "AS s, COUNT(*) AS n FROM orders GROUP BY country",
        {},
    ),
    ("uid", "SELECT city, COUNT(*) AS n, SUM(age) FROM people GROUP BY city", {"rho": "0.1"}),
    ("uid", "SELECT country, COUNT(*) FROM people GROUP BY country", {"rho": "0.1", "delta": "1e-7"}),
    ("uid", "SELECT city, SUM(income) FROM people GROUP BY city", {"epsilon": "1", "delta": "1e-7"}),
    ("uid", "SELECT SUM(income) FROM people", {"epsilon": "1e-9"}),
    ("uid", "SELECT COUNT(*) FROM people", {"error": "20"}),
    ("uid", "SELECT COUNT(*) FROM people WHERE joined < born + INTERVAL 3 MONTH", {"epsilon": "1"}),
    ("uid", "SELECT level, COUNT(*) FROM people GROUP BY level", {"epsilon": "1"}),
    ("uid", "SELECT hand, COUNT(*) FROM people GROUP BY hand", {"epsilon": "1"}),
    ("row", "SELECT COUNT(*), AVG(age) FROM people", {"epsilon": "1"}),
    (
        "row",
        "SELECT c.size, COUNT(*) FROM people p JOIN countries c ON p.country = c.code GROUP BY c.size",
        {"epsilon": "1", "delta": "1e-6"},
    ),
    ("row", "SELECT city, member, COUNT(*), MEDIAN(age) FROM people GROUP BY city, member", {"epsilon": "1"}),
)
_MOMENT = 1_735_689_600  # The first second of 2025: no machine is behind these files.


def main(names: list[str]) -> None:
    """Write the parts that are named, or all."""
    with patch("time.time_ns", lambda: _MOMENT * 10**9), patch("time.time", lambda: float(_MOMENT)):
        for name in names or _PARTS:
            _PARTS[name]()


def _write(name: str, value: Any) -> None:
    (FORMATS / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _fresh(name: str) -> Path:
    shutil.rmtree(FORMATS / name, ignore_errors=True)
    (FORMATS / name).mkdir(parents=True)
    return FORMATS / name


def _plans() -> None:
    made = []
    with session() as by_unit, session(unit="row") as by_row:
        asked = {"uid": by_unit, "row": by_row}
        for unit, sql, offer in _PLANS:
            plan = asked[unit].sql(sql, **offer)
            made.append({"unit": unit, "sql": sql, "offer": offer, "fingerprint": plan.fingerprint})
        plans = {name: by_unit.sql(sql, epsilon=1) for name, sql in ASKED.items()}
        for key in (None, "stays/2026-01"):
            joint = by_unit.batch(plans, idempotency_key=key, purpose="a release")
            made.append({"together": key, "fingerprint": joint.fingerprint})
    _write("plans.json", made)


def _events() -> None:
    _write("events.json", [event.to_json() for event in events()])


def _training() -> None:
    _write("training_plans.json", [plan.to_json() for plan in training_plans()])


def _ledger() -> None:
    path = _fresh("ledger") / "formats.ledger"
    with session(path) as asked:
        answers = {sql: asked.sql(sql, epsilon=1).release().to_json() for sql in ASKED.values()}
        joint = asked.batch(
            {name: asked.sql(sql, epsilon="0.5") for name, sql in ASKED.items()},
            idempotency_key="joint",
            purpose="a release",
        )
        told = {name: table.to_json() for name, table in joint.release().tables.items()}
        for number, event in enumerate(events()):
            if isinstance(event, privacy.PureDP | privacy.Gaussian | privacy.Repeated | privacy.Composed):
                asked.ledger.charge(event, relation=privacy.Relation.ADD_REMOVE, purpose=f"event {number}", unit="uid")
    _write("ledger/answers.json", {"alone": answers, "joint": told})
    _tidied(path)


def _entries() -> None:
    _write("ledger_entries.json", ledger_entries())


def _tidied(path: Path) -> None:
    """Forget which machine wrote a ledger: its lease is no part of what is kept."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM lease")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
    for other in path.parent.glob(f"{path.name}[-.][wsl]*"):
        other.unlink()


_PLAN = HEAD.replace("TITLE", "Hospital stays") + (
    '[[publish]]\nname = "by_district"\ntitle = "By district"\n'
    'sql = "SELECT district, COUNT(*) AS stays, AVG(cost) AS cost FROM stays GROUP BY district"\n'
    '[[publish]]\nname = "wards"\ntitle = "By ward"\ndelta = 1e-8\n'
    'sql = "SELECT ward, COUNT(*) AS stays FROM stays GROUP BY ward"\n'
)


def _bundle() -> None:
    home = _fresh("bundle")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.toml").write_text(_PLAN + SERIES, encoding="utf-8")
        parquet.write_table(stays(), folder / "stays.parquet")
        release.new_key(folder / "signing.key", passphrase="of a test and of nothing else")
        key = release.read_signing_key(folder / "signing.key", passphrase="of a test and of nothing else")
        plan = release.read_release_plan(folder / "plan.toml")
        assert plan.schedule is not None
        written = release.publish(plan, principal="ana", period=plan.schedule.period(0), key=key)
        shutil.copytree(written, home / "bundle")
        shutil.copy(folder / "hospital.ledger", home / "hospital.ledger")
        shutil.copy(folder / "signing.key.pub", home / "signing.key.pub")
    _tidied(home / "hospital.ledger")


def _models() -> None:
    home = _fresh("models")
    for name, (kind, method) in methods().items():
        domain, rows = rows_to_learn() if kind == "table" else image_rows()
        more = {} if kind == "table" else {"public_rows": 200}
        model = synthesize(rows, method, domain=domain, epsilon=4, delta="1e-6", progress=False, **more)
        model.save(home / f"{name}.safetensors")


def _training_run() -> None:
    """A run that was interrupted after four of ten steps, its ledger, and the weights of one that came to its end."""
    home = _fresh("run")
    with tempfile.TemporaryDirectory() as name:
        with Ledger.open(Path(name) / "people.ledger", PEOPLE) as ledger:
            private = training_run(Mixed(), session=ledger, checkpoint=Path(name) / "run", checkpoint_every=2)
            batches = private.batches()
            while private.steps_taken < 4:
                private.step(private.losses(next(batches)))
            private.close()
        shutil.copytree(Path(name) / "run", home / "run", ignore=shutil.ignore_patterns("lock"))
        for path in Path(name).glob("people.ledger*"):
            shutil.copy(path, home / path.name)
    _tidied(home / "people.ledger")
    with training_run(Mixed()) as private:
        private.fit(progress=False).export(home / "weights.safetensors")


def _names() -> None:
    _write("schema_names.json", schema_names())
    _write("report_keys.json", report_keys())
    own = {name: kind_of(getattr(errors, name).__new__(getattr(errors, name))) for name in errors.__all__}
    _write("error_kinds.json", {"own": own, "codes": {str(int(code)): code.word for code in Code}})
    fits = {name: getattr(sklearn, name) for name in sklearn.__all__}
    _write("fits.json", sorted(name for name, kind in fits.items() if issubclass(kind, PrivateEstimator)))


_PARTS: Mapping[str, Callable[[], None]] = {
    "plans": _plans,
    "events": _events,
    "training": _training,
    "ledger": _ledger,
    "entries": _entries,
    "bundle": _bundle,
    "models": _models,
    "run": _training_run,
    "names": _names,
}

if __name__ == "__main__":
    torch.manual_seed(0)
    main(sys.argv[1:])
