"""Sets barriers where threads of a block need what others wrote, or write what others read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import combined_of, thread_bits, warps_apart
from tcl.codegen.loopir.walk import alone, statements, uniform, values_in, walk
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal

Owner: TypeAlias = tuple[object, ...]
"""What decides which thread has an element: two phases with the same owner touch an element by
the same thread. ``()``: any thread may."""


@dataclass(frozen=True, slots=True)
class _Touched:
    """Tensors that threads read and wrote since they last met, each with its owners."""

    read: frozenset[tuple[str, Owner]] = frozenset()
    written: frozenset[tuple[str, Owner]] = frozenset()

    def meets(self, other: _Touched) -> bool:
        """Whether one of the two writes what other threads touch in the other one."""
        return _meet(self.written, other.read | other.written) or _meet(self.read, other.written)

    def __or__(self, other: _Touched) -> _Touched:
        return _Touched(self.read | other.read, self.written | other.written)


def _meet(some: frozenset[tuple[str, Owner]], others: frozenset[tuple[str, Owner]]) -> bool:
    return any(
        a == b and (not provably_equal(own, its) or not own) for a, own in some for b, its in others
    )


def with_barriers(body: ir.Block, program: ir.Program, below: Iterable[str] = ()) -> ir.Block:
    """The work of a block with as few barriers as it needs. Phases between barriers are the
    statements that threads run on their own: loops over threads, with all that lies in them.
    ``below``: the panels in whose place threads exchange sums."""
    inputs = frozenset(t.name for t in program.tensors if t.role is ir.Role.INPUT)
    spaces = {d.name: s for s in program.spaces for d in s.dims}
    made, _ = _Setting(inputs, spaces, tuple(below)).block(body, _Touched())
    return made


@dataclass(frozen=True, slots=True)
class _Setting:
    inputs: frozenset[str]
    """Nobody writes them."""
    spaces: Mapping[str, ir.Space]
    below: tuple[str, ...]
    """Panels in whose place threads exchange sums."""
    known: dict[int, _Touched] = field(default_factory=dict)
    """What phases touch, by ``id``: those of loops are asked more than once."""

    def block(self, block: ir.Block, before: _Touched) -> tuple[ir.Block, _Touched]:
        """The block with barriers, and what was touched since the last one."""
        found: list[ir.Statement] = []
        since = before
        for statement in block.body:
            made, since = self.statement(statement, since)
            found += made
        return ir.Block(tuple(found)), since

    def statement(
        self, statement: ir.Statement, since: _Touched
    ) -> tuple[list[ir.Statement], _Touched]:
        if isinstance(statement, ir.Block) and not alone(statement):
            block, since = self.block(statement, since)
            return list(block.body), since
        if isinstance(statement, ir.For) and uniform(statement):
            return self.loop(statement, since)
        if id(statement) not in self.known:
            self.known[id(statement)] = self.touched(statement)
        touched = self.known[id(statement)]
        exchanged = self.exchanged(statement)
        met = since.meets(touched | _Touched(written=exchanged) if exchanged else touched)
        made = [ir.Barrier(), statement] if met else [statement]
        if exchanged:  # threads meet in it
            return made, _Touched(exchanged)
        return made, touched if met else since | touched

    def loop(self, loop: ir.For, since: _Touched) -> tuple[list[ir.Statement], _Touched]:
        """A loop that all threads run together: its end comes before its beginning, too."""
        body = loop.body if isinstance(loop.body, ir.Block) else ir.Block((loop.body,))
        if provably_equal(loop.loop.fold.count, 1):
            made, after = self.block(body, since)
            return [replace(loop, body=made)], after
        again = since
        while True:
            made, after = self.block(body, again)
            if after | again == again:
                return [replace(loop, body=made)], after | since
            again = again | after

    def exchanged(self, statement: ir.Statement) -> frozenset[tuple[str, Owner]]:
        """Where threads hand sums to those of other warps: written, then read by all. Those that
        may overlap begin at the same place."""
        parts = [combined for _, combined in combined_of(statement)]
        if not parts:
            return frozenset()
        folds = parts[0].folds
        if not warps_apart(thread_bits(self.spaces[folds[0].dim].threads, folds)):
            return frozenset()
        places = (f"exchange {c.place}" for c in parts)
        return frozenset((place, ()) for place in (*places, *self.below))

    def touched(self, statement: ir.Statement) -> _Touched:
        """What a phase reads and writes, but for inputs."""
        read: set[tuple[str, Owner]] = set()
        written: set[tuple[str, Owner]] = set()
        for s in statements(statement):
            if isinstance(s, ir.Store | ir.Update):
                written.add((s.ref.tensor, self.owner(s.ref)))
            for value in values_in(s):
                for v in walk(value):
                    if isinstance(v, ir.Load) and v.ref.tensor not in self.inputs:
                        read.add((v.ref.tensor, self.owner(v.ref)))
        return _Touched(frozenset(read), frozenset(written))

    def owner(self, ref: ir.TensorRef) -> Owner:
        """What decides which thread has an element: the folds along each axis, if all threads'
        folds are among them."""
        axes: list[tuple[object, ...]] = []
        threads: dict[ir.Fold, tuple[int, int]] = {}
        space: ir.Space | None = None
        for axis, s in enumerate(ref.subscripts):
            if not isinstance(s, ir.Affine) or len(s.terms) > 1:
                return ()
            if not s.terms:
                axes.append((s.constant,))
                continue
            ((name, c),) = s.terms
            own = self.spaces.get(name)
            if own is None or c != 1 or (space or own) != own:
                return ()
            space = own
            folds = [f for f in space.folds(name) if not provably_equal(f.count, 1)]
            axes.append((s.constant + space.dim(name).first,))
            threads |= {f: (axis, f.step) for f in folds}
        folds_ = space.threads if space is not None else ()
        if not folds_ or any(f not in threads for f in folds_):
            return ()
        return (*axes, *((*threads[f], f.count) for f in folds_))
