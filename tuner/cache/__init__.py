"""The tuning cache: what was measured, in one file."""
