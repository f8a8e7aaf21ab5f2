"""Expressions as Python text.

Each node becomes text of the node's own type (``Emitter.value``), or, inside subscripts, of
exact 64-bit integers. What cannot be said in a nested expression becomes steps before it: run
time checks of subscripts, and temporaries where the text would nest too deep for Python's
parser. Sides that must not always run take their steps into a branch with them.

Numba and NumPy promote mixed operands their own way (int32 + int32 gives int64, uint64 with
int64 gives float64), so results are cast back to the type of the operation, always.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from tcl.codegen.reference.blocks import AssignLine, Block, Branch, Leave, PythonNames
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.syntax.types import BFLOAT16, FLOAT64, INDEX, INT64, UINT64, Kind, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import is_exact


def literal(value: int | float | bool, t: ScalarType) -> str:
    if t.is_float:
        return f"{t.compute.name}({float(value)!r})"
    if t.is_bool:
        return str(bool(value))
    return integer_constant(int(value), t)


def integer_constant(value: int, t: ScalarType) -> str:
    """An integer literal wrapped to the integral type ``t``."""
    low, high = t.limits
    return f"{t.name}({(value - low) % (high - low + 1) + low})"


def negation(t: ScalarType) -> str:
    """Template of ``-x``."""
    return "(-{})" if t.is_float else f"{t.name}(-{{}})"


def arithmetic(op: str, t: ScalarType) -> str:
    """Template of ``+ - * / % min max`` on two values of type ``t``."""
    if op in ("min", "max") and not t.is_bool:
        return ("minimum" if op == "min" else "maximum") + "({}, {})"
    if t.is_float:
        if op != "%":
            return f"({{}} {op} {{}})"
        if t.compute == FLOAT64:
            return "b_fmod({}, {})"
        return "float32(b_fmod(float64({}), float64({})))"
    if t.is_bool:
        return "({} or {})" if op in ("+", "max") else "({} and {})"
    if op in ("/", "%"):
        function = "divide" if op == "/" else "modulo"
        if t.kind is Kind.UINT:
            return f"{t.name}({function}_unsigned(uint64({{}}), uint64({{}})))"
        return f"{t.name}({function}(int64({{}}), int64({{}})))"
    return f"{t.name}({{}} {op} {{}})"


def convert(source: ScalarType, target: ScalarType) -> str:
    """Template of a cast from ``source`` to ``target``."""
    if target.is_bool:
        return "{}" if source.is_bool else f"({{}} != {literal(0, source)})"
    if target.is_float:
        return _to_float(source, target)
    if not source.is_float:
        return f"{target.name}({{}})"
    if target == UINT64:
        return "float_to_uint64(float64({}))"
    low, high = target.limits
    return f"{target.name}(float_to_int(float64({{}}), int64({low}), int64({high})))"


def _to_float(source: ScalarType, target: ScalarType) -> str:
    if target.bits > 16:
        return "{}" if source.compute == target else f"{target.name}({{}})"
    if source.is_integral and source.bits == 64 and target == BFLOAT16:
        return f"round_bfloat16(odd_from_{source.name}({{}}))"
    return f"round_{target.name}(float64({{}}))"


def loaded(t: ScalarType) -> str:
    """Template that turns a stored element into a value."""
    return f"{t.name}_value({{}})" if t.is_float and t.bits == 16 else "{}"


def stored(t: ScalarType) -> str:
    """Template that turns a value into an element to store."""
    return f"{t.name}_bits(float64({{}}))" if t.is_float and t.bits == 16 else "{}"


def identity_value(op: str, t: ScalarType) -> str:
    """The value that a reduction starts from."""
    if op in ("+", "*"):
        return literal(0 if op == "+" else 1, t)
    if t.is_float:
        return f"{t.compute.name}({'inf' if op == 'min' else '-inf'})"
    low, high = t.limits
    return literal(high if op == "min" else low, t)


_DEEPEST = 12
"""Levels of parentheses after which an expression moves into a temporary."""


@dataclass(frozen=True, slots=True)
class CheckedSite:
    """A subscript that is checked at run time."""

    tensor: str
    axis: int
    unsigned: bool
    """The offending value is reported as the int64 with the same bits as a uint64."""


@dataclass(frozen=True, slots=True)
class ExpressionCode:
    """Text of an expression and how deep it nests."""

    text: str
    depth: int = 0


_Emission: TypeAlias = Generator[tuple[c.Expr, bool], ExpressionCode, ExpressionCode]
"""Yields a child and whether to emit it exactly, is sent its code, returns its own."""
_Side: TypeAlias = Generator[
    tuple[c.Expr, bool], ExpressionCode, tuple[Block | None, ExpressionCode]
]


class Emitter:
    """Turns the expressions of one statement into text; collects steps and check sites."""

    def __init__(
        self, sized: SizedDef, statement: SizedStatement, names: PythonNames, unchecked: bool
    ):
        self._sized = sized
        self._statement = statement
        self._unchecked = unchecked
        self._temporaries = 0
        self._reads = 0
        self.names = names
        self.block: Block = []
        self.sites: list[CheckedSite] = []

    def value(self, node: c.Expr) -> str:
        """Text of ``node`` computed in its type; its steps are appended to ``block``."""
        return self._emit_tree(node, exact=False).text

    def exact(self, node: c.Expr) -> str:
        """Text of an integral ``node`` without wrapping: int64, or uint64 for a uint64 node."""
        return self._emit_tree(node, exact=True).text

    def place(self, element: c.Read) -> str:
        """Where in its array an element lies; the checks of that are appended to ``block``."""
        places = [
            self._checked_subscript(element, axis, s, self._emit_tree(s, exact=True))
            for axis, s in enumerate(element.subscripts)
        ]
        return ", ".join(p.text for p in places)

    def _emit_tree(self, node: c.Expr, exact: bool) -> ExpressionCode:
        # An own stack instead of recursion: expressions may nest thousands deep.
        stack = [self._emit(node, exact)]
        result: ExpressionCode | None = None
        while True:
            try:
                child = next(stack[-1]) if result is None else stack[-1].send(result)
            except StopIteration as stop:
                stack.pop()
                code: ExpressionCode = stop.value
                deep = code.depth >= _DEEPEST
                result = ExpressionCode(self._temporary(code.text)) if deep else code
                if not stack:
                    return result
            else:
                stack.append(self._emit(*child))
                result = None

    def _temporary(self, text: str) -> str:
        name = f"r{self._temporaries}"
        self._temporaries += 1
        self.block.append(AssignLine(name, text))
        return name

    def _emit(self, node: c.Expr, exact: bool) -> _Emission:
        if exact and not is_exact(node):
            code = yield node, False
            return code if node.type == UINT64 else _apply("int64({})", code)
        match node:
            case c.Const(value, type_):
                return ExpressionCode(str(int(value)) if exact else literal(value, type_))
            case c.Index(name):
                index = self.names.index(name)
                return ExpressionCode(index) if exact else ExpressionCode(f"int32({index})", 1)
            case c.Size(name):
                return _size(self._sized.sizes[name], exact)
            case c.Dimension(tensor, axis):
                return _size(self._sized.shapes[tensor][axis], exact)
            case c.LetRef(name):
                return ExpressionCode(self.names.exact_let(name) if exact else self.names.let(name))
            case c.Read():
                return (yield from self._read(node))
            case c.Unary(op, operand, type_):
                code = yield operand, exact
                if exact:
                    return _apply("(-{})", code)
                return _apply("(not {})" if op == "!" else negation(type_), code)
            case c.Binary(op):
                if op in ("&&", "||"):
                    return (yield from self._lazy(node))
                left = yield node.left, exact
                right = yield node.right, exact
                if op in _COMPARISONS:
                    return _apply("({} " + op + " {})", left, right)
                return _apply(arithmetic(op, INT64 if exact else node.type), left, right)
            case c.Select():
                return (yield from self._select(node, exact))
            case c.Call():
                return (yield from self._call(node))
            case c.Cast(operand, type_):
                code = yield operand, exact
                return code if exact else _apply(convert(operand.type, type_), code)
            case _:
                assert_never(node)

    def _side(self, node: c.Expr, exact: bool) -> _Side:
        """Code of a side that runs on a condition, and the steps that go with it.

        A side that reads no tensor cannot go wrong and may always run: its steps go before the
        condition and None is returned. Branches are dear, in Numba's compile time.
        """
        outer, self.block, reads = self.block, [], self._reads
        code = yield node, exact
        steps, self.block = self.block, outer
        if self._reads == reads:
            self.block += steps
            return None, code
        return steps, code

    def _lazy(self, node: c.Binary) -> _Emission:
        left = yield node.left, False
        both = node.op == "&&"
        steps, right = yield from self._side(node.right, False)
        if steps is None:
            return _apply("({} & {})" if both else "({} | {})", left, right)
        if not steps:
            return _apply("({} and {})" if both else "({} or {})", left, right)
        result = self._temporary(left.text)
        steps.append(AssignLine(result, right.text))
        self.block.append(Branch(result, steps, []) if both else Branch(result, [], steps))
        return ExpressionCode(result)

    def _select(self, node: c.Select, exact: bool) -> _Emission:
        condition = yield node.condition, False
        then_steps, then = yield from self._side(node.then, exact)
        else_steps, otherwise = yield from self._side(node.otherwise, exact)
        if then_steps is None and else_steps is None:
            return _apply("select({}, {}, {})", condition, then, otherwise)
        if not then_steps and not else_steps:
            return _apply("({} if {} else {})", then, condition, otherwise)
        test = self._temporary(condition.text)
        result = f"r{self._temporaries}"
        self._temporaries += 1
        yes: Block = [*(then_steps or []), AssignLine(result, then.text)]
        no: Block = [*(else_steps or []), AssignLine(result, otherwise.text)]
        self.block.append(Branch(test, yes, no))
        return ExpressionCode(result)

    def _call(self, node: c.Call) -> _Emission:
        arguments: list[ExpressionCode] = []
        for argument in node.arguments:
            arguments.append((yield argument, False))
        places = ", ".join(["{}"] * len(arguments))
        if node.type.compute.bits != 32:
            return _apply(f"b_{node.name}({places})", *arguments)
        if node.name in _SINGLE:
            return _apply(f"float32(s_{node.name}({places}))", *arguments)
        # Rounding the float64 result is within a hair of correct rounding.
        wide = places.replace("{}", "float64({})")
        return _apply(f"float32(b_{node.name}({wide}))", *arguments)

    def _read(self, node: c.Read) -> _Emission:
        self._reads += 1
        places: list[ExpressionCode] = []
        for axis, subscript in enumerate(node.subscripts):
            code = yield subscript, True
            places.append(self._checked_subscript(node, axis, subscript, code))
        text = f"{self.names.tensor(node.tensor)}[{', '.join(p.text for p in places) or '()'}]"
        depth = 1 + max((p.depth for p in places), default=0)
        return _apply(loaded(node.type), ExpressionCode(text, depth))

    def _checked_subscript(
        self, node: c.Read, axis: int, subscript: c.Expr, code: ExpressionCode
    ) -> ExpressionCode:
        """Where in the array a subscript stands, after its check if it needs one."""
        first = self._sized.origins[node.tensor][axis]
        unsigned = subscript.type == UINT64
        if self._statement.needs_check(node, axis) and not self._unchecked:
            stop = first + self._sized.shapes[node.tensor][axis]
            code = ExpressionCode(self._temporary(code.text))
            site = CheckedSite(node.tensor, axis, unsigned)
            if site not in self.sites:
                self.sites.append(site)
            report = (
                f"error[0] = {self.sites.index(site) + 1}",
                f"error[1] = int64({code.text})",
            )
            self.block.append(Leave(_outside(code.text, first, stop, unsigned), report))
        if unsigned:
            code = _apply("int64({})", code)
        return shifted(code, first)


def shifted(code: ExpressionCode, origin: int) -> ExpressionCode:
    """``code`` less ``origin``."""
    if origin == 0:
        return code
    return _apply(f"({{}} - {origin})" if origin > 0 else f"({{}} + {-origin})", code)


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_SINGLE = ("fma", "nextafter")


def _apply(template: str, *parts: ExpressionCode) -> ExpressionCode:
    return ExpressionCode(
        template.format(*(p.text for p in parts)), 1 + max(p.depth for p in parts)
    )


def _size(value: int, exact: bool) -> ExpressionCode:
    return ExpressionCode(str(value) if exact else integer_constant(value, INDEX))


def _outside(name: str, first: int, stop: int, unsigned: bool) -> str:
    if stop <= max(first, 0 if unsigned else first):
        return "True"
    if not unsigned:
        return f"{name} < {first} or {name} >= {stop}"
    above = f"{name} >= uint64({stop})"
    return f"{name} < uint64({first}) or {above}" if first > 0 else above
