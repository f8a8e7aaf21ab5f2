"""Errors in IPython, without the calls of ours that lie between the user's line and the error."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

_OURS = ("tcl", "contextlib")
"""Packages whose frames are not the user's; the latter's stand between frames of ours."""


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is no user's."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in _OURS


def shortened(traceback: TracebackType | None) -> TracebackType | None:
    """Of frames of ours that follow each other, the first alone: what the user's line called."""
    kept: list[TracebackType] = []
    before = False
    while traceback is not None:
        ours = is_ours(traceback.tb_frame)
        if not (ours and before):
            kept.append(traceback)
        before, traceback = ours, traceback.tb_next
    made = None
    for each in reversed(kept):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return made


def for_ipython(error: BaseException) -> list[str]:
    """The lines that the shell shows of an error; with ``%xmode Verbose``, of all frames."""
    shown = sys.modules["IPython"].get_ipython().InteractiveTB
    verbose = shown.mode == "Verbose"
    whole = error.__traceback__
    lines: list[str] = shown.structured_traceback(
        type(error), error, whole if verbose else shortened(whole)
    )
    return lines
