"""What an analyst gets: a table of answers with their errors, in the forms that people and programs read."""

from discreet.query.results.columns import AnswerColumn, Cell
from discreet.query.results.numbers import ExactNumbers
from discreet.query.results.table import ReleaseTable

__all__ = ["AnswerColumn", "Cell", "ExactNumbers", "ReleaseTable"]
