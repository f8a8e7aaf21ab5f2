"""``docs/first-minutes.md`` is a transcript of the commands that README has now."""

from __future__ import annotations

import re

import pytest
from places import ROOT

from benchmarks.first_minutes import AGAINST_TORCH, readme_command, readme_program

README = ROOT / "README.md"
PAGE = ROOT / "docs/first-minutes.md"

needs_page = pytest.mark.skipif(not README.exists(), reason="needs the source tree")


@needs_page
def test_the_transcript_is_of_the_commands_of_the_readme() -> None:
    """After a change of these: ``python -m benchmarks.first_minutes``."""
    readme, page = README.read_text("utf-8"), PAGE.read_text("utf-8")
    assert f"```sh\n{readme_command(readme)}\n```" in page
    assert f"```python\n{readme_program(readme)}{AGAINST_TORCH}```" in page


@needs_page
def test_the_kernel_was_faster_than_torch_in_five_minutes() -> None:
    page = PAGE.read_text("utf-8")
    (total,) = re.findall(r"all steps took \*\*(\d+) seconds\*\*", page)
    (torch,) = re.findall(r"^torch .* ([\d.]+) ×$", page, re.MULTILINE)
    assert int(total) <= 300
    assert float(torch) > 1
