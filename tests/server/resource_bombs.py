"""Questions that try to take all of the time or memory there is: refused, or ended at the declared time (C32)."""

from __future__ import annotations

__all__ = ["BOMBS"]


def _nested(text: str, times: int, inner: str) -> str:
    before, after = text.split("@")
    return before * times + inner + after * times


def _count(condition: str) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"


def _query(rows: str) -> str:
    return f"SELECT COUNT(*) AS n FROM {rows}"


_SAME = " JOIN visits AS {0} ON {0}.age = a.age"
BOMBS = {
    "a pattern of many wildcards": _count("satisfied LIKE '" + "%a" * 400 + "%'"),
    "a pattern of many places": _count("satisfied LIKE '%" + "_" * 5_000 + "x'"),
    "many patterns": _count(" AND ".join(f"satisfied NOT LIKE '%{'_' * 200}{n}%'" for n in range(60))),
    "a regular expression": _count("REGEXP_MATCHES(satisfied, '(a+)+$')"),
    "a regular expression of alternatives": _count("REGEXP_MATCHES(satisfied, '(a|a|aa)*b')"),
    "a counted regular expression": _count("REGEXP_MATCHES(satisfied, '((a{1,100}){1,100}){1,100}')"),
    "SIMILAR TO": _count("satisfied SIMILAR TO '(%a%)*'"),
    "a join with itself": "SELECT COUNT(*) AS n FROM visits AS a" + _SAME.format("b"),
    "ten joins with itself": "SELECT COUNT(*) AS n FROM visits AS a"
    + "".join(_SAME.format(f"b{n}") for n in range(10)),
    "a cross join": _query("visits AS a CROSS JOIN visits AS b"),
    "joins by comma": _query(", ".join(f"visits AS a{n}" for n in range(12))),
    "a join on nothing": _query("visits AS a JOIN visits AS b ON TRUE"),
    "deep parentheses": _count("(" * 3_000 + "1 = 1" + ")" * 3_000),
    "deep NOT": _count("NOT " * 3_000 + "TRUE"),
    "deep CASE": _count(_nested("CASE WHEN TRUE THEN @ END", 800, "1") + " = 1"),
    "deep functions": _count(_nested("ABS(@)", 3_000, "age") + " > 1"),
    "deep sub-queries": _query(_nested("(SELECT * FROM @) AS x", 400, "visits")),
    "deep WITH": "WITH a0 AS (SELECT * FROM visits)"
    + "".join(f", a{n} AS (SELECT * FROM a{n - 1} UNION ALL SELECT * FROM a{n - 1})" for n in range(1, 40))
    + " SELECT COUNT(*) AS n FROM a39",
    "UNION ALL of many": _query("(" + " UNION ALL ".join(["SELECT age FROM visits"] * 400) + ") AS x"),
    "WITH RECURSIVE": "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT COUNT(*) AS n FROM r",
    "a wide select": "SELECT " + ", ".join(f"COUNT(*) AS n{n}" for n in range(1_100)) + " FROM visits",
    "a wide sum": "SELECT SUM(" + " + ".join(["age"] * 4_000) + ") AS s FROM visits",
    "a long list": _count("age IN (" + ", ".join(map(str, range(3_500))) + ")"),
    "many lists": _count(" OR ".join(f"age IN ({n}, {n + 1}, {n + 2}, {n + 3})" for n in range(500))),
    "a long list of texts": _count("satisfied IN (" + ", ".join(f"'{n:05}'" for n in range(2_000)) + ")"),
    "many conditions": _count(" OR ".join(f"age = {n}" for n in range(1_800))),
    "a huge number": _count("age < " + "9" * 15_000),
    "a huge exponent": _count("age < 1e999999999"),
    "a small exponent": _count("age > 1e-999999999"),
    "a huge power": _count("POWER(10, 10000000) > age"),
    "powers of powers": _count(_nested("POWER(@, 9)", 200, "age") + " > 1"),
    "a huge shift": _count("(1 << 100000000) > age"),
    "a text that grows": _count("LENGTH(" + _nested("CONCAT(@, satisfied)", 800, "satisfied") + ") > 1"),
    "a text that doubles": _count("LENGTH(" + _nested("REPLACE(@, 'e', 'eeeeeeeeee')", 300, "satisfied") + ") > 1"),
    "a text that is repeated": _count("LENGTH(REPEAT(satisfied, 1000000000)) > 1"),
    "a text that is padded": _count("LENGTH(LPAD(satisfied, 2000000000, 'x')) > 1"),
    "a window": "SELECT SUM(COUNT(*)) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM visits",
    "a window of rows": _query("(SELECT ROW_NUMBER() OVER (ORDER BY age) AS r FROM visits) AS x"),
    "many groups": "SELECT age, clinic, age + 1 AS b, age + 2 AS c, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3, 4",
    "CUBE of groups": "SELECT age, clinic, COUNT(*) AS n FROM visits GROUP BY CUBE (age, clinic, satisfied)",
    "a series": _query("GENERATE_SERIES(1, 100000000000)"),
    "a made-up list": _query("UNNEST(RANGE(10000000000)) AS x"),
    "a comment that never ends": "/*" * 9_000 + _query("visits"),
    "a quoted name that never ends": 'SELECT COUNT(*) AS "' + "n" * 19_000,
    "many semicolons": ";" * 19_000 + _query("visits"),
    "a million columns by star": _query("(SELECT " + ", ".join(["*"] * 5_000) + " FROM visits) AS x"),
    "quantiles of many": "SELECT " + ", ".join(f"MEDIAN(age + {n}) AS m{n}" for n in range(300)) + " FROM visits",
    "distinct of many": "SELECT "
    + ", ".join(f"COUNT(DISTINCT age + {n}) AS d{n}" for n in range(300))
    + " FROM visits",
}
