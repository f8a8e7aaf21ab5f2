"""Threads that execute the same instructions together, on every GPU of NVIDIA."""

WARP = 32
