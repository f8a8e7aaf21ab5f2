"""``grad``: the def that computes the gradients of another one."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral

from tcl.arrays.annotations import parse_sizes
from tcl.arrays.user_input import SourceLike, text_of
from tcl.common.closest import no_def
from tcl.common.errors import ArgumentError
from tcl.common.shown import shown
from tcl.gradients.backward import Backward
from tcl.gradients.forward import Forward, Names, names_in
from tcl.gradients.gradient_sums import GradientSums
from tcl.gradients.hoist import hoisted, with_sums_of_others
from tcl.gradients.polynomials import Poly, of_atom, of_number
from tcl.gradients.propagate import TOO_LONG
from tcl.gradients.ranges import Formulas, infer
from tcl.gradients.saving import worth_saving
from tcl.gradients.shifts import without_effect
from tcl.gradients.terms import Integers
from tcl.gradients.trees import NOWHERE, name, number
from tcl.gradients.versions import Step, depending, steps_of
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer as infer_sized
from tcl.grammar.syntax import ast, walk
from tcl.grammar.syntax.printer import to_text
from tcl.grammar.tree import checked as c


class NoGradientError(ArgumentError):
    """No output depends smoothly on anything."""


class NotSmoothError(ArgumentError):
    """The gradient of an input that has none is asked for."""

    def __init__(self, name: str, tensor: str, remedy: str) -> None:
        """``remedy``: how a caller says that it is not."""
        self.tensor = tensor
        super().__init__(
            f"the outputs of {name} do not depend smoothly on '{tensor}' (conditions, "
            "subscripts, casts to integers and floor do not count), so its gradient is zero "
            f"everywhere; {remedy}"
        )


def grad(
    source: SourceLike,
    entry_point: str,
    wrt: Sequence[str] | str | None = None,
    *,
    wanted: Sequence[str] | str | None = None,
    save: Sequence[str] | str | None = None,
    sizes: Mapping[str, int] | str | None = None,
) -> str:
    """The text of a def ``f_grad`` that computes the gradients of the def ``f`` = ``entry_point``.

    ``f_grad`` takes the inputs and outputs of ``f`` that it needs, by their names. For each
    floating-point output ``O`` it takes ``d_O``, the gradient of a loss with respect to ``O``, with
    the shape of ``O``. It returns ``d_X`` for each input ``X`` in ``wrt``. ``tcl.torch.op`` takes
    it as ``backward=``.

    - ``wrt``: names of inputs. Default: all that the outputs depend on smoothly.
    - ``wanted``: names of the outputs that have a gradient. Default: all.
    - ``save``: names of the outputs that ``f_grad`` may take; it computes others again if it needs
      them. Default: the outputs in ``wanted``, and those that take longer to compute than to read
      (``tcl docs gradients``).
    - ``sizes``: values of the sizes, or a label of the def's ``# sizes`` comments, for a def for
      these sizes only. Default: a def for all sizes.

    Ties of ``min`` and ``max`` share a gradient evenly. Raises ``TclSyntaxError`` and
    ``TclSemanticError`` for a wrong text, ``RangeInferenceError`` for sizes that do not fit, and
    ``ArgumentError`` if there is no gradient, or if it cannot be derived.
    """
    text, file = text_of(source)
    defs = check(text, file)
    if entry_point not in defs:
        raise ArgumentError(no_def(entry_point, defs))
    return gradient_text(defs[entry_point], wrt, wanted=wanted, save=save, sizes=sizes)


def gradient_text(
    checked: c.CheckedDef,
    wrt: Sequence[str] | str | None = None,
    *,
    wanted: Sequence[str] | str | None = None,
    save: Sequence[str] | str | None = None,
    sizes: Mapping[str, int] | str | None = None,
) -> str:
    """As ``grad``, of a checked def."""
    known = _known_sizes(checked, sizes)
    formulas = Formulas.of(checked, {n: of_number(value) for n, value in known.items()})
    steps = steps_of(checked, formulas)
    if sizes is not None:
        _check_ranges(checked, formulas, steps)
    outputs = [t for t in checked.outputs if t.type.is_float]
    seeded = _chosen_tensors("wanted", wanted, outputs, checked) or [t.name for t in outputs]
    kept = _chosen_tensors("save", save, checked.outputs, checked)
    if kept is None:
        kept = worth_saving(checked, formulas, steps, seeded if wanted is not None else None)
    names = Names(_taken(checked))
    forward = Forward(formulas, steps, names, frozenset(kept))
    floats = [t for t in checked.inputs if t.type.is_float]
    asked = _chosen_tensors("wrt", wrt, floats, checked)
    inputs = asked if asked is not None else [t.name for t in floats]
    prefix = prefix_of(checked)
    seeds = {output: names.fresh(prefix + output) for output in seeded}
    made = {i: names.fresh(prefix + i) for i in inputs}
    ends = {(output, forward.final[output]) for output in seeded}
    active = depending(steps, tuple(inputs), without_effect(steps, ends))
    sums = GradientSums(forward, prefix)
    try:
        Backward(steps, forward, active, seeds, sums).run()
    except RecursionError:  # of sums of hundreds of shares: nobody could compile these
        raise ArgumentError(TOO_LONG) from None
    reached = [i for i in inputs if (i, 0) in sums.shares]
    _check_reached(checked, inputs if asked is not None else reached, reached)
    for i in reached:
        sums.compute((i, 0), made[i], declared=True)
    found = {i: made[i] for i in reached}
    return _Assembled(checked, formulas, forward, sums.statements, seeds, found).text()


def prefix_of(checked: c.CheckedDef) -> str:
    """What the names of gradients begin with: ``d_``, or ``dd_`` in a def that has gradients."""
    prefix, taken = "d_", _taken(checked)
    while any(prefix + tensor in taken for tensor in checked.tensors):
        prefix = f"d{prefix}"
    return prefix


def _known_sizes(checked: c.CheckedDef, sizes: Mapping[str, int] | str | None) -> Mapping[str, int]:
    if sizes is None:
        return {}
    if isinstance(sizes, str):
        return parse_sizes(sizes, checked)
    given = sizes if isinstance(sizes, Mapping) else {}
    values = (given.get(size) for size in checked.sizes)
    counts = all(isinstance(value, Integral) and value >= 0 for value in values)
    if not counts or given is not sizes or len(given) > len(checked.sizes):
        listed = ", ".join(checked.sizes) or "none"
        raise ArgumentError(
            f"sizes= has to give every size of {checked.name} a whole number from 0, and nothing "
            f"else: {listed}"
        )
    return sizes


def _check_ranges(checked: c.CheckedDef, formulas: Formulas, steps: Sequence[Step]) -> None:
    """Refuse what inference refuses for these sizes; it finds the same ranges."""
    boxes = {t.name: formulas.boxes[t.name] for t in checked.inputs}
    shapes = {n: tuple((b - a).constant or 0 for a, b in box) for n, box in boxes.items()}
    sized = infer_sized(checked, shapes)
    own = [step for step in steps if step.statement.target in checked.tensors]
    for step, statement in zip(own, sized.statements, strict=True):
        found = {i: (a.constant, b.constant) for i, (a, b) in step.ranges.items()}
        if found != dict(statement.ranges):
            raise AssertionError(f"ranges of {checked.name}: {found}, not {statement.ranges}")


def _chosen_tensors(
    what: str,
    given: Sequence[str] | str | None,
    tensors: Sequence[c.Tensor],
    checked: c.CheckedDef,
) -> list[str] | None:
    """The tensors that an argument names, in the order of the def; None if it is not given."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{what}= takes a name or a tuple of names, not {shown(given)}")
    asked = [given] if isinstance(given, str) else list(given)
    own = [t.name for t in tensors]
    kind = {"wrt": "floating-point inputs", "wanted": "floating-point outputs"}.get(what, "outputs")
    for each in asked:
        if each not in own:
            listed = ", ".join(own) or "none"
            raise ArgumentError(
                f"{what}= names {each!r}, which is not one of the {kind} of {checked.name}: "
                f"{listed}"
            )
    return [each for each in own if each in asked]


