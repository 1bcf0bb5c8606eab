"""The second wall around private tables: they are read in a process of its own, which can do nothing else.

    WorkerEngine(tables, memory=…)   what a session asks: an engine that hands each question to a worker
    zygote                           a small process, started once, from which workers are forked in a few milliseconds

A worker has no ledger, no network, no environment and no randomness of its own. It gets closed trees and returns exact
tallies; noise is drawn by whoever asked. One that overruns its memory or its time is ended by the kernel or by us, and
the next question gets another one.
"""
