"""A small shop: make a table up, declare what is public, and ask a few private questions of it.

    python examples/shop.py [folder]

The table, the ledger and everything else goes into the folder, or into a temporary one.
"""

from __future__ import annotations

import csv
import random
import sys
import tempfile
from pathlib import Path

import discreet as dp
from discreet.query import col, count, mean

CITIES = ["Basel", "Bern", "Genf", "Lugano"]


def write_orders(path: Path, customers: int = 2000) -> None:
    """Write made-up orders: who, where, when and for how much. The seed is fixed; they are about nobody."""
    draw = random.Random(20261116)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "city", "day", "price"])
        for customer in range(customers):
            city = draw.choices(CITIES, weights=[4, 3, 2, 1])[0]
            for _ in range(1 + int(draw.expovariate(0.7))):
                day = f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
                writer.writerow([f"c{customer}", city, day, f"{min(500, draw.lognormvariate(3, 1)):.2f}"])


def main(folder: Path) -> None:
    """Ask: how many orders, how much, who, and what an answer would cost before it is paid."""
    write_orders(folder / "orders.csv")
    with dp.Session(
        folder / "orders.csv",
        unit=dp.Unit("customer", max_groups=2, max_rows_per_group=3),
        budget=dp.Budget(epsilon=3, delta=1e-6),
        columns={"city": dp.categories(CITIES), "price": dp.between(0, 200, step="0.01")},
        ledger=folder / "orders.ledger",
        dataset="orders",
        principal="ana",
        version="2026-11",
    ) as session:
        plan = session.sql(
            "SELECT city, COUNT(*) AS orders, SUM(price) AS revenue, AVG(price) AS price FROM orders GROUP BY city",
            epsilon=1,
        )
        print(plan.explain(), "\n")
        print(plan.release(), "\n")

        dear = session.table("orders").where(col("price") > 50).agg(orders=count(), price=mean("price"))
        print(dear.sql, "\n")
        print(dear.plan(share=0.1).release(), "\n")

        months = "SELECT MONTH(CAST(day AS DATE)) AS month, COUNT(*) AS orders FROM orders GROUP BY 1"
        print(session.sql(months, epsilon=0.5).release(), "\n")

        print(f"questions like the last one that are left: {session.questions_left()}")
        print(f"spent: {session.spent}\nleft:  {session.left}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
