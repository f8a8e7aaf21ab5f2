"""``docs/errors.md``: what is said of the likeliest mistakes, so that none gets worse unnoticed.

It is written anew with ``pytest tests/house/test_errors_page.py --update-golden``.
"""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden import Golden
from mistakes import COMMAND, LANGUAGE, PYTHON, page
from places import ROOT

PAGE = ROOT / "docs" / "errors.md"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Commands set how warnings are shown, and some what signals do, for good."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    with warnings.catch_warnings():
        yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_what_is_said(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_CACHE_DIR", "cache")
    said = page(tmp_path)
    assert len({*LANGUAGE, *PYTHON, *COMMAND}) >= 60
    assert "Traceback" not in said and str(tmp_path) not in said
    assert not re.search(r" at 0x|\d{2}:\d{2}:\d{2}", said)
    golden(PAGE, said)
