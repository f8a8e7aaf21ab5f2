"""The names of our own contenders and forms."""

from __future__ import annotations

DEFAULT = "tcl default"
TUNED = "tcl tuned"
OURS = (DEFAULT, TUNED)
"""Our own kernels: with the untuned default options, and with the tuning cache's best."""
DEFAULT_FORM = "default"
TUNED_FORM = "tuned"
"""Likewise, as forms of one contender."""
