"""The names of our own forms."""

from __future__ import annotations

DEFAULT_FORM = "default"
TUNED_FORM = "tuned"
CACHE_VARIABLE = "TCL_BENCH_CACHE"
"""Names the cache file that tuned options come from; without it, the user's."""
