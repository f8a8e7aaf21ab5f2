"""Names in generated code: prefixed, so that no TC name meets a keyword or another name."""

from __future__ import annotations

from dataclasses import dataclass, field

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
