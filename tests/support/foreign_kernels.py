"""Kernels compiled for another machine, linked into a program, and run by QEMU.

Debian and its kin have what this takes as ``qemu-user`` and ``gcc-aarch64-linux-gnu``.
"""

from __future__ import annotations

import math
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from machine_cases import Array, Case, Work, work

from tcl.codegen.cpu import abi
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.cpu.runtime.library import SOURCES, ir_text
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.grammar.ranges.sized import SizedDef

EMULATOR, COMPILER = "qemu-aarch64", "aarch64-linux-gnu-gcc"
DRIVER = Path(__file__).with_name("foreign_driver.c")
_THREADS = 4


def why_not() -> str | None:
    """Why no program for AArch64 can be run here; None if one can."""
    missing = [name for name in (EMULATOR, COMPILER) if shutil.which(name) is None]
    return f"running AArch64 code needs {' and '.join(missing)}" if missing else None


@dataclass(frozen=True)
class Built:
    """A kernel for some device."""

    text: str
    """LLVM IR."""
    code: KernelCode


def build(
    sized: SizedDef, options: MappingOptions, device: CpuProfile, number: int | None = None
) -> Built:
    """The kernel of a def. Its symbols end in ``number``, for many to be in one program."""
    made = plan(sized, options, device, cpu_layouts(sized, None), all_threads=True)
    program = made.scheduled()
    source = emit_program(program, made.target)
    text = source.text
    if number is not None:
        text = re.sub(rf"@({abi.ENTRY}|{abi.ALONE})\b", rf"@\1_{number}", text)
    code = kernel_code(program, source, compile_object(text, made.target), made.target)
    return Built(text, code)


@dataclass(frozen=True)
class Answer:
    """What a call gave."""

    result: int
    failed: tuple[int, int]
    """Site and value of the check that failed."""
    intact: bool
    """Whether nothing was written around the tensors."""
    outputs: list[Array]


class Program:
    """Cases as a program for a device, in a folder."""

    def __init__(self, cases: Sequence[Case], device: CpuProfile, folder: Path) -> None:
        self.cases = cases
        self.built = [
            build(work(c).sized, c.options, replace(device, threads=c.threads), k)
            for k, c in enumerate(cases)
        ]
        runtime = ("pool", "entry")
        texts = {name: ir_text(name, device.architecture) for name in runtime}
        objects = {name: compile_object(text, device) for name, text in texts.items()}
        objects |= {f"kernel{k}": each.code.object_code for k, each in enumerate(self.built)}
        for name, code in objects.items():
            (folder / f"{name}.o").write_bytes(code)
        (folder / "kernels.h").write_text(self._header())
        self.path = folder / "program"
        command = [COMPILER, "-O1", "-static", "-no-pie", "-pthread", f"-I{folder}"]
        command += [
            f"-I{SOURCES}",
            str(DRIVER),
            *(str(folder / f"{name}.o") for name in objects),
            "-lm",
            "-o",
            str(self.path),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def _header(self) -> str:
        many = range(len(self.cases))
        lines = [
            f"extern Kernel {', '.join(f'{abi.ENTRY}_{k}' for k in many)};",
            f"extern Alone {', '.join(f'{abi.ALONE}_{k}' for k in many)};",
            f"static Kernel *const KERNELS[] = {{{', '.join(f'{abi.ENTRY}_{k}' for k in many)}}};",
            f"static Alone *const ALONES[] = {{{', '.join(f'{abi.ALONE}_{k}' for k in many)}}};",
            f"enum {{ COUNT = {len(many)}, MOST_THREADS = {_THREADS} }};",
        ]
        return "\n".join(lines) + "\n"

    def run(self, cpu: str, calls: Sequence[tuple[int, Work]]) -> list[Answer]:
        """Calls of kernels by number, on QEMU's model of this name. Fails with what QEMU said where
        it did not answer all."""
        given = b"".join([struct.pack("<q", len(calls)), *(self._call(*c) for c in calls)])
        done = subprocess.run(
            [EMULATOR, "-cpu", cpu, str(self.path)], input=given, capture_output=True, timeout=300
        )
        answers, rest = [], done.stdout
        for number, what in calls:
            size = 32 + sum(e.nbytes for e in what.expected)
            size += sum(self._scratch(number))
            assert len(rest) >= size, f"{self.cases[number].name}: {done.stderr.decode()}"
            answers.append(_answer(rest[:size], what))
            rest = rest[size:]
        assert done.returncode == 0 and not rest, done.stderr.decode()
        return answers

    def _scratch(self, number: int) -> list[int]:
        """Bytes of what the kernel needs besides its arguments."""
        code = self.built[number].code
        sizes = [math.prod(s) * np.dtype(dtype).itemsize for s, dtype, _ in code.scratch]
        own = [private for *_, private in code.scratch]
        return [
            abi.movable(code.threads * abi.apart(size) if private else size)
            for size, private in zip(sizes, own, strict=True)
        ]

    def _call(self, number: int, what: Work) -> bytes:
        code = self.built[number].code
        sizes = [*(e.nbytes for e in what.expected), *self._scratch(number)]
        head = (number, code.threads, abi.team_bytes(code.regions), len(what.inputs) + len(sizes))
        parts = [struct.pack("<4q", *head)]
        for array in what.inputs:
            parts += [struct.pack("<2q", array.nbytes, 1), np.ascontiguousarray(array).tobytes()]
        return b"".join([*parts, *(struct.pack("<2q", size, 0) for size in sizes)])


def _answer(data: bytes, what: Work) -> Answer:
    result, site, value, intact = struct.unpack_from("<4q", data)
    at, outputs = 32, []
    for expected in what.expected:
        part = np.frombuffer(data[at : at + expected.nbytes], expected.dtype)
        outputs.append(part.reshape(expected.shape))
        at += expected.nbytes
    return Answer(result, (site, value), bool(intact), outputs)


def undefined(object_code: bytes) -> set[str]:
    """The symbols that an ELF64 object needs from elsewhere."""
    (table,) = struct.unpack_from("<Q", object_code, 40)
    entry, count, _ = struct.unpack_from("<3H", object_code, 58)
    heads = [struct.unpack_from("<2I4Q2I2Q", object_code, table + k * entry) for k in range(count)]
    found = set()
    for _, kind, _, _, offset, size, link, _, _, each in heads:
        if kind != 2:  # SHT_SYMTAB
            continue
        names = heads[link][4]
        for at in range(offset + each, offset + size, each):
            name, _, _, section = struct.unpack_from("<IBBH", object_code, at)
            if section == 0:
                end = object_code.index(b"\0", names + name)
                found.add(object_code[names + name : end].decode())
    return found


def declared(text: str) -> set[str]:
    """The functions that LLVM IR names and does not define, intrinsics apart."""
    names = set(re.findall(r"^declare [^@]*@([\w.]+)", text, re.MULTILINE))
    return {n for n in names if not n.startswith("llvm.")}
