-- Flights out of New York; whom to protect is the plane. Airlines and airports are public.

-- id: flights/flights
-- expect: answered
SELECT COUNT(*) AS flights FROM flights;

-- id: flights/planes
-- expect: answered
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights;

-- id: flights/flights-by-month
-- expect: answered
SELECT month, COUNT(*) AS flights FROM flights GROUP BY month ORDER BY month;

-- id: flights/delay-by-origin
-- expect: answered
SELECT origin, AVG(dep_delay) AS departure, AVG(arr_delay) AS arrival, COUNT(*) AS flights FROM flights GROUP BY origin;

-- id: flights/delay-by-hour
-- expect: answered
SELECT hour, AVG(dep_delay) AS delay FROM flights GROUP BY hour ORDER BY hour;

-- id: flights/airlines
-- expect: answered
SELECT a.name, COUNT(*) AS flights, AVG(f.arr_delay) AS delay
FROM flights f JOIN airlines a ON f.carrier = a.carrier
GROUP BY a.name ORDER BY delay DESC;

-- id: flights/carriers
-- expect: answered
-- keys: unknown
SELECT carrier, COUNT(*) AS flights FROM flights GROUP BY carrier;

-- id: flights/destinations
-- expect: answered
SELECT p.airport_name, COUNT(*) AS flights
FROM flights f JOIN airports p ON f.dest = p.faa
GROUP BY p.airport_name ORDER BY flights DESC LIMIT 10;

-- id: flights/time-zones
-- expect: answered
SELECT p.tz, COUNT(*) AS flights, AVG(f.distance) AS distance
FROM flights f JOIN airports p ON f.dest = p.faa
GROUP BY p.tz;

-- id: flights/high-airports
-- expect: answered
SELECT COUNT(*) AS flights, AVG(f.air_time) AS minutes
FROM flights f LEFT JOIN airports p ON f.dest = p.faa
WHERE p.alt > 1000;

-- id: flights/airlines-at-origins
-- expect: answered
SELECT a.name, f.origin, COUNT(*) AS flights
FROM flights f INNER JOIN airlines a ON f.carrier = a.carrier
WHERE f.month IN (6, 7, 8)
GROUP BY a.name, f.origin;

-- id: flights/cancelled
-- expect: answered
SELECT month, COUNT(*) - COUNT(dep_delay) AS cancelled FROM flights GROUP BY month;

-- id: flights/missing-delays
-- expect: answered
SELECT COUNT(*) AS flights, COUNT(dep_delay) AS departed, COUNT(arr_delay) AS arrived FROM flights;

-- id: flights/late-share
-- expect: answered
SELECT origin, AVG(CASE WHEN arr_delay > 15 THEN 1.0 ELSE 0.0 END) AS late FROM flights WHERE arr_delay IS NOT NULL
GROUP BY origin;

-- id: flights/late-share-as-ratio
-- expect: answered
SELECT origin, 100.0 * SUM(CASE WHEN arr_delay > 30 THEN 1 ELSE 0 END) / COUNT(*) AS percent FROM flights GROUP BY origin;

-- id: flights/made-up-time
-- expect: answered
SELECT AVG(dep_delay - arr_delay) AS made_up FROM flights;

-- id: flights/speed
-- expect: answered
SELECT SUM(distance) / SUM(air_time) * 60 AS miles_per_hour FROM flights WHERE air_time > 0;

-- id: flights/median-delay
-- expect: answered
SELECT MEDIAN(dep_delay) AS median_delay FROM flights;

-- id: flights/delay-percentiles-by-origin
-- expect: answered
SELECT origin, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY arr_delay) AS p50,
       PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY arr_delay) AS p90
FROM flights GROUP BY origin;

-- id: flights/longest
-- expect: answered
SELECT MAX(distance) AS longest, MIN(air_time) AS shortest FROM flights;

-- id: flights/spread
-- expect: answered
SELECT STDDEV(arr_delay) AS spread, VARIANCE(dep_delay) AS variance FROM flights WHERE month BETWEEN 1 AND 6;

-- id: flights/seats
-- expect: answered
SELECT AVG(seats) AS seats, COUNT(*) AS planes FROM planes;

