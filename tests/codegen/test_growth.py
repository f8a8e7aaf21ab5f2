"""What is done once, however many statements a def has: counted, not timed."""

from __future__ import annotations

import cProfile

import pytest
from nests import WIDE

from benchmarks.growth import elementwise, products
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cuda.emit import emit as cuda
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule import cpu, gpu
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer


class Written(list[str]):
    """Lines that are only added to."""

    def index(self, *_: object) -> int:
        raise AssertionError("lines are searched")

    def __contains__(self, _: object) -> bool:
        raise AssertionError("lines are searched")


def test_the_end_of_a_loop_does_not_search_for_its_beginning() -> None:
    b = Builder(lines=Written())
    for label in ("outer", "inner"):
        b.start(label)
    for loop in ("inner", "outer"):
        b.again_if(Val("%c", "i1"), loop, "out")
    inner, outer = (text for text in b.defined.values() if "distinct" in text)
    assert inner.count("!") == outer.count("!") + 1, "the innermost begins on a line of the cache"


def test_emission_takes_the_same_for_each_statement() -> None:
    counts = []
    for many in (8, 32):
        text = products(many)
        sized = infer(check(text.source)["f"], text.shapes)
        built = cpu.schedule(sized, MappingOptions("naive"), WIDE)
        with cProfile.Profile() as profile:
            emit_program(built, WIDE)
        counts.append(sum(entry.callcount for entry in profile.getstats()))
    assert counts[1] < 4.4 * counts[0]


def test_kernels_of_a_module_ask_its_tensors_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ir.Layout] = []
    near = cuda._near

    def noted(layout: ir.Layout) -> bool:
        asked.append(layout)
        return near(layout)

    monkeypatch.setattr(cuda, "_near", noted)
    text = products(6)
    sized = infer(check(text.source)["f"], text.shapes)
    program = gpu.schedule(sized, MappingOptions("naive"), H200)
    assert len(program.kernels) > 1
    cuda.emit_program(program, H200)
    assert len(asked) == len(program.tensors)


def test_the_tensors_of_a_def_are_listed_once() -> None:
    checked = check(elementwise(3).source)["f"]
    assert checked.tensors is checked.tensors
    assert list(checked.tensors) == ["A", "B", "T1", "T2", "T3"]
