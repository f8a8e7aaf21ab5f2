"""The canonical form of a definition: what is computed, whatever things are called.

Two defs have the same canonical text exactly when they are the same up to the names of the def,
its tensors, sizes, indices and lets, the layout of the text, aliases of types, parentheses, and
the expansion of calls. It keys the tuning cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import assert_never

from tcl.grammar.tree import checked as c

VERSION = 1
"""Of the form. A change to it makes every cached result unreachable, so count it up knowingly."""


def canonical_text(checked: c.CheckedDef) -> str:
    """The canonical form, one line per tensor and statement."""
    return _Writer(checked).text()


def canonical_hash(checked: c.CheckedDef) -> str:
    """SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(canonical_text(checked).encode()).hexdigest()


class _Writer:
    def __init__(self, checked: c.CheckedDef) -> None:
        self.checked = checked
        self.tensors = _numbered("t", (t.name for t in checked.inputs + checked.outputs))
        symbols = (b.size for b in checked.bindings if isinstance(b.size, str))
        self.sizes = _numbered("s", symbols)
        self.indices: dict[str, str] = {}
        self.lets: dict[str, str] = {}

    def text(self) -> str:
        lines = [f"canonical {VERSION}"]
        for tensor in self.checked.inputs + self.checked.outputs:
            role = "in" if tensor.is_input else "out"
            lines.append(f"{role} {tensor.type} {self.tensors[tensor.name]} rank {tensor.rank}")
        for b in self.checked.bindings:
            size = self.sizes[b.size] if isinstance(b.size, str) else b.size
            lines.append(f"{self.tensors[b.tensor]}.{b.axis} is {size}")
        position = 0
        for position, statement in enumerate(self.checked.statements):
            lines += self._crossings(position)
            lines.append(self._statement(statement))
        lines += self._crossings(position + 1)
        return "\n".join(lines) + "\n"

    def _crossings(self, position: int) -> list[str]:
        crossing = (b for b in self.checked.boundaries if b.position == position)
        return [f"from 0: {' '.join(self.tensors[t] for t in b.tensors)}" for b in crossing]

    def _statement(self, s: c.Statement) -> str:
        self.indices = _numbered("i", s.all_indices)
        self.lets = _numbered("l", (let.name for let in s.lets))
        places = ", ".join(self.indices[i] for i in s.indices)
        if s.place is not None:
            places = self._list(s.place.subscripts)
        target = f"{self.tensors[s.target]}({places})"
        parts = [f"{target} {s.op}{'!' if s.initialise else ''} {self._expr(s.rhs)}"]
        # The order in which ranges are written means nothing.
        parts += sorted(
            f"{self.indices[r.index]} in {self._expr(r.start)}:{self._expr(r.stop)}"
            for r in s.ranges
        )
        parts += [f"{self.lets[let.name]} = {self._expr(let.value)}" for let in s.lets]
        parts += [f"exists {self._expr(e)}" for e in s.exists]
        return ", ".join(parts)

    def _expr(self, expr: c.Expr) -> str:
        match expr:
            case c.Const(value=value, type=type_):
                return f"{value!r}:{type_}"
            case c.Index(name=name):
                return self.indices[name]
            case c.Size(name=name):
                return self.sizes[name]
            case c.Dimension(tensor=tensor, axis=axis):
                return f"{self.tensors[tensor]}.{axis}"
            case c.LetRef(name=name):
                return self.lets[name]
            case c.Read(tensor=tensor, subscripts=subscripts):
                return f"{self.tensors[tensor]}({self._list(subscripts)})"
            case c.Unary(op=op, operand=operand, type=type_):
                return f"({op}:{type_} {self._expr(operand)})"
            case c.Binary(op=op, left=left, right=right, type=type_):
                return f"({op}:{type_} {self._expr(left)} {self._expr(right)})"
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                return f"(? {self._expr(condition)} {self._expr(then)} {self._expr(otherwise)})"
            case c.Call(name=name, arguments=arguments, type=type_):
                return f"{name}:{type_}({self._list(arguments)})"
            case c.Cast(operand=operand, type=type_):
                return f"(as {type_} {self._expr(operand)})"
            case _:
                assert_never(expr)

    def _list(self, exprs: Iterable[c.Expr]) -> str:
        return ", ".join(self._expr(e) for e in exprs)


def _numbered(letter: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{letter}{i}" for i, name in enumerate(dict.fromkeys(names))}
