"""Tables that add up: whole numbers, not negative, the same in every table, from released values only."""

from discreet.release.tidy.tidy_check import check_tidy
from discreet.release.tidy.tidying import tidy_tables

__all__ = ["check_tidy", "tidy_tables"]