-- id: flights/engines
-- expect: answered
SELECT engine, COUNT(*) AS planes, AVG(seats) AS seats FROM planes GROUP BY engine;

-- id: flights/manufacturers
-- expect: answered
-- keys: unknown
SELECT manufacturer, COUNT(*) AS planes FROM planes GROUP BY manufacturer ORDER BY planes DESC;

-- id: flights/flights-by-engine
-- expect: answered
SELECT p.engine, COUNT(*) AS flights FROM flights f JOIN planes p ON f.tailnum = p.tailnum GROUP BY p.engine;

-- id: flights/seats-flown
-- expect: answered
SELECT f.origin, SUM(p.seats) AS seats
FROM flights f JOIN planes p USING (tailnum)
GROUP BY f.origin;

-- id: flights/old-planes
-- expect: answered
SELECT FLOOR(p.built / 10) * 10 AS decade, AVG(f.arr_delay) AS delay, COUNT(*) AS flights
FROM flights f JOIN planes p ON f.tailnum = p.tailnum
WHERE p.built IS NOT NULL
GROUP BY FLOOR(p.built / 10) * 10;

-- id: flights/makers-of-airlines
-- expect: answered
-- keys: unknown
SELECT a.name, p.manufacturer, COUNT(*) AS flights
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
GROUP BY a.name, p.manufacturer;

-- id: flights/flights-per-plane
-- expect: refused: a mean of something that has no bounds
WITH per_plane AS (SELECT tailnum, COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights GROUP BY tailnum)
SELECT AVG(n) AS flights, AVG(delay) AS mean_of_means FROM per_plane;

-- id: flights/flights-per-plane-at-most
-- expect: answered
WITH per_plane AS (SELECT tailnum, COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights GROUP BY tailnum)
SELECT AVG(LEAST(n, 400)) AS flights, AVG(delay) AS mean_of_means FROM per_plane;

-- id: flights/busy-planes
-- expect: answered
SELECT COUNT(*) AS planes FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS per_plane WHERE n > 3;

-- id: flights/busy-planes-by-engine
-- expect: answered
WITH per_plane AS (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum)
SELECT p.engine, AVG(LEAST(f.n, 500)) AS flights
FROM planes p JOIN per_plane f ON p.tailnum = f.tailnum
GROUP BY p.engine;

-- id: flights/morning-and-evening
-- expect: answered
SELECT CASE WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END AS part,
       COUNT(*) AS flights, AVG(dep_delay) AS delay
FROM flights
GROUP BY CASE WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END;

-- id: flights/weekdays
-- expect: answered
SELECT EXTRACT(DOW FROM time_hour) AS weekday, COUNT(*) AS flights FROM flights GROUP BY EXTRACT(DOW FROM time_hour);

-- id: flights/holiday-week
-- expect: answered
SELECT COUNT(*) AS flights FROM flights
WHERE CAST(time_hour AS DATE) BETWEEN DATE '2013-12-20' AND DATE '2013-12-27';

-- id: flights/raw-delays
-- expect: refused: raw rows
SELECT tailnum, arr_delay FROM flights WHERE arr_delay > 200 ORDER BY arr_delay DESC;

-- id: flights/same-day-planes
-- expect: refused: private tables joined on something else than the unit
SELECT COUNT(*) AS pairs FROM flights a JOIN flights b ON a.month = b.month AND a.day = b.day AND a.dest = b.dest;

-- id: flights/previous-flight
-- expect: refused: a window over rows
SELECT AVG(arr_delay - previous) AS change
FROM (SELECT tailnum, arr_delay, LAG(arr_delay) OVER (PARTITION BY tailnum ORDER BY time_hour) AS previous FROM flights) AS f;

-- id: flights/recursive
-- expect: refused: a recursive query
WITH RECURSIVE hops AS (SELECT origin, dest, 1 AS n FROM flights UNION ALL
     SELECT h.origin, f.dest, h.n + 1 FROM hops h JOIN flights f ON h.dest = f.origin WHERE h.n < 3)
SELECT COUNT(*) AS routes FROM hops;

-- id: flights/late-planes-of-others
-- expect: refused: a condition that depends on other planes
SELECT COUNT(*) AS flights FROM flights WHERE dest IN (SELECT dest FROM flights WHERE arr_delay > 200);
