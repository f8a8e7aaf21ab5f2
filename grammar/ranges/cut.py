"""Ranges that are probably not meant: what a sized definition loses or shifts without a word.

Inference takes the largest range for which every access stays inside its tensor. Where a ``where``
clause has fixed one index of ``X(n + k - 1) * W(k)``, that costs ``k`` the taps that would leave
``X`` for some ``n``. An output's range that starts elsewhere than at 0 shifts the array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.linear import Access, Analysis, Linear, accesses
from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Span
from tcl.grammar.tree import checked as c

Range = tuple[int, int]
"""First and stop."""


def range_warnings(sized: SizedDef) -> list[Diagnostic]:
    """A warning for each access that cuts a reduction short, and for each output that a range of
    its own accord lets start elsewhere than at 0."""
    found: list[Diagnostic] = []
    written: set[str] = set()
    for statement in sized.statements:
        target = statement.statement.target
        if all(first < stop for first, stop in statement.ranges.values()):
            ranges = _Ranges(sized, statement)
            found += ranges.cut()
            if target not in written:
                found += ranges.shifted()
        written.add(target)
    return found


@dataclass(slots=True)
class _Ranges:
    """The ranges of one statement, none of them empty."""

    sized: SizedDef
    of: SizedStatement
    said: frozenset[str] = field(init=False)
    """Indices whose range is written out."""
    accesses: list[Access] = field(init=False)

    def __post_init__(self) -> None:
        statement = self.of.statement
        self.said = frozenset(r.index for r in statement.ranges)
        found = accesses(statement, self._analysis(self.of.ranges))
        self.accesses = [a for a in found if a.read is not statement.place]

    def _analysis(self, ranges: Mapping[str, Range]) -> Analysis:
        lets = {let.name: let.value for let in self.of.statement.lets}
        analysis = Analysis(self.sized.sizes, self.sized.shapes, lets)
        for index, (first, stop) in ranges.items():
            analysis.resolve(index, (first, stop - 1))
        return analysis

    def _box(self, tensor: str, axis: int) -> Range:
        first = self.sized.origins[tensor][axis]
        return first, first + self.sized.shapes[tensor][axis]

    def _quote(self, span: Span) -> str:
        return self.sized.checked.source.one_line(span)

    # --- reductions that are cut short ---

    def cut(self) -> Iterator[Diagnostic]:
        """A warning if indices that are reduced over miss values of dimensions that they read."""
        lost = {i: whole for i in self.of.statement.reduction if (whole := self._missed(i))}
        if not lost:
            return
        boxes = {i: self._box(a.read.tensor, a.axis) for i, a in lost.items()}
        wide = self._analysis({**self.of.ranges, **boxes})
        conditions: dict[Span, list[str]] = {}
        reads: dict[Span, c.Read] = {}
        for access in self.accesses:
            if access.form.indices & lost.keys() and access.evaluated:
                inside = self._conditions_inside(access, wide)
                if inside:
                    reads[access.read.span] = access.read
                    conditions.setdefault(access.read.span, []).extend(inside)
        guards = {
            span: f"({' && '.join(conditions[span])} ? {self._quote(span)} : {self._outside(read)})"
            for span, read in reads.items()
        }
        first, *others = guards or [limit.span for limit in self.of.limits[next(iter(lost))]][:1]
        ranges = {i: self.of.ranges[i] for i in lost}
        less = ", ".join(
            f"'{i}' to {a}:{b} of the {boxes[i][0]}:{boxes[i][1]}" for i, (a, b) in ranges.items()
        )
        readers = " and ".join(dict.fromkeys(self._quote(a.read.span) for a in lost.values()))
        message = f"{self._quote(first)} limits {less} of {readers}, so terms are lost; "
        if first in guards:
            message += f"write {guards[first]} instead, with {self._clause(boxes)}; or, "
        message += f"if you want the smaller range, {self._clause(ranges)}"
        yield Diagnostic(
            message,
            first,
            tuple((s, f"and {guards[s]} for this one") for s in others),
            Section.RANGES,
        )

    def _missed(self, index: str) -> Access | None:
        """A read of a whole dimension by an index, upwards or downwards (``W(K - 1 - k)``), of
        which its range leaves out something."""
        first, stop = self.of.ranges[index]
        for access in self.accesses if index not in self.said else ():
            low, high = self._box(access.read.tensor, access.axis)
            if access.form == Linear({index: 1}):
                least, end = first, stop
            elif access.form == Linear({index: -1}, low + high - 1):
                least, end = low + high - stop, low + high - first
            else:
                continue
            guarded_below, guarded_above = access.facts.guards(access.form)
            less = (low < least and not guarded_below) or (end < high and not guarded_above)
            if less and not self._read_otherwise(index, access):
                return access
        return None

    def _read_otherwise(self, index: str, whole: Access) -> bool:
        """Whether other reads by the same index, as those of a stencil, reach what it misses."""
        first, stop = self.of.ranges[index]
        low, high = self._box(whole.read.tensor, whole.axis)
        pieces = []
        for access in self.accesses:
            form, shift = access.form, access.form.constant
            same = (access.read.tensor, access.axis) == (whole.read.tensor, whole.axis)
            if same and dict(form.terms) == {index: 1}:
                pieces.append((first + shift, stop + shift))
            elif same and dict(form.terms) == {index: -1}:
                pieces.append((shift - stop + 1, shift - first + 1))
        for start, end in sorted(pieces):
            if start <= low:
                low = max(low, end)
        return low >= high

    def _conditions_inside(self, access: Access, analysis: Analysis) -> list[str]:
        """The conditions under which a subscript stays in its tensor, of those that are needed."""
        if not access.form.is_affine:
            return []
        low, high = self._box(access.read.tensor, access.axis)
        least, most = analysis.bounds(access.form, access.facts)
        subscript = access.read.subscripts[access.axis]
        text = self._quote(subscript.span)
        if isinstance(subscript, c.Select):
            text = f"({text})"
        if low <= least and most < high:
            return []
        end = f"{_tensor_in(self._quote(access.read.span))}.{access.axis}" if low == 0 else high
        below = [f"{text} >= {low}"] if least < low else []
        return [*below, f"{text} < {end}"]  # its end depends on the sizes, as a rule

    def _outside(self, read: c.Read) -> str:
        """What leaves a reduction as it is, as far as one read can decide that."""
        type_, op = read.type, self.of.statement.op
        if type_.is_bool:
            return f"bool({int(op in ('min', '*'))})"
        if op in "+*":
            return "0" if op == "+" else "1"
        if type_.is_float:
            return ("" if op == "min" else "-") + _LARGEST[type_.name]
        return str(type_.limits[op == "min"])

    # --- outputs that are shifted ---

    def shifted(self) -> Iterator[Diagnostic]:
        """A warning if the target starts elsewhere than at 0, and no clause says so."""
        statement = self.of.statement
        moved = [i for i in statement.indices if self.of.ranges[i][0] and not self._follows(i)]
        if not moved:
            return
        ranges = {i: self.of.ranges[i] for i in moved}
        because = {i: self.of.limits[i][0].span for i in moved}
        begins = (0 if i is None else self.of.ranges[i][0] for i in statement.axes)
        start = ", ".join(map(str, begins))
        moves = " and ".join(
            f"({i} {'-' if a < 0 else '+'} {abs(a)}) for {i}" for i, (a, _) in ranges.items()
        )
        first, *_ = because.values()
        source, begin = self.sized.checked.source, self.of.statement.span.start
        target = source.span_at(begin, source.text.index(")", begin) + 1)  # O(i, j)
        written, lowest = self._clause(ranges), ranges[moved[0]][0]
        yield Diagnostic(
            f"element 0 of '{statement.target}' is {statement.target}({start}), because "
            f"{self._quote(first)} lets '{moved[0]}' start at {lowest}; write {written} if you "
            f"want this, or {moves} on the right to begin with 0",
            target,
            tuple((span, "because of this") for span in dict.fromkeys(because.values())),
            Section.RANGES,
        )

    def _follows(self, index: str) -> bool:
        """Whether a clause says where a range begins, or an earlier statement does, for which
        there is a clause, or a warning: this one reads, by the index alone, what that one wrote."""
        if index in self.said:
            return True
        outputs = {s.statement.target for s in self.sized.statements}
        return any(
            access.form == Linear({index: 1})
            and access.read.tensor in outputs
            and self._box(access.read.tensor, access.axis)[0] == self.of.ranges[index][0]
            for access in self.accesses
        )

    def _clause(self, ranges: Mapping[str, Range]) -> str:
        return "where " + ", ".join(
            f"{i} in {a}:{self._stop_text(i, b)}" for i, (a, b) in ranges.items()
        )

    def _stop_text(self, index: str, stop: int) -> str:
        """The end of a range as a def can say it for all sizes, if it follows from an input, or
        from what an earlier statement wrote."""
        for clause in self.of.statement.ranges:
            if clause.index == index:
                return self._quote(clause.stop.span)
        tensors = self.sized.checked.tensors
        for access in self.accesses:
            tensor, form = tensors[access.read.tensor], access.form
            low, end = self._box(tensor.name, access.axis)
            # Or else it stands in a def that is called.
            ours = _tensor_in(self._quote(access.read.span)) == tensor.name
            mirrored = form == Linear({index: -1}, low + end - 1) and stop == end and low == 0
            reaches = dict(form.terms) == {index: 1} and stop + form.constant == end
            if not ours or not (mirrored or reaches):
                continue
            size = tensor.dims[access.axis] if tensor.is_input and tensor.dims else None
            if not tensor.is_input:
                size = self._end_written(tensor.name, access.axis)
            if isinstance(size, str) and not size.isdigit():
                shift = 0 if mirrored else form.constant
                whole = size if size.isidentifier() else f"({size})"
                return f"{whole} {'-' if shift > 0 else '+'} {abs(shift)}" if shift else size
        return str(stop)

    def _end_written(self, tensor: str, axis: int) -> str | None:
        """Where the range ends by which an earlier statement wrote a tensor, as defs say it."""
        for statement in self.sized.statements:
            if statement is self.of:
                return None
            index = statement.statement.axes[axis]
            ours = _tensor_in(self._quote(statement.statement.span)) == tensor
            if ours and statement.statement.target == tensor and index is not None:
                return _Ranges(self.sized, statement)._stop_text(index, statement.ranges[index][1])
        return None


_LARGEST = {"float16": "65504", "bfloat16": "3.3e38", "float32": "3.4e38", "float64": "1.7e308"}
"""About the largest value of a type, as a literal that it can hold."""


def _tensor_in(read: str) -> str:
    """The tensor of a read, as it is written there."""
    return read.partition("(")[0].strip()
