"""Walks over values of the loop IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tcl.codegen.loopir import ir
from tcl.common.dataclass import replace

_PARTS: Mapping[type, tuple[str, ...]] = {
    ir.Unary: ("operand",),
    ir.Cast: ("operand",),
    ir.Binary: ("left", "right"),
    ir.Select: ("condition", "then", "otherwise"),
}
"""The fields of a value that are values."""
_NO_LETS: Mapping[str, frozenset[str]] = MappingProxyType({})


def children(value: ir.Value) -> tuple[ir.Value, ...]:
    """The values directly inside a value, those of computed subscripts included; what is combined
    is at another place, and not."""
    if isinstance(value, ir.Load):
        return tuple([s.value for s in value.ref.subscripts if isinstance(s, ir.Computed)])
    if isinstance(value, ir.Call):
        return value.arguments
    parts = _PARTS.get(type(value))
    return () if parts is None else tuple([getattr(value, part) for part in parts])


def walk(value: ir.Value) -> Iterator[ir.Value]:
    """``value`` and everything inside it, from left to right; deep trees need no recursion."""
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        if inner := children(current):
            pending.extend(inner[::-1])


def behind_names(values: Iterable[ir.Value], lets: Mapping[str, ir.Value]) -> Iterator[ir.Value]:
    """Everything inside of values, and of what names in them stand for, which comes up once: each
    name may stand for two of the one before."""
    pending, seen = list(values), set[str]()
    while pending:
        for v in walk(pending.pop()):
            yield v
            if isinstance(v, ir.Variable) and v.name in lets and v.name not in seen:
                seen.add(v.name)
                pending.append(lets[v.name])


def loads(value: ir.Value) -> Iterator[ir.Load]:
    """All reads inside ``value``."""
    return (v for v in walk(value) if isinstance(v, ir.Load))


def variables(values: Iterable[ir.Value]) -> set[str]:
    """The names of all variables inside of values."""
    return {v.name for value in values for v in walk(value) if isinstance(v, ir.Variable)}


def rebuilt(value: ir.Value, change: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """``value`` with the values directly inside it changed, subscripts left as they are."""
    if isinstance(value, ir.Call):
        return replace(value, arguments=tuple(map(change, value.arguments)))
    parts: dict[str, Any] = {
        part: change(getattr(value, part)) for part in _PARTS.get(type(value), ())
    }
    return replace(value, **parts) if parts else value


def rewritten(value: ir.Value, change: Callable[[ir.Load], ir.Value]) -> ir.Value:
    """``value`` with its reads changed, those in computed subscripts left as they are."""
    if isinstance(value, ir.Load):
        return change(value)
    return rebuilt(value, lambda inner: rewritten(inner, change))


def replaced(value: ir.Value, part: ir.Value, by: ir.Value) -> ir.Value:
    """``value`` with every occurrence of a part replaced, those in subscripts left as they are."""
    return by if value == part else rebuilt(value, lambda inner: replaced(inner, part, by))


def written_out(value: ir.Value, lets: Mapping[str, ir.Value]) -> ir.Value:
    """``value`` with what names stand for in their place, those in subscripts left as they are."""
    if isinstance(value, ir.Variable):
        return lets.get(value.name, value)
    return rebuilt(value, lambda inner: written_out(inner, lets)) if lets else value


def renamed(value: ir.Value, names: Mapping[str, str]) -> ir.Value:
    """``value`` with the names of dimensions replaced."""

    match value:
        case ir.Position(index=index):
            return replace(value, index=moved(index, names))
        case ir.Load(ref=ref):
            return replace(value, ref=renamed_ref(ref, names))
    return rebuilt(value, lambda inner: renamed(inner, names))


def renamed_ref(ref: ir.TensorRef, names: Mapping[str, str]) -> ir.TensorRef:
    """An element with the names of dimensions replaced."""
    subscripts = (
        moved(s, names) if isinstance(s, ir.Affine) else replace(s, value=renamed(s.value, names))
        for s in ref.subscripts
    )
    return replace(ref, subscripts=tuple(subscripts))


def with_values(point: ir.Point, change: Callable[[ir.Value], ir.Value]) -> ir.Point:
    """A point with its value, and those that it has names for, changed."""
    lets = tuple(replace(let, value=change(let.value)) for let in point.lets)
    return replace(point, lets=lets, value=change(point.value))


def renamed_point(point: ir.Point, names: Mapping[str, str]) -> ir.Point:
    """A point with the names of dimensions replaced."""
    made = with_values(point, lambda value: renamed(value, names))
    return replace(made, target=renamed_ref(point.target, names))


def moved(index: ir.Affine, names: Mapping[str, str]) -> ir.Affine:
    """An index expression with the names of dimensions replaced."""
    terms = ((_fold_of(name, names), c) for name, c in index.terms)
    return ir.Affine(tuple(sorted(terms)), index.constant)


def _fold_of(name: str, names: Mapping[str, str]) -> str:
    """The other nest's dimension, or its fold of the same level."""
    if name in names:
        return names[name]
    dim, _, level = name.rpartition(".")
    return f"{names[dim]}.{level}" if dim in names else name


