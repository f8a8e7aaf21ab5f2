"""Errors and warnings that point into the text they are about."""

from __future__ import annotations

from collections.abc import Iterable

from tcl.common.dataclass import dataclass
from tcl.common.errors import TclError
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source, Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: what is wrong and what to do about it, and where."""

    message: str
    span: Span
    notes: tuple[tuple[Span, str], ...] = ()
    """Further places that explain the problem, each with its sentence."""
    section: Section | None = None
    """Of the language reference: where the rule is explained."""

    def render(self, source: Source, severity: str = "error") -> str:
        """The message as a person reads it: place, sentence, section, line, caret."""
        pointer = self.section.pointer if self.section else ""
        lines = [_located(source, self.span, f"{severity}: {self.message}{pointer}")]
        lines += [_located(source, span, f"note: {note}") for span, note in self.notes]
        return "\n".join(lines)


def _located(source: Source, span: Span, sentence: str) -> str:
    return f"{source.name}:{span.line}:{span.column}: {sentence}\n{source.excerpt(span)}"


class SourceError(TclError):
    """An error with one or more places in a text.

    ``diagnostics`` holds them all, first place first; ``line``, ``column`` (both from 1),
    ``span`` and ``message`` are those of the first.
    """

    def __init__(self, source: Source, diagnostics: Iterable[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.span))
        first = self.diagnostics[0]
        self.message = first.message
        self.span = first.span
        self.line = first.span.line
        self.column = first.span.column
        super().__init__("\n".join(d.render(source) for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[SourceError], tuple[Source, tuple[Diagnostic, ...]]]:
        return type(self), (self.source, self.diagnostics)


class TclSyntaxError(SourceError):
    """The text does not follow the grammar."""


class TclSemanticError(SourceError):
    """The text parses but breaks a rule; all problems of a def are reported together."""


class RangeInferenceError(SourceError):
    """For these sizes an index has no range, or an access can leave its tensor."""


class NoRangeError(RangeInferenceError):
    """An index has no range."""
