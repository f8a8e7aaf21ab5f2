"""The version of generated code."""

CODEGEN_VERSION = "64"
"""Counted up whenever generated kernels may become faster, slower or different: results that
were measured with another version are kept, but no longer used."""
