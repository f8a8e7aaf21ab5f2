"""The sections of the language reference, ``docs/language.md``, that messages point at.

A message ends in the command that prints its section, which works wherever tcl is installed.
"""

from __future__ import annotations

from enum import StrEnum


class Section(StrEnum):
    """A heading of the reference."""

    DEFS = "Defs"
    TYPES = "Types"
    LITERALS = "Literals"
    OPERATORS = "Operators"
    ARITHMETIC = "Arithmetic"
    STATEMENTS = "Statements"
    REDUCTIONS = "Reductions"
    RANGES = "Ranges"
    WHERE = "Where"
    GUARDS = "Guards"
    SUBSCRIPTS = "Subscripts"
    SCATTERS = "Scatters"
    CALLS = "Calls"
    FUNCTIONS = "Functions"
    ARGMIN = "Argmin"
    CUMSUM = "Cumsum"
    LIMITS = "Limits"
    RECIPES = "Recipes"
    GRAMMAR = "Grammar"

    @property
    def pointer(self) -> str:
        """What stands behind a message: `` [tcl docs ranges]``."""
        return f" [tcl docs {self.lower()}]"
