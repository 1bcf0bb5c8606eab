-- The same questions in the words of those who spell them otherwise. `plain` is DuckDB without privacy.

-- id: tpch/bigquery-clause
-- for: plain, smartnoise-sql, pyqrlew
SELECT orderstatus, COUNT(*) AS orders, SUM(totalprice) AS revenue FROM orders GROUP BY orderstatus;

-- id: adult/bigquery-clause
-- for: plain, smartnoise-sql, pyqrlew
SELECT income, COUNT(*) AS people, AVG(age) AS mean_age FROM adult GROUP BY income;

-- id: retail/bigquery-clause
-- for: plain, smartnoise-sql, pyqrlew
SELECT country, COUNT(*) AS lines FROM sales GROUP BY country;

-- id: retail/interval
-- for: plain
SELECT COUNT(*) AS lines, COUNT(*) AS low, COUNT(*) AS high FROM sales;

-- id: hospital/bigquery-clause
-- for: plain, smartnoise-sql, pyqrlew
SELECT readmitted, COUNT(*) AS stays, AVG(time_in_hospital) AS days FROM encounters GROUP BY readmitted;

-- id: retail/sample
-- for: plain
SELECT ROUND(COUNT(*) * 0.1) AS lines FROM sales;
