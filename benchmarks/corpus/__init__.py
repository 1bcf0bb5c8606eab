"""Queries that analysts would write, the policy of each data set they ask, and small stand-ins for the data."""
