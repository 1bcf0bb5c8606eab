"""Functions of one row: one record each, in chapters by what they are about."""
