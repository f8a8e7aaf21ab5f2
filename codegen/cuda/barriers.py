"""Sets barriers where threads of a block need what others wrote, or write what others read."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.ir_walk import statements, values_in, walk


@dataclass(frozen=True, slots=True)
class _Touched:
    """Tensors that threads read and wrote since they last met."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    def meets(self, other: _Touched) -> bool:
        """Whether one of the two writes what the other one touches."""
        return bool(self.written & (other.read | other.written) or self.read & other.written)

    def __or__(self, other: _Touched) -> _Touched:
        return _Touched(self.read | other.read, self.written | other.written)


def with_barriers(body: ir.Block, program: ir.Program) -> ir.Block:
    """The work of a block with as few barriers as it needs. Phases between barriers are the
    statements that threads run on their own: loops over threads, with all that lies in them."""
    inputs = frozenset(t.name for t in program.tensors if t.role is ir.Role.INPUT)
    made, _ = _Setting(inputs).block(body, _Touched())
    return made


@dataclass(frozen=True, slots=True)
class _Setting:
    inputs: frozenset[str]
    """Nobody writes them."""

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
        if isinstance(statement, ir.For) and _uniform(statement):
            return self.loop(statement, since)
        touched = self.touched(statement)
        if since.meets(touched):
            return [ir.Barrier(), statement], touched
        return [statement], since | touched

    def loop(self, loop: ir.For, since: _Touched) -> tuple[list[ir.Statement], _Touched]:
        """A loop that all threads run together: its end comes before its beginning, too."""
        body = loop.body if isinstance(loop.body, ir.Block) else ir.Block((loop.body,))
        if loop.loop.fold.count == 1:
            made, after = self.block(body, since)
            return [ir.For(loop.loop, made, loop.along)], after
        again = since
        while True:
            made, after = self.block(body, again)
            if after | again == again:
                return [ir.For(loop.loop, made, loop.along)], after | since
            again = again | after

    def touched(self, statement: ir.Statement) -> _Touched:
        """What a phase reads and writes, but for inputs."""
        read: set[str] = set()
        written: set[str] = set()
        for s in statements(statement):
            if isinstance(s, ir.Store):
                written.add(s.ref.tensor)
            for value in values_in(s):
                read |= {v.ref.tensor for v in walk(value) if isinstance(v, ir.Load)}
        return _Touched(frozenset(read) - self.inputs, frozenset(written))


def alone(block: ir.Block) -> bool:
    """Whether a block is what a thread does on its own: nothing but values and stores."""
    plain = (ir.Let, ir.Accumulate, ir.Store, ir.Block)
    return all(isinstance(s, plain) for s in statements(block))


def _uniform(loop: ir.For) -> bool:
    """Whether threads run the loop together: threads' loops lie in it, and phases between which
    they may have to meet."""
    if loop.loop.kind is not ir.Kind.SERIAL:
        return False
    inside = list(statements(loop.body))
    return any(isinstance(s, ir.For) and s.loop.kind is ir.Kind.THREAD for s in inside)
