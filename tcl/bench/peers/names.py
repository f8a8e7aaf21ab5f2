"""The names of our own forms."""

from __future__ import annotations

DEFAULT_FORM = "default"
TUNED_FORM = "tuned"
