"""Machine code of a kernel, and how often its warps execute each instruction; no GPU is needed.

What branches depend on is computed as a GPU does: numbers of threads and blocks, addresses, loop
counters. Whatever else writes a register leaves a one there (of float32), and no comparison of
floats holds: the paths of functions for rare arguments are not taken.
"""

from __future__ import annotations

import itertools
import operator
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.devices.banks import WARP

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_LABEL = re.compile(r"^(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_PREDICATE = re.compile(r"!?U?P[T\d]$")
_NAME = re.compile(r"\bU?[RP]\d+\b")
_REGISTER = re.compile(r"(U?R)(\d+)$")
_FIXED = ("RZ", "URZ", "PT", "UPT")
_SAMPLED = 16
"""Blocks that are executed, at most; the others count as these do on average."""
_ONE = 0x3F800000
_PARAMETERS = 0x210
"""Where they lie in the constant bank of sm_90."""
_FIRST_ADDRESS = 0x7F00_0000_0000

Values: TypeAlias = np.ndarray[Any, Any]
"""One of each thread."""
Results: TypeAlias = list[tuple[str, Values]]
"""Registers and what is written to them."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A line of nvdisasm."""

    guard: str
    """A predicate, with ``!`` if it has to be false; empty: none."""
    name: str
    operands: tuple[str, ...]
    target: int | None = None
    """Of a branch: the number of the instruction."""
    reused: frozenset[int] = frozenset()
    """Operands that the next instruction finds in its place without reading them."""

    @property
    def base(self) -> str:
        """The name without its modifiers."""
        return self.name.partition(".")[0]

    @property
    def modifiers(self) -> list[str]:
        """What follows the name."""
        return self.name.split(".")[1:]

    @property
    def written(self) -> tuple[str, ...]:
        """Registers and predicates."""
        if self.base.startswith(("ST", "LDGSTS", "RED")):
            return ()
        leading = itertools.takewhile(_PREDICATE.match, self.operands)
        found = [p for p in leading if p not in _FIXED]
        rest = [o for o in self.operands if not _PREDICATE.match(o)]
        if not self.base.endswith(("SETP", "FCHK")) and rest and _REGISTER.match(rest[0]):
            found.append(rest[0])
            for _ in range(1, self.width):
                found.append(_following(found[-1]))
        return tuple(found)

    @property
    def read(self) -> frozenset[str]:
        """Registers and predicates."""
        operands = self.operands[len(self.written) - self.width + 1 :]
        return frozenset(_NAME.findall(" ".join((self.guard, *operands))))

    @property
    def width(self) -> int:
        """Registers of the result."""
        wide = {"64": 2, "128": 4, "WIDE": 2, "4": 4, "2": 2}
        if self.base == "HMMA":
            return 4
        if self.base == "CS2R" and "32" not in self.modifiers:
            return 2
        return max((wide.get(m, 1) for m in self.modifiers), default=1)


def nvdisasm() -> Path | None:
    """Where the disassembler is, of the package ``nvidia-cuda-nvdisasm``; None if it is not."""
    places = import_module("nvidia").__path__
    return next((tool for place in places for tool in Path(place).glob("*/bin/nvdisasm")), None)


def kernels(cubin: bytes) -> dict[str, tuple[Instruction, ...]]:
    """The kernels of a CUBIN, read by nvdisasm."""
    tool = nvdisasm()
    if tool is None:
        sys.exit("machine code is read by nvdisasm: pip install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin + b"\0")  # NVRTC leaves off the last byte
        file.flush()
        done = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True)
    _, *parts = re.split(r"^\.text\.(\w+):$", done.stdout, flags=re.MULTILINE)
    return {name: parsed(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def parsed(text: str) -> tuple[Instruction, ...]:
    """The instructions of a kernel."""
    labels, lines = dict[str, int](), list[tuple[str, str, str]]()
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(lines)
        elif found := _LINE.match(line):
            lines.append((found[2] or "", found[3], found[4]))
    made = []
    for guard, name, rest in lines:
        jump = _TARGET.search(rest)
        parts = [o.strip() for o in rest.split(",") if o.strip()]
        reused = frozenset(k for k, o in enumerate(parts) if ".reuse" in o)
        operands = tuple([o.replace(".reuse", "") for o in parts])
        target = labels.get(jump[1]) if jump else None
        made.append(Instruction(guard, name, operands, target, reused))
    return tuple(made)


def executed(
    code: Sequence[Instruction],
    blocks: int,
    threads: int,
    arrays: int,
    sizes: Sequence[int] = (),
    last: float = 0.0,
) -> Counter[str]:
    """How often warps of all blocks execute instructions, by name; ``@`` before it: no thread's
    guard holds, so that it takes a turn and nothing else. ``arrays``, ``sizes``: the parameters of
    the kernel, so many addresses first; ``last``: the share of the blocks that come last to where
    those of a group are counted."""
    found = Counter[str]()
    for are_last, share in ((False, 1 - last), (True, last)):
        own = _executed(code, blocks, threads, arrays, sizes, are_last) if share else {}
        for name, times in own.items():
            found[name] += round(times * share)
    return found


def _executed(
    code: Sequence[Instruction],
    blocks: int,
    threads: int,
    arrays: int,
    sizes: Sequence[int],
    are_last: bool,
) -> Counter[str]:
    sampled = list(range(blocks))
    if blocks > _SAMPLED:
        chosen = np.random.default_rng(blocks).choice(blocks, _SAMPLED, replace=False)
        sampled = sorted(map(int, chosen))
    constants = dict[int, int]()
    for k in range(arrays):
        address, at = _FIRST_ADDRESS + (k << 32), _PARAMETERS + 8 * k
        constants |= {at: address & 0xFFFFFFFF, at + 4: address >> 32}
    for k, size in enumerate(sizes):
        constants[_PARAMETERS + 8 * arrays + 4 * k] = size
    run = _Run(code, np.array(sampled), threads, constants, are_last)
    run.run()
    found = Counter[str]()
    for one, n, idle in zip(code, run.times, run.idle, strict=True):
        for name, times in ((one.name, n - idle), (f"@{one.name}", idle)):
            if times:
                found[name] += times * blocks // len(sampled)
    return found


@dataclass(slots=True)
class _Run:
    """Threads of some blocks; those that are the least far take the next step together."""

    code: Sequence[Instruction]
    blocks: Values
    threads: int
    constants: Mapping[int, int]
    are_last: bool
    """Whether all blocks find that they are the last ones of their groups."""
    registers: dict[str, Values] = field(default_factory=dict)
    """Those that are not here have ones; predicates are false."""
    data: set[str] = field(default_factory=set)
    """Registers and predicates that depend on data."""
    times: list[int] = field(default_factory=list)
    """How often warps execute each instruction."""
    idle: list[int] = field(default_factory=list)
    """How often no thread's guard holds."""
    count: int = 0
    active: Values = field(init=False)
    """Those that take the step."""

    def run(self) -> None:
        """From the first instruction until all threads have left."""
        whole, end = -(-self.threads // WARP) * WARP, len(self.code)
        self.count = len(self.blocks) * whole
        numbers = np.arange(self.count, dtype=np.uint32) % whole
        self.registers |= {
            "SR_TID.X": numbers,
            "SR_CTAID.X": np.repeat(self.blocks, whole).astype(np.uint32),
            "SR_LANEID": numbers % WARP,
        }
        zeros = ("RZ", "URZ", "SRZ", "SR_CgaCtaId", "SR_TID.Y", "SR_TID.Z")
        self.registers |= dict.fromkeys(zeros, np.zeros(self.count, np.uint32))
        self.registers |= dict.fromkeys(("PT", "UPT"), np.ones(self.count, bool))
        place = np.where(numbers < self.threads, 0, end)
        self.times, self.idle, at = [0] * end, [0] * end, 0
        steps = [
            (
                _OPERATIONS.get(one.base) or _OPERATIONS.get(one.base.removeprefix("U")),
                one.written,
                one.read,
            )
            for one in self.code
        ]
        while at < end:
            self.active = place == at
            others = place[place > at]
            joined = int(others.min(initial=end))
            everybody = bool((others == end).all() and (place[numbers < self.threads] == at).all())
            warps = _warps(self.active)
            while True:
                one, (compute, written, read) = self.code[at], steps[at]
                self.times[at] += warps
                if one.base in ("BRA", "EXIT", "RET"):
                    place[self.active] = at + 1
                    place[self._branching(one)] = end if one.target is None else one.target
                    break
                if one.guard and one.guard.lstrip("!") not in self.data:
                    self.idle[at] += warps - _warps(self.active & self.truth(one.guard))
                results = compute(self, one) if compute is not None else None
                from_data = results is None or not self.data.isdisjoint(read)
                (self.data.update if from_data else self.data.difference_update)(written)
                self._write(one, results, written, everybody)
                at += 1
                if at == joined:
                    place[self.active] = at
                    break
            at = int(place.min())

    def _branching(self, one: Instruction) -> Values:
        """Threads that go elsewhere."""
        taken = self.active & self.truth(one.guard)
        for operand in one.operands:
            if _PREDICATE.match(operand):
                taken &= self.truth(operand)
        return taken

    def _write(
        self, one: Instruction, results: Results | None, written: Sequence[str], everybody: bool
    ) -> None:
        """``results``: None if these are data."""
        if results is None and everybody and not one.guard:
            for name in written:
                self.registers.pop(name, None)
            return
        for name, value in results or [(name, self.unknown(name)) for name in written]:
            if name in _FIXED:
                continue
            if not everybody or one.guard:
                writes = self.active & self.truth(one.guard)
                value = np.where(writes, value, self.registers.get(name, self.unknown(name)))
            self.registers[name] = value

    def unknown(self, name: str) -> Values:
        """What is there of data."""
        if _PREDICATE.match(name):
            return np.zeros(self.count, bool)
        return np.full(self.count, _ONE, np.uint32)

    def truth(self, operand: str) -> Values:
        """Of a predicate; true where there is none."""
        name = operand.lstrip("!") or "PT"
        value = self.registers.get(name)
        value = self.unknown(name) if value is None else value
        return ~value if operand[:1] == "!" else value

    def value(self, operand: str) -> Values:
        """32 bits of an operand."""
        if operand[0] in "-~" and not operand[1].isdigit():
            inner = self.value(operand[1:])
            return ~inner if operand[0] == "~" else ~inner + np.uint32(1)
        name = operand.removesuffix(".64")
        known = self.registers.get(name)
        if known is not None:
            return known
        if _REGISTER.match(name):
            return self.unknown(name)
        number = self.constants.get(_offset(name), 0) if name[:2] == "c[" else int(name, 0)
        return np.full(self.count, number & 0xFFFFFFFF, np.uint32)

    def pair(self, operand: str) -> Values:
        """64 bits of an operand."""
        high = self.value(_following(operand)).astype(np.uint64)
        return self.value(operand).astype(np.uint64) | high << np.uint64(32)


def _warps(threads: Values) -> int:
    """That have any of these."""
    return int(threads.reshape(-1, WARP).any(axis=1).sum())


def _offset(constant: str) -> int:
    """Of ``c[0x0][0x210]``; -1 where a register says it."""
    place = constant.split("[")[2].rstrip("]")
    return int(place, 0) if place[0].isdigit() else -1


def _following(operand: str) -> str:
    """The upper half of a pair."""
    name = operand.removesuffix(".64")
    if found := _REGISTER.match(name):
        return f"{found[1]}{int(found[2]) + 1}"
    if name[:2] == "c[":
        return f"c[0x0][{hex(_offset(name) + 4)}]"
    return "RZ" if name.endswith("RZ") or int(name, 0) >= 0 else "-1"


def _low(value: Values) -> Values:
    low: Values = (value & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return low


def _halves(name: str, value: Values) -> Results:
    return [(name, _low(value)), (_following(name), _low(value >> np.uint64(32)))]


def _signed(value: Values) -> Values:
    return value.astype(np.uint32).view(np.int32).astype(np.int64).view(np.uint64)


def _moved(run: _Run, one: Instruction) -> Results:
    target, source = one.operands[0], one.operands[-1]
    if one.width == 2:
        return [(target, run.value(source)), (_following(target), run.value(_following(source)))]
    return [(target, run.value(source))]


def _constant_of_halves(run: _Run, one: Instruction) -> Results | None:
    target, *factors, high, low = one.operands
    if factors != ["-RZ", "RZ"]:
        return None
    bits = np.array([float(low), float(high)], np.float16).view(np.uint32)
    return [(target, np.full(run.count, bits[0], np.uint32))]


def _multiplied(run: _Run, one: Instruction) -> Results | None:
    target, *_, a, b, c = one.operands
    if _PREDICATE.match(c) or "X" in one.modifiers:
        return None
    extended = (lambda x: x.astype(np.uint64)) if "U32" in one.modifiers else _signed
    product = extended(run.value(a)) * extended(run.value(b))
    if "WIDE" in one.modifiers:
        return _halves(target, product + run.pair(c))
    if "HI" in one.modifiers:
        product >>= np.uint64(32)
    return [(target, _low(product) + run.value(c))]


def _added(run: _Run, one: Instruction) -> Results:
    target, *rest = one.operands
    carried = [o for o in rest if _PREDICATE.match(o)]
    into, out = (carried[-2:], carried[:-2]) if "X" in one.modifiers else ([], carried)
    total = np.zeros(run.count, np.uint64)
    for operand in rest:
        if operand not in carried:
            total += run.value(operand)
    for operand in into:
        total += run.truth(operand)
    return [(target, _low(total)), *((o, total >> np.uint64(32) != 0) for o in out)]


def _scaled(run: _Run, one: Instruction) -> Results:
    target, *rest = one.operands
    a, b, *more = [o for o in rest if not _PREDICATE.match(o)]
    carried = [o for o in rest if _PREDICATE.match(o)]
    shift = int(more[-1], 0)
    value = run.value(a).astype(np.uint64)
    if "SX32" in one.modifiers:
        value = _signed(run.value(a))
    elif len(more) > 1:
        value |= run.value(more[0]).astype(np.uint64) << np.uint64(32)
    value = value << np.uint64(shift)
    total = (_low(value >> np.uint64(32)) if "HI" in one.modifiers else _low(value)).astype(
        np.uint64
    ) + run.value(b)
    if "X" in one.modifiers:
        total = total + run.truth(carried.pop())
    return [(target, _low(total)), *((o, total >> np.uint64(32) != 0) for o in carried)]


def _shifted(run: _Run, one: Instruction) -> Results:
    target, low, by, high = one.operands
    value = run.value(low).astype(np.uint64) | run.value(high).astype(np.uint64) << np.uint64(32)
    count = (run.value(by) & np.uint32(63)).astype(np.uint64)
    if "L" in one.modifiers:
        value = value << count
    elif {"S32", "S64"} & {*one.modifiers}:
        value = (value.view(np.int64) >> count.view(np.int64)).view(np.uint64)
    else:
        value = value >> count
    return [(target, _low(value >> np.uint64(32) if "HI" in one.modifiers else value))]


def _by_table(table: int, a: Values, b: Values, c: Values) -> Values:
    found = a ^ a
    for k in range(8):
        if table >> k & 1:
            found = found | ((a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c))
    return found


def _bits(run: _Run, one: Instruction) -> Results:
    *targets, a, b, c, table, _ = one.operands
    found = _by_table(int(table, 0), *map(run.value, (a, b, c)))
    return [(o, found != 0 if _PREDICATE.match(o) else found) for o in targets]


def _logic(run: _Run, one: Instruction) -> Results:
    first, second, a, b, c, table, other = one.operands
    truths = [run.truth(o) for o in (a, b, c)]
    return [(o, _by_table(int(t, 0), *truths)) for o, t in ((first, table), (second, other))]


_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    **{"LT": operator.lt, "LE": operator.le, "GT": operator.gt},
    **{"GE": operator.ge, "EQ": operator.eq, "NE": operator.ne},
}
_JOINED: Mapping[str, Callable[[Any, Any], Any]] = {
    **{"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}
}


def _compared(run: _Run, one: Instruction) -> Results:
    first, second, a, b, other, *below = one.operands
    name = one.modifiers[0]
    left, right = run.value(a), run.value(b)
    if "U32" not in one.modifiers:
        left, right = left.view(np.int32), right.view(np.int32)
    found = _COMPARED[name](left, right)
    if below:  # words further down were compared
        found = (
            (left == right) & run.truth(below[0]) | _COMPARED[name[0] + "T"](left, right)
            if (name[0] in "LG")
            else _JOINED["AND" if name == "EQ" else "OR"](found, run.truth(below[0]))
        )
    join = next(_JOINED[m] for m in one.modifiers if m in _JOINED)
    return [(first, join(found, run.truth(other))), (second, join(~found, run.truth(other)))]


def _selected(run: _Run, one: Instruction) -> Results:
    target, a, b, which = one.operands
    return [(target, np.where(run.truth(which), run.value(a), run.value(b)))]


def _extreme(run: _Run, one: Instruction) -> Results:
    target, a, b, least = one.operands
    left, right = run.value(a), run.value(b)
    if "U32" not in one.modifiers:
        left, right = left.view(np.int32), right.view(np.int32)
    found = np.where(run.truth(least), np.minimum(left, right), np.maximum(left, right))
    return [(target, found.view(np.uint32))]


def _permuted(run: _Run, one: Instruction) -> Results:
    target, a, by, b = one.operands
    both = run.value(a).astype(np.uint64) | run.value(b).astype(np.uint64) << np.uint64(32)
    chosen, found = run.value(by).astype(np.uint64), np.zeros(run.count, np.uint64)
    for k in range(4):
        which = chosen >> np.uint64(4 * k)
        byte = both >> (which & np.uint64(7)) * np.uint64(8) & np.uint64(0xFF)
        sign = (byte >> np.uint64(7)) * np.uint64(0xFF)
        byte = np.where(which & np.uint64(8), sign, byte)
        found |= byte << np.uint64(8 * k)
    return [(target, _low(found))]


def _packed(run: _Run, one: Instruction) -> Results:
    target, _, rest, mask = one.operands
    bits = sum(run.truth(f"P{k}").astype(np.uint32) << np.uint32(k) for k in range(7))
    chosen = run.value(mask)
    return [(target, (bits & chosen) | (run.value(rest) & ~chosen))]


def _unpacked(run: _Run, one: Instruction) -> Results:
    _, source, mask = one.operands
    value, chosen = run.value(source), int(mask, 0)
    return [(f"P{k}", value >> np.uint32(k) & 1 != 0) for k in range(7) if chosen >> k & 1]


def _counted(run: _Run, one: Instruction) -> Results:
    """``atomicInc``: the last block finds what it may count up to."""
    _, target, _, most = one.operands
    return [(target, run.value(most) * np.uint32(run.are_last))]


def _met(run: _Run, one: Instruction) -> Results:
    """What a barrier makes of all threads' predicates."""
    if "OR" in one.modifiers:
        asked = (run.active & run.truth(one.operands[-1])).reshape(len(run.blocks), -1)
        run.registers[_MET] = np.repeat(asked.any(axis=1), asked.shape[1])
    return []


def _met_value(run: _Run, one: Instruction) -> Results:
    return [(one.operands[-1], run.truth(_MET))]


_MET = "P of a barrier"
_OPERATIONS: Mapping[str, Callable[[_Run, Instruction], Results | None]] = {
    **dict.fromkeys(("MOV", "LDC", "S2R", "S2UR", "CS2R", "R2UR"), _moved),
    **dict.fromkeys(("IADD3", "VIADD"), _added),
    **{"IMAD": _multiplied, "LEA": _scaled, "SHF": _shifted, "LOP3": _bits, "PLOP3": _logic},
    **{"ISETP": _compared, "SEL": _selected, "VIMNMX": _extreme, "PRMT": _permuted},
    **{"P2R": _packed, "R2P": _unpacked, "HFMA2": _constant_of_halves},
    **{"ATOMG": _counted, "BAR": _met, "B2R": _met_value},
}
"""What branches depend on."""
