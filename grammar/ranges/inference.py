"""Range inference: a checked definition and input shapes → ranges, output shapes, run-time checks.

Inference proceeds in rounds, as in Tensor Comprehensions: in each round every subscript with one
unresolved index bounds that index, given the ranges of those already resolved; several bounds on
one index intersect. Ranges are rectangular. A side on which a surrounding condition bounds a
subscript (padding written as a guard) is left to the condition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.grammar.ranges.cut import range_warnings
from tcl.grammar.ranges.linear import Access, Analysis, Linear, accesses
from tcl.grammar.ranges.overflow import overflows
from tcl.grammar.ranges.sized import How, Limit, SizedDef, SizedStatement
from tcl.grammar.sizes.varying import Undecided, largest, product_reaches
from tcl.grammar.syntax.errors import Diagnostic, NoRangeError, RangeInferenceError
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source, Span
from tcl.grammar.syntax.types import zero_text
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.size_expressions import NoValueError, SizeValues
from tcl.grammar.tree.traverse import evaluated, walk


def infer(checked: c.CheckedDef, input_shapes: Mapping[str, tuple[int, ...]]) -> SizedDef:
    """Fix a definition's sizes.

    ``input_shapes`` gives the extents of every input (``()`` for rank 0). Raises
    ``ArgumentError`` for shapes that contradict the signature, ``RangeInferenceError`` for
    an index without a range and for an access that can leave its tensor for these sizes, and
    ``Undecided`` for what is not the same for all of them.
    """
    sizes = _Sizes(checked, {}, {}, {})
    for tensor in checked.inputs:
        if tensor.name not in input_shapes:
            raise ArgumentError(f"the shape of input '{tensor.name}' is missing")
        shape = tuple(input_shapes[tensor.name])
        if len(shape) != tensor.rank:
            raise ArgumentError(
                f"input '{tensor.name}' has {tensor.rank} dimensions, "
                f"but an array of shape {shape} was given"
            )
        sizes.set_shape(tensor.name, shape, (0,) * tensor.rank)
    statements: list[SizedStatement] = []
    boundaries = list(checked.boundaries)
    try:
        for statement in (*checked.statements, None):
            while boundaries and boundaries[0].position == len(statements):
                sizes.cross(boundaries.pop(0))
            if statement is not None:
                statements.append(_Inference(statement, sizes).infer_ranges())
    except Undecided as reason:
        if statement is None:
            raise
        raise Undecided(f"{reason} (line {statement.span.line})") from None
    except RangeInferenceError as error:  # the ranges before it may be why
        done = SizedDef(checked, sizes.values, sizes.shapes, sizes.origins, tuple(statements))
        why = tuple((d.span, d.message) for d in range_warnings(done))
        first, *others = error.diagnostics
        first = replace(first, notes=(*first.notes, *why))
        raise type(error)(error.source, [first, *others]) from None
    return SizedDef(checked, sizes.values, sizes.shapes, sizes.origins, tuple(statements))


@dataclass(slots=True)
class _Sizes:
    """What is known about sizes, tensor by tensor."""

    checked: c.CheckedDef
    values: dict[str, int]
    shapes: dict[str, tuple[int, ...]]
    origins: dict[str, tuple[int, ...]]
    where: dict[str, c.SizeBinding] = field(default_factory=dict)
    """Size symbol → the dimension that defined it."""
    stops: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tensor whose shape was inferred → for each dimension the index after the last, in words."""

    def set_shape(
        self,
        tensor: str,
        shape: tuple[int, ...],
        origin: tuple[int, ...],
        axes: Sequence[str | None] = (),
    ) -> None:
        """Give a tensor its shape, and with it the size symbols of its dimensions. ``axes``: the
        indices at which a statement writes it."""
        self.shapes[tensor], self.origins[tensor] = shape, origin
        for binding in self.checked.bindings:
            if binding.tensor != tensor:
                continue
            extent, size = shape[binding.axis], binding.size
            known = size if isinstance(size, int) else self.values.setdefault(size, extent)
            first = self.where.setdefault(str(size), binding)
            if known == extent:
                continue
            how = f"is declared {size} but is {extent}"
            if isinstance(size, int) and self.checked.tensors[tensor].is_input:
                how = (
                    f"is {extent}, but {self.checked.name} needs {size} (line {binding.span.line})"
                    f"; pass an array that has {size}, or declare a name in place of {size}"
                )
            elif isinstance(size, str):
                how = (
                    f"is {extent}, but {size.rsplit('.', 1)[-1]} is {known} from dimension "
                    f"{first.axis} of '{first.tensor}'; {self.checked.name} needs them to be equal"
                )
            if axes and "#" not in str(size):
                how += f"; declare it with a new name in place of {size}"
                index, start = axes[binding.axis], origin[binding.axis]
                if index is not None and known < extent:
                    how += f", or write where {index} in {start}:{start + known if start else size}"
            self._contradiction(binding, how)

    def box(self, tensor: str, axis: int) -> tuple[int, int]:
        """First index of a tensor's dimension, and stop."""
        first = self.origins[tensor][axis]
        return first, first + self.shapes[tensor][axis]

    def _contradiction(self, binding: c.SizeBinding, how: str) -> None:
        message = f"dimension {binding.axis} of '{binding.tensor}' {how}"
        if self.checked.tensors[binding.tensor].is_input and "#" not in str(binding.size):
            raise ArgumentError(message)
        problem = Diagnostic(message, binding.span, section=Section.DEFS)
        raise RangeInferenceError(self.checked.source, [problem])

    def cross(self, boundary: c.CallBoundary) -> None:
        """Check what goes into or comes out of a called def."""
        for tensor in boundary.tensors:
            for axis, origin in enumerate(self.origins[tensor]):
                if origin != 0:
                    message = (
                        f"'{tensor}' starts at index {origin} of dimension {axis}, but a def takes "
                        "and returns tensors that start at 0; shift its indices"
                    )
                    problem = Diagnostic(message, boundary.span, section=Section.CALLS)
                    raise RangeInferenceError(self.checked.source, [problem])

    def declared(self, tensor: str) -> tuple[int | None, ...]:
        """The extents that a declaration gives a tensor, None where they are not known yet."""
        rank = self.checked.tensors[tensor].rank
        found: list[int | None] = [None] * rank
        for binding in self.checked.bindings:
            if binding.tensor == tensor:
                size = binding.size
                value = size if isinstance(size, int) else self.values.get(size)
                found[binding.axis] = value if value is not None else found[binding.axis]
        return tuple(found)


