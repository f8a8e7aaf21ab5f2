"""Sizes that vary: polynomials in them, classes that share a kernel."""
