"""The benchmark suite: rows of work, the peers that compete, and what the machine could do.

It ships with the package, the example files that it runs included, so that ``tcl bench cpu``
works for whoever installed the wheel. ``benchmarks/README.md`` says how it measures.
"""
