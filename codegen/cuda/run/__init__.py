"""Kernels of a GPU: compiled, kept, launched."""