def _check_reached(checked: c.CheckedDef, inputs: Sequence[str], reached: Sequence[str]) -> None:
    """Refuse a gradient that would be zero everywhere."""
    missing = [i for i in inputs if i not in reached]
    if not reached and not missing:
        raise NoGradientError(
            f"{checked.name} has no gradient: none of its floating-point outputs depends "
            "smoothly on a floating-point input (conditions, subscripts, casts to integers and "
            "floor do not count)"
        )
    if missing:
        raise NotSmoothError(checked.name, missing[0], "leave it out of wrt")


def _taken(checked: c.CheckedDef) -> set[str]:
    """Every name that stands in the def, or in one that it calls."""
    found = {*checked.tensors, *checked.sizes, f"{checked.name}_grad"}
    found |= {str(b.size) for b in checked.bindings}
    for statement in checked.statements:
        found |= {*statement.all_indices, *(let.name for let in statement.lets)}
    return found


class _Assembled:
    """The derived def, put together."""

    def __init__(
        self,
        checked: c.CheckedDef,
        formulas: Formulas,
        forward: Forward,
        backward: Sequence[ast.Assign],
        seeds: Mapping[str, str],
        made: Mapping[str, str],
    ) -> None:
        self.checked, self.formulas, self.names = checked, formulas, forward.names
        self.seeds, self.made = seeds, made
        self.symbols: dict[Poly, str] = {}
        """Formula → the size symbol that a dimension of an input of the derived def is."""
        used = {n for s in backward for n in names_in(s)}
        again = forward.statements(used)
        self.statements = with_sums_of_others(hoisted([*again, *backward], self.names))
        self.taken = [t for t in (*checked.inputs, *checked.outputs) if t.name in used]
        self.taken = [t for t in self.taken if t.name not in forward.again.values()]

    def text(self) -> str:
        """The def, without what inference finds by itself."""
        definition = self._definition()
        parts = [self._tidied(s) for s in definition.statements if isinstance(s, ast.Assign)]
        definition = replace(definition, statements=tuple(parts))
        formulas = {symbol: formula for formula, symbol in self.symbols.items()}
        return _wrapped(to_text(_without_needless(definition, formulas)))

    def _definition(self) -> ast.Def:
        self._bind_sizes()
        params = [ast.Param(t.name, self._type(t), NOWHERE) for t in self.taken]
        tensors = self.checked.tensors
        params += [ast.Param(s, self._type(tensors[o]), NOWHERE) for o, s in self.seeds.items()]
        gradients = {name_: self._type(tensors[i]) for i, name_ in self.made.items()}
        own = dict.fromkeys(s.target for s in self.statements)
        others = [ast.Param(t, None, NOWHERE) for t in own if t not in gradients]
        results = [ast.Param(t, type_, NOWHERE) for t, type_ in gradients.items()]
        title = f"{self.checked.name}_grad"
        return ast.Def(title, tuple(params), (*results, *others), tuple(self.statements), NOWHERE)

    def _bind_sizes(self) -> None:
        """Take inputs that tell sizes which nothing else tells."""
        shown = [*self.taken, *(self.checked.tensors[o] for o in self.seeds)]
        bound = {a for t in shown for a in self._symbols(t)}
        needed = {n for s in self.statements for n in names_in(s)}
        needed |= {a for i in self.made for a in self._symbols(self.checked.tensors[i])}
        for tensor in self.checked.inputs:
            missing = (needed & {*self._symbols(tensor)}) - bound
            if missing and tensor not in self.taken:
                self.taken.append(tensor)
                bound |= {*self._symbols(tensor)}
        order = [*self.checked.inputs, *self.checked.outputs]
        self.taken.sort(key=order.index)

    def _symbols(self, tensor: c.Tensor) -> list[str]:
        """The sizes that are a dimension of the tensor by themselves."""
        extents = (stop - first for first, stop in self.formulas.boxes[tensor.name])
        return [a for e in extents for a in e.atoms if e == of_atom(a) and a.isidentifier()]

    def _type(self, tensor: c.Tensor) -> ast.TensorType:
        dims: list[ast.Number | ast.Name] = []
        for axis, (first, stop) in enumerate(self.formulas.boxes[tensor.name]):
            extent = stop - first
            value = extent.constant
            dim = number(value) if value is not None else name(self._symbol(extent, tensor, axis))
            assert isinstance(dim, ast.Number | ast.Name)
            dims.append(dim)
        return ast.TensorType(tensor.type.name.replace("float32", "float"), tuple(dims), NOWHERE)

    def _symbol(self, extent: Poly, tensor: c.Tensor, axis: int) -> str:
        """The size that a dimension is: that of the forward def, or a new one."""
        if len(extent.terms) == 1 and extent == of_atom(next(iter(extent.atoms))):
            (atom,) = extent.atoms
            if atom.isidentifier():
                return atom
        if extent not in self.symbols:
            declared = [
                b.size for b in self.checked.bindings if (b.tensor, b.axis) == (tensor.name, axis)
            ]
            given = [d for d in declared if isinstance(d, str) and d.isidentifier()]
            wanted = given[0] if given else f"{self._index_name(tensor, axis).upper()}O"
            self.symbols[extent] = wanted if given else self.names.fresh(wanted)
        return self.symbols[extent]

    def _index_name(self, tensor: c.Tensor, axis: int) -> str:
        """What the first statement calls an index of its target."""
        first = next(s for s in self.checked.statements if s.target == tensor.name)
        return first.axes[axis] or "n"

    def _tidied(self, statement: ast.Assign) -> ast.Assign:
        ranges = [w for w in statement.where if isinstance(w, ast.Range)]
        sizes = frozenset({*self.checked.sizes, *self.symbols.values()})
        outer = Integers({}, sizes, self.symbols)
        known = [(w.index, outer.poly(w.start), outer.poly(w.stop)) for w in ranges]
        inner = {i: (a, b) for i, a, b in known if a is not None and b is not None}
        assert len(inner) == len(ranges), "of sizes"
        lengths = [b - a for a, b in inner.values()]
        integers = Integers(inner, sizes, self.symbols, lengths)
        where: list[ast.Where] = []
        for clause in statement.where:
            if isinstance(clause, ast.Range):
                start, stop = outer.tidied(clause.start), outer.tidied(clause.stop)
                clause = replace(clause, start=start, stop=stop)
            elif isinstance(clause, ast.Let):
                clause = replace(clause, value=integers.tidied(clause.value))
            where.append(clause)
        left = tuple(map(integers.tidied, statement.indices))
        return replace(
            statement, indices=left, rhs=integers.tidied(statement.rhs), where=tuple(where)
        )


