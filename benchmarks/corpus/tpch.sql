-- Orders of customers, after the shape of TPC-H. Every private table carries the customer's key; nation, region and
-- part are public.

-- id: tpch/orders
-- expect: answered
SELECT COUNT(*) AS orders FROM orders;

-- id: tpch/customers-with-orders
-- expect: answered
SELECT COUNT(DISTINCT custkey) AS customers FROM orders;

-- id: tpch/orders-by-priority
-- expect: answered
SELECT orderpriority, COUNT(*) AS orders FROM orders GROUP BY orderpriority ORDER BY orderpriority;

-- id: tpch/pricing-summary
-- expect: answered
SELECT returnflag, linestatus, SUM(quantity) AS sum_qty, SUM(extendedprice) AS sum_base_price,
       SUM(extendedprice * (1 - discount)) AS sum_disc_price, AVG(quantity) AS avg_qty, AVG(extendedprice) AS avg_price,
       AVG(discount) AS avg_disc, COUNT(*) AS count_order
FROM lineitem
WHERE shipdate <= DATE '1998-09-02'
GROUP BY returnflag, linestatus
ORDER BY returnflag, linestatus;

-- id: tpch/forecast-revenue-change
-- expect: answered
SELECT SUM(extendedprice * discount) AS revenue
FROM lineitem
WHERE shipdate >= DATE '1994-01-01' AND shipdate < DATE '1995-01-01' AND discount BETWEEN 0.05 AND 0.07
  AND quantity < 24;

-- id: tpch/revenue-by-year
-- expect: answered
SELECT EXTRACT(YEAR FROM orderdate) AS year, SUM(totalprice) AS revenue FROM orders
GROUP BY EXTRACT(YEAR FROM orderdate) ORDER BY year;

-- id: tpch/orders-by-quarter
-- expect: answered
SELECT EXTRACT(YEAR FROM orderdate) AS year, EXTRACT(QUARTER FROM orderdate) AS quarter, COUNT(*) AS orders
FROM orders
GROUP BY EXTRACT(YEAR FROM orderdate), EXTRACT(QUARTER FROM orderdate);

-- id: tpch/market-segments
-- expect: answered
SELECT mktsegment, COUNT(*) AS customers, AVG(acctbal) AS balance FROM customer GROUP BY mktsegment;

-- id: tpch/customers-by-nation
-- expect: answered
SELECT n.nation_name, COUNT(*) AS customers FROM customer c JOIN nation n ON c.nationkey = n.nationkey
GROUP BY n.nation_name ORDER BY customers DESC;

-- id: tpch/customers-by-region
-- expect: answered
SELECT r.region_name, COUNT(*) AS customers, AVG(c.acctbal) AS balance
FROM customer c
JOIN nation n ON c.nationkey = n.nationkey
JOIN region r ON n.regionkey = r.regionkey
GROUP BY r.region_name;

-- id: tpch/asian-revenue
-- expect: answered
SELECT n.nation_name, SUM(o.totalprice) AS revenue
FROM orders o
JOIN customer c ON o.custkey = c.custkey
JOIN nation n ON c.nationkey = n.nationkey
JOIN region r ON n.regionkey = r.regionkey
WHERE r.region_name = 'ASIA' AND o.orderdate >= DATE '1994-01-01'
GROUP BY n.nation_name;

-- id: tpch/revenue-by-segment
-- expect: answered
SELECT c.mktsegment, SUM(o.totalprice) AS revenue, COUNT(*) AS orders
FROM customer c JOIN orders o ON c.custkey = o.custkey
GROUP BY c.mktsegment;

