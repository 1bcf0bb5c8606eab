"""Side by side with the peers: `python -m benchmarks [noise] [accounting] [imports] [speed] [accuracy] [robustness]`.

Everything that runs inside a peer's environment (`timing`, `jobs`, `peers/`) needs the standard library and
that peer only.
"""
