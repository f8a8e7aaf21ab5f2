"""Kernels as plain C, for a compiler and a machine that are not here."""
