"""The notebook of the examples runs, shows what it says, and is committed without outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from command_line import of_brief_searches
from known_machine import known_machine
from nbclient import NotebookClient
from places import EXAMPLES, ROOT

TOUR = EXAMPLES / "tour.ipynb"
BRIEFLY = {
    "time_limit=30": "generations=1, population=3",
    "(4096, 1024)": "(64, 1024)",
    "N=4096,": "N=64,",
    "(16, 16, 56, 56)": "(2, 16, 20, 20)",
}
"""What takes long in its cells, and what stands for it."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """All outputs of its cells, after a short search on small arrays."""
    folder = tmp_path_factory.mktemp("tour")
    notebook = nbformat.read(TOUR, 4)
    for long, brief in BRIEFLY.items():
        (cell,) = (c for c in notebook.cells if c.cell_type == "code" and long in c.source)
        cell.source = cell.source.replace(long, brief)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCL_CACHE_DIR", str(known_machine(folder / "cache")))
        patch.setenv("PYTHONPATH", of_brief_searches()["PYTHONPATH"])
        patch.setenv("IPYTHONDIR", str(folder))
        NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=600,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    return [o for cell in notebook.cells for o in cell.get("outputs", [])]


def test_it_is_committed_without_outputs() -> None:
    cells = nbformat.read(TOUR, 4).cells
    assert len(cells) > 15
    assert all(not c.outputs and c.execution_count is None for c in cells if c.cell_type == "code")


def test_the_page_has_its_cells_and_their_outputs() -> None:
    """If this fails: ``python -m benchmarks.tour``."""
    cells, shown = nbformat.read(TOUR, 4).cells, nbformat.read(ROOT / "docs/tour.ipynb", 4).cells
    assert [cell.source for cell in cells] == [cell.source for cell in shown]
    assert sum(len(cell.get("outputs", ())) for cell in shown) >= 8


def test_links_lead_somewhere() -> None:
    text = "".join(c.source for c in nbformat.read(TOUR, 4).cells if c.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links and all((Path(TOUR).parent / link).exists() for link in links)


def test_what_it_shows(outputs: list[Any]) -> None:
    html = [o.data["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    definition, options, search, result = html
    assert "rms_norm" in definition and ">tile<" in options
    assert "tuning dilated on [2, 16, 20, 20]" in search and "evaluated" in search
    assert "<svg" in result and ">winner<" in result and ">preset<" in result
    text = "".join(o.text for o in outputs if o.output_type == "stream")
    assert "error: 'X' is read at indices -1 to 1024" in text
    assert "for s0.n.chunk" in text and re.search(r"^default +[\d.]+ [mµ]s", text, re.MULTILINE)
