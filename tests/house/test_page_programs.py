"""The programs of the tutorial and of the guides run, and print what stands below them.

The fenced blocks ``python`` of a page are one program, in order. What a block prints is the block
``text`` right below it; a block without one prints nothing. Searches are cut short.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from golden import Golden
from places import ROOT

BLOCK = re.compile(r"```python\n(?P<program>.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)
PAGES = [
    *(ROOT / f"docs/{name}.md" for name in ("tutorial", "performance", "faq", "jax", "numba")),
    *sorted(p for p in (ROOT / "docs/guides").glob("*.md") if BLOCK.search(p.read_text("utf-8"))),
]


@pytest.mark.usefixtures("own_cache", "searches_in_threads")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_program_of_a_page(
    page: Path,
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TCL_TUNE_MODE")  # as it is for users
    names: dict[str, Any] = {"__name__": "__main__"}

    def run(block: re.Match[str]) -> str:
        program = block["program"]
        shorter = re.sub(r"time_limit=\d+", "time_limit=0.5", program)
        exec(compile(shorter, page.name, "exec"), names)  # defines what the next ones use
        printed = capsys.readouterr().out
        shown = f"\n```text\n{printed}```\n" if printed else ""
        return f"```python\n{program}```\n{shown}"

    golden(page, BLOCK.sub(run, page.read_text("utf-8")))