def substituted(value: ir.Value, dim: str, by: ir.Affine, *, inside: bool) -> ir.Value:
    """``value`` with an index expression in place of a dimension. ``inside``: whether it is a point
    of the dimension wherever the value is computed."""

    def substituted_index(old: ir.Affine) -> ir.Affine:
        factor = old.coefficient(dim)
        return old + (by + ir.Affine(((dim, -1),))).scaled(factor) if factor else old

    def subscript(s: ir.Subscript) -> ir.Subscript:
        return (
            substituted_index(s) if isinstance(s, ir.Affine) else replace(s, value=changed(s.value))
        )

    def changed(value: ir.Value) -> ir.Value:
        match value:
            case ir.Position():
                return replace(value, index=substituted_index(value.index))
            case ir.Load(ref=ref, total=total):
                subscripts = tuple(map(subscript, ref.subscripts))
                there = total and (inside or not any(i.coefficient(dim) for i in indices(value)))
                return replace(value, ref=replace(ref, subscripts=subscripts), total=there)
        return rebuilt(value, changed)

    return changed(value)


def operands(point: ir.Point) -> tuple[ir.Load, ...]:
    """The different elements that a point reads, in order of appearance."""
    found: dict[ir.TensorRef, ir.Load] = {}
    for value in values_of(point):
        for load in loads(value):
            found.setdefault(load.ref, load)
    return tuple(found.values())


def values_of(point: ir.Point) -> tuple[ir.Value, ...]:
    return (*(let.value for let in point.lets), point.value)


def indices(value: ir.Value) -> Iterator[ir.Affine]:
    """All index expressions inside ``value``."""
    for v in walk(value):
        if isinstance(v, ir.Position):
            yield v.index
        elif isinstance(v, ir.Load):
            yield from v.ref.affine


def dims_of_lets(lets: Iterable[ir.Let]) -> dict[str, frozenset[str]]:
    """The dimensions that values with names depend on."""
    found: dict[str, frozenset[str]] = {}
    for let in lets:
        found[let.name] = dims_of_values([let.value], found)
    return found


def dims_of_values(
    values: Iterable[ir.Value], lets: Mapping[str, frozenset[str]] = _NO_LETS
) -> frozenset[str]:
    """The dimensions that values depend on, those behind names included."""
    found: set[str] = set()
    for value in values:
        found |= {name for index in indices(value) for name, _ in index.terms}
        for v in walk(value):
            found |= lets.get(v.name, frozenset()) if isinstance(v, ir.Variable) else frozenset()
    return frozenset(found)


_INSIDE: Mapping[type, Callable[[Any], tuple[ir.Statement, ...]]] = {
    ir.Block: lambda block: block.body,
    **dict.fromkeys((ir.For, ir.Fill, ir.Last), lambda around: (around.body,)),
    ir.Pipeline: lambda pipeline: (*pipeline.fills, pipeline.body),
    **dict.fromkeys((ir.First, ir.Within), lambda either: (either.then, either.otherwise)),
}


def inside(statement: ir.Statement) -> tuple[ir.Statement, ...]:
    parts = _INSIDE.get(type(statement))
    return () if parts is None else parts(statement)


