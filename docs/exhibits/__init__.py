"""The exhibits of the gallery, a file for each family of mechanisms.

Nothing here draws a number but the regressions: errors are those that the exact laws of mechanisms imply for made-up
columns, so every run finds the same figures.
"""
