"""What an analyst gets: a table of answers with their errors, in the forms that people and programs read."""

from discreet.query.results.columns import AnswerColumn, Cell, ExactNumbers
from discreet.query.results.release_table import ReleaseTable

__all__ = ["AnswerColumn", "Cell", "ExactNumbers", "ReleaseTable"]