-- id: tpch/shipping-modes-of-urgent-orders
-- expect: answered
SELECT l.shipmode,
       SUM(CASE WHEN o.orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_lines,
       SUM(CASE WHEN o.orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_lines
FROM lineitem l JOIN orders o ON l.custkey = o.custkey AND l.orderkey = o.orderkey
WHERE l.shipmode IN ('MAIL', 'SHIP')
GROUP BY l.shipmode;

-- id: tpch/revenue-of-brands
-- expect: answered
SELECT p.brand, SUM(l.extendedprice * (1 - l.discount)) AS revenue
FROM lineitem l JOIN part p ON l.partkey = p.partkey
GROUP BY p.brand ORDER BY revenue DESC LIMIT 5;

-- id: tpch/small-quantity-revenue
-- expect: answered
SELECT AVG(l.extendedprice) AS average_price
FROM lineitem l JOIN part p ON l.partkey = p.partkey
WHERE p.size BETWEEN 1 AND 15 AND l.quantity < 10;

-- id: tpch/discounted-lines-of-big-parts
-- expect: answered
SELECT COUNT(*) AS lines, SUM(l.quantity) AS pieces
FROM lineitem l LEFT JOIN part p ON l.partkey = p.partkey
WHERE p.retailprice > 1000 AND l.discount >= 0.05;

-- id: tpch/orders-per-customer
-- expect: refused: a mean of something that has no bounds
SELECT AVG(n) AS orders_per_customer FROM (SELECT custkey, COUNT(*) AS n FROM orders GROUP BY custkey) AS per_customer;

-- id: tpch/orders-per-customer-at-most
-- expect: answered
SELECT AVG(LEAST(n, 20)) AS orders_per_customer
FROM (SELECT custkey, COUNT(*) AS n FROM orders GROUP BY custkey) AS per_customer;

-- id: tpch/customer-distribution
-- expect: answered
WITH per_customer AS (SELECT custkey, COUNT(*) AS n FROM orders GROUP BY custkey)
SELECT LEAST(n, 10) AS orders, COUNT(*) AS customers FROM per_customer GROUP BY LEAST(n, 10) ORDER BY orders;

-- id: tpch/big-spenders
-- expect: answered
WITH spent AS (SELECT custkey, SUM(totalprice) AS total FROM orders GROUP BY custkey)
SELECT COUNT(*) AS customers FROM spent WHERE total > 500000;

-- id: tpch/spending-of-segments
-- expect: answered
WITH spent AS (SELECT custkey, SUM(totalprice) AS total FROM orders GROUP BY custkey)
SELECT c.mktsegment, COUNT(*) AS customers
FROM customer c JOIN spent s ON c.custkey = s.custkey
WHERE s.total > 200000
GROUP BY c.mktsegment;

-- id: tpch/median-order
-- expect: answered
SELECT MEDIAN(totalprice) AS median_price FROM orders;

-- id: tpch/median-order-by-status
-- expect: answered
SELECT orderstatus, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY totalprice) AS median_price
FROM orders GROUP BY orderstatus;

-- id: tpch/ninetieth-price
-- expect: answered
SELECT QUANTILE_CONT(totalprice, 0.9) AS p90 FROM orders WHERE orderstatus = 'F';

-- id: tpch/price-range
-- expect: answered
SELECT MIN(totalprice) AS cheapest, MAX(totalprice) AS dearest FROM orders;

-- id: tpch/price-spread
-- expect: answered
SELECT orderpriority, STDDEV(totalprice) AS spread, VARIANCE(totalprice) AS variance FROM orders GROUP BY orderpriority;

-- id: tpch/price-histogram
-- expect: answered
SELECT FLOOR(totalprice / 50000) * 50000 AS bucket, COUNT(*) AS orders
FROM orders GROUP BY FLOOR(totalprice / 50000) * 50000 ORDER BY bucket;

-- id: tpch/clerks
-- expect: answered
-- keys: unknown
SELECT clerk, COUNT(*) AS orders FROM orders GROUP BY clerk;

-- id: tpch/busiest-clerks
-- expect: answered
-- keys: unknown
SELECT clerk, COUNT(*) AS orders, SUM(totalprice) AS revenue
FROM orders GROUP BY clerk HAVING COUNT(*) > 20 ORDER BY orders DESC LIMIT 10;

-- id: tpch/late-receipts
-- expect: answered
SELECT shipmode, COUNT(*) AS lines, AVG(CASE WHEN receiptdate > shipdate THEN 1.0 ELSE 0.0 END) AS share_after_shipping
FROM lineitem GROUP BY shipmode;

-- id: tpch/customers-without-orders
-- expect: answered
SELECT COUNT(*) AS customers
FROM customer c LEFT JOIN (SELECT custkey, COUNT(*) AS n FROM orders GROUP BY custkey) o ON c.custkey = o.custkey
WHERE o.n IS NULL;

-- id: tpch/negative-balances
-- expect: answered
SELECT COUNT(*) AS customers, AVG(acctbal) AS balance FROM customer WHERE acctbal < 0;

-- id: tpch/phone-country-codes
-- expect: answered
-- keys: unknown
SELECT SUBSTRING(phone, 1, 2) AS code, COUNT(*) AS customers, SUM(acctbal) AS balance
FROM customer GROUP BY SUBSTRING(phone, 1, 2);

-- id: tpch/all-prices
-- expect: answered
SELECT COUNT(*) AS amounts, SUM(amount) AS total
FROM (SELECT custkey, totalprice AS amount FROM orders
      UNION ALL
      SELECT custkey, extendedprice AS amount FROM lineitem) AS amounts;

-- id: tpch/distinct-parts
-- expect: answered
SELECT COUNT(DISTINCT partkey) AS parts FROM lineitem WHERE returnflag = 'R';

-- id: tpch/filtered-counts
-- expect: answered
SELECT COUNT(*) FILTER (WHERE orderstatus = 'O') AS open_orders, COUNT(*) FILTER (WHERE orderstatus = 'F') AS filled
FROM orders;

-- id: tpch/bigquery-clause
-- expect: answered
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, max_groups_contributed = 1,
       privacy_unit_column = custkey)
  orderstatus, COUNT(*) AS orders, SUM(totalprice, contribution_bounds_per_group => (0, 100000)) AS revenue
FROM orders GROUP BY orderstatus;

-- id: tpch/raw-customers
-- expect: refused: raw rows
SELECT custkey, acctbal FROM customer WHERE acctbal > 9000;

-- id: tpch/top-customers
-- expect: refused: one row for each unit
SELECT custkey, SUM(totalprice) AS spent FROM orders GROUP BY custkey ORDER BY spent DESC LIMIT 10;

-- id: tpch/orders-lines-not-on-the-customer
-- expect: refused: private tables joined on something else than the unit
SELECT COUNT(*) AS pairs FROM orders a JOIN lineitem b ON a.orderdate = b.shipdate;

-- id: tpch/above-average-orders
-- expect: refused: a sub-query over everybody inside of a condition
SELECT COUNT(*) AS orders FROM orders WHERE totalprice > (SELECT AVG(totalprice) FROM orders);

-- id: tpch/order-exists-correlated
-- expect: refused: a correlated sub-query
SELECT orderpriority, COUNT(*) AS orders FROM orders o
WHERE EXISTS (SELECT 1 FROM lineitem l WHERE l.orderkey = o.orderkey AND l.shipdate < l.receiptdate)
GROUP BY orderpriority;

-- id: tpch/running-total
-- expect: refused: a window over rows
SELECT orderdate, SUM(totalprice) OVER (ORDER BY orderdate) AS running FROM orders;

-- id: tpch/second-order
-- expect: answered
SELECT COUNT(*) AS second_orders
FROM (SELECT custkey, ROW_NUMBER() OVER (PARTITION BY custkey ORDER BY orderdate) AS place FROM orders) AS placed
WHERE place = 2;
