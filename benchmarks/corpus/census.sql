-- Census extracts in which every row is a person: `adult` and `pums`.

-- id: adult/people
-- expect: answered
SELECT COUNT(*) AS people FROM adult;

-- id: adult/people-by-sex
-- expect: answered
SELECT sex, COUNT(*) AS people FROM adult GROUP BY sex;

-- id: adult/mean-age
-- expect: answered
SELECT AVG(age) AS mean_age FROM adult;

-- id: adult/hours-by-education
-- expect: answered
SELECT education, AVG(hours_per_week) AS hours, COUNT(*) AS people FROM adult GROUP BY education ORDER BY hours DESC;

-- id: adult/income-by-sex-and-race
-- expect: answered
SELECT sex, race, COUNT(*) AS people, SUM(CASE WHEN income = '>50K' THEN 1 ELSE 0 END) AS rich
FROM adult GROUP BY sex, race;

-- id: adult/share-of-rich
-- expect: answered
SELECT education, AVG(CASE WHEN income = '>50K' THEN 1.0 ELSE 0.0 END) AS share FROM adult GROUP BY education;

-- id: adult/age-histogram
-- expect: answered
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS people FROM adult GROUP BY FLOOR(age / 10) * 10 ORDER BY decade;

-- id: adult/age-classes
-- expect: answered
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS class, COUNT(*) AS people
FROM adult
GROUP BY CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END;

-- id: adult/capital
-- expect: answered
SELECT SUM(capital_gain) AS gain, SUM(capital_loss) AS loss, SUM(capital_gain - capital_loss) AS net FROM adult;

-- id: adult/workclass-with-missing
-- expect: answered
SELECT workclass, COUNT(*) AS people FROM adult WHERE workclass IS NOT NULL GROUP BY workclass;

-- id: adult/unknown-occupation
-- expect: answered
SELECT COUNT(*) AS people FROM adult WHERE occupation IS NULL OR workclass IS NULL;

-- id: adult/countries
-- expect: answered
-- keys: unknown
SELECT native_country, COUNT(*) AS people FROM adult GROUP BY native_country ORDER BY people DESC;

-- id: adult/married-managers
-- expect: answered
SELECT COUNT(*) AS people, AVG(hours_per_week) AS hours FROM adult
WHERE marital_status LIKE 'Married%' AND occupation = 'Exec-managerial' AND age BETWEEN 30 AND 50;

-- id: adult/median-age
-- expect: answered
SELECT MEDIAN(age) AS median_age FROM adult;

-- id: adult/age-quartiles
-- expect: answered
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q1, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) AS q3
FROM adult;

-- id: adult/hours-range
-- expect: answered
SELECT MIN(hours_per_week) AS least, MAX(hours_per_week) AS most FROM adult;

-- id: adult/most-common-occupation
-- expect: answered
SELECT MODE(occupation) AS occupation FROM adult WHERE income = '>50K';

-- id: adult/spread-of-hours
-- expect: answered
SELECT sex, STDDEV_SAMP(hours_per_week) AS spread, VAR_POP(age) AS age_variance FROM adult GROUP BY sex;

-- id: adult/levels
-- expect: answered
SELECT e.level, COUNT(*) AS people, AVG(a.age) AS mean_age
FROM adult a JOIN education_levels e ON a.education = e.education
GROUP BY e.level;

-- id: adult/having-large-groups
-- expect: answered
SELECT occupation, COUNT(*) AS people FROM adult GROUP BY occupation HAVING COUNT(*) >= 40 ORDER BY people DESC LIMIT 5;

-- id: adult/weekly-hours-per-year
-- expect: answered
SELECT SUM(hours_per_week * 52) AS yearly_hours, AVG(hours_per_week * 52.0 / 12) AS monthly FROM adult;

-- id: adult/distinct-ages
-- expect: answered
SELECT COUNT(DISTINCT age) AS ages FROM adult;

