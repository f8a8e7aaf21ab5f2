"""Random programs, statement by statement."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from program_accesses import NAMES, Choices, Index, Statement, Tensor, element
from program_expressions import Expressions
from program_values import Value, default_type, literal, reduced, select

from tcl.grammar.syntax import types as t
from tcl.grammar.syntax.types import ScalarType


@dataclass(frozen=True, slots=True)
class Output:
    """What is known about an output."""

    type: str
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    low: float
    high: float
    exact: bool
    """Every order of evaluation gives the same bits."""


@dataclass(frozen=True, slots=True)
class Program:
    """A text with everything needed to run it."""

    source: str
    entry: str
    shapes: dict[str, tuple[int, ...]]
    """Input → shape."""
    dtypes: dict[str, str]
    """Input → type name of the language."""
    values: dict[str, tuple[float, float, bool]]
    """Input → smallest value, largest value, whether only integers."""
    outputs: dict[str, Output]
    ranges: tuple[dict[str, tuple[int, int]] | None, ...]
    """Index → (first, stop) for each statement of the entry; None for a call."""

    def inputs(self, seed: int) -> dict[str, Any]:
        """Random arrays, C-contiguous, by input name."""
        rng = np.random.default_rng(seed)
        arrays: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            low, high, integral = self.values[name]
            data: Any
            if integral:
                data = rng.integers(int(low), int(high), size=shape, endpoint=True)
            else:
                data = rng.uniform(low, high, size=shape)
            arrays[name] = np.asarray(data).astype(numpy_type(self.dtypes[name]))
        return arrays


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of a type of the language; bfloat16 comes from ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(name)


_HELPERS = {
    "total": "def total({0}(M, N) X) -> ({0}(M) Y) {{ Y(a) max=! X(a, b) }}",
    "turned": "def turned({0}(M, N) X) -> (Y) {{ Y(b, a) = X(a, b) }}",
    "padded": "def padded({0}(N) X) -> (Y) {{\n"
    "    Y(a) = a >= 1 && a < N + 1 ? X(a - 1) : {0}(0) where a in 0:N + 2\n}}",
    "both": "def both({0}(M, N) X) -> (R, C) {{ R(a) max=! X(a, b)  C(b) min=! X(a, b) }}",
}


class Builder(Expressions):
    """Builds one program."""

    def __init__(self, choices: Choices, bfloat16: bool) -> None:
        super().__init__(choices, bfloat16)
        self.listed: list[str] = []
        """The outputs as the signature lists them."""
        self.body: list[str] = []
        self.ranges: list[dict[str, tuple[int, int]] | None] = []
        self.helpers: dict[str, str] = {}

    # --- the whole ---

    def program(self, max_statements: int) -> Program:
        wanted = self.number(1, max_statements)
        for _ in range(4 * wanted):
            if len(self.body) >= wanted:
                break
            if not (self.outputs and self.chance(10) and self._call()):
                self._statement()
        if not self.body:  # a plain copy, where nothing else succeeded
            extent = self.number(1, 4)
            statement = Statement([Index("i", 0, extent, "early")])
            read = self.new_input(("i",), (extent,))
            self._commit(statement, "T0", 1, f"T0(i) = {read.text}", read)
        params = ", ".join(
            f"{x.value.type}{'(' + ', '.join(x.symbols) + ')' if x.symbols else ''} {x.name}"
            for x in self.inputs.values()
        )
        lines = "".join(f"    {line}\n" for line in self.body)
        main = f"def main({params}) -> ({', '.join(self.listed)}) {{\n{lines}}}\n"
        return Program(
            source="\n".join([*self.helpers.values(), main]),
            entry="main",
            shapes={n: x.shape for n, x in self.inputs.items()},
            dtypes={n: str(x.value.type) for n, x in self.inputs.items()},
            values={n: (x.value.low, x.value.high, x.value.exact) for n, x in self.inputs.items()},
            outputs={
                n: Output(str(v.type), x.shape, x.origin, v.low, v.high, v.exact)
                for n, x in self.outputs.items()
                if (v := x.value)
            },
            ranges=tuple(self.ranges),
        )

    def _commit(
        self, statement: Statement, target: str, rank: int, line: str, value: Value
    ) -> None:
        """Append a statement that defines a new output."""
        box = statement.indices[:rank]
        shape, origin = tuple(i.stop - i.first for i in box), tuple(i.first for i in box)
        known = {**self.inputs, **self.outputs}
        ancestors = statement.reads.union(*(known[r].ancestors for r in statement.reads))
        self.outputs[target] = Tensor(target, shape, origin, value, ancestors=ancestors)
        self.listed.append(target)
        self.body.append(line)
        self.ranges.append({i.name: (i.first, i.stop) for i in statement.indices})

    # --- statements ---

    def _statement(self) -> None:
        statement = Statement()
        known = [*self.inputs.values(), *self.outputs.values()]
        again = [x for x in self.outputs.values() if x.initialised]
        target = self.pick(again) if again and self.chance(25) else None
        if target is not None:
            known = [x for x in known if x is not target and target.name not in x.ancestors]
        readable = [x for x in known if x.readable]
        rank = len(target.shape) if target else self.pick((1, 2, 1, 3, 0))
        declared = target is None and self.chance(20)
        for axis in range(rank):
            self._output_index(statement, readable, target, axis, declared)
        for _ in range(self.pick((0, 1, 1, 2)) if len(statement.indices) < 3 else 0):
            self.new_index(statement, readable, "wnnes")
        values = self._anchored_reads(statement, readable)
        for _ in range(self.number(0, 3)):
            leaf = self.leaf(statement, readable)
            values += [leaf] if leaf else []
        self._write(statement, target, rank, declared, values)

    def _output_index(
        self,
        statement: Statement,
        readable: list[Tensor],
        target: Tensor | None,
        axis: int,
        declared: bool,
    ) -> None:
        name = NAMES[len(statement.indices)]
        if target is not None:
            first, stop = target.box(axis)
            if stop - first > 1 and self.chance(30):  # a part of it
                first, stop = first + self.number(0, 1), stop - self.number(0, 1)
                stop = max(stop, first + 1)
                text = f"{name} in {self.size(first)}:{self.size(stop)}"
                statement.clauses.append(text)
                statement.indices.append(Index(name, first, stop, "where"))
            else:
                statement.indices.append(Index(name, first, stop, "early"))
        elif declared and self.chance(20):
            statement.indices.append(Index(name, 0, self.number(1, 4), "declared"))
        else:
            self.new_index(statement, readable, "nneews")

    def _anchored_reads(self, statement: Statement, readable: list[Tensor]) -> list[Value]:
        """The reads that give the indices their ranges."""
        values: list[Value] = []
        pending = list(statement.new_dims)
        while pending:
            count = self.number(1, min(3, len(pending)))
            dims, pending = pending[:count], pending[count:]
            if self.chance(30):
                dims.reverse()
            values.append(self.new_input([d[0] for d in dims], [d[1] for d in dims]))
            statement.reads.add(f"A{len(self.inputs) - 1}")
        by_name = {x.name: x for x in readable}
        for name, fixed in statement.old_dims.items():
            value = self.complete(statement, by_name[name], fixed)
            assert value is not None, "anchors are in tensors whose other dimensions have elements"
            values.append(value)
        if len(values) > 1 and self.chance(10):
            statement.clauses.append(f"exists {values.pop().text}")
        return values

    def _write(
        self,
        statement: Statement,
        target: Tensor | None,
        rank: int,
        declared: bool,
        values: list[Value],
    ) -> None:
        reduction = statement.indices[rank:]
        name = target.name if target else f"T{len(self.outputs)}"
        left = element(name, [i.name for i in statement.indices[:rank]])
        init = bool(reduction) and (target is None or self.chance(50))
        if target is not None and not reduction and target.readable and self.chance(60):
            values.append(target.value.named(left))
        value = self.combined(statement, values or [literal(self.number(0, 2))])
        count = prod(i.stop - i.first for i in reduction)
        ops = ["+", "*", "min", "max", "+"] if reduction else ["="]
        if target is not None and not reduction and left not in value.text:
            ops = ["=", "+", "min", "max", "*"]
        op = self.pick(ops)
        if reduction and op in "+*" and self.chance(25):  # terms that a condition leaves out
            out = literal(int(op == "*"))
            value = select(self._condition(statement, value, literal(1)).text, value, out) or value
        into = self._target_type(target, declared, value, op)
        stored = reduced(op, value, count, into, None if init or target is None else target.value)
        if stored is None and op != "=":
            op = "max"
            into = self._target_type(target, declared, value, op)
            stored = reduced(op, value, count, into, None if init or not target else target.value)
        if stored is None:
            return
        line = f"{left} {op if op == '=' else op + '='}{'!' if init else ''} {stored.text}"
        clauses = [*statement.clauses, *statement.lets]
        if clauses:
            line += " where " + ", ".join(clauses)
        self._record(statement, target, rank, declared, line, stored)

    def _target_type(
        self, target: Tensor | None, declared: bool, value: Value, op: str
    ) -> ScalarType | None:
        if target is not None:
            return target.value.type
        if not declared:
            return None
        natural = default_type(t.arithmetic(value.type) if op in "+*" else value.type)
        return natural if self.chance(60) else self.pick(self.types)

    def _record(
        self,
        statement: Statement,
        target: Tensor | None,
        rank: int,
        declared: bool,
        line: str,
        stored: Value,
    ) -> None:
        finite = abs(stored.low) != float("inf") and abs(stored.high) != float("inf")
        if target is None:
            name = f"T{len(self.outputs)}"
            self._commit(statement, name, rank, line, stored)
            new = self.outputs[name]
            new.readable = finite
            if declared:
                new.symbols = tuple(self._declared_dim(n) for n in new.shape)
                dims = f"({', '.join(new.symbols)})" if new.symbols else ""
                self.listed[-1] = f"{stored.type}{dims} {name}"
            return
        self.body.append(line)
        self.ranges.append({i.name: (i.first, i.stop) for i in statement.indices})
        known = {**self.inputs, **self.outputs}
        target.ancestors |= statement.reads.union(*(known[r].ancestors for r in statement.reads))
        for other in self.outputs.values():
            if target.name in other.ancestors:
                other.ancestors |= target.ancestors
        target.value = target.value.joined(stored)
        target.readable &= finite

    def _declared_dim(self, extent: int) -> str:
        same = [s for s, n in self.sizes.items() if n == extent]
        if same and self.chance(60):
            return self.pick(same)
        return str(extent)

    def _call(self) -> bool:
        """A call of a helper def, if some tensor suits one."""
        fits = [
            x
            for x in [*self.inputs.values(), *self.outputs.values()]
            if x.readable and len(x.shape) in (1, 2) and not any(x.origin)
        ]
        if not fits:
            return False
        tensor = self.pick(fits)
        if 0 in tensor.shape:
            return False
        rank = len(tensor.shape)
        kind = "padded" if rank == 1 else self.pick(("total", "turned", "both"))
        type_ = tensor.value.type
        name = f"{kind}_{type_}"
        self.helpers[name] = _HELPERS[kind].format(type_).replace(f"def {kind}", f"def {name}")
        shapes = {
            "padded": ((tensor.shape[0] + 2,),),
            "total": (tensor.shape[:1],),
            "turned": (tensor.shape[::-1],),
            "both": (tensor.shape[:1], tensor.shape[1:]),
        }[kind]
        value = tensor.value.joined(Value("", type_, 0, 0, True)) if rank == 1 else tensor.value
        names = []
        for shape in shapes:
            target = f"T{len(self.outputs)}"
            ancestors = {tensor.name, *tensor.ancestors}
            self.outputs[target] = Tensor(target, shape, (0,) * len(shape), value,
                                           ancestors=ancestors)  # fmt: skip
            self.listed.append(target)
            names.append(target)
        self.body.append(f"{', '.join(names)} = {name}({tensor.name})")
        self.ranges.append(None)
        return True
