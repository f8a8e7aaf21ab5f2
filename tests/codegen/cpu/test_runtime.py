"""The runtime's C, and what is committed and written elsewhere of it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nests import ARM
from runtime_sources import SUPPORT, compile_c

from benchmarks import runtime_ir
from tcl.codegen.cpu import abi
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.runtime import structs
from tcl.codegen.cpu.runtime.library import REPLACED, SOURCES, ir_file, ir_text

NAMES = sorted(path.stem for path in SOURCES.glob("*.c"))
HOMES = {
    "entry": (structs.EntryStruct,),
    "arrays": (structs.PythonStruct, structs.TorchStruct),
    "torch": (structs.OperatorStruct,),
    "xla": (structs.HandlerStruct,),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_committed_is_what_the_source_says(name: str) -> None:
    """Else run ``python -m benchmarks.runtime_ir``."""
    assert ir_file(name).read_text("utf-8") == runtime_ir.compile_to_ir(name)


def _before_optimisation(name: str, architecture: str) -> str:
    """LLVM IR of a source, statement by statement, without what means the same everywhere: how
    narrow arguments are widened, attributes, and counting leading zeros of what is never 0."""
    text = runtime_ir.clang(name, architecture, "-std=gnu11", "-O0", "-g0", "-S", "-emit-llvm")
    text = re.sub(
        r" (signext|zeroext)\b|^(attributes|!\d+|; Function) .*\n", "", text, flags=re.MULTILINE
    )
    text = re.sub(r"(?<=, align )\d+|(?<=[#!])\d+", "", text)
    return runtime_ir.portable(re.sub(r"(@llvm\.ctlz\.\w+\(.*), i1 \w+", r"\1", text))


@pytest.mark.parametrize("name", NAMES)
def test_the_text_for_one_architecture_is_right_for_all(name: str) -> None:
    ours, *others = REPLACED
    text = _before_optimisation(name, ours)
    for other in others:
        replaced = text
        for old, new in REPLACED[other]:
            assert (old in text) == (name == "pool")
            replaced = replaced.replace(old, new)
        assert replaced == _before_optimisation(name, other)


@pytest.mark.parametrize("name", NAMES)
def test_llvm_compiles_the_text_for_other_machines(name: str) -> None:
    assert compile_object(ir_text(name, ARM.architecture), ARM)


def test_nothing_is_committed_that_has_no_source() -> None:
    found = {path.stem for path in (SOURCES / "ir").rglob("*.ll")}
    assert found == set(NAMES)


@pytest.mark.parametrize("name", HOMES)
def test_structs_are_the_same_in_python(name: str, tmp_path: Path) -> None:
    lines = [f'#include "{name}.c"']
    for struct in HOMES[name]:
        own = f"struct {struct.__name__.removesuffix('Struct').lower()}"
        lines.append(f'_Static_assert(sizeof({own}) == {ctypes.sizeof(struct)}, "size");')
        for field, *_ in struct._fields_:
            offset = getattr(struct, field).offset
            lines.append(f'_Static_assert(offsetof({own}, {field}) == {offset}, "{field}");')
    source = tmp_path / "layout.c"
    source.write_text("#include <stddef.h>\n" + "\n".join(lines) + "\n")
    compile_c(source, tmp_path / "layout.so")


def test_the_words_of_a_call_are_the_same_in_python(tmp_path: Path) -> None:
    fields = re.findall(r"(\w+);", (SOURCES / "call.h").read_text().split("struct call {")[1])
    places = dict(zip(fields, range(abi.WORDS), strict=True))
    expected = {
        "kernel": abi.KERNEL,
        "tensors": abi.TENSORS,
        "errors": abi.ERROR,
        "team": abi.TEAM,
        "threads": abi.THREADS,
        "clear": abi.CLEAR,
        "pool": abi.POOL,
        "alone": abi.OWN,
        "varies": abi.VARIES,
    }
    assert len(places) == abi.WORDS and places.items() >= expected.items()
    source = tmp_path / "call.c"
    source.write_text(
        f'#include <stddef.h>\n#include "call.h"\n_Static_assert(LINE == {abi.LINE}, "");\n'
        f'_Static_assert(PAGE == {abi.PAGE}, "");\n'
        f'_Static_assert(sizeof(struct error) == {abi.LINE}, "");\n'
        f'_Static_assert(offsetof(struct error, stop) == {8 * abi.STOP}, "");\n'
        f'_Static_assert(sizeof(struct call) == {8 * abi.WORDS}, "");\n'
    )
    compile_c(source, tmp_path / "call.so")


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_the_pool_is_clean_under_sanitizers(sanitizer: str, tmp_path: Path) -> None:
    compiler, program = shutil.which("cc"), tmp_path / "stress"
    if compiler is None:
        pytest.skip("needs a C compiler with sanitizers")
    command = [compiler, "-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizer}", "-pthread"]
    command += ["-fno-sanitize-recover=all", f"-I{SOURCES}", str(SUPPORT / "pool_stress.c")]
    built = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"this compiler has not what it takes: {built.stderr[-200:]}")
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr[-3000:]


def test_where_there_is_no_runtime_calls_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcl.codegen.cpu.runtime.thread_pool import _make

    monkeypatch.setattr(sys, "platform", "plan9")
    assert _make() is None
