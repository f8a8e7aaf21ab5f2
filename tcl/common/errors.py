"""All errors and warnings but those that point into a text (``tcl.grammar.syntax.errors``).

IPython shows them without the calls of ours that lie between the user's line and the error."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType


class TclError(RuntimeError):
    """Base class of every error that tcl raises on purpose. It is a ``RuntimeError``, because
    programs that call operators of frameworks catch that."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows, which asks for it by this name: the user's lines, and what they
        called."""
        return for_ipython(self)


class ArgumentError(TclError):
    """An argument of a call does not fit: number, rank, size, element type, device or overlap."""


class UnknownNameError(ArgumentError, ValueError):
    """An unknown name in an argument or an environment variable. It is also a ``ValueError``,
    because programs that pass on their users' input catch that."""


class VariableError(ArgumentError, ValueError):
    """An environment variable whose value is not a valid number."""


class TclWarning(UserWarning):
    """Something is legal but probably a mistake."""


class OptionsError(TclError):
    """Mapping options cannot be applied to this def, these sizes or this device."""


class UnknownPresetError(OptionsError, ValueError):
    """An unknown preset. It is also a ``ValueError``, like ``UnknownNameError``."""


class NoNestError(OptionsError):
    """An option was requested for all nests of a def, and no nest can have it."""

    @property
    def option(self) -> str:
        """Its name, with which the sentence begins."""
        return str(self).partition(":")[0]


class CompileError(TclError):
    """A kernel could not be compiled."""


class CacheError(TclError):
    """The tuning cache cannot be read or written."""


class ExecutorLostError(TclError):
    """The machines that compile and measure can no longer be reached."""


class ModelError(TclError):
    """A learned model cannot be read, or was made for another purpose."""


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
