"""Where this user's caches are."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``TCL_CACHE_DIR``, or the user's cache folder."""
    given = os.environ.get("TCL_CACHE_DIR")
    if given:
        return Path(given)
    import platformdirs  # only here, so that nobody needs it who says where

    return Path(platformdirs.user_cache_dir("tcl", appauthor=False))
