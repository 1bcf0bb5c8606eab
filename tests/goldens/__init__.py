"""Outputs of every flow under recorded bytes, kept so that a move or a rename is seen to change none of them.

`scripts/goldens.py` records and compares them. A module of this folder holds one family of flows, which calls what is
public only: names inside of the package may change without a change here.
"""
