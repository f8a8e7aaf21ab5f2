"""The C of random programs and of examples, compiled by this machine's compiler, against the
reference."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import check_equal, outputs_of, sized_of
from cpu_kernels import random_options
from strategies import Program, random_program

from tcl.codegen.compiler import compiler_for
from tcl.codegen.devices.plain_c import PLAIN_C
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef

Array = np.ndarray[Any, np.dtype[Any]]
COMPILER = shutil.which("gcc")
needs_a_compiler = pytest.mark.skipif(COMPILER is None, reason="needs gcc")


def source(sized: SizedDef, options: MappingOptions) -> str:
    compiler = compiler_for(PLAIN_C)
    return compiler.built(sized, options, compiler.source)


def run(
    sized: SizedDef, text: str, inputs: Sequence[Array], folder: Path
) -> tuple[int, list[Array]]:
    """What the function returns, and the outputs."""
    outputs = outputs_of(sized)
    (folder / "kernel.c").write_text(text)
    flags = "-std=gnu11 -O1 -fPIC -shared kernel.c -lm -o kernel.so"
    made = subprocess.run(
        [COMPILER or "gcc", *flags.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[:4000] + text
    (name,) = re.findall(r"^long (\w+)\(", text, re.MULTILINE)
    function = ctypes.CDLL(str(folder / "kernel.so"))[name]
    function.restype = ctypes.c_long
    return function(*(ctypes.c_void_p(a.ctypes.data) for a in (*inputs, *outputs))), outputs


def compare(program: Program, seed: int, folder: Path) -> str:
    """Compare the default and random options with the reference; what C lacks, if that is so."""
    sized = sized_of(program)
    inputs = [a.copy(order="C") for a in program.inputs(seed).values()]
    expected = outputs_of(sized)
    compile_reference(sized, jit=False)(inputs, expected)
    rng = random.Random(seed)
    for k, options in enumerate((DEFAULT, random_options(rng, sized, PLAIN_C))):
        own = folder / f"{seed}_{k}"
        own.mkdir()
        try:
            text = source(sized, options)
        except OptionsError as error:
            return str(error)
        result, actual = run(sized, text, inputs, own)
        assert result == 0
        check_equal(sized, actual, expected, f"C {options}\n{text}")
    return ""


@needs_a_compiler
@pytest.mark.parametrize("start", range(0, 100, 10))
def test_c_agrees_with_the_reference(start: int, tmp_path: Path) -> None:
    seeds = range(start, start + 10)
    refused = [compare(random_program(s, bfloat16=False), s, tmp_path) for s in seeds]
    assert refused.count("") >= 2, refused
