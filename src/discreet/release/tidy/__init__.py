"""Tables that add up: whole numbers, not negative, the same in every table, from released values only."""

from discreet.release.tidy.checking import check_tidy
from discreet.release.tidy.tables import tidy_tables

__all__ = ["check_tidy", "tidy_tables"]
