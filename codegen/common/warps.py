"""Threads that execute the same instructions together, on every GPU of NVIDIA."""

WARP = 32

VECTOR = 16
"""Bytes that a thread reads or writes at once, at most."""