def _to_give(indices: Sequence[str], subscripts: Sequence[frozenset[str]]) -> list[str]:
    """Of indices without a range, those after whose ranges the others follow from subscripts."""
    free, given = set(indices), []
    while free:
        alone = {index for some in subscripts if len(some & free) == 1 for index in some & free}
        if not alone:
            given.append(next(index for index in reversed(indices) if index in free))
        free -= alone or {given[-1]}
    return sorted(given, key=indices.index)


class _Inference:
    """Range inference of one statement."""

    def __init__(self, statement: c.Statement, sizes: _Sizes) -> None:
        self.statement = statement
        self.sizes = sizes
        self.source: Source = sizes.checked.source
        lets = {let.name: let.value for let in statement.lets}
        self.analysis = Analysis(sizes.values, sizes.shapes, lets)
        self.size_values = SizeValues(sizes.values, sizes.shapes, lets)
        self.ranges: dict[str, tuple[int, int]] = {}
        """Index → (first, stop)."""
        self.limits: dict[str, tuple[Limit, Limit]] = {}
        """Index → what gave its first value and its last, where no clause says them."""
        self.stops: dict[str, str] = {}
        """Index → the end of its range, as a def can say it for all sizes if there is a way."""
        self.accesses: list[Access] = []

    def infer_ranges(self) -> SizedStatement:
        for clause in self.statement.ranges:
            self._explicit(clause)
        found = list(accesses(self.statement, self.analysis))
        self.accesses = [a for a in found if a.read is not self.statement.place]
        self._rounds()
        self._define_target()
        found = list(accesses(self.statement, self.analysis))  # now that ranges bound all forms
        checks, problems = set(), []
        empty = any(stop <= first for first, stop in self.ranges.values())
        for access in found if not empty else ():
            verdict = self._verdict(access)
            if isinstance(verdict, Diagnostic):
                problems.append(verdict)
            elif verdict:
                checks.add((access.read.span, access.axis))
        if not empty:
            problems += overflows(self.statement, self.analysis)
        if problems:
            raise RangeInferenceError(self.source, problems)
        ranges = {name: self.ranges[name] for name in self.statement.all_indices}
        return SizedStatement(self.statement, ranges, frozenset(checks), self.limits)

    def _error_at(self, span: Span, message: str) -> RangeInferenceError:
        """The error to raise for a place of the text."""
        problem = Diagnostic(message, span, section=Section.RANGES)
        return RangeInferenceError(self.source, [problem])

    def _resolve(self, index: str, first: int, stop: int) -> None:
        self.ranges[index] = (first, stop)
        # An empty range counts as its first index: it then restricts the others the least.
        self.analysis.resolve(index, (first, largest(first, stop - 1)))

    def _explicit(self, clause: c.Range) -> None:
        first, stop = self._bound_of(clause, clause.start), self._bound_of(clause, clause.stop)
        if stop < first:
            start, end = (self.source.one_line(e.span) for e in (clause.start, clause.stop))
            sizes = self._sizes_in(clause.start, clause.stop)
            values = f" is {first}:{stop}{sizes}, which" if sizes else ""
            raise self._error_at(
                clause.span,
                f"the range {start}:{end} of '{clause.index}'{values} ends before it starts; to "
                f"make it empty in this case, end it at max({start}, {end})",
            )
        self._resolve(clause.index, first, stop)
        if not any(isinstance(node, c.LetRef) for node in walk(clause.stop)):
            self.stops[clause.index] = self.source.one_line(clause.stop.span)

    def _bound_of(self, clause: c.Range, expr: c.Expr) -> int:
        """The value of the start or the end of a range."""
        try:
            value = self.size_values.value(expr)
        except NoValueError as error:
            sizes = self._sizes_in(error.place)
            why = f"does not fit in 64 bits{sizes}"
            if error.divisor is not None:
                divisor = self.source.one_line(error.divisor.span)
                why = f"divides by {divisor}, which is 0{sizes}; handle this case with ? :"
            message = f"the range of '{clause.index}' {why}"
            raise self._error_at(error.place.span, message) from None
        assert value is not None, "checked"
        return value

    def _sizes_in(self, *exprs: c.Expr) -> str:
        """The sizes that expressions use, with their values, in words."""
        found: dict[str, int] = {}
        pending = list(reversed(exprs))
        while pending:
            for node in walk(pending.pop()):
                match node:
                    case c.Size(name=name):
                        found[name.rsplit(".", 1)[-1]] = self.sizes.values[name]
                    case c.Dimension(tensor=tensor, axis=axis):
                        found[f"{tensor}.{axis}"] = self.sizes.shapes[tensor][axis]
                    case c.LetRef(name=name):
                        pending.append(self.analysis.lets[name])
        return " for " + ", ".join(f"{n} = {v}" for n, v in found.items()) if found else ""

    # --- rounds ---

    def _rounds(self) -> None:
        unresolved = [i for i in self.statement.all_indices if i not in self.ranges]
        bounds = [*self._access_bounds(), *self._target_bounds()]
        # What else may bound an index, where the rounds come to a halt.
        further = iter((self._declared_bounds, self._plain_bounds))
        while unresolved:
            found: dict[str, list[_Bound]] = {}
            for bound in bounds:
                free = [i for i in bound.form.indices if i not in self.ranges]
                if len(free) == 1:
                    found.setdefault(free[0], []).append(bound)
            solved = {index: self._solve(index, its) for index, its in found.items()}
            known = {index: range_ for index, range_ in solved.items() if range_ is not None}
            for index, (first, stop) in known.items():
                self._resolve(index, first, stop)
            unresolved = [i for i in unresolved if i not in self.ranges]
            while unresolved and not known:
                more = next(further, None)
                if more is None:
                    whole = (bound.form for bound in bounds if bound.low and bound.high)
                    forms = [frozenset(form.indices) for form in whole]
                    problem = _no_range(self.sizes.checked, self.statement, unresolved, forms)
                    raise NoRangeError(self.source, [problem])
                added = list(more(unresolved))
                bounds += added
                if added:
                    break

    def _access_bounds(self) -> Iterator[_Bound]:
        """What the subscripts bound. A condition around one takes the place of its bound."""
        for access in self.accesses:
            if access.form.is_affine:
                below, above = access.facts.guards(access.form)
                yield replace(self._bound(access), low=not below, high=not above)

    def _bound(self, access: Access) -> _Bound:
        tensor, axis = access.read.tensor, access.axis
        how: How = "read" if access.evaluated else "exists"
        limit = Limit(how, tensor, axis, access.read.span)
        return self._within(access.form, limit)

    def _within(self, form: Linear, limit: Limit) -> _Bound:
        """That the dimension of a limit has all values of ``form``."""
        tensor, axis, sizes = limit.tensor, limit.axis, self.sizes
        named = sizes.checked.tensors[tensor].dims or sizes.stops.get(tensor)
        symbol = None if named is None else named[axis]
        return _Bound(form, *sizes.box(tensor, axis), limit, symbol)

    def _plain_bounds(self, unresolved: list[str]) -> Iterator[_Bound]:
        """An index that is a subscript by itself runs over that dimension, guarded or not."""
        for access in self.accesses:
            if any(access.form == Linear({index: 1}) for index in unresolved):
                yield self._bound(access)

    def _target_bounds(self) -> Iterator[_Bound]:
        """A tensor that has its shape bounds the indices it is written at."""
        target = self.statement.target
        if target in self.sizes.shapes:
            for axis, index in enumerate(self.statement.axes):
                if index is None:
                    continue
                limit = Limit("written", target, axis, self.statement.span)
                yield self._within(Linear({index: 1}), limit)

    def _declared_bounds(self, unresolved: list[str]) -> Iterator[_Bound]:
        """Indices that the target's declared type bounds."""
        target = self.statement.target
        if target in self.sizes.shapes:
            return
        extents = self.sizes.declared(target)
        for axis, (index, extent) in enumerate(zip(self.statement.axes, extents, strict=True)):
            if index in unresolved and extent is not None:
                limit = Limit("declared", target, axis, self.statement.span)
                yield _Bound(Linear({index: 1}), 0, extent, limit, None)

    def _solve(self, index: str, bounds: list[_Bound]) -> tuple[int, int] | None:
        """The largest range of ``index`` for which every bound holds; None if it has no end."""
        low, high = -math.inf, math.inf
        lowest = highest = bounds[0]
        for bound in bounds:
            first, last = self._limits(index, bound)
            if first > low:
                low, lowest = first, bound
            if last < high:
                high, highest = last, bound
        if isinstance(low, float) or isinstance(high, float):
            return None  # all else are integers
        self._check_agreement(index, bounds)
        empty = index in self.statement.indices  # may be; a reduction would lose all its terms
        if high < low - empty and not any(b.stop <= b.first for b in bounds):
            first, last = map(self._access, (lowest, highest))
            raise self._error_at(
                highest.limit.span,
                f"the index '{index}' has no value for these sizes: {first} needs "
                f"it to be at least {int(low)}{' and' if first == last else f', and {last}'} "
                f"at most {int(high)}, because {highest.dimension} is too small",
            )
        self.limits[index] = lowest.limit, highest.limit
        if low <= high:
            self.stops[index] = highest.last_text(index, high + 1)
        return low, largest(low, high + 1)

    def _access(self, bound: _Bound) -> str:
        """What bounds an index, in words."""
        limit = bound.limit
        return self.source.one_line(limit.span) if limit.how == "read" else f"'{limit.tensor}'"

    def _limits(self, index: str, bound: _Bound) -> tuple[float, float]:
        """The smallest and largest value of ``index`` that one bound allows."""
        k = bound.form.terms[index]
        a, b = self.analysis.bounds(bound.form.plus(Linear({index: k}), -1))
        # first <= k * index + rest <= stop - 1 for all values of the rest
        above, below = bound.first - a, bound.stop - 1 - b
        if k > 0:
            first, last = -(-above // k), below // k
            low, high = bound.low, bound.high
        else:
            first, last = -(below // -k), -above // -k
            low, high = bound.high, bound.low
        return first if low else -math.inf, last if high else math.inf

    def _check_agreement(self, index: str, bounds: list[_Bound]) -> None:
        """An index that runs over whole dimensions by itself needs them alike: it would
        otherwise leave out elements without a word."""
        plain = [b for b in bounds if b.form == Linear({index: 1})]
        lows, highs = [b for b in plain if b.low], [b for b in plain if b.high]
        pairs = [(lows[0], b) for b in lows if b.first != lows[0].first]
        pairs += [(highs[0], b) for b in highs if b.stop != highs[0].stop]
        if not pairs:
            return
        one, other = pairs[0]
        first = max(one.first, other.first)
        last = min(one, other, key=lambda b: (b.stop, b.stop_text == str(b.stop)))
        remedy = "make them equal"
        if first < last.stop:
            remedy += f", or give it a range: where {index} in {first}:{last.stop_text}"
        problem = Diagnostic(
            f"the index '{index}' runs over {one.dimension} and over {other.dimension}; {remedy}",
            other.limit.span,
            ((one.limit.span, "the other dimension"),),
            Section.RANGES,
        )
        raise RangeInferenceError(self.source, [problem])

    # --- the target ---

    def _define_target(self) -> None:
        statement, sizes = self.statement, self.sizes
        known = statement.target in sizes.shapes
        extents = () if known else sizes.declared(statement.target)
        box = [
            self.ranges[i] if i is not None else self._whole(axis, extents)
            for axis, i in enumerate(statement.axes)
        ]
        if not known:
            shape = tuple(stop - first for first, stop in box)
            sizes.stops[statement.target] = tuple(
                str(stop) if i is None else self._stop_text(i, stop)
                for i, (_, stop) in zip(statement.axes, box, strict=True)
            )
            if product_reaches(shape, 2**62):
                raise self._error_at(
                    statement.span,
                    f"'{statement.target}' would have shape {shape}, which is too large for any "
                    "memory; choose smaller sizes",
                )
            firsts = tuple(first for first, _ in box)
            sizes.set_shape(statement.target, shape, firsts, statement.axes)
            return
        for axis, (index, (first, stop)) in enumerate(zip(statement.axes, box, strict=True)):
            origin, end = sizes.box(statement.target, axis)
            if first < stop and not origin <= first <= stop <= end:
                raise self._error_at(
                    statement.span,
                    f"'{statement.target}' is written at '{index}' from {first} to {stop - 1}, "
                    f"but its first assignment gave it {_indices(origin, end)}; "
                    + self._remedy(index, box),
                )

    def _remedy(self, index: str | None, box: Sequence[tuple[int, int]]) -> str:
        """What to do where the target is written in a ``box`` that leaves it."""
        statement, sizes = self.statement, self.sizes
        target = statement.target
        narrow = f"narrow '{index}' with where"
        if statement.place is not None or sizes.checked.tensors[target].dims is not None:
            return narrow
        clauses = []
        for axis, (name, (first, stop)) in enumerate(zip(statement.indices, box, strict=True)):
            origin, end = sizes.box(target, axis)
            last = max(stop, end)
            clauses.append(f"{name} in {min(first, origin)}:{self._stop_text(name, last)}")
        whole = f"{target}({', '.join(statement.indices)}) = {zero_text(statement.rhs.type)}"
        return f"{narrow}, or assign all of it first: {whole} where {', '.join(clauses)}"

    def _stop_text(self, index: str, stop: int) -> str:
        """The end of a range, as a def can say it for all sizes if there is a way."""
        if self.ranges[index][1] != stop:
            return str(stop)
        return self.stops.get(index, str(stop))

    def _whole(self, axis: int, declared: Sequence[int | None]) -> tuple[int, int]:
        """All indices of a dimension of the target, in which data say what is written."""
        if not declared:
            return self.sizes.box(self.statement.target, axis)
        extent = declared[axis]
        assert extent is not None, "checked"
        return 0, extent

    # --- bounds of accesses ---

    def _verdict(self, access: Access) -> bool | Diagnostic:
        """Whether a subscript needs a check at run time, or what is wrong with it."""
        low, high = self.analysis.bounds_of_subscript(access)
        tensor, axis = access.read.tensor, access.axis
        origin, end = self.sizes.box(tensor, axis)
        if low > high or (origin <= low and high < end):
            return False
        if self.analysis.impossible(access.facts):
            return False
        certain = access.facts.rectangular or not access.form.indices & access.facts.mentioned
        if not (access.form.is_affine and access.value.is_affine and certain):
            return access.evaluated
        at = f"index {int(low)}" if low == high else f"indices {int(low)} to {int(high)}"
        done, what = ("read", "the read")
        if access.read is self.statement.place:
            done, what = "written", "the value"
        for let in self.statement.lets:
            if any(node is access.read for node in walk(let.value)):
                what += f" inside of '{let.name} = ...', which is computed at all points,"
        return Diagnostic(
            f"'{tensor}' is {done} at {at} of dimension {axis}, but has {_indices(origin, end)}; "
            f"guard {what} with ? : or narrow an index with where",
            access.read.subscripts[axis].span,
            section=Section.GUARDS,
        )


@dataclass(frozen=True, slots=True)
class _Bound:
    """``first <= form < stop``, because a tensor is accessed there."""

    form: Linear
    first: int
    stop: int
    limit: Limit
    symbol: str | int | None
    """The declared size of the dimension, if it has one."""
    low: bool = True
    """Whether ``first <= form`` is required,"""
    high: bool = True
    """and ``form < stop``."""

    @property
    def stop_text(self) -> str:
        """``stop``, as a def can say it for all sizes if there is a way."""
        named = isinstance(self.symbol, str) and "#" not in self.symbol
        return str(self.symbol if named else self.stop)

    def last_text(self, index: str, stop: int) -> str:
        """``stop`` of an index that this bounds from above, in the same way."""
        beyond = self.form.constant
        if self.stop_text == str(self.stop) or self.form != Linear({index: 1}, beyond):
            return str(stop)
        if not beyond:
            return self.stop_text
        text = f"({self.stop_text})" if "?" in self.stop_text else self.stop_text
        return f"{text} {'-' if beyond > 0 else '+'} {abs(beyond)}"

    @property
    def dimension(self) -> str:
        if not self.first and self.stop_text != str(self.stop):
            return f"{self.stop_text} = {self.stop} of '{self.limit.tensor}'"
        has = _indices(self.first, self.stop)
        return f"dimension {self.limit.axis} of '{self.limit.tensor}' ({has})"


def without_range(checked: c.CheckedDef) -> Iterator[Diagnostic]:
    """What is wrong with the first statements of outputs in which an index has no range whatever
    the sizes are: no access uses it, no clause, and no size that is known by then is its extent."""
    shaped = {t.name for t in checked.inputs}
    for statement in checked.statements:
        if statement.target not in shaped:
            nodes = (n for e in (*evaluated(statement), *statement.exists) for n in walk(e))
            subscripts = [e for n in nodes if isinstance(n, c.Read) for e in n.subscripts]
            used = _names(*subscripts)
            for let in reversed(statement.lets):
                used |= _names(let.value) if let.name in used else set()
            known = {b.size for b in checked.bindings if b.tensor in shaped}
            for b in checked.bindings:
                if b.tensor == statement.target and (isinstance(b.size, int) or b.size in known):
                    used.add(statement.axes[b.axis])
            used |= {clause.index for clause in statement.ranges}
            if free := [i for i in statement.all_indices if i not in used]:
                yield _no_range(checked, statement, free, ())
        shaped.add(statement.target)


def _names(*exprs: c.Expr) -> set[str | None]:
    """Of the indices and lets in expressions."""
    return {n.name for e in exprs for n in walk(e) if isinstance(n, c.Index | c.LetRef)}


def _no_range(
    checked: c.CheckedDef,
    said: c.Statement,
    unresolved: Sequence[str],
    forms: Sequence[frozenset[str]],
) -> Diagnostic:
    """What is wrong with indices that have no range. ``forms``: of which ones accesses are made."""
    names = ", ".join(f"'{n}'" for n in unresolved)
    what = "the ranges of" if len(unresolved) > 1 else "the range of"
    clause = ", ".join(f"{n} in 0:..." for n in _to_give(unresolved, forms))
    clauses = said.ranges or said.lets or said.exists
    add = "add to its where clause: " if clauses else "add: where "
    message = f"{what} {names} cannot be inferred from the accesses; {add}{clause}"
    if set(unresolved) <= set(said.axes):
        if declared := checked.tensors[said.target].dims:
            unknown = [str(d) for i, d in zip(said.axes, declared, strict=True) if i in unresolved]
            message += f", or declare a number or a size of an input for {', '.join(unknown)}"
        else:
            dims = ", ".join("..." for _ in said.axes)
            output = f"-> ({said.rhs.type}({dims}) {said.target})"
            message += f", or declare the sizes of the output: {output}"
    return Diagnostic(message, said.span, section=Section.RANGES)


def _indices(first: int, stop: int) -> str:
    return f"indices {first} to {stop - 1}" if first < stop else "no elements"
