"""Which iterations of a loop a cut leaves, and in which of these its bounds hold everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tcl.codegen.cpu.emit.scope import PointCount, Scope, i64, number, scale
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pieces:
    """Points from the start of a loop, multiples of its step. Between ``whole`` and ``mixed``, all
    bounds hold at all points of an iteration; between ``start`` and ``stop`` at some."""

    start: Val
    whole: Val
    mixed: Val
    stop: Val
    last: Val
    """Whether the points after the last whole iteration are among them."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where bounds begin or end to hold, as far as these are known to be anywhere."""

    starts: tuple[Val, ...] = ()
    stops: tuple[Val, ...] = ()


@dataclass(frozen=True, slots=True)
class Cuts:
    """Emits the ends of loops that are cut."""

    b: Builder
    dims: Mapping[str, ir.Dim]

    def pieces(self, cut: ir.Cut, fold: ir.Fold, scope: Scope, full: Val) -> Pieces:
        """Of a loop with ``full`` points in whole iterations."""
        b, step = self.b, fold.step
        some, every = (
            self._ends(cut, fold.dim, scope, some=True),
            self._ends(cut, fold.dim, scope, some=False),
        )
        start = self._clamped(some.starts, full, "smax", step, up=False)
        whole = self._after(start, self._clamped(every.starts, full, "smax", step, up=True))
        mixed = self._after(whole, self._clamped(every.stops, full, "smin", step, up=False))
        stop = self._after(mixed, self._clamped(some.stops, full, "smin", step, up=True))
        last = b.compare("icmp eq", full, full)
        for end in some.stops:
            beyond = b.compare("icmp sgt", end, full)
            last = b.binary("and", last, beyond)
        return Pieces(start, whole, mixed, stop, last)

    def everywhere(self, bounds: Iterable[Bound], scope: Scope) -> Val:
        """Whether bounds hold at all points of the loops inside."""
        b = self.b
        found = Val("true", "i1")
        for bound in bounds:
            most = self._rest(bound, "", scope, most=True)
            found = b.binary("and", found, b.compare("icmp slt", most, number(bound[1])))
        return found

    def _after(self, one: Val, other: Val | None) -> Val:
        return one if other is None else self.b.intrinsic("smax", one, other)

    def _clamped(self, ends: tuple[Val, ...], full: Val, which: str, step: int, *, up: bool) -> Val:
        """The innermost of some ends, in whole iterations."""
        b = self.b
        found = full if which == "smin" else number(0)
        for end in ends:
            found = b.intrinsic(which, found, end)
        if not ends:
            return found
        found = b.intrinsic("smax", found, number(0))
        if step > 1:
            if up:
                found = b.binary("add nsw", found, number(step - 1))
            found = b.binary("sub nsw", found, b.binary("urem", found, number(step)))
        return b.intrinsic("smin", found, full)

    def _ends(self, cut: ir.Cut, dim: str, scope: Scope, *, some: bool) -> _Ends:
        """Where bounds hold at some points of what is inside of an iteration, or at all."""
        b = self.b
        starts, stops = [], []
        for bound in cut.bounds:
            rest = self._rest(bound, dim, scope, most=not some)
            factor = bound[0].coefficient(dim)
            if factor > 0:
                left = b.binary("sub nsw", number(bound[1]), rest)
                stops.append(self._turns(b.binary("add nsw", left, number(factor - 1)), factor))
            elif factor < 0:
                beyond = b.binary("sub nsw", rest, number(bound[1]))
                starts.append(self._turns(b.binary("sub nsw", beyond, number(factor)), -factor))
            else:  # nowhere, unless it holds for the rest
                holds = b.compare("icmp slt", rest, number(bound[1]))
                stops.append(b.select(holds, number(_FAR), number(0)))
        return _Ends(tuple(starts), tuple(stops))

    def _turns(self, points: Val, factor: int) -> Val:
        """How often a factor is in a number of points, of which fewer than none are none."""
        if factor == 1:
            return points
        points = self.b.intrinsic("smax", points, number(0))
        return self.b.binary("udiv", points, number(factor))

    def _rest(self, bound: Bound, dim: str, scope: Scope, *, most: bool) -> Val:
        """A bound's index expression where the loop over ``dim`` starts, its least value or its
        largest at all points of other loops inside."""
        b, index = self.b, bound[0]
        total = number(index.constant)
        for name, factor in index.terms:
            range_ = scope.ranges[name]
            at = i64(b, range_.offset + self.dims[name].first)
            total = b.binary("add nsw", total, scale(b, at, factor) or number(0))
            if name != dim and (factor > 0) == most:
                span = range_.span
                points = span.value if isinstance(span, PointCount) else number(span)
                reach = scale(b, b.binary("sub nsw", points, number(1)), factor)
                total = b.binary("add nsw", total, reach or number(0))
        return total


_FAR = 1 << 62
"""More points than there are."""
