-- Hospital stays of diabetes patients; whom to protect is the patient. Admission types and outcomes are public lists.

-- id: hospital/stays
-- expect: answered
SELECT COUNT(*) AS stays FROM encounters;

-- id: hospital/patients
-- expect: answered
SELECT COUNT(DISTINCT patient_nbr) AS patients FROM encounters;

-- id: hospital/readmissions
-- expect: answered
SELECT readmitted, COUNT(*) AS stays FROM encounters GROUP BY readmitted;

-- id: hospital/readmission-rate-by-age
-- expect: answered
SELECT age, AVG(CASE WHEN readmitted = '<30' THEN 1.0 ELSE 0.0 END) AS rate, COUNT(*) AS stays
FROM encounters GROUP BY age ORDER BY age;

-- id: hospital/days-by-age
-- expect: answered
SELECT age, AVG(time_in_hospital) AS days FROM encounters GROUP BY age;

-- id: hospital/age-and-gender
-- expect: answered
SELECT age, gender, COUNT(*) AS stays FROM encounters WHERE gender IN ('Female', 'Male') GROUP BY age, gender;

-- id: hospital/admission-types
-- expect: answered
SELECT t.admission_type, COUNT(*) AS stays, AVG(e.time_in_hospital) AS days
FROM encounters e JOIN admission_types t ON e.admission_type_id = t.admission_type_id
GROUP BY t.admission_type;

-- id: hospital/outcomes
-- expect: answered
SELECT d.outcome, COUNT(DISTINCT e.patient_nbr) AS patients
FROM encounters e JOIN dispositions d ON e.discharge_disposition_id = d.discharge_disposition_id
GROUP BY d.outcome;

-- id: hospital/outcomes-of-emergencies
-- expect: answered
SELECT d.outcome, COUNT(*) AS stays
FROM encounters e
JOIN dispositions d ON e.discharge_disposition_id = d.discharge_disposition_id
JOIN admission_types t ON e.admission_type_id = t.admission_type_id
WHERE t.admission_type IN ('Emergency', 'Trauma center')
GROUP BY d.outcome;

-- id: hospital/specialties
-- expect: answered
-- keys: unknown
SELECT medical_specialty, COUNT(*) AS stays, AVG(time_in_hospital) AS days FROM encounters
WHERE medical_specialty IS NOT NULL GROUP BY medical_specialty;

-- id: hospital/payers
-- expect: answered
-- keys: unknown
SELECT payer_code, COUNT(DISTINCT patient_nbr) AS patients FROM encounters GROUP BY payer_code;

-- id: hospital/diagnoses
-- expect: answered
-- keys: unknown
SELECT diag_1, COUNT(*) AS stays FROM encounters GROUP BY diag_1 ORDER BY stays DESC LIMIT 20;

-- id: hospital/diabetes-codes
-- expect: answered
SELECT COUNT(*) AS stays FROM encounters WHERE diag_1 LIKE '250%';

-- id: hospital/diagnosis-chapters
-- expect: answered
SELECT CASE WHEN diag_1 LIKE '250%' THEN 'diabetes' WHEN diag_1 LIKE '4%' THEN 'circulation' ELSE 'other' END AS chapter,
       COUNT(*) AS stays, AVG(num_medications) AS medications
FROM encounters
GROUP BY CASE WHEN diag_1 LIKE '250%' THEN 'diabetes' WHEN diag_1 LIKE '4%' THEN 'circulation' ELSE 'other' END;

-- id: hospital/insulin-and-readmission
-- expect: answered
SELECT insulin, readmitted, COUNT(*) AS stays FROM encounters GROUP BY insulin, readmitted;

-- id: hospital/glucose-tests
-- expect: answered
SELECT a1cresult, COUNT(*) AS stays FROM encounters WHERE a1cresult IS NOT NULL GROUP BY a1cresult;

-- id: hospital/share-tested
-- expect: answered
SELECT AVG(CASE WHEN a1cresult IS NULL THEN 0.0 ELSE 1.0 END) AS tested FROM encounters;

-- id: hospital/work-done
-- expect: answered
SELECT SUM(num_lab_procedures) AS tests, SUM(num_procedures) AS procedures, SUM(num_medications) AS medications
FROM encounters;

-- id: hospital/long-stays
-- expect: answered
SELECT COUNT(*) AS stays, AVG(num_medications) AS medications FROM encounters
WHERE time_in_hospital >= 7 AND (number_inpatient > 0 OR number_emergency > 0);

