"""Passes for a CPU: lanes, register tiles, panels, prefetching."""
