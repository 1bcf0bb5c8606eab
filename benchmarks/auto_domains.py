"""Five tables of mixed types, and what their public code books say of them. No value was looked up in the data.

Bounds are round numbers that a code book, a law or common sense gives; what is not in a code book is found privately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from discreet.synth import Category, Domain, Numeric

__all__ = ["AUTO_DELTA", "AUTO_EPSILON", "AUTO_SETS", "AutoSet"]

AUTO_EPSILON: Final = 1
AUTO_DELTA: Final = 1e-9


@dataclass(frozen=True, slots=True)
class AutoSet:
    """A table, whom it is about, and its domain."""

    name: str
    file: str  # within the folder of data sets
    label: str  # what models are to tell
    domain: Callable[[], Domain]
    unit: str = "row"
    rows_per_unit: int | None = None


_WORK = "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked"
_EDUCATION = (
    "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool"
)
_MARRIED = "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse"
_OCCUPATION = (
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners Machine-op-inspct "
    "Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces"
)
_COUNTRY = (
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South "
    "China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia "
    "El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands"
)
_DRUGS = (
    "metformin repaglinide nateglinide chlorpropamide glimepiride acetohexamide glipizide glyburide tolbutamide "
    "pioglitazone rosiglitazone acarbose miglitol troglitazone tolazamide insulin glyburide-metformin"
)


def _adult() -> Domain:
    return Domain(
        {
            "age": Numeric(17, 90, whole=True),
            "workclass": Category(_WORK.split(), null=True),
            "fnlwgt": Numeric(0, 1_500_000, whole=True, bins="quantiles"),
            "education": Category(_EDUCATION.split()),
            "education_num": Numeric(1, 16, whole=True),
            "marital_status": Category(_MARRIED.split()),
            "occupation": Category(_OCCUPATION.split(), null=True),
            "relationship": Category(["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]),
            "race": Category(["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]),
            "sex": Category(["Female", "Male"]),
            "capital_gain": Numeric(0, 99_999, whole=True, bins=[1, 2500, 5000, 7500, 10_000, 15_000, 30_000]),
            "capital_loss": Numeric(0, 4500, whole=True, bins=[1, 500, 1000, 1500, 2000, 2500]),
            "hours_per_week": Numeric(1, 99, whole=True),
            "native_country": Category(_COUNTRY.split(), null=True),
            "income": Category(["<=50K", ">50K"]),
        }
    )


def _pums() -> Domain:
    flags = {name: Category([0, 1]) for name in ("sex", "latino", "black", "asian", "married")}
    return Domain(
        {
            "age": Numeric(18, 95, whole=True),
            "educ": Numeric(1, 16, whole=True),
            "income": Numeric(-20_000, 1_000_000, bins="quantiles"),
            **flags,
        }
    )


def _diabetes() -> Domain:
    ages = [f"[{first}-{first + 10})" for first in range(0, 100, 10)]
    changes = Category(["No", "Steady", "Up", "Down"])
    return Domain(
        {
            "race": Category(["Caucasian", "Asian", "AfricanAmerican", "Hispanic", "Other"], null=True),
            "gender": Category(["Female", "Male", "Unknown/Invalid"]),
            "age": Category(ages),
            "admission_type_id": Category(range(1, 9)),
            "discharge_disposition_id": Category(range(1, 31)),
            "admission_source_id": Category(range(1, 27)),
            "time_in_hospital": Numeric(1, 14, whole=True),
            "medical_specialty": Category.unlisted(most=40, null=True),
            "num_lab_procedures": Numeric(0, 150, whole=True),
            "num_procedures": Numeric(0, 10, whole=True),
            "num_medications": Numeric(0, 100, whole=True),
            "number_outpatient": Numeric(0, 50, whole=True, bins=[1, 2, 3, 5, 10]),
            "number_emergency": Numeric(0, 80, whole=True, bins=[1, 2, 3, 5, 10]),
            "number_inpatient": Numeric(0, 25, whole=True, bins=[1, 2, 3, 5, 10]),
            "diag_1": Category.unlisted(most=64, null=True),
            "number_diagnoses": Numeric(1, 16, whole=True),
            "max_glu_serum": Category([">200", ">300", "Norm"], null=True),
            "A1Cresult": Category([">7", ">8", "Norm"], null=True),
            **dict.fromkeys(_DRUGS.split(), changes),
            "change": Category(["No", "Ch"]),
            "diabetesMed": Category(["No", "Yes"]),
            "readmitted": Category(["NO", ">30", "<30"]),
        }
    )


def _heart() -> Domain:
    return Domain(
        {
            "age": Numeric(20, 90, whole=True, bins=7),
            "sex": Category([0, 1]),
            "cp": Category([1, 2, 3, 4]),
            "trestbps": Numeric(80, 220, whole=True, bins=7),
            "chol": Numeric(100, 600, whole=True, bins=10),
            "fbs": Category([0, 1]),
            "restecg": Category([0, 1, 2]),
            "thalach": Numeric(60, 220, whole=True, bins=8),
            "exang": Category([0, 1]),
            "oldpeak": Numeric(0, 7, bins=7),
            "slope": Category([1, 2, 3]),
            "ca": Category([0, 1, 2, 3], null=True),
            "thal": Category([3, 6, 7], null=True),
            "num": Category([0, 1, 2, 3, 4]),
        }
    )


def _bikes() -> Domain:
    return Domain(
        {
            "season": Category([1, 2, 3, 4]),
            "yr": Category([0, 1]),
            "mnth": Numeric(1, 12, whole=True),
            "hr": Numeric(0, 23, whole=True),
            "holiday": Category([0, 1]),
            "weekday": Numeric(0, 6, whole=True),
            "workingday": Category([0, 1]),
            "weathersit": Category([1, 2, 3, 4]),
            "temp": Numeric(0, 1, bins=20),
            "atemp": Numeric(0, 1, bins=20),
            "hum": Numeric(0, 1, bins=20),
            "windspeed": Numeric(0, 1, bins=20),
            "casual": Numeric(0, 500, whole=True, bins="quantiles"),
            "registered": Numeric(0, 1500, whole=True, bins="quantiles"),
        }
    )


AUTO_SETS: Final = (
    AutoSet("Adult", "adult/adult_train.parquet", "income", _adult),
    AutoSet("PUMS, California", "pums/pums_california_10000.parquet", "married", _pums),
    AutoSet("Diabetes, 130 hospitals", "diabetes130/diabetic_data.parquet", "readmitted", _diabetes, "patient_nbr", 2),
    AutoSet("Heart disease, Cleveland", "heart_disease/cleveland.parquet", "num", _heart),
    AutoSet("Bike sharing", "bike_sharing/hour.parquet", "weathersit", _bikes),
)
