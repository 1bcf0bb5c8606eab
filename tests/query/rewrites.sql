-- One question a line: joins, unions, sub-queries and clauses that could lose the unit, repeat its rows or look at others'.
SELECT COUNT(*) AS n FROM people WHERE id IN (SELECT id FROM visits WHERE age > 0)
SELECT COUNT(*) AS n FROM people WHERE id NOT IN (SELECT id FROM visits WHERE age > 0)
SELECT COUNT(*) AS n FROM people WHERE city IN (SELECT city FROM visits WHERE age > 0)
SELECT COUNT(*) AS n FROM people WHERE city NOT IN (SELECT city FROM visits)
SELECT COUNT(*) AS n FROM people WHERE city IN (SELECT city FROM towns WHERE rank > 1)
SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)
SELECT COUNT(*) AS n FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.id = people.id)
SELECT COUNT(*) AS n FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.city = people.city)
SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.id
SELECT COUNT(*) AS n, SUM(p.age) AS s FROM people p JOIN visits v ON p.id = v.id AND p.city = v.city
SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.city = v.city
SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.age
SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.id = v.id WHERE v.id IS NULL
SELECT COUNT(*) AS n, COUNT(v.age) AS m FROM people p LEFT JOIN visits v ON p.id = v.id
SELECT COUNT(*) AS n FROM people p RIGHT JOIN visits v ON p.id = v.id
SELECT COUNT(*) AS n FROM people p FULL JOIN visits v ON p.id = v.id
SELECT COUNT(*) AS n FROM people p CROSS JOIN visits v
SELECT COUNT(*) AS n FROM people p, visits v WHERE p.id = v.id
SELECT COUNT(*) AS n FROM people p JOIN people q ON p.id = q.id
SELECT COUNT(*) AS n FROM people p JOIN people q ON p.id < q.id
SELECT COUNT(*) AS n FROM people p JOIN towns t ON p.city = t.city
SELECT COUNT(*) AS n FROM people p LEFT JOIN towns t ON p.city = t.city
SELECT t.region, COUNT(*) AS n FROM people p JOIN towns t ON p.city = t.city GROUP BY t.region
SELECT t.rank, SUM(p.age * t.rank) AS n FROM people p JOIN towns t ON p.city = t.city GROUP BY t.rank
SELECT COUNT(*) AS n FROM towns t LEFT JOIN people p ON p.city = t.city
SELECT COUNT(*) AS n FROM towns t JOIN people p ON p.city = t.city
SELECT COUNT(*) AS n FROM people p JOIN towns t ON p.id = t.rank
SELECT COUNT(*) AS n FROM people p JOIN towns t ON p.age > t.rank
SELECT COUNT(*) AS n FROM people p JOIN visits v USING (id)
SELECT COUNT(*) AS n FROM people NATURAL JOIN visits
SELECT COUNT(*) AS n FROM (SELECT * FROM people UNION ALL SELECT * FROM people) x
SELECT COUNT(*) AS n FROM (SELECT id, age FROM people UNION ALL SELECT id, age FROM visits) x
SELECT SUM(age) AS n FROM (SELECT id, age FROM people UNION ALL SELECT id, age FROM visits) x
SELECT COUNT(*) AS n FROM (SELECT age AS id, age FROM people UNION ALL SELECT id, age FROM visits) x
SELECT COUNT(*) AS n FROM (SELECT id, age FROM people UNION SELECT id, age FROM visits) x
SELECT COUNT(*) AS n FROM (SELECT id, age FROM people EXCEPT SELECT id, age FROM visits) x
SELECT COUNT(*) AS n FROM (SELECT DISTINCT city FROM people) x
SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, city FROM people) x
SELECT COUNT(DISTINCT id) AS n FROM people
SELECT COUNT(DISTINCT city) AS n FROM people
SELECT COUNT(DISTINCT name) AS n FROM people
SELECT city, COUNT(DISTINCT name) AS n FROM people GROUP BY city
SELECT COUNT(DISTINCT id + 0) AS n FROM people
SELECT COUNT(*) AS n FROM (SELECT id + 1 AS id, age FROM people) x
SELECT COUNT(*) AS n FROM (SELECT id % 2 AS id, age FROM people) x
SELECT COUNT(*) AS n FROM (SELECT 1 AS id, age FROM people) x
SELECT COUNT(*) AS n FROM (SELECT age FROM people) x
SELECT SUM(a) AS n FROM (SELECT age AS a FROM people WHERE pay > 0) x
SELECT COUNT(*) AS n FROM (SELECT id, COUNT(*) AS c FROM people GROUP BY id) x WHERE c > 1
SELECT AVG(LEAST(c, 5)) AS n FROM (SELECT id, COUNT(*) AS c FROM people GROUP BY id) x
SELECT c, COUNT(*) AS n FROM (SELECT id, COUNT(*) AS c FROM people GROUP BY id) x GROUP BY c
SELECT city, SUM(LEAST(c, 5)) AS n FROM (SELECT id, city, COUNT(*) AS c FROM people GROUP BY id, city) x GROUP BY city
SELECT SUM(LEAST(GREATEST(s, -500), 500)) AS n FROM (SELECT id, SUM(age) AS s FROM people GROUP BY id) x
SELECT SUM(m) AS n FROM (SELECT id, AVG(age) AS m FROM people GROUP BY id) x
SELECT SUM(m) AS n FROM (SELECT id, MAX(pay) AS m FROM people GROUP BY id) x
SELECT COUNT(*) AS n FROM (SELECT city, COUNT(*) AS c FROM people GROUP BY city) x
SELECT COUNT(*) AS n FROM (SELECT id, COUNT(*) AS c FROM people GROUP BY id LIMIT 2) x
SELECT COUNT(*) AS n FROM (SELECT * FROM people ORDER BY age LIMIT 3) x
SELECT COUNT(*) AS n FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY age) AS r FROM people) x WHERE r < 3
SELECT COUNT(*) AS n FROM people p JOIN (SELECT id, COUNT(*) AS c FROM visits GROUP BY id) v ON p.id = v.id
SELECT SUM(p.age) AS n FROM people p JOIN (SELECT id, COUNT(*) AS c FROM visits GROUP BY id) v ON p.id = v.id WHERE v.c > 1
SELECT COUNT(*) AS n FROM people p JOIN (SELECT city, COUNT(*) AS c FROM visits GROUP BY city) v ON p.city = v.city
WITH x AS (SELECT * FROM people) SELECT COUNT(*) AS n FROM x a JOIN x b ON a.id = b.id
WITH x AS (SELECT id, city FROM people), y AS (SELECT id, age FROM visits) SELECT city, SUM(age) AS n FROM x JOIN y ON x.id = y.id GROUP BY city
SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 2
SELECT name, COUNT(*) AS n FROM people GROUP BY name
SELECT name, age, COUNT(*) AS n FROM people GROUP BY name, age
SELECT id, COUNT(*) AS n FROM people GROUP BY id
SELECT CASE WHEN id = 9 THEN 1 ELSE 0 END AS k, COUNT(*) AS n FROM people GROUP BY 1
SELECT SUM(CASE WHEN id = 9 THEN age ELSE 0 END) AS n FROM people
SELECT MODE(city) AS m, MEDIAN(age) AS q, MIN(pay) AS a, MAX(pay) AS b FROM people
SELECT city, MEDIAN(age) AS q FROM people GROUP BY city
SELECT VAR_SAMP(age) AS v, STDDEV_POP(pay) AS s FROM people
SELECT SUM(age * pay) AS n, SUM(age * age * age) AS m FROM people
SELECT SUM(-pay) AS n, SUM(1000 * pay) AS m FROM people
SELECT SUM(pay / (age - 50)) AS n FROM people
SELECT SUM(LEAST(GREATEST(pay / (age - 50), -10), 10)) AS n FROM people
SELECT COUNT(*) FILTER (WHERE age > 10) AS n FROM people
SELECT day, COUNT(*) AS n FROM people GROUP BY day
SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n FROM people GROUP BY 1
SELECT flag, AVG(CASE WHEN flag THEN 1 ELSE 0 END) AS n FROM people GROUP BY flag
SELECT COUNT(*) AS n FROM people TABLESAMPLE 10 PERCENT
SELECT COUNT(*) AS n FROM people WHERE (SELECT COUNT(*) FROM visits) > 5
SELECT (SELECT COUNT(*) FROM visits) AS a, COUNT(*) AS n FROM people
SELECT COUNT(*) AS n FROM people GROUP BY ROLLUP (city)
SELECT COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((city), ())
SELECT city, COUNT(*) AS n FROM people GROUP BY ALL
SELECT ANY_VALUE(name) AS n FROM people
SELECT STRING_AGG(name, ',') AS n FROM people
SELECT SUM(DISTINCT age) AS n FROM people
SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.id JOIN visits w ON v.id = w.id
SELECT COUNT(*) AS n FROM people p JOIN visits v ON p.id = v.id JOIN towns t ON v.city = t.city
SELECT COUNT(DISTINCT p.city) AS n FROM people p JOIN visits v ON p.id = v.id
SELECT p.city, COUNT(DISTINCT v.id) AS n FROM people p LEFT JOIN visits v ON p.id = v.id GROUP BY p.city
SELECT v.city, COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.id = v.id GROUP BY v.city
SELECT COUNT(*) AS n FROM (SELECT v.id, p.age FROM people p LEFT JOIN visits v ON p.id = v.id) x
SELECT COUNT(*) AS n FROM (SELECT id, age FROM people) x WHERE id IN (SELECT id FROM (SELECT id, COUNT(*) AS c FROM visits GROUP BY id) y WHERE c > 1)
SELECT COUNT(*) AS n FROM people WHERE id = (SELECT MAX(id) FROM visits)
SELECT COUNT(*) AS n FROM people WHERE id IN (SELECT age FROM visits)
SELECT COUNT(*) AS n FROM people WHERE age IN (SELECT id FROM visits)
SELECT COUNT(*) AS n FROM people WHERE (id, city) IN (SELECT id, city FROM visits)
