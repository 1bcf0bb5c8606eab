"""Queries over the made-up tables: what is answered, and what is refused."""

# ruff: noqa: E501  # A query is one line.

from __future__ import annotations

__all__ = ["BY_PERSON", "BY_ROW", "REFUSED"]

_COUNTS = """
SELECT COUNT(*) AS n FROM people
SELECT COUNT(age) AS n, COUNT(*) AS every FROM people
SELECT COUNT(1) FROM people
SELECT city, COUNT(*) AS n FROM people GROUP BY city
SELECT city, member, COUNT(*) AS n FROM people GROUP BY city, member
SELECT COUNT(*) FILTER (WHERE age > 30) AS a, COUNT_IF(age > 30) AS b, SUM(age > 30) AS d FROM people
SELECT COUNT(NULLIF(age, 99)) AS n FROM people
SELECT COUNT(*) AS n FROM people WHERE FALSE
SELECT city, COUNT(*) AS n FROM people WHERE income > 1000000 GROUP BY city
SELECT COUNT(DISTINCT city) AS n FROM people
SELECT COUNT(DISTINCT age) AS n FROM people
SELECT COUNT(DISTINCT country) AS n FROM people
SELECT COUNT(DISTINCT name) AS n, COUNT(*) AS m FROM people
"""
_NUMBERS = """
SELECT SUM(age) AS total FROM people
SELECT SUM(income) AS total, AVG(income) AS mean FROM people
SELECT AVG(age) AS age FROM people
SELECT city, AVG(age) AS age, SUM(income) AS income FROM people GROUP BY city
SELECT VAR_SAMP(age) AS v, VAR_POP(age) AS p, STDDEV(age) AS s FROM people
SELECT city, STDDEV(income) AS s FROM people GROUP BY city
SELECT MIN(age) AS low, MAX(age) AS high, MEDIAN(age) AS middle FROM people
SELECT city, MEDIAN(income) AS middle FROM people GROUP BY city
SELECT QUANTILE(age, 0.9) AS q FROM people
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC) AS q FROM people
SELECT MODE(city) AS m FROM people
SELECT member, MODE(city) AS m FROM people GROUP BY member
SELECT MODE(age) AS m FROM people
SELECT SUM(2 * age + 1) AS s, AVG(-age + 3) AS a, SUM(ABS(age - 50)) AS d FROM people
SELECT SUM(age * age) AS s FROM people
SELECT SUM(COALESCE(age, 18)) AS s, SUM(IIF(member, 1, 0)) AS m FROM people
SELECT AVG(income / 12) AS monthly FROM people
SELECT SUM(income) / COUNT(*) AS mine FROM people
SELECT SUM(age) - 3 * COUNT(*) AS d, COUNT(*) + 1 AS more FROM people
SELECT COUNT(*) AS n, 100.0 * COUNT_IF(member) / COUNT(*) AS share FROM people
SELECT SUM(LEAST(GREATEST(income, 100), 2000)) AS s FROM people
SELECT SUM(ROUND(income)) AS r, SUM(FLOOR(income / 100)) AS f, SUM(CEIL(income / 100)) AS c FROM people
SELECT AVG(SQRT(income)) AS r, AVG(LN(income + 1)) AS l, AVG(EXP(age / 100)) AS e FROM people
SELECT SUM(age % 7) AS s, SUM(age // 10) AS t FROM people
SELECT AVG(POWER(age, 2)) AS s FROM people
SELECT SUM(SIGN(age - 40)) AS s FROM people
"""
_TEXTS = """
SELECT COUNT(*) AS n FROM people WHERE name LIKE 'A%'
SELECT COUNT(*) AS n FROM people WHERE name ILIKE '%b%' OR name NOT LIKE '_da'
SELECT COUNT(*) AS n FROM people WHERE LOWER(TRIM(name)) = 'cy'
SELECT COUNT(*) AS n FROM people WHERE LENGTH(name) > 3
SELECT SUBSTRING(city, 1, 1) AS letter, COUNT(*) AS n FROM people GROUP BY 1
SELECT UPPER(city) AS big, COUNT(*) AS n FROM people GROUP BY ALL
SELECT CONCAT(city, '-', 'x') AS c, COUNT(*) AS n FROM people GROUP BY 1
SELECT AVG(LENGTH(city)) AS n FROM people
SELECT SUM(LEAST(GREATEST(CAST(name AS DOUBLE), 0), 10)) AS s FROM people
SELECT COUNT(*) AS n FROM people WHERE name::INT > 3 AND TRY_CAST(country AS DATE) IS NULL
SELECT REPLACE(city, 'B', 'P') AS c, COUNT(*) AS n FROM people GROUP BY 1
SELECT COUNT(*) AS n FROM people WHERE STARTS_WITH(city, 'B')
"""
_CHOICES = """
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS class, AVG(income) AS m, COUNT(*) AS n FROM people GROUP BY class
SELECT CASE city WHEN 'Bern' THEN 'capital' ELSE 'other' END AS c, COUNT(*) AS n FROM people GROUP BY 1
SELECT age >= 18 AS adult, COUNT(*) AS n FROM people GROUP BY age >= 18
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1
SELECT age - age % 20 AS band, AVG(income) AS m FROM people GROUP BY 1
SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 18 AND 65 AND (city = 'Bern' OR city IN ('Basel', 'Chur')) AND NOT member
SELECT COUNT(*) AS n FROM people WHERE member IS NULL OR age IS NOT NULL
SELECT COUNT(*) AS n FROM people WHERE city NOT IN ('Bern') AND age <> 40
SELECT SUM(CASE WHEN member THEN income END) AS s FROM people
SELECT COUNT(*) AS n FROM people WHERE member IS TRUE
"""
_DATES = """
SELECT EXTRACT(YEAR FROM born) AS y, COUNT(*) AS n FROM people GROUP BY 1
SELECT DATE_TRUNC('year', born) AS y, COUNT(*) AS n FROM people WHERE born < DATE '1995-01-01' GROUP BY 1
SELECT QUARTER(born) AS q, COUNT(*) AS n FROM people GROUP BY 1
SELECT MONTH(born) AS m, AVG(age) AS a FROM people GROUP BY 1
SELECT DAYOFWEEK(born) AS d, COUNT(*) AS n FROM people GROUP BY 1
SELECT COUNT(*) AS n FROM people WHERE born >= '2000-01-01' AND born < DATE '2000-01-01' + INTERVAL 3 MONTH
SELECT COUNT(*) AS n FROM people WHERE born + 7 > DATE '2000-02-01' - INTERVAL '1' YEAR
SELECT AVG(DATE_DIFF('day', born, DATE '2025-01-01')) AS d FROM people
SELECT MEDIAN(born) AS middle FROM people
SELECT MIN(born) AS first FROM people
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM stays GROUP BY 1
"""
_AFTER = """
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING n > 150 ORDER BY n DESC
SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n LIMIT 1
SELECT city, COUNT(*) AS n, DP_LOW(n) AS low, DP_HIGH(n) AS high FROM people GROUP BY city
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 100 ORDER BY city DESC LIMIT 2 OFFSET 1
SELECT ROUND(AVG(age), 1) AS a FROM people
SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS word FROM people
"""
_SHAPES = """
WITH old AS (SELECT * FROM people WHERE age >= 65) SELECT city, COUNT(*) AS n FROM old GROUP BY city
SELECT COUNT(*) AS n FROM (SELECT age, city FROM people WHERE member) AS some WHERE age > 20
SELECT COUNT(*) AS n, SUM(age) AS s FROM (SELECT age FROM people WHERE city = 'Bern' UNION ALL SELECT age FROM people WHERE city = 'Chur') AS both
SELECT region, COUNT(*) AS n FROM people JOIN countries ON country = code GROUP BY region
SELECT c.code, AVG(p.age) AS a FROM people p JOIN countries c ON p.country = c.code GROUP BY c.code
SELECT c.region, COUNT(*) AS n FROM people p LEFT JOIN countries c ON p.country = c.code GROUP BY c.region
SELECT COUNT(*) AS n FROM people WHERE country IN (SELECT code FROM countries WHERE region = 'west')
SELECT SUM(weight * age) AS s FROM people JOIN countries ON country = code
"""
_UNKNOWN = """
SELECT country, COUNT(*) AS n FROM people GROUP BY country
SELECT country, city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY country, city
SELECT TRIM(name) AS name, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY n DESC
SELECT ward, COUNT(*) AS n, SUM(nights) AS nights FROM stays GROUP BY ward
"""
_STAYS = """
SELECT COUNT(*) AS n, SUM(nights) AS nights, AVG(cost) AS cost FROM stays
SELECT COUNT(DISTINCT uid) AS n FROM stays
SELECT nights, COUNT(*) AS n FROM stays GROUP BY nights
SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n, COUNT(DISTINCT uid) AS people FROM stays GROUP BY 1
SELECT MEDIAN(cost) AS middle, MAX(nights) AS longest FROM stays
SELECT ward, MODE(nights) AS m FROM stays GROUP BY ward
SELECT AVG(LEAST(n, 5)) AS stays FROM (SELECT uid, COUNT(*) AS n FROM stays GROUP BY uid) AS each_person
SELECT AVG(LEAST(total, 3000)) AS cost FROM (SELECT uid, SUM(cost) AS total FROM stays GROUP BY uid) AS each_person
SELECT LEAST(n, 4) AS n, COUNT(*) AS people FROM (SELECT uid, COUNT(*) AS n FROM stays GROUP BY uid) AS e GROUP BY 1
SELECT city, COUNT(*) AS n, SUM(nights) AS nights FROM people JOIN stays USING (uid) GROUP BY city
SELECT city, AVG(cost) AS cost FROM people p JOIN stays s ON p.uid = s.uid WHERE s.nights > 3 GROUP BY city
SELECT COUNT(*) AS n FROM people WHERE uid IN (SELECT uid FROM stays WHERE nights > 10)
SELECT COUNT(DISTINCT ward) AS n FROM stays
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, delta = 1e-8, max_groups_contributed = 1) ward, COUNT(*) AS n FROM stays GROUP BY ward
"""
_REFUSED = """
SELECT uid, age FROM people
SELECT * FROM people
SELECT COUNT(*) FROM nobody
SELECT COUNT(*), height FROM people GROUP BY height
SELECT SUM(name) FROM people
SELECT SUM(CAST(name AS DOUBLE)) FROM people
SELECT AVG(1 / (age - 40)) FROM people
SELECT uid, COUNT(*) FROM people GROUP BY uid
SELECT COUNT(*) FROM people p JOIN people q ON p.city = q.city
SELECT COUNT(*) FROM people CROSS JOIN stays
SELECT COUNT(*) FROM people JOIN stays ON people.age = stays.nights
SELECT DISTINCT city FROM people
SELECT COUNT(*) OVER () FROM people
SELECT income, COUNT(*) FROM people GROUP BY income
SELECT COUNT(*) FROM people LIMIT -1
SELECT COUNT(*) FROM people; DROP TABLE people
DELETE FROM people
SELECT COUNT(* FROM people
SELECT RANDOM() FROM people
SELECT STRING_AGG(name, ',') FROM people
SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM stays
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)
SELECT QUANTILE(age, 2) FROM people
SELECT MEDIAN(name) FROM people
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT city FROM people GROUP BY city
SELECT DATE_TRUNC('decade of mine', born) AS d, COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE born > 'yesterday'
SELECT COUNT(*) FROM people WHERE city = 3
SELECT VAR_SAMP(DISTINCT age) FROM people

"""


def _lines(*parts: str) -> tuple[str, ...]:
    return tuple(line for part in parts for line in part.splitlines() if line.strip())


BY_ROW = _lines(_COUNTS, _NUMBERS, _TEXTS, _CHOICES, _DATES, _AFTER, _SHAPES, _UNKNOWN)
BY_PERSON = (*BY_ROW, *_lines(_STAYS))
REFUSED = _lines(_REFUSED)
