"""Side by side with the peers: `python -m benchmarks [topic …]`; `--help` names the topics.

Everything that runs inside a peer's environment (`timing`, `jobs`, `peers/`) needs the standard library and
that peer only.
"""
