"""Write the table of the first examples: made-up visits to made-up clinics, in nobody's copyright and about nobody.

    python scripts/make_visits.py > src/discreet/data/visits.csv

The seed is fixed, so the file can be made again, byte for byte.
"""

from __future__ import annotations

import csv
import random
import sys

CLINICS = {"Harbour": 0.34, "Hillside": 0.27, "Market": 0.21, "Old Mill": 0.12, "Station": 0.06}
ROWS = 2000


def main() -> None:
    """Print the table, one patient a row."""
    source = random.Random(20240229)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["patient", "age", "clinic", "visits", "wait_minutes", "satisfied"])
    for patient in range(1, ROWS + 1):
        writer.writerow([patient, *one_patient(source)])


def one_patient(source: random.Random) -> list[object]:
    """Draw one row; a few waiting times are missing, as in real tables."""
    age = min(101, max(0, round(source.gauss(47, 21))))
    clinic = source.choices(list(CLINICS), weights=list(CLINICS.values()))[0]
    visits = 1 + int(source.expovariate(0.5 if age > 65 else 0.9))
    wait = source.lognormvariate(3.1 + 0.15 * list(CLINICS).index(clinic), 0.6)
    happy = source.random() < (0.9 if wait < 30 else 0.6)
    minutes = "" if source.random() < 0.01 else f"{wait:.1f}"
    return [age, clinic, visits, minutes, "yes" if happy else "no"]


if __name__ == "__main__":
    main()
