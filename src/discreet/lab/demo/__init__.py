"""The demo: a list without names is named, tables are published by a plan, and both kinds are attacked.

    python -m discreet.lab.demo [FOLDER]

Everybody in it is made up, so it may show what a release must never show.
"""