_WIDTH = 100
_TOGETHER = re.compile(r"\w+\([^()]*\)( (?=\w+[,)]))?|\bfloat(16|64)? \w+(?=[,)])")


def _wrapped(text: str) -> str:
    """The text in lines of a readable length: spaces and line ends mean nothing."""
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        # No line ends within an element, X(i, j), or between a type and its name.
        joined = _TOGETHER.sub(lambda found: found[0].replace(" ", "\0"), line)
        lines += textwrap.wrap(
            joined,
            _WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines).replace("\0", " ") + "\n"


def _without_needless(definition: ast.Def, known: Mapping[str, Poly]) -> ast.Def:
    """The def without the ranges that inference finds by itself, for all sizes; ``known``: the
    formulas of sizes that are no inputs' of the forward def."""
    (checked,) = check(to_text(definition)).values()
    formulas = Formulas.of(checked, known)
    statements: list[ast.Statement] = []
    for own, statement in zip(definition.statements, checked.statements, strict=True):
        assert isinstance(own, ast.Assign)
        wanted = infer(statement, formulas)
        needless = frozenset[str]()
        ranges = (w for w in own.where if isinstance(w, ast.Range))
        divided = {w.index for w in ranges if any(map(_is_quotient, walk.walk(w.stop)))}
        for clause in statement.ranges:
            if clause.index in divided:
                continue  # it may be empty, which inference refuses
            if _same(statement, formulas, needless | {clause.index}, wanted):
                needless |= {clause.index}
        where = (w for w in own.where if not (isinstance(w, ast.Range) and w.index in needless))
        statements.append(replace(own, where=tuple(where)))
        if statement.target not in formulas.boxes:
            formulas.define(statement.target, formulas.written(statement, wanted))
    return replace(definition, statements=tuple(statements))


def _is_quotient(node: ast.Expr) -> bool:
    return isinstance(node, ast.Binary) and node.op == "/"


def _same(
    statement: c.Statement, formulas: Formulas, without: frozenset[str], wanted: object
) -> bool:
    """Whether inference finds the same ranges without some of the ``where`` clauses."""
    try:
        return infer(statement, formulas, without) == wanted
    except ArgumentError:
        return False
