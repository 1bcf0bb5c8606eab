-- Invoice lines of a gift shop; whom to protect is the customer. Lines without a customer are left out.

-- id: retail/lines
-- expect: answered
SELECT COUNT(*) AS lines FROM sales;

-- id: retail/customers
-- expect: answered
SELECT COUNT(DISTINCT customer_id) AS customers FROM sales;

-- id: retail/revenue
-- expect: answered
SELECT SUM(quantity * price) AS revenue FROM sales WHERE quantity > 0;

-- id: retail/revenue-by-month
-- expect: answered
SELECT EXTRACT(YEAR FROM invoice_date) AS year, EXTRACT(MONTH FROM invoice_date) AS month,
       SUM(quantity * price) AS revenue
FROM sales
GROUP BY EXTRACT(YEAR FROM invoice_date), EXTRACT(MONTH FROM invoice_date)
ORDER BY year, month;

-- id: retail/lines-by-month-start
-- expect: answered
SELECT DATE_TRUNC('month', invoice_date) AS month, COUNT(*) AS lines FROM sales
GROUP BY DATE_TRUNC('month', invoice_date) ORDER BY month;

-- id: retail/hours
-- expect: answered
SELECT EXTRACT(HOUR FROM invoice_date) AS hour, COUNT(*) AS lines FROM sales
GROUP BY EXTRACT(HOUR FROM invoice_date) ORDER BY hour;

-- id: retail/weekdays
-- expect: answered
SELECT EXTRACT(DOW FROM invoice_date) AS weekday, COUNT(DISTINCT customer_id) AS customers, SUM(quantity) AS pieces
FROM sales GROUP BY EXTRACT(DOW FROM invoice_date);

-- id: retail/countries
-- expect: answered
-- keys: unknown
SELECT country, COUNT(DISTINCT customer_id) AS customers FROM sales GROUP BY country ORDER BY customers DESC;

-- id: retail/continents
-- expect: answered
SELECT c.continent, COUNT(*) AS lines, SUM(s.quantity) AS pieces
FROM sales s JOIN countries c ON s.country = c.country
GROUP BY c.continent;

-- id: retail/european-customers
-- expect: answered
SELECT c.country, COUNT(DISTINCT s.customer_id) AS customers
FROM sales s JOIN countries c ON s.country = c.country
WHERE c.continent = 'Europe'
GROUP BY c.country;

-- id: retail/products
-- expect: answered
-- keys: unknown
SELECT stock_code, COUNT(*) AS lines, SUM(quantity) AS pieces FROM sales GROUP BY stock_code;

-- id: retail/best-sellers
-- expect: answered
-- keys: unknown
SELECT description, SUM(quantity) AS pieces FROM sales WHERE quantity > 0
GROUP BY description ORDER BY pieces DESC LIMIT 10;

-- id: retail/cancelled
-- expect: answered
SELECT COUNT(*) AS cancelled FROM sales WHERE invoice LIKE 'C%';

-- id: retail/share-cancelled
-- expect: answered
SELECT AVG(CASE WHEN invoice LIKE 'C%' THEN 1.0 ELSE 0.0 END) AS share FROM sales;

-- id: retail/hearts
-- expect: answered
SELECT COUNT(*) AS lines, AVG(price) AS mean_price FROM sales WHERE LOWER(description) LIKE '%heart%';

-- id: retail/mean-price
-- expect: answered
SELECT AVG(price) AS mean_price, STDDEV(price) AS spread FROM sales WHERE price > 0;

-- id: retail/median-quantity
-- expect: answered
SELECT MEDIAN(quantity) AS median_quantity FROM sales;

-- id: retail/price-percentiles
-- expect: answered
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) AS p50,
       PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY price) AS p95
FROM sales WHERE quantity > 0;

-- id: retail/price-buckets
-- expect: answered
SELECT FLOOR(price / 5) * 5 AS bucket, COUNT(*) AS lines FROM sales WHERE price < 50
GROUP BY FLOOR(price / 5) * 5 ORDER BY bucket;

-- id: retail/lines-per-customer
-- expect: refused: a mean of something that has no bounds
SELECT AVG(lines) AS lines_per_customer FROM (SELECT customer_id, COUNT(*) AS lines FROM sales GROUP BY customer_id) AS c;

-- id: retail/lines-per-customer-at-most
-- expect: answered
SELECT AVG(LEAST(lines, 200)) AS lines_per_customer
FROM (SELECT customer_id, COUNT(*) AS lines FROM sales GROUP BY customer_id) AS c;

