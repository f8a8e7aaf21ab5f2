"""What a notebook shows below a cell: it takes the notebook's own colours, light or dark.

JupyterLab's own rules for tables name three classes: ours name one three times, so that they hold.
"""

from __future__ import annotations

from tcl.html.markup import Child, Markup, tag

_STYLE = """
.tcl-shown table { border-collapse: collapse; margin: .4em 0; font-variant-numeric: tabular-nums; }
.tcl-shown.tcl-shown.tcl-shown :is(th, td) {
  text-align: left; padding: .15em 1em .15em 0; background: none; overflow-wrap: anywhere;
}
.tcl-shown thead th { opacity: .65; font-weight: normal; }
.tcl-shown tbody th { font-weight: 600; }
.tcl-shown pre {
  background: none; color: inherit; margin: .4em 0; line-height: 1.4; white-space: pre-wrap;
}
.tcl-shown .keyword { font-weight: 600; } .tcl-shown .type { color: #3d8bd4; }
.tcl-shown .comment { opacity: .6; font-style: italic; }
.tcl-shown svg { max-width: 760px; width: 100%; height: auto; display: block; }
.tcl-shown svg text { fill: currentColor; opacity: .65; font-size: 12px; }
.tcl-shown .grid { stroke: currentColor; opacity: .15; }
.tcl-shown .base { stroke: currentColor; opacity: .5; }
.tcl-shown .dot { fill: #3d8bd4; fill-opacity: .55; } .tcl-shown circle.winner { fill: #2ea04f; }
.tcl-shown .line { fill: none; stroke-width: 2; } .tcl-shown .line.best { stroke: #3d8bd4; }
.tcl-shown .failed path { fill: none; stroke: #d1493e; stroke-width: 1.6; }
"""


def shown(*children: Child) -> str:
    """What ``_repr_html_`` returns: these, with the style that they need."""
    return tag("div", tag("style", Markup(_STYLE)), children, class_="tcl-shown")
