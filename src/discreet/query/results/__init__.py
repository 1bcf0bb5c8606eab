"""What an analyst gets: a table of answers with their errors, in the forms that people and programs read."""

from discreet.query.results.columns import Cell, Column
from discreet.query.results.numbers import Numbers
from discreet.query.results.table import ReleaseTable

__all__ = ["Cell", "Column", "Numbers", "ReleaseTable"]
