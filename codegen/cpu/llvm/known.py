"""What is known at a place in the code that is emitted, and which of the loops around it decide
the result of an instruction."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from tcl.common.dataclass import dataclass

if TYPE_CHECKING:
    from tcl.codegen.cpu.llvm.builder import Val

_DIVIDING = ("sdiv", "udiv", "srem", "urem")
_DIVIDED = re.compile(r"\w+ [^%]*%[^%,]+, [^%]+$")
"""A division by what is known now, which may be done in vain: that is not 0."""
_NAMES = re.compile(r"%v\d+").findall
"""The values that an instruction reads, but for arguments."""
_FIRST = frozenset((0,))


@dataclass(slots=True)
class Around:
    """A loop around the code that is emitted."""

    before: list[str]
    """Instructions that every iteration would repeat: they come before the loop."""
    scope: int
    """As ``Known.scope``, where the loop is entered ..."""
    active: frozenset[int]
    """... and likewise."""
    written: Collection[str] | None
    """The tensors that iterations store to; None: any."""
    begins: int = -1
    """The scope that every iteration begins in."""


@dataclass(slots=True)
class Known:
    """Values that have been computed on every way to this place. Unrolled code repeats itself a
    lot; what is not written need not be read and merged by LLVM."""

    values: dict[Hashable, tuple[Val, int]] = field(default_factory=dict)
    """Instruction without side effects, or what else stands for a value → the value, and the scope
    that it is known in."""
    loads: dict[tuple[str, object], tuple[Val, int, int]] = field(default_factory=dict)
    """Likewise for loads, by tensor, with ``changes`` at that time."""
    changed: dict[str | None, int] = field(default_factory=dict)
    """Tensor → ``changes`` when it was last stored to, if it was; None: any tensor."""
    changes: int = 0
    """How many times tensors were stored to."""
    scope: int = 0
    """The blocks of code that are executed together with this one: each value is known in one
    scope."""
    active: frozenset[int] = _FIRST
    """The scopes that were always executed before this place is reached."""
    scopes: int = 0
    """How many there are besides the first."""
    reached: dict[str, frozenset[int] | None] = field(default_factory=dict)
    """Label → ``active`` where a condition leads there; None if there are several such places."""
    decided: dict[str, tuple[str, str] | None] = field(default_factory=dict)
    """Label → the condition that leads there, and whether it holds there; None if there are several
    ways to it."""
    conditions: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Condition → whether it holds, and the scope that this was last known in."""
    around: list[Around] = field(default_factory=list)
    """Loops around this place, from the outermost on."""
    depths: dict[str, int] = field(default_factory=dict)
    """Value → the number of loops around it, where there are some."""

    def recall(self, key: Hashable) -> Val | None:
        """The value of an instruction, or of what else stands for one."""
        found = self.values.get(key)
        return found[0] if found is not None and found[1] in self.active else None

    def remember(self, key: Hashable, value: Val, depth: int | None = None) -> Val:
        """Have a value known from here on; or from before the loops, but for ``depth`` of them."""
        around = self.around
        inside = depth is None or depth >= len(around)
        self.values[key] = value, self.scope if inside else around[depth or 0].scope
        return value

    def recall_load(self, tensor: str, key: object) -> Val | None:
        """What was read from a tensor, if it is still there."""
        found = self.loads.get((tensor, key))
        if found is None or found[1] not in self.active:
            return None
        last = max(self.changed.get(tensor, 0), self.changed.get(None, 0))
        return found[0] if found[2] >= last else None

    def remember_load(self, tensor: str, key: object, value: Val, depth: int | None = None) -> Val:
        """As ``remember``, of what was read from a tensor."""
        inside = depth is None or depth >= len(self.around)
        scope = self.scope if inside else self.around[depth or 0].scope
        self.loads[tensor, key] = value, scope, self.changes
        return value

    def change(self, tensors: Collection[str] | None) -> None:
        """What was read from these tensors may be something else now; None: from any."""
        self.changes += 1
        for tensor in (None,) if tensors is None else tensors:
            self.changed[tensor] = self.changes

    def reach(self, label: str, condition: str, holds: str) -> None:
        """A condition at this place leads to a label, where it holds or where it does not."""
        self.decided[label] = None if label in self.decided else (condition, holds)
        self.reached[label] = None if label in self.reached else self.active

    def join(self, label: str) -> None:
        """This place leads to a label, whatever holds."""
        self.decided[label] = None

    def start(self, label: str) -> None:
        """Continue at a label. What was known where a condition leads there still is; and always
        what was known where the innermost loop is entered."""
        before = self.reached.get(label)
        if before is None:
            before = self.around[-1].active if self.around else _FIRST
        self.scope = self.scopes = self.scopes + 1
        self.active = before | {self.scope}
        if (decided := self.decided.get(label)) is not None:
            self.conditions[decided[0]] = decided[1], self.scope

    def settled(self, condition: str) -> str | None:
        """Whether a condition holds, where a branch has decided that: ``true`` or ``false``."""
        found = self.conditions.get(condition)
        return found[0] if found is not None and found[1] in self.active else None

    @contextmanager
    def loop(self, out: str, written: Collection[str] | None) -> Iterator[Around]:
        """A loop that is entered here, and left for a label."""
        here = Around([], self.scope, self.active, written)
        self.change(written)
        self.around.append(here)
        yield here
        self.around.pop()
        self.reached.setdefault(out, here.active)

    def depth(self, text: str) -> int:
        """How many of the loops around this place decide the result of an instruction, or whether
        it may be executed."""
        most, found = len(self.around), 0
        # Of most, the last operand that is not known now is of the innermost loop.
        last = text[text.rfind("%") :].partition(",")[0]
        if not most or self.depths.get(last.rstrip(")")) == most:
            return most
        if text.startswith(_DIVIDING) and not _DIVIDED.match(text):
            return most
        for name in _NAMES(text):
            depth = self.depths.get(name, 0)
            if depth >= most:
                return most
            if depth > found:
                found = depth
        return found

    def depth_of_load(self, tensor: str, text: str) -> int:
        """Likewise, of a read of a tensor that may be made in vain. It comes before a loop only if
        each iteration reads, whatever holds: elements of a vector under a condition may lie
        outside of the tensor where that does not hold."""
        least, depth, scope = self.depth(text), len(self.around), self.scope
        while depth > least:
            loop = self.around[depth - 1]
            if loop.written is None or tensor in loop.written or scope != loop.begins:
                break
            depth, scope = depth - 1, loop.scope
        return depth
