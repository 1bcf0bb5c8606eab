"""Tables that add up: whole numbers, not negative, the same in every table, from released values only."""
