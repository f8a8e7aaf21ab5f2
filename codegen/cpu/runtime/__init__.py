"""The runtime that all kernels share: threads, entries for callers without Python."""
