"""Compiled kernels: made ready, called."""