def statements(statement: ir.Statement) -> Iterator[ir.Statement]:
    """``statement`` and everything inside it, in order."""
    pending = [statement]
    while pending:
        current = pending.pop()
        yield current
        if inner := inside(current):
            pending.extend(reversed(inner))


def alone(block: ir.Block) -> bool:
    """Whether a block is what a thread does on its own: nothing but values and stores."""
    plain = (ir.Let, ir.Accumulate, ir.Store, ir.Update, ir.Block)
    return all(isinstance(s, plain) for s in statements(block))


def in_block(statement: ir.Statement) -> tuple[ir.Statement, ...]:
    """What a block consists of; any other statement is alone."""
    return statement.body if isinstance(statement, ir.Block) else (statement,)


def uniform(loop: ir.For) -> bool:
    """Whether the threads of a block run a loop together: their loops lie in it, and phases
    between which they may have to meet."""
    if loop.loop.kind is not ir.Kind.SERIAL:
        return False
    return any(
        isinstance(s, ir.For) and s.loop.kind is ir.Kind.THREAD for s in statements(loop.body)
    )


def values_in(statement: ir.Statement) -> tuple[ir.Value, ...]:
    """The values that a statement computes itself, those of the subscripts that it writes to
    included."""
    match statement:
        case ir.Let(value=value) | ir.Accumulate(value=value) | ir.Scan(value=value):
            return (value,)
        case ir.Store(ref=ref, value=value) | ir.Update(ref=ref, value=value):
            return value, *(s.value for s in ref.computed)
    return ()


def straight(statement: ir.Statement) -> bool:
    """Whether its statements are run from front to back, each once, when everything that is
    unrolled is written out. What they compute may take branches."""
    looped = (ir.Kind.SERIAL, ir.Kind.MMA)
    return not any(
        isinstance(s, ir.First | ir.Within | ir.Update)
        or (isinstance(s, ir.For) and s.loop.kind in looped)
        for s in statements(statement)
    )


def branches(statement: ir.Statement) -> bool:
    """Whether what some statement in it computes takes branches."""
    return any(
        _may_branch(v)
        for s in statements(statement)
        if isinstance(s, ir.Let | ir.Accumulate | ir.Scan | ir.Store | ir.Update)
        for v in walk(s.value)
    )


def _may_branch(value: ir.Value) -> bool:
    match value:
        case ir.Select() | ir.Call():
            return True
        case ir.Binary(op=op):
            return op in ("&&", "||")
        case ir.Load(ref=ref):
            return gathers(ref)
    return False


def gathers(ref: ir.TensorRef) -> bool:
    """Whether data decide which element it is, and not only where a point lies."""
    return any(
        bool(subscript.check) or any(isinstance(v, ir.Load) for v in walk(subscript.value))
        for subscript in ref.computed
    )


def chain(statement: ir.Statement) -> tuple[list[ir.Loop], ir.Statement]:
    """Loops in each other, and what lies in the innermost."""
    loops = []
    while isinstance(statement, ir.For):
        loops.append(statement.loop)
        statement = statement.body
    return loops, statement


def copied(fill: ir.Fill) -> tuple[list[ir.Loop], ir.Store, ir.Load, ir.Value | None]:
    """The loops of a copy, its store, what is read, and the condition unless which it is a zero."""
    loops, store = chain(fill.body)
    if not isinstance(store, ir.Store):
        raise ir.IRError("a panel is filled by one store")
    value, condition = store.value, None
    if isinstance(value, ir.Select):
        condition, value = value.condition, value.then
    if not isinstance(value, ir.Load):
        raise ir.IRError(f"{store.ref.tensor} is filled with what is no copy")
    return loops, store, value, condition


def is_transposed(fill: ir.Fill, panel: ir.Layout) -> bool:
    """Whether neighbours that a copy reads at once lie apart in its panel: it is transposed."""
    loops, store, *_ = copied(fill)
    lanes = [x.fold.dim for x in loops if x.kind is ir.Kind.VECTOR]
    return any(step != 1 for step in panel.steps(store.ref, lanes))
