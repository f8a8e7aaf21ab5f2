"""Which threads of a block have a part in what each of them does on its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import combined_of
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import alone, inside, statements, uniform, values_in, walk
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Some threads of a block."""

    below: int | None = None
    """Their numbers are below it; None: all numbers."""
    firsts: tuple[ir.Fold, ...] = ()
    """They are at the first iteration of each of these folds."""


class TakingPart:
    """The threads that have a part in each statement of a kernel."""

    def __init__(self, geometry: Geometry, *, idle_sums: bool) -> None:
        self.geometry, self.idle_sums = geometry, idle_sums
        """Whether threads without a part in a sum add up what the first ones do."""
        self._users = _users(geometry.kernel.body)

    def of(self, statement: ir.Statement) -> tuple[Part, ...]:
        """Those that are in any of these parts; empty: all threads."""
        return self.asking(statement) or _either(self._own(statement))

    def asking(self, statement: ir.Statement) -> tuple[Part, ...]:
        """Likewise, those that ask for what a statement makes of the sums of several threads."""
        return _either(*map(self._own, self._users.get(id(statement), ())))

    def _own(self, statement: ir.Statement) -> Part:
        inner = list(statements(statement))
        bound = [s.loop.fold for s in inner if isinstance(s, ir.For)]
        space = self.geometry.space_of[bound[0].dim] if bound else None
        count, threads = space.thread_count if space else 1, self.geometry.kernel.threads
        below = count if 1 < count < threads else None
        if not any(isinstance(s, ir.Store | ir.Update) for s in inner):
            return Part() if self.idle_sums else Part(below)
        if space is None or not any(f in bound for f in space.threads):
            return Part(1 if threads > 1 else None)
        # One thread for each iteration of the loops over threads.
        rest = (f for f in space.threads if f not in bound)
        return Part(below, tuple(f for f in rest if f.count != 1))


def _either(*parts: Part) -> tuple[Part, ...]:
    return () if Part() in parts else tuple(dict.fromkeys(parts))


@dataclass(frozen=True, slots=True, eq=False)
class _Phase:
    """What threads do together, or each on its own, between two places where they may meet."""

    statement: ir.Statement
    read: frozenset[int]
    written: frozenset[int]
    """Accumulators, by number."""

    @property
    def passes_on(self) -> bool:
        """Whether it makes other values of accumulators, once."""
        return all(
            (isinstance(s, ir.For) and s.loop.kind is not ir.Kind.SERIAL)
            or (isinstance(s, ir.Accumulate) and s.op == "=")
            or isinstance(s, ir.Let | ir.Block)
            for s in statements(self.statement)
        ) and not combined_of(self.statement)


def _users(body: ir.Statement) -> Mapping[int, tuple[ir.Statement, ...]]:
    """Statements, by ``id``, that make sums of several threads or other values of such sums → those
    that store what these come to; statements whose values are needed for anything else are left
    out."""
    made = (s.value for s in statements(body) if isinstance(s, ir.Accumulate))
    if not any(isinstance(value, ir.Combined) for value in made):
        return {}
    phases = list(_phases(body))
    readers: dict[int, list[_Phase]] = defaultdict(list)
    for phase in phases:
        for number in phase.read:
            readers[number].append(phase)

    def users(written: frozenset[int], seen: frozenset[int]) -> list[ir.Statement] | None:
        """None: not only statements that store."""
        found: list[ir.Statement] = []
        if written & seen:
            return None
        for reader in (r for number in written for r in readers[number]):
            if reader.passes_on and reader.written:
                more = users(reader.written, seen | written)
            elif reader.written:
                more = None
            else:
                more = [reader.statement]
            if more is None:
                return None
            found += more
        return found

    known, found = set[int](), dict[int, tuple[ir.Statement, ...]]()
    for phase in phases:
        if combined_of(phase.statement) or (phase.passes_on and known & phase.read):
            known |= phase.written
            found[id(phase.statement)] = tuple(users(phase.written, frozenset()) or ())
    return found


def _phases(body: ir.Statement) -> Iterator[_Phase]:
    """Those of a kernel, in order. A name means what was declared last."""
    numbers: dict[str, int] = {}
    for k, statement in enumerate(_apart(body)):
        if isinstance(statement, ir.Declare):
            numbers[statement.name] = k
            continue
        read, written = set[str](), set[str]()
        for s in statements(statement):
            if isinstance(s, ir.For) and s.pause is not None:
                carried = [c for c in statements(s.pause.then) if isinstance(c, ir.Carry)]
            else:
                carried = [s] if isinstance(s, ir.Carry) else []
            for c in carried:
                names = {c.name, c.total, *([c.lost] if c.lost else [])}
                read, written = read | names, written | names
            if isinstance(s, ir.Accumulate):
                written.add(s.name)
                read |= {s.name} if s.op != "=" else set()
            for value in values_in(s):
                read |= _names(value)
        yield _Phase(
            statement,
            frozenset(numbers[name] for name in read if name in numbers),
            frozenset(numbers[name] for name in written if name in numbers),
        )


def _names(value: ir.Value) -> set[str]:
    found = set[str]()
    for v in walk(value):
        if isinstance(v, ir.Variable):
            found.add(v.name)
        elif isinstance(v, ir.Combined):
            found |= _names(v.value)
    return found


def _apart(statement: ir.Statement) -> Iterator[ir.Statement]:
    """What a block does one after the other."""
    match statement:
        case ir.Block() if alone(statement):
            yield statement
        case ir.For() if not uniform(statement):
            yield statement
        case ir.Block() | ir.For() | ir.Pipeline() | ir.Last():
            for inner in inside(statement):
                yield from _apart(inner)
        case _:
            yield statement
