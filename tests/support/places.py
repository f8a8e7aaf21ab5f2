"""Where the repository's files lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SUPPORT = Path(__file__).resolve().parent
