"""LLVM IR as text: a small builder that knows values of scalars and of lanes.

Text needs no llvmlite, so kernels can be shown and their source compared without it.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from tcl.codegen.cpu.llvm.entry import stopped
from tcl.codegen.cpu.llvm.known import Known
from tcl.codegen.devices.cpu_profile import LINE
from tcl.common.dataclass import dataclass, made_often
from tcl.grammar.syntax.types import Kind, ScalarType


@made_often(frozen=True, slots=True)
class Val:
    """An LLVM value: a scalar, the same for all lanes, or a vector with one value per lane."""

    text: str
    """``%v7`` or a constant."""
    type: str
    """LLVM type of one lane."""
    lanes: int = 1

    @property
    def ty(self) -> str:
        """LLVM type of the value."""
        return vector(self.type, self.lanes)

    def __str__(self) -> str:
        if self.lanes == 1:  # most of them
            return f"{self.type} {self.text}"
        return f"<{self.lanes} x {self.type}> {self.text}"


def vector(type_: str, lanes: int) -> str:
    """The LLVM type of ``lanes`` values; the type itself for one."""
    return type_ if lanes == 1 else f"<{lanes} x {type_}>"


def suffix(type_: str, lanes: int) -> str:
    """How intrinsics name a type: ``f32``, ``v8i64``, ``v4p0``."""
    short = _SHORT.get(type_, type_)
    return short if lanes == 1 else f"v{lanes}{short}"


_SHORT = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
_BITS = {"float": 32, "double": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def register_type(t: ScalarType) -> str:
    """The LLVM type in which values of ``t`` are computed."""
    match t.kind:
        case Kind.FLOAT:
            return "double" if t.bits == 64 else "float"
        case _:
            return f"i{t.bits}"


def memory_type(t: ScalarType) -> str:
    """The LLVM type of an element in memory: a byte for bools, bits for the 16-bit floats."""
    if t.is_bool:
        return "i8"
    return "i16" if t.is_float and t.bits == 16 else register_type(t)


def float_text(value: float, type_: str) -> str:
    """A float constant, exactly as LLVM wants it: the bits of a double."""
    if type_ == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


_PURE = frozenset(
    """add sub mul sdiv udiv srem urem and or xor shl lshr ashr fadd fsub fmul fdiv frem fneg
    getelementptr insertelement extractelement shufflevector icmp fcmp select trunc zext sext
    fptrunc fpext sitofp uitofp fptosi fptoui bitcast ptrtoint""".split()
)


_CALLED = re.compile(r"@(llvm\.(?!x86|aarch64))?([\w.]+)\(")
_ZEROS = frozenset(("zeroinitializer", "0", "false", "null", f"0x{0:016X}"))
"""Constants, as text, that are the same in every bit."""
_MANY = 4
"""Uses of an address from which on LLVM's strength reduction is not worth its time, a fifth of all
of LLVM's. With fewer, kernels take .92 to 1.0 of the time by it on Zen 4; with more, .95 to
1.06."""
_APART = 64
"""Tensors that are set apart from each other at most."""


@dataclass(slots=True)
class Builder:
    """Appends instructions to one function and collects what the module needs around it."""

    lines: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    """Allocas: they belong into the first block, or loops would grow the stack."""
    declared: dict[str, str] = field(default_factory=dict)
    """External function → its declaration. Shared between the functions of a module."""
    defined: dict[str, str] = field(default_factory=dict)
    """Helper function or metadata → its definition. Shared likewise."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Metadata → its name. Shared likewise."""
    befores: dict[int, list[str]] = field(default_factory=dict)
    """Lines before which others belong that were written later."""
    total: bool = False
    """Whether what is loaded now may be read in vain, wherever the loops around it stand."""
    last: list[str] = field(default_factory=list)
    """What the last new instruction was added to."""
    asked: dict[str, tuple[list[str], int, int]] = field(default_factory=dict)
    """Address, as of ``opaque`` → its line, and how often it was asked for."""
    intrinsics: dict[tuple[str, str, int, str, str], str] = field(default_factory=dict)
    """As of ``intrinsic``: name, type and lanes, type of the result, flags → how calls begin."""
    begun: dict[str, int] = field(default_factory=dict)
    """Label → lines before it."""
    ended: int = 0
    """Lines up to the end of the last loop that has ended."""
    block: str = "entry"
    count: int = 0
    known: Known = field(default_factory=Known)
    held: dict[str, Val] = field(default_factory=dict)
    """What slots on the stack hold that nothing but ``held_in`` reads, in this block ..."""
    unsaved: dict[str, Val] = field(default_factory=dict)
    """... and what is written to them where it ends."""
    apart: dict[str, str] = field(default_factory=dict)
    """Tensor → what is written behind its loads and stores."""
    tensors: tuple[str, ...] = ()
    """What LLVM knows the tensors by that are set apart."""
    leaving: list[str] = field(default_factory=list)
    """What has to be done before a call ends early."""
    multiples: dict[str, int] = field(default_factory=dict)
    """Index values → what they are known to be multiples of, where that is more than 1."""
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Index values → the smallest and the largest that they may be, in all lanes, where these are
    known."""
    wrapping: set[str] = field(default_factory=set)
    """Index values that are made of data of 64 bits, whose sums may wrap."""
    compared: dict[str, tuple[str, Val, Val]] = field(default_factory=dict)
    """Comparisons of one value for all lanes → test and operands."""
    zeroed: set[tuple[str, str]] = field(default_factory=set)
    """Vectors from memory, and masks: they are 0 in lanes for which these do not hold."""
    features: frozenset[str] = frozenset()
    """LLVM's names of what the machine has, of which formulas may make use."""
    fused: bool = True
    """Whether the machine multiplies and adds with one rounding, as of ``CpuProfile``."""
    rounds: bool = True
    """Whether it rounds to integers, likewise."""

    def inner(self) -> Builder:
        """For another function of the module."""
        return Builder(
            declared=self.declared,
            defined=self.defined,
            nodes=self.nodes,
            features=self.features,
            fused=self.fused,
            rounds=self.rounds,
        )

    # Instructions.

    def op(self, text: str, type_: str, lanes: int = 1) -> Val:
        """An instruction that gives a value."""
        known = self.known
        found = known.values.get(text)
        if found is not None and found[1] in known.active:
            return found[0]
        name = text.partition(" ")[0]
        if name not in _PURE and not (name == "call" and self._calls_function(text)):
            return self._new(text, type_, lanes, len(known.around))
        depth = known.depth(text)
        return known.remember(text, self._new(text, type_, lanes, depth), depth)

    def _new(self, text: str, type_: str, lanes: int, depth: int) -> Val:
        """An instruction that is not known yet, in so many of the loops around this place."""
        self.count += 1
        name, around = f"%v{self.count}", self.known.around
        self.last = around[depth].before if depth < len(around) else self.lines
        self.last.append(f"  {name} = {text}")
        if depth:
            self.known.depths[name] = depth
        return Val(name, type_, lanes)

    def _calls_function(self, text: str) -> bool:
        """Whether a call has no side effects, and the same result wherever it is."""
        called = None if "ptr" in text else _CALLED.search(text)
        if called is None:
            return False
        name = called[2]
        ours = name in self.defined or "memory(none)" in self.declared.get(name, "")
        return ours or called[1] is not None

    def load(self, tensor: str, text: str, type_: str, lanes: int = 1) -> Val:
        """A read of a tensor, written once between two stores to it, and before loops that leave
        the element as it is."""
        known = self.known
        if (found := known.recall_load(tensor, text)) is not None:
            return found
        depth = known.depth_of_load(tensor, text) if self.total else len(known.around)
        value = self._new(text + self.apart.get(tensor, ""), type_, lanes, depth)
        return known.remember_load(tensor, text, value, depth)

    def read(
        self,
        tensor: str,
        pointer: Val,
        align: int,
        type_: str,
        lanes: int = 1,
        mask: Val | None = None,
        other: Val | None = None,
    ) -> Val:
        """What lies at a pointer, as ``load`` has it. Lanes for which a mask does not hold touch
        nothing, and are those of ``other``, or 0."""
        text = f"load {vector(type_, lanes)}, {pointer}, align {align}"
        if mask is not None:
            beside = other or Val("zeroinitializer", type_, lanes)
            given = pointer, Val(str(align), "i32"), mask, beside
            text = self.call_text(f"llvm.masked.load.{suffix(type_, lanes)}.p0", beside.ty, *given)
        return self.load(tensor, text, type_, lanes)

    @contextmanager
    def loop(self, into: str, out: str, written: Collection[str] | None) -> Iterator[None]:
        """A loop that is entered here, at a label, and left for another one, with what is known
        there if the loop has iterations at all."""
        at = len(self.lines)
        self.branch(into)
        with self.known.loop(out, written) as here:
            self.befores[at] = here.before
            self.start(into)
            here.begins = self.known.scope
            yield
        self.start(out)

    def finished(self) -> list[str]:
        found: list[str] = []
        begun = 0
        for at in sorted(self.befores):
            found += self.lines[begun:at]
            found += self.befores[at]
            begun = at
        return found + self.lines[begun:]

    def store(self, tensor: str, text: str) -> None:
        """A write to a tensor. What is written overlaps no other tensor."""
        self.do(text + self.apart.get(tensor, ""))
        self.known.change((tensor,))

    def set_apart(self, tensors: Sequence[str]) -> None:
        """Tells LLVM that tensors do not overlap, which it cannot see. Not of very many: each is
        set apart from each."""
        if not 2 <= len(tensors) <= _APART:
            return
        domain = self._node("distinct !{{{me}}}", "domain")
        scopes = [self._node(f"distinct !{{{{{{me}}, {domain}}}}}", t) for t in tensors]
        for tensor, scope in zip(tensors, scopes, strict=True):
            others = ", ".join(s for s in scopes if s != scope)
            own, apart = self._node(f"!{{{{{scope}}}}}"), self._node(f"!{{{{{others}}}}}")
            self.apart[tensor] = f", !alias.scope {own}, !noalias {apart}"
        self.tensors = tuple(scopes)

    def do_besides(self, text: str) -> None:
        """A call that touches no tensor: LLVM need not read any again after it."""
        every = ", ".join(self.tensors)
        self.do(text + (f", !noalias {self._node(f'!{{{{{every}}}}}')}" if every else ""))

    def do(self, text: str) -> None:
        """An instruction that gives none."""
        self.lines.append(f"  {text}")

    def alloca(self, type_: str) -> str:
        """Room on the stack for the whole call."""
        self.count += 1
        self.entry.append(f"  %v{self.count} = alloca {type_}")
        return f"%v{self.count}"

    def hold(self, slot: str, value: Val) -> None:
        """Puts a value into a slot of its own on the stack."""
        self.held[slot] = self.unsaved[slot] = value

    def held_in(self, slot: str, type_: str, lanes: int) -> Val:
        """What ``hold`` put there."""
        if slot not in self.held:
            text = f"load {vector(type_, lanes)}, ptr {slot}"
            self.held[slot] = self.op(text, type_, lanes)
        return self.held[slot]

    def new_label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        """Continue in a new block. What was known where a condition leads here still is."""
        self.begun[label] = len(self.lines)
        self.lines.append(f"{label}:")
        self.block = label
        self.held = {}
        self.known.start(label)

    @contextmanager
    def meeting(self, label: str) -> Iterator[None]:
        """Ways that a value is computed in, none of which stores to a tensor; they meet in a new
        block, in which all that was known before them is known again."""
        known = self.known
        before = known.scope, known.active, self.held
        yield
        self.start(label)
        known.scope, known.active, self.held = before

    def branch(self, label: str) -> None:
        self.known.join(label)
        self._end(f"br label %{label}")

    def branch_if(self, condition: Val, then: str, otherwise: str, *, whole: bool = False) -> None:
        """``whole``: by one branch. Of a condition of several parts, LLVM would make one for each,
        and a processor that takes a wrong way loses as much time at every one."""
        self.known.reach(then, condition.text, "true")
        self.known.reach(otherwise, condition.text, "false")
        note = self.metadata("unpredictable", "") if whole else ""
        self._end(f"br i1 {condition.text}, label %{then}, label %{otherwise}{note}")

    def _end(self, text: str) -> None:
        """The last instruction of a block."""
        for slot, value in self.unsaved.items():
            self.do(f"store {value}, ptr {slot}")
        self.unsaved.clear()
        self.do(text)

    def again_if(self, condition: Val, loop: str, out: str) -> None:
        """The end of the loop that begins at a label. It stays one: how many iterations are written
        out is for the schedule to say, which knows the registers. LLVM would write out all of a few
        iterations, and then keep what several of them read, for which there is no room. Innermost
        loops begin on cache lines: seven instructions in two lines took Zen 4 1.5 times as long."""
        keep = self._node('!{{!"llvm.loop.unroll.disable"}}')
        notes = [keep]
        if self.begun[loop] >= self.ended:  # no loop is in it
            notes.append(self._node(f'!{{{{!"llvm.loop.align", i32 {LINE}}}}}'))
        self.ended = len(self.lines)
        self.known.join(out)
        note = self._node(f"distinct !{{{{{{me}}, {', '.join(notes)}}}}}", loop)
        targets = f"label %{loop}, label %{out}"
        self._end(f"br i1 {condition.text}, {targets}, !llvm.loop {note}")

    def settled(self, condition: Val) -> Val:
        """A condition, as it is known where a branch has decided it."""
        known = self.known.settled(condition.text)
        return condition if known is None else Val(known, condition.type)

    def leave_if_stopped(self) -> None:
        """The way out of a call that is to end, see ``tcl.codegen.cpu.abi``."""
        stop, leave, on = (self.new_label(hint) for hint in ("stop", "leave", "on"))
        before = self.known.scope
        self.lines.append(stopped(stop).rstrip("\n"))
        self.branch_if(Val(f"%{stop}", "i1"), leave, on)
        self.start(leave)
        for text in self.leaving:
            self.do(text)
        self.do("ret i32 0")
        self.start(on)
        if self.known.around and self.known.around[-1].begins == before:
            self.known.around[-1].begins = self.known.scope

    def metadata(self, kind: str, value: str) -> str:
        """What an instruction ends with to carry a note."""
        return f", !{kind} {self._node(f'!{{{{{value}}}}}')}"

    def _node(self, text: str, name: str = "") -> str:
        """Metadata by its text, in which ``{me}`` stands for itself, and a name that keeps it apart
        from others with the same text."""
        key = f"!{name} {text}"
        if key not in self.nodes:
            me = self.nodes[key] = f"!{len(self.nodes)}"
            self.defined[key] = f"{me} = {text.format(me=me)}\n"
        return self.nodes[key]

    def phi(self, incoming: Sequence[tuple[Val, str]]) -> Val:
        first = incoming[0][0]
        pairs = ", ".join(f"[ {v.text}, %{label} ]" for v, label in incoming)
        return self.op(f"phi {first.ty} {pairs}", first.type, first.lanes)

    def multiple(self, value: Val) -> int:
        """What an index value is a multiple of."""
        return self.multiples.get(value.text, 1)

    def interval(self, value: Val) -> tuple[int, int] | None:
        """The smallest and the largest that an index value may be, if these are known."""
        known = literals(value)
        return self.ends.get(value.text) if known is None else (known[0], known[0])

    # Lanes.

    def spread(self, value: Val, lanes: int) -> Val:
        if value.lanes == lanes:
            return value
        if value.text in self.compared and (made := self._compared_in_lanes(value, lanes)):
            return made
        if not value.text.startswith("%"):
            if value.text in _ZEROS:
                return Val("zeroinitializer", value.type, lanes)
            return Val(f"<{', '.join([str(value)] * lanes)}>", value.type, lanes)
        ty = vector(value.type, lanes)
        one = self.op(f"insertelement {ty} poison, {value}, i32 0", value.type, lanes)
        mask = vector("i32", lanes)
        return self.op(
            f"shufflevector {one}, {ty} poison, {mask} zeroinitializer", value.type, lanes
        )

    def level(self, *values: Val) -> tuple[Val, ...]:
        """The values with the same number of lanes."""
        lanes = values[0].lanes
        for value in values:  # asked for so often that how it is written counts
            if value.lanes != lanes:
                break
        else:
            return values
        lanes = max([v.lanes for v in values])
        return tuple([v if v.lanes == lanes else self.spread(v, lanes) for v in values])

    def lane(self, value: Val, k: int) -> Val:
        """One lane, as a scalar."""
        if value.lanes == 1:
            return value
        return self.op(f"extractelement {value}, i32 {k}", value.type)

    def gather_lanes(self, values: Sequence[Val]) -> Val:
        """Scalars → the vector with these lanes."""
        lanes, type_ = len(values), values[0].type
        if lanes == 1:
            return values[0]
        result = Val("poison", type_, lanes)
        for k, value in enumerate(values):
            result = self.op(f"insertelement {result}, {value}, i32 {k}", type_, lanes)
        return result

    # Shorthands. Operands may mix scalars and vectors.

    def binary(self, name: str, left: Val, right: Val) -> Val:
        """``add``, ``fmul``, ``and``, ...; flags may be part of the name."""
        if left.type == "i1" and name in _KNOWN_BITS:
            for one, other in ((left, right), (right, left)):
                if other.text in _KNOWN_BITS[name]:
                    return one if _KNOWN_BITS[name][other.text] else other
        if left.lanes != right.lanes:
            left, right = self.level(left, right)
        return self.op(f"{name} {left}, {right.text}", left.type, left.lanes)

    def compare(self, name: str, left: Val, right: Val) -> Val:
        """``icmp slt``, ``fcmp olt``, ..."""
        left, right = self.level(left, right)
        if name in _TESTS and (known := literals(left, right)):
            return self.constant(_TESTS[name](*known), "i1")
        found = self.op(f"{name} {left}, {right.text}", "i1", left.lanes)
        if found.lanes == 1:
            self.compared[found.text] = name, left, right
        return found

    def _compared_in_lanes(self, value: Val, lanes: int) -> Val | None:
        """A comparison that lanes share, made in all of them, if one vector of AVX2 holds what is
        compared. There, masks are vectors: of one bit LLVM makes one in six instructions, by way of
        half of a register of integers, whose other half each iteration takes from the one before.
        """
        name, left, right = self.compared[value.text]
        fits = lanes * _BITS.get(left.type, LINE * 8) <= 256
        if not fits or "avx2" not in self.features or "avx512vl" in self.features:
            return None
        return self.compare(name, self.spread(left, lanes), self.spread(right, lanes))

    def select(self, condition: Val, then: Val, otherwise: Val) -> Val:
        """Both sides are evaluated. A scalar condition is spread to lanes: LLVM makes branches of
        scalars that choose between vectors."""
        if condition.text in ("true", "false"):
            then, otherwise = self.level(then, otherwise)
            return then if condition.text == "true" else otherwise
        condition, then, otherwise = self.level(condition, then, otherwise)
        return self.op(f"select {condition}, {then}, {otherwise}", then.type, then.lanes)

    def unforeseen(self, condition: Val, then: Val, otherwise: Val) -> Val:
        """``select`` by a condition that branches would not foresee: LLVM makes none of it."""
        note = self._node("!{{}}")
        text = f"select {condition}, {then}, {otherwise}, !unpredictable {note}"
        return self.op(text, then.type, then.lanes)

    def negation(self, value: Val) -> Val:
        if value.text in ("true", "false"):
            return self.constant(value.text == "false", "i1")
        return self.binary("xor", value, Val("true", "i1"))

    def convert(self, name: str, value: Val, type_: str) -> Val:
        """``sext``, ``fptrunc``, ``bitcast``, ... to another type with the same lanes."""
        if value.type == type_:
            return value
        if name == "trunc" and (known := literals(Val(value.text, type_, value.lanes))):
            return self.constant(known[0], type_)
        known = literals(value) if name in ("sext", "zext") else None
        if known and (name == "sext" or known[0] >= 0):
            return self.constant(known[0], type_)
        return self.op(f"{name} {value} to {vector(type_, value.lanes)}", type_, value.lanes)

    def constant(self, value: int | float | bool, type_: str) -> Val:
        if type_ in ("float", "double"):
            return Val(float_text(float(value), type_), type_)
        if type_ == "i1":
            return Val("true" if value else "false", type_)
        return Val(str(int(value)), type_)

    def intrinsic(self, name: str, *arguments: Val, of: str = "", flags: str = "") -> Val:
        """A call of ``llvm.name``, typed by its (levelled) arguments. ``of`` is the type of one
        lane of the result, where it is not the arguments'; ``flags`` are those of fast math."""
        arguments = self.level(*arguments)
        first = arguments[0]
        key = name, first.type, first.lanes, of, flags
        begin = self.intrinsics.get(key)
        if begin is None:
            full = f"llvm.{name}"
            if of:
                full += f".{suffix(of, first.lanes)}"
            full += f".{suffix(first.type, first.lanes)}"
            made = self.call_text(full, vector(of or first.type, first.lanes), *arguments)
            made = made.replace("call", f"call {flags}", 1) if flags else made
            begin = self.intrinsics[key] = made[: made.index("(") + 1]
        text = f"{begin}{', '.join([str(a) for a in arguments])})"
        return self.op(text, of or first.type, first.lanes)

    def opaque(self, pointer: Val, uses: int = 1) -> Val:
        """The same address. If many ask for it, LLVM does not take it apart into variables of
        loops: of uses at constant distances from one address, its strength reduction would compare
        all pairs. The call is removed after that."""
        same = self.op(f"getelementptr i8, {pointer}, i64 0", "ptr")
        lines, at, before = self.asked.get(same.text, (self.last, len(self.last) - 1, 0))
        self.asked[same.text] = lines, at, before + uses
        if before < _MANY <= before + uses:
            call = self.call_text(f"llvm.strip.invariant.group.{suffix('ptr', 1)}", "ptr", pointer)
            lines[at] = f"  {same.text} = {call}"
        return same

    def call(self, name: str, type_: str, lanes: int, *arguments: Val, note: str = "") -> Val:
        """A call of an external function; the same lanes everywhere."""
        return self.op(
            self.call_text(name, vector(type_, lanes), *arguments, note=note), type_, lanes
        )

    def call_text(self, name: str, result: str, *arguments: Val, note: str = "") -> str:
        """A call as text, its function declared."""
        if name not in self.defined and name not in self.declared:
            types = ", ".join([a.ty for a in arguments])
            self.declared[name] = f"declare {result} @{name}({types}){note}"
        return f"call {result} @{name}({', '.join([str(a) for a in arguments])})"


_TESTS: Mapping[str, Callable[[int, int], bool]] = {
    **{"icmp eq": operator.eq, "icmp ne": operator.ne, "icmp slt": operator.lt},
    **{"icmp sle": operator.le, "icmp sgt": operator.gt, "icmp sge": operator.ge},
}
_KNOWN_BITS = {"and": {"true": True, "false": False}, "or": {"true": False, "false": True}}
"""Of bools, operands that are known now: whether the result is the other one, or this one."""


def literals(*values: Val) -> tuple[int, ...] | None:
    """Scalar integers that are known now, as signed ones of their bits; None if some are not."""
    found = []
    for value in values:
        if value.lanes != 1 or not value.text.lstrip("-").isdecimal():
            return None
        half = 1 << int(value.type[1:]) - 1
        found.append((int(value.text) + half) % (2 * half) - half)
    return tuple(found)
