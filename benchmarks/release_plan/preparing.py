"""Rows of the plan: each data set with a column that tells people apart; nobody is in two of them."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile
from typing import Final

__all__ = ["prepared"]

PLAN: Final = Path(__file__).parent / "plan.toml"
SOURCES: Final = {
    "adult": """
        SELECT 'a' || row_number() OVER () AS person, education, sex, hours_per_week
        FROM read_parquet('{data}/adult/adult_train.parquet')
    """,
    "pums": """
        SELECT 'p' || person_id AS person, educ, married, income
        FROM read_parquet('{data}/pums/pums_california_10000.parquet')
    """,
    "sales": """
        SELECT 'r' || customer_id AS person, country, quarter(invoice_date) AS quarter, quantity * price AS amount
        FROM read_parquet('{data}/online_retail_ii/online_retail_2009_2010.parquet')
        WHERE customer_id IS NOT NULL AND quantity > 0 AND price > 0
    """,
}


def prepared(data: Path, folder: Path) -> Path:
    """Write the rows and the plan into a folder, and return the path of the plan."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    for name, source in SOURCES.items():
        written = source.format(data=data)
        connection.execute(f"COPY ({written}) TO '{folder / f'{name}.parquet'}' (FORMAT parquet)")
    copyfile(PLAN, folder / PLAN.name)
    return folder / PLAN.name