-- id: retail/customer-value
-- expect: answered
WITH value AS (SELECT customer_id, SUM(quantity * price) AS spent FROM sales GROUP BY customer_id)
SELECT AVG(LEAST(GREATEST(spent, 0), 10000)) AS mean_value, MEDIAN(LEAST(GREATEST(spent, 0), 10000)) AS median_value
FROM value;

-- id: retail/customers-by-value
-- expect: answered
WITH value AS (SELECT customer_id, SUM(quantity * price) AS spent FROM sales GROUP BY customer_id)
SELECT CASE WHEN spent < 100 THEN 'low' WHEN spent < 1000 THEN 'middle' ELSE 'high' END AS class, COUNT(*) AS customers
FROM value
GROUP BY CASE WHEN spent < 100 THEN 'low' WHEN spent < 1000 THEN 'middle' ELSE 'high' END;

-- id: retail/repeat-customers
-- expect: answered
SELECT COUNT(*) AS customers
FROM (SELECT customer_id, COUNT(DISTINCT invoice) AS invoices FROM sales GROUP BY customer_id HAVING COUNT(DISTINCT invoice) > 1) AS repeated;

-- id: retail/active-months
-- expect: answered
WITH active AS (SELECT customer_id, EXTRACT(MONTH FROM invoice_date) AS month, COUNT(*) AS lines FROM sales
                GROUP BY customer_id, EXTRACT(MONTH FROM invoice_date))
SELECT month, COUNT(*) AS customers FROM active GROUP BY month ORDER BY month;

-- id: retail/christmas
-- expect: answered
SELECT COUNT(*) AS lines, SUM(quantity) AS pieces FROM sales
WHERE invoice_date >= TIMESTAMP '2010-11-01 00:00:00' AND invoice_date < TIMESTAMP '2010-12-01 00:00:00';

-- id: retail/distinct-products
-- expect: answered
SELECT COUNT(DISTINCT stock_code) AS products FROM sales WHERE quantity > 0;

-- id: retail/large-lines
-- expect: answered
SELECT MAX(quantity) AS most, MIN(price) AS cheapest FROM sales WHERE quantity > 0;

-- id: retail/returns-and-sales
-- expect: answered
SELECT kind, COUNT(*) AS lines
FROM (SELECT customer_id, 'sale' AS kind FROM sales WHERE quantity > 0
      UNION ALL
      SELECT customer_id, 'return' AS kind FROM sales WHERE quantity <= 0) AS moves
GROUP BY kind;

-- id: retail/mean-basket-by-country
-- expect: answered
-- keys: unknown
SELECT country, SUM(quantity * price) / COUNT(*) AS mean_line, COUNT(*) AS lines FROM sales
GROUP BY country HAVING COUNT(*) > 20;

-- id: retail/bigquery-clause
-- expect: answered
-- keys: unknown
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, privacy_unit_column = customer_id,
       max_groups_contributed = 2)
  country, COUNT(*) AS lines FROM sales GROUP BY country;

-- id: retail/interval
-- expect: answered
SELECT COUNT(*) AS lines, DP_LOW(lines) AS low, DP_HIGH(lines) AS high FROM sales;

-- id: retail/biggest-customers
-- expect: refused: one row for each unit
SELECT customer_id, SUM(quantity * price) AS spent FROM sales GROUP BY customer_id ORDER BY spent DESC LIMIT 20;

-- id: retail/last-invoice
-- expect: refused: the largest of a column without bounds
SELECT MAX(invoice) AS last_invoice FROM sales;

-- id: retail/bought-together
-- expect: refused: private tables joined on something else than the unit
SELECT COUNT(*) AS pairs FROM sales a JOIN sales b ON a.invoice = b.invoice AND a.stock_code < b.stock_code;

-- id: retail/length-of-descriptions
-- expect: refused: a sum without bounds
SELECT SUM(LENGTH(description)) AS letters FROM sales;

-- id: retail/first-lines
-- expect: refused: rows picked before anything is bounded
SELECT SUM(quantity) AS pieces FROM (SELECT customer_id, quantity FROM sales ORDER BY invoice_date LIMIT 100) AS first_lines;

-- id: retail/mean-of-monthly-counts
-- expect: refused: an aggregate over groups that are not units
SELECT AVG(lines) AS mean_lines
FROM (SELECT EXTRACT(MONTH FROM invoice_date) AS month, COUNT(*) AS lines FROM sales GROUP BY EXTRACT(MONTH FROM invoice_date)) AS months;

-- id: retail/sample
-- expect: refused: a sample drawn by the engine
SELECT COUNT(*) AS lines FROM sales TABLESAMPLE 10 PERCENT;
