"""The public tables that queries join, and the public lists of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "ADMISSION_TYPES",
    "AIRLINES",
    "AIRPORTS",
    "COUNTRIES",
    "DISPOSITIONS",
    "EDUCATIONS",
    "EDUCATION_LEVELS",
    "MARITAL",
    "NATION",
    "OCCUPATIONS",
    "PART",
    "REGION",
    "RELATIONSHIPS",
    "WORKCLASSES",
    "PublicRows",
]


@dataclass(frozen=True, slots=True)
class PublicRows:
    """A small table that protects nobody. The first column has no duplicates."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]
    file: str | None = None  # where a longer one lies beside the real data, and what is taken from it
    select: str = "*"

    def column(self, name: str) -> list[str | int]:
        """Return the values of a column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


REGIONS: Final = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
# In the order of their keys, with the key of the region.
NATIONS: Final = (
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)

REGION: Final = PublicRows("region", ("regionkey", "region_name"), tuple(enumerate(REGIONS)))
NATION: Final = PublicRows(
    "nation",
    ("nationkey", "nation_name", "regionkey"),
    tuple((key, name, region) for key, (name, region) in enumerate(NATIONS)),
)
PART: Final = PublicRows(
    "part",
    ("partkey", "brand", "size", "retailprice"),
    tuple((key, f"Brand#{1 + key % 5}{1 + key % 3}", 1 + key * 7 % 50, 900 + 10 * key) for key in range(1, 41)),
)

AIRLINES: Final = PublicRows(
    "airlines",
    ("carrier", "name"),
    (
        ("9E", "Endeavor"),
        ("AA", "American"),
        ("AS", "Alaska"),
        ("B6", "JetBlue"),
        ("DL", "Delta"),
        ("EV", "ExpressJet"),
        ("F9", "Frontier"),
        ("FL", "AirTran"),
        ("HA", "Hawaiian"),
        ("MQ", "Envoy"),
        ("OO", "SkyWest"),
        ("UA", "United"),
        ("US", "US Airways"),
        ("VX", "Virgin America"),
        ("WN", "Southwest"),
        ("YV", "Mesa"),
    ),
    file="nycflights13/airlines.parquet",
)
AIRPORTS: Final = PublicRows(
    "airports",
    ("faa", "airport_name", "tz", "alt"),
    (
        ("ATL", "Atlanta", -5, 1026),
        ("BOS", "Boston", -5, 19),
        ("BUF", "Buffalo", -5, 724),
        ("CLT", "Charlotte", -5, 748),
        ("DCA", "Washington Reagan", -5, 15),
        ("DEN", "Denver", -7, 5431),
        ("DFW", "Dallas", -6, 607),
        ("DTW", "Detroit", -5, 645),
        ("FLL", "Fort Lauderdale", -5, 9),
        ("HNL", "Honolulu", -10, 13),
        ("LAX", "Los Angeles", -8, 126),
        ("MCO", "Orlando", -5, 96),
        ("MIA", "Miami", -5, 8),
        ("MSP", "Minneapolis", -6, 841),
        ("ORD", "Chicago O'Hare", -6, 668),
        ("PBI", "Palm Beach", -5, 19),
        ("RDU", "Raleigh", -5, 435),
        ("SEA", "Seattle", -8, 433),
        ("SFO", "San Francisco", -8, 13),
        ("TPA", "Tampa", -5, 26),
    ),
    file="nycflights13/airports.parquet",
    select="faa, name AS airport_name, tz, alt",
)

CONTINENTS: Final = {
    "Africa": ("Nigeria", "RSA"),
    "America": ("Bermuda", "Brazil", "Canada", "USA", "West Indies"),
    "Asia": (
        "Bahrain",
        "Hong Kong",
        "Israel",
        "Japan",
        "Korea",
        "Lebanon",
        "Singapore",
        "Thailand",
        "United Arab Emirates",
    ),
    "Europe": (
        "Austria",
        "Belgium",
        "Cyprus",
        "Denmark",
        "EIRE",
        "Finland",
        "France",
        "Germany",
        "Greece",
        "Iceland",
        "Italy",
        "Lithuania",
        "Malta",
        "Netherlands",
        "Norway",
        "Poland",
        "Portugal",
        "Spain",
        "Sweden",
        "Switzerland",
        "Channel Islands",
        "United Kingdom",
    ),
    "Oceania": ("Australia",),
}
COUNTRIES: Final = PublicRows(
    "countries",
    ("country", "continent"),
    tuple((country, continent) for continent, members in CONTINENTS.items() for country in members),
)

ADMISSION_TYPES: Final = PublicRows(
    "admission_types",
    ("admission_type_id", "admission_type"),
    tuple(
        enumerate(
            (
                "Emergency",
                "Urgent",
                "Elective",
                "Newborn",
                "Not available",
                "Missing",
                "Trauma center",
                "Not mapped",
            ),
            start=1,
        )
    ),
)
DISPOSITIONS: Final = PublicRows(
    "dispositions",
    ("discharge_disposition_id", "outcome"),
    tuple(
        (key, "home" if key in (1, 6, 8) else "died" if key in (11, 19, 20, 21) else "other care")
        for key in range(1, 31)
    ),
)

WORKCLASSES: Final = (
    "Federal-gov",
    "Local-gov",
    "Never-worked",
    "Private",
    "Self-emp-inc",
    "Self-emp-not-inc",
    "State-gov",
    "Without-pay",
)
EDUCATIONS: Final = (
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
)
EDUCATION_LEVELS: Final = PublicRows(
    "education_levels",
    ("education", "level"),
    tuple(
        (name, "school" if place < 9 else "college" if place < 12 else "university")
        for place, name in enumerate(EDUCATIONS)
    ),
)
MARITAL: Final = (
    "Divorced",
    "Married-AF-spouse",
    "Married-civ-spouse",
    "Married-spouse-absent",
    "Never-married",
    "Separated",
    "Widowed",
)
OCCUPATIONS: Final = (
    "Adm-clerical",
    "Armed-Forces",
    "Craft-repair",
    "Exec-managerial",
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Other-service",
    "Priv-house-serv",
    "Prof-specialty",
    "Protective-serv",
    "Sales",
    "Tech-support",
    "Transport-moving",
)
RELATIONSHIPS: Final = ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife")
