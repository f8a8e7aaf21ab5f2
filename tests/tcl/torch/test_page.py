"""The programs of ``docs/torch.md`` run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from places import ROOT


def test_the_programs_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/torch.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)  # defines what the next ones use
    torch.testing.assert_close(names["C"], names["A"] @ names["layer"].B)
