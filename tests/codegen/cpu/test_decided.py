"""Conditions that are known where points are written out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import sized_of

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule


@pytest.mark.parametrize("type_", ["uint8", "int8", "int16", "uint32", "int64"])
def test_conditions_of_points_that_are_written_out_are_decided(type_: str) -> None:
    last = "255" if type_ == "uint8" else "-1"
    text = f"""def f({type_}(4, N) A) -> (O) {{
        O(i, n) = {type_}(i - 1) == {type_}({last}) || {type_}(i) % 2 == 1 && !(i < 2) ? A(i, n) * 3
        : i != 1 ? A(i, n) : {type_}(4 - i) where i in 0:4 }}"""
    array = np.arange(4 * 37).reshape(4, 37).astype(type_)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 16), register=(4, 0)),))
    check_cpu(sized_of(text, array), [array], options)
    source = emit_program(schedule(sized_of(text, array), options, host_cpu()), host_cpu()).text
    assert "br i1 true" not in source
    assert "br i1 false" not in source
    assert not re.search(r"icmp \w+ i\d+ -?\d+, -?\d", source)
