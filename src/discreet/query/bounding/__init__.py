"""Contribution bounding at the speed of a scan, on Arrow and NumPy columns.

    tally(chunks, groups=…, limits=Limits(max_groups=3, max_rows=2), measures=[Measure(low=…, high=…, total=True)])

takes `Rows` chunk by chunk, keeps of each unit at most `max_groups` random groups and in each of them at most
`max_rows` random rows, and returns a `Tally` of exact integers by group: distinct units, kept rows, and for each
measure how many are not NULL, sums, sums of squares, distinct values and the kept values themselves.
`tally_all` does so for several counts of the same rows, which are handed over and sorted once.
`GroupKeys` turns key columns into group codes, in an order that depends on the keys alone.

1. A unit is identified exactly, never by a hash. Rows without a unit, or in no group, are dropped first.
2. What is kept of a unit is uniformly random, and depends on its own rows and on fresh secret randomness only.
3. The same secret keeps the same rows in any order, chunks, threads and memory.
4. All numbers are exact.
"""