-- id: adult/nested-filter
-- expect: answered
SELECT sex, COUNT(*) AS people
FROM (SELECT sex, age, hours_per_week FROM adult WHERE education_num > 9) AS educated
WHERE hours_per_week > 40 AND age > 25
GROUP BY sex;

-- id: adult/with-clause
-- expect: answered
WITH workers AS (SELECT age, sex, hours_per_week FROM adult WHERE workclass = 'Private')
SELECT sex, AVG(age) AS mean_age, COUNT(*) AS people FROM workers GROUP BY sex;

-- id: adult/coalesced-workclass
-- expect: answered
SELECT COALESCE(workclass, 'unknown') AS workclass, COUNT(*) AS people FROM adult GROUP BY COALESCE(workclass, 'unknown');

-- id: adult/bigquery-clause
-- expect: answered
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6) income, COUNT(*) AS people, AVG(age) AS mean_age
FROM adult GROUP BY income;

-- id: adult/raw-rows
-- expect: refused: raw rows
SELECT * FROM adult WHERE age > 85;

-- id: adult/self-join
-- expect: refused: two private rows meet where each row is a unit
SELECT COUNT(*) AS pairs FROM adult a JOIN adult b ON a.age = b.age AND a.occupation = b.occupation;

-- id: adult/share-of-total-by-window
-- expect: refused: a window function
SELECT education, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent FROM adult GROUP BY education;

-- id: adult/listed-occupations
-- expect: refused: a list of raw values
SELECT sex, STRING_AGG(occupation, ', ') AS occupations FROM adult GROUP BY sex;

-- id: adult/distinct-rows
-- expect: refused: values of rows without an aggregate
SELECT DISTINCT native_country FROM adult;

-- id: pums/people
-- expect: answered
SELECT COUNT(*) AS people FROM pums WHERE age >= 65;

-- id: pums/income-by-education
-- expect: answered
SELECT educ, AVG(income) AS mean_income, COUNT(*) AS people FROM pums GROUP BY educ ORDER BY educ;

-- id: pums/married-by-sex
-- expect: answered
SELECT sex, married, COUNT(*) AS people, SUM(income) AS income FROM pums GROUP BY sex, married;

-- id: pums/income-deciles
-- expect: answered
SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY income) AS p10,
       PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS p50,
       PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income) AS p90
FROM pums;

-- id: pums/income-histogram
-- expect: answered
SELECT FLOOR(income / 50000) AS bucket, COUNT(*) AS people FROM pums GROUP BY FLOOR(income / 50000) ORDER BY bucket;

-- id: pums/pumas
-- expect: answered
-- keys: unknown
SELECT puma, COUNT(*) AS people, AVG(income) AS mean_income FROM pums GROUP BY puma;

-- id: pums/minority-share
-- expect: answered
SELECT AVG(CASE WHEN latino = 1 OR black = 1 OR asian = 1 THEN 1.0 ELSE 0.0 END) AS share FROM pums;

-- id: pums/clipped-income
-- expect: answered
SELECT sex, AVG(LEAST(GREATEST(income, 0), 200000)) AS mean_income FROM pums GROUP BY sex;

-- id: pums/gap
-- expect: answered
SELECT SUM(CASE WHEN sex = 0 THEN income ELSE 0 END) AS one, SUM(CASE WHEN sex = 1 THEN income ELSE 0 END) AS other,
       COUNT(*) AS people
FROM pums WHERE educ >= 13;

-- id: pums/squared-ages
-- expect: answered
SELECT SUM(age * age) AS squares, SUM(age) AS total, COUNT(age) AS people FROM pums;

-- id: pums/correlation
-- expect: answered
SELECT CORR(age, income) AS correlation FROM pums;

-- id: pums/any-row
-- expect: refused: a raw value
SELECT married, ANY_VALUE(income) AS income FROM pums GROUP BY married;
