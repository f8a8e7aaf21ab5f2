"""The notebook of the examples with its outputs, as the site shows it: ``docs/tour.ipynb``.

    python -m benchmarks.tour

Its outputs hold times, so nothing else should run meanwhile. ``nbclient`` comes with the extra
``test``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples/tour.ipynb"
EXECUTED = ROOT / "docs/tour.ipynb"


def main() -> None:
    """Run the cells, in a folder and with a cache of their own, and write the page."""
    notebook = nbformat.read(NOTEBOOK, 4)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TCL_CACHE_DIR": folder, "IPYTHONDIR": folder}
        place = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=300, resources=place, record_timing=False)
        client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):  # what text would say, it shows
                del output.data["text/plain"]
    nbformat.write(notebook, EXECUTED)


if __name__ == "__main__":
    main()
