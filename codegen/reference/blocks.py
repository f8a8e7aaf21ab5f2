"""Names, straight-line steps and branches, and how they are printed as Python.

Python refuses more than about a hundred levels of indentation, so branches nested deeper than
``_DEEPEST`` are printed side by side under guard variables instead of inside each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class AssignLine:
    """``name = value``"""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Leave:
    """If ``condition`` holds, run the simple statements ``body`` and return."""

    condition: str
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """``if condition: then  else: otherwise``; ``condition`` is a variable."""

    condition: str
    then: Block = field(default_factory=list)
    otherwise: Block = field(default_factory=list)


Step: TypeAlias = AssignLine | Leave | Branch
Block: TypeAlias = list[Step]

_DEEPEST = 40
INDENT = "    "


@dataclass(frozen=True, slots=True)
class _Text:
    """A finished line waiting for its turn."""

    text: str


def render_source(block: Block, depth: int) -> list[str]:
    """The lines of ``block`` at ``depth`` levels of indentation."""
    lines: list[str] = []
    guards = 0
    # A work list instead of recursion: branches may nest thousands deep.
    waiting: list[tuple[Step | _Text, int, str]] = [(s, depth, "") for s in reversed(block)]
    while waiting:
        step, level, guard = waiting.pop()
        pad = INDENT * level
        match step:
            case _Text(text):
                lines.append(pad + text)
            case AssignLine(name, value):
                prefix = f"if {guard}: " if guard else ""
                lines.append(f"{pad}{prefix}{name} = {value}")
            case Leave(condition, body):
                test = f"{guard} and ({condition})" if guard else condition
                lines.append(f"{pad}if {test}:")
                lines += [pad + INDENT + text for text in (*body, "return")]
            case Branch(condition, then, otherwise):
                if level >= _DEEPEST:
                    before = f"{guard} and " if guard else ""
                    yes, no, guards = f"g{guards}", f"g{guards + 1}", guards + 2
                    lines.append(f"{pad}{yes} = {before}{condition}")
                    lines.append(f"{pad}{no} = {before}not {condition}")
                    waiting += [(s, level, no) for s in reversed(otherwise)]
                    waiting += [(s, level, yes) for s in reversed(then)]
                else:
                    waiting += _nested(step, level)
            case _:
                assert_never(step)
    return lines


def _nested(branch: Branch, level: int) -> list[tuple[Step | _Text, int, str]]:
    """A branch as ``if`` and ``else`` lines with indented bodies, last line first."""
    shown: list[tuple[Step | _Text, int, str]] = []
    if branch.then:
        shown.append((_Text(f"if {branch.condition}:"), level, ""))
        shown += [(s, level + 1, "") for s in branch.then]
        if branch.otherwise:
            shown.append((_Text("else:"), level, ""))
    elif branch.otherwise:
        shown.append((_Text(f"if not {branch.condition}:"), level, ""))
    shown += [(s, level + 1, "") for s in branch.otherwise]
    return shown[::-1]


_LONGEST = 24


@dataclass(slots=True)
class PythonNames:
    """The Python names of one statement's tensors, indices and lets.

    With ``readable`` unset the names depend on the order of first use alone, so that
    statements that differ in names only give the same text.
    """

    readable: bool = True
    _given: dict[tuple[str, str], str] = field(default_factory=dict)

    def tensor(self, name: str) -> str:
        return self._name("t", name)

    def index(self, name: str) -> str:
        return self._name("i", name)

    def let(self, name: str) -> str:
        return self._name("x", name)

    def exact_let(self, name: str) -> str:
        """The let's value as a subscript needs it: without wrapping to its type."""
        return self._name("e", name)

    def used_tensors(self) -> tuple[str, ...]:
        """Tensors named so far, in order of first use."""
        return tuple(name for prefix, name in self._given if prefix == "t")

    def _name(self, prefix: str, name: str) -> str:
        given = self._given.get((prefix, name))
        if given is None:
            # A number cannot start a TC name, so the two forms never meet.
            plain = self.readable and name.isascii() and len(name) <= _LONGEST
            given = f"{prefix}_{name}" if plain else f"{prefix}_{len(self._given)}"
            self._given[prefix, name] = given
        return given