-- id: hospital/median-medications
-- expect: answered
SELECT MEDIAN(num_medications) AS median_medications FROM encounters;

-- id: hospital/median-days-by-readmission
-- expect: answered
SELECT readmitted, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY time_in_hospital) AS days FROM encounters
GROUP BY readmitted;

-- id: hospital/extremes
-- expect: answered
SELECT MIN(num_lab_procedures) AS fewest, MAX(num_lab_procedures) AS most FROM encounters;

-- id: hospital/spread
-- expect: answered
SELECT gender, VAR_SAMP(num_medications) AS variance, STDDEV_POP(time_in_hospital) AS spread
FROM encounters WHERE gender <> 'Unknown/Invalid' GROUP BY gender;

-- id: hospital/days-histogram
-- expect: answered
SELECT time_in_hospital, COUNT(*) AS stays FROM encounters GROUP BY time_in_hospital ORDER BY time_in_hospital;

-- id: hospital/medication-buckets
-- expect: answered
SELECT FLOOR(num_medications / 5) * 5 AS bucket, COUNT(*) AS stays FROM encounters
GROUP BY FLOOR(num_medications / 5) * 5;

-- id: hospital/commonest-insulin
-- expect: answered
SELECT MODE(insulin) AS insulin FROM encounters WHERE diabetesmed = 'Yes';

-- id: hospital/visits-before
-- expect: answered
SELECT AVG(number_outpatient + number_emergency + number_inpatient) AS visits FROM encounters;

-- id: hospital/stays-per-patient
-- expect: refused: a mean of something that has no bounds
SELECT AVG(n) AS stays FROM (SELECT patient_nbr, COUNT(*) AS n FROM encounters GROUP BY patient_nbr) AS per_patient;

-- id: hospital/stays-per-patient-at-most
-- expect: answered
SELECT AVG(LEAST(n, 10)) AS stays FROM (SELECT patient_nbr, COUNT(*) AS n FROM encounters GROUP BY patient_nbr) AS per_patient;

-- id: hospital/frequent-patients
-- expect: answered
WITH per_patient AS (SELECT patient_nbr, COUNT(*) AS n, SUM(time_in_hospital) AS days FROM encounters GROUP BY patient_nbr)
SELECT COUNT(*) AS patients, AVG(LEAST(days, 60)) AS mean_days FROM per_patient WHERE n > 1;

-- id: hospital/ever-readmitted
-- expect: answered
WITH ever AS (SELECT patient_nbr, MAX(CASE WHEN readmitted = 'NO' THEN 0 ELSE 1 END) AS again FROM encounters
              GROUP BY patient_nbr)
SELECT again, COUNT(*) AS patients FROM ever GROUP BY again;

-- id: hospital/medicated
-- expect: answered
SELECT diabetesmed, change, COUNT(*) AS stays FROM encounters GROUP BY diabetesmed, change HAVING COUNT(*) > 10;

-- id: hospital/bigquery-clause
-- expect: answered
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6, privacy_unit_column = patient_nbr,
       max_groups_contributed = 1)
  readmitted, COUNT(*) AS stays, AVG(time_in_hospital) AS days FROM encounters GROUP BY readmitted;

-- id: hospital/raw-patients
-- expect: refused: raw rows
SELECT patient_nbr, encounter_id, diag_1 FROM encounters WHERE race = 'Asian' AND age = '[90-100)';

-- id: hospital/sets
-- expect: refused: a set operation that compares people
SELECT COUNT(*) AS patients
FROM (SELECT patient_nbr FROM encounters WHERE insulin = 'Up' EXCEPT SELECT patient_nbr FROM encounters WHERE change = 'No') AS p;

-- id: hospital/cube
-- expect: refused: grouping sets count one patient in many groups
SELECT gender, readmitted, COUNT(*) AS stays FROM encounters GROUP BY CUBE (gender, readmitted);

-- id: hospital/all-days
-- expect: refused: a list of raw values
SELECT age, ARRAY_AGG(time_in_hospital) AS days FROM encounters GROUP BY age;

-- id: hospital/file
-- expect: refused: a file outside
SELECT COUNT(*) AS lines FROM read_csv('patients.csv');

-- id: hospital/drop
-- expect: refused: not a question
DROP TABLE encounters;
