"""What the custodian of each data set declares: whom to protect, and what is publicly known of the columns.

Said once, in no library's words; each subject's script turns it into what that library wants to be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, TypeAlias

from benchmarks.corpus import public_tables as known
from benchmarks.corpus.public_tables import PublicRows

__all__ = ["DATASETS", "Choice", "Column", "Dataset", "Number", "Private", "Text", "Time"]


@dataclass(frozen=True, slots=True)
class Number:
    """From `low` to `high`; whole unless `step` says otherwise. `usual` is where a stand-in puts most values."""

    low: int
    high: int
    step: str | None = None
    usual: tuple[float, float] | None = None
    nulls: float = 0.0  # the share of a stand-in's values that are missing


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a public list of texts."""

    values: tuple[str, ...]
    nulls: float = 0.0


@dataclass(frozen=True, slots=True)
class Text:
    """Text of which nothing is known; a stand-in takes it from `examples`."""

    examples: tuple[str, ...]
    nulls: float = 0.0


@dataclass(frozen=True, slots=True)
class Time:
    """A date, or a timestamp, from `low` to `high`."""

    low: date
    high: date

    @property
    def is_timestamp(self) -> bool:
        return isinstance(self.low, datetime)


Column: TypeAlias = Number | Choice | Text | Time


@dataclass(frozen=True, slots=True)
class Private:
    """A private table; its unit is that of the data set. `rows` and `repeats` shape a stand-in.

    `file` is where the real one lies, and `select` what is taken from it.
    """

    name: str
    columns: dict[str, Column]
    rows: tuple[int, int] = (1, 1)  # the fewest and the most a unit has in a stand-in
    file: str | None = None
    select: str = "*"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tables with one kind of unit: a column that all private ones have, or "row"."""

    name: str
    unit: str
    units: int  # in a stand-in
    private: tuple[Private, ...]
    public: tuple[PublicRows, ...] = ()
    text_unit: bool = False
    null_units: float = 0.0  # the share of a stand-in's rows that belong to nobody

    def column(self, name: str) -> Column | None:
        """Return what is declared of a private column; a name means the same in all tables."""
        return next((table.columns[name] for table in self.private if name in table.columns), None)


FIRST_DAY, LAST_DAY = date(1992, 1, 1), date(1998, 12, 31)

TPCH: Final = Dataset(
    name="tpch",
    unit="custkey",
    units=240,
    private=(
        Private(
            "customer",
            {
                "mktsegment": Choice(("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")),
                "nationkey": Number(0, 24),
                "acctbal": Number(-1000, 10_000, step="0.01"),
                "phone": Text(("10-345", "13-821", "21-117", "30-204", "33-909")),
            },
        ),
        Private(
            "orders",
            {
                "orderkey": Number(1, 6_000_000),
                "orderstatus": Choice(("F", "O", "P")),
                "totalprice": Number(0, 500_000, step="0.01", usual=(1_000, 300_000)),
                "orderdate": Time(FIRST_DAY, LAST_DAY),
                "orderpriority": Choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")),
                "clerk": Text(tuple(f"Clerk#{number:03}" for number in range(8))),
            },
            rows=(0, 4),
        ),
        Private(
            "lineitem",
            {
                "orderkey": Number(1, 6_000_000),
                "partkey": Number(1, 40),
                "quantity": Number(1, 50),
                "extendedprice": Number(0, 100_000, step="0.01", usual=(900, 90_000)),
                "discount": Number(0, 1, step="0.01", usual=(0, 0.1)),
                "tax": Number(0, 1, step="0.01", usual=(0, 0.08)),
                "returnflag": Choice(("A", "N", "R")),
                "linestatus": Choice(("F", "O")),
                "shipdate": Time(FIRST_DAY, LAST_DAY),
                "receiptdate": Time(FIRST_DAY, LAST_DAY),
                "shipmode": Choice(("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")),
            },
            rows=(0, 6),
        ),
    ),
    public=(known.NATION, known.REGION, known.PART),
)

ADULT: Final = Dataset(
    name="adult",
    unit="row",
    units=600,
    private=(
        Private(
            "adult",
            {
                "age": Number(17, 90),
                "workclass": Choice(known.WORKCLASSES, nulls=0.05),
                "education": Choice(known.EDUCATIONS),
                "education_num": Number(1, 16),
                "marital_status": Choice(known.MARITAL),
                "occupation": Choice(known.OCCUPATIONS, nulls=0.05),
                "relationship": Choice(known.RELATIONSHIPS),
                "race": Choice(("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")),
                "sex": Choice(("Female", "Male")),
                "capital_gain": Number(0, 100_000),
                "capital_loss": Number(0, 5_000),
                "hours_per_week": Number(1, 99),
                "native_country": Text(
                    ("Cuba", "Germany", "India", "Mexico", "Philippines", "United-States"), nulls=0.02
                ),
                "income": Choice(("<=50K", ">50K")),
            },
            file="adult/adult_train.parquet",
        ),
    ),
    public=(known.EDUCATION_LEVELS,),
)

PUMS: Final = Dataset(
    name="pums",
    unit="row",
    units=500,
    private=(
        Private(
            "pums",
            {
                "puma": Text(("60101", "60102", "60200", "60300", "60400")),
                "sex": Number(0, 1),
                "age": Number(18, 93),
                "educ": Number(1, 16),
                "income": Number(-10_000, 750_000, step="1"),
                "latino": Number(0, 1),
                "black": Number(0, 1),
                "asian": Number(0, 1),
                "married": Number(0, 1),
            },
            file="pums/pums_california_10000.parquet",
            select="puma::VARCHAR AS puma, sex, age, educ, income::BIGINT AS income, latino, black, asian, married",
        ),
    ),
)

RETAIL: Final = Dataset(
    name="retail",
    unit="customer_id",
    units=220,
    null_units=0.1,
    private=(
        Private(
            "sales",
            {
                "invoice": Text(
                    tuple(f"{prefix}{number}" for number in range(489_434, 489_464) for prefix in ("", "C"))
                ),
                "stock_code": Text(("10002", "20725", "21212", "22423", "84879", "85123A", "POST")),
                "description": Text(
                    ("WHITE HANGING HEART", "REGENCY CAKESTAND", "PARTY BUNTING", "LUNCH BAG RED", "POSTAGE", "DOORMAT")
                ),
                "quantity": Number(-100, 1_000, usual=(1, 60)),
                "invoice_date": Time(datetime(2009, 12, 1), datetime(2010, 12, 10)),
                "price": Number(0, 500, step="0.01", usual=(0, 30)),
                "country": Text(("United Kingdom", "Germany", "France", "EIRE", "USA", "Australia")),
            },
            rows=(1, 7),
            file="online_retail_ii/online_retail_2009_2010.parquet",
        ),
    ),
    public=(known.COUNTRIES,),
)

FLIGHTS: Final = Dataset(
    name="flights",
    unit="tailnum",
    text_unit=True,
    units=200,
    null_units=0.02,
    private=(
        Private(
            "flights",
            {
                "month": Number(1, 12),
                "day": Number(1, 31),
                "dep_delay": Number(-60, 300, usual=(-15, 90), nulls=0.03),
                "arr_delay": Number(-100, 300, usual=(-40, 100), nulls=0.03),
                "sched_dep_time": Number(0, 2400, usual=(500, 2300)),
                "carrier": Text(tuple(map(str, known.AIRLINES.column("carrier")))),
                "flight": Number(1, 9_000),
                "origin": Choice(("EWR", "JFK", "LGA")),
                "dest": Text(tuple(map(str, known.AIRPORTS.column("faa")))),
                "air_time": Number(0, 720, usual=(20, 700), nulls=0.03),
                "distance": Number(0, 5_000, usual=(90, 2_700)),
                "hour": Number(0, 23),
                "time_hour": Time(datetime(2013, 1, 1), datetime(2014, 1, 2)),
            },
            rows=(1, 6),
            file="nycflights13/flights.parquet",
            select=(
                "month, day, dep_delay, arr_delay, sched_dep_time, carrier, flight, origin, dest, air_time, distance, "
                "hour, CAST(replace(replace(time_hour, 'T', ' '), 'Z', '') AS TIMESTAMP) AS time_hour, tailnum"
            ),
        ),
        Private(
            "planes",
            {
                "built": Number(1950, 2014, nulls=0.02),
                "type": Choice(("Fixed wing multi engine", "Fixed wing single engine", "Rotorcraft")),
                "manufacturer": Text(("AIRBUS", "BOEING", "BOMBARDIER INC", "EMBRAER")),
                "model": Text(("A320-232", "CL-600-2B19", "EMB-145LR", "737-824")),
                "engines": Number(1, 4),
                "seats": Number(1, 450),
                "engine": Choice(("4 Cycle", "Reciprocating", "Turbo-fan", "Turbo-jet", "Turbo-prop", "Turbo-shaft")),
            },
            file="nycflights13/planes.parquet",
            select="year AS built, type, manufacturer, model, engines, seats, engine, tailnum",
        ),
    ),
    public=(known.AIRLINES, known.AIRPORTS),
)

AGES: Final = tuple(f"[{low}-{low + 10})" for low in range(0, 100, 10))

HOSPITAL: Final = Dataset(
    name="hospital",
    unit="patient_nbr",
    units=320,
    private=(
        Private(
            "encounters",
            {
                "encounter_id": Number(1, 500_000_000),
                "race": Choice(("AfricanAmerican", "Asian", "Caucasian", "Hispanic", "Other"), nulls=0.02),
                "gender": Choice(("Female", "Male", "Unknown/Invalid")),
                "age": Choice(AGES),
                "admission_type_id": Number(1, 8),
                "discharge_disposition_id": Number(1, 30),
                "time_in_hospital": Number(1, 14),
                "payer_code": Text(("BC", "HM", "MC", "MD", "SP"), nulls=0.3),
                "medical_specialty": Text(("Cardiology", "Emergency/Trauma", "InternalMedicine", "Surgery"), nulls=0.4),
                "num_lab_procedures": Number(0, 132),
                "num_procedures": Number(0, 6),
                "num_medications": Number(0, 81),
                "number_outpatient": Number(0, 42, usual=(0, 4)),
                "number_emergency": Number(0, 76, usual=(0, 4)),
                "number_inpatient": Number(0, 21, usual=(0, 5)),
                "diag_1": Text(("250.02", "250.6", "276", "410", "414", "428", "486", "V57")),
                "number_diagnoses": Number(1, 16),
                "a1cresult": Choice((">7", ">8", "Norm"), nulls=0.6),
                "insulin": Choice(("Down", "No", "Steady", "Up")),
                "change": Choice(("Ch", "No")),
                "diabetesmed": Choice(("No", "Yes")),
                "readmitted": Choice(("<30", ">30", "NO")),
            },
            rows=(1, 3),
            file="diabetes130/diabetic_data.parquet",
            select=(
                "patient_nbr, encounter_id, race, gender, age, admission_type_id, discharge_disposition_id, "
                "time_in_hospital, payer_code, medical_specialty, num_lab_procedures, num_procedures, "
                "num_medications, number_outpatient, number_emergency, number_inpatient, diag_1, number_diagnoses, "
                "A1Cresult AS a1cresult, insulin, change, diabetesMed AS diabetesmed, readmitted"
            ),
        ),
    ),
    public=(known.ADMISSION_TYPES, known.DISPOSITIONS),
)

DATASETS: Final = {dataset.name: dataset for dataset in (TPCH, ADULT, PUMS, RETAIL, FLIGHTS, HOSPITAL)}
