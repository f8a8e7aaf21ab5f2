"""How Sphinx builds the site: ``python -m sphinx -W -c website . build/site``.

The pages are the repository's own files at their own paths, so their links are right in both
places.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tcl

ROOT = Path(__file__).parent.parent

project = "tcl"
author = "tcl contributors"
version = release = tcl.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
]
root_doc = "README"
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("docs/**.md", "docs/tour.ipynb", "website/*.md", "website/*.rst"),
    *("examples/README.md", "benchmarks/**.md"),
]
exclude_patterns = [".*", "build", "dist", "tests", "website/navigation.md"]

nb_execution_mode = "off"  # the notebook has its outputs
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = "tcl: tensor operations as formulas"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_additional_pages = {"index": "redirect.html"}
templates_path = ["templates"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 110
add_module_names = False
copybutton_exclude = ".linenos, .gp, .go"

_PUBLIC = re.compile(rf"``({'|'.join(n for n in tcl.__all__ if n != '__version__')})``")
_CHECKOUT_ONLY = ("Test it", "Read more")
"""README's sections that the site leaves out: a checkout's, and what navigation says."""


def front_page(app: object, name: str, text: list[str]) -> None:
    """README, with the site's navigation."""
    if name == root_doc:
        parts = re.split(r"^(?=## )", text[0], flags=re.MULTILINE)
        left = [p for p in parts if p.partition("\n")[0].removeprefix("## ") not in _CHECKOUT_ONLY]
        navigation = (ROOT / "website/navigation.md").read_text("utf-8")
        text[0] = "".join(left) + "\n" + navigation


def docstring(*given: Any) -> None:
    """Indented programs of a docstring become blocks of code (reStructuredText wants ``::``), and
    public names links."""
    lines = given[-1]
    lines[:] = [_PUBLIC.sub(r":py:obj:`\1 <tcl.\1>`", line) for line in lines]
    for at in range(len(lines) - 1, 0, -1):
        if lines[at].startswith("    ") and not lines[at - 1].strip() and _is_text(lines[:at]):
            lines[at:at] = ["::", ""]


def _is_text(above: list[str]) -> bool:
    """Whether an unindented paragraph, not an item of a list, is the last above."""
    last = next((x for x in reversed(above) if x.strip()), "")
    return bool(last) and not last.startswith((" ", "- ", "::"))


def setup(app: Any) -> None:
    """Connect them."""
    app.connect("source-read", front_page)
    app.connect("autodoc-process-docstring", docstring)
