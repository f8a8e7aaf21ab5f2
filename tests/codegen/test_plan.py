"""Plans: what every choice came to, and why; and how often passes run to find it out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from nests import MATMUL, sized
from nests import NARROW as CPU

from tcl.codegen.choose.cpu import presets as cpu_presets
from tcl.codegen.choose.gpu import contraction as gpu_contraction
from tcl.codegen.choose.gpu import predicted
from tcl.codegen.choose.gpu import presets as gpu_presets
from tcl.codegen.choose.gpu.nest_shape import Shape
from tcl.codegen.devices.gpu import H200, GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.options.nest_options import OPTIONS, NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.cpu.build import Build
from tcl.codegen.passes.cpu.prefetch import PrefetchOperands
from tcl.codegen.passes.cpu.register import Register
from tcl.codegen.passes.cpu.stage import Stage
from tcl.codegen.passes.cpu.stores import Stream
from tcl.codegen.passes.fuse import Fuse
from tcl.codegen.passes.gpu.bind import Bind
from tcl.codegen.passes.gpu.build_blocks import BuildBlocks
from tcl.codegen.passes.gpu.mma_panels import FeedTensorCores
from tcl.codegen.passes.gpu.stage_shared import StageShared
from tcl.codegen.passes.order import Order
from tcl.codegen.passes.split import Split
from tcl.codegen.passes.tile import Chunk, Tile
from tcl.codegen.passes.vectorize import Vectorize
from tcl.codegen.schedule import cpu, gpu
from tcl.codegen.schedule.plan import plan_text
from tcl.common.errors import NoNestError

LAYER = """float(M,K) A, float(K,N) B, float(N) b) -> (C) {
  C(m,n) +=! A(m,k) * B(k,n)
  C(m,n) = fmax(C(m,n) + b(n), 0.0)
}
"""
PASSES = (
    *(Chunk, Fuse, Tile, Order, Vectorize, Register, Stage, PrefetchOperands, Stream, Build),
    *(Split, Bind, StageShared, FeedTensorCores, BuildBlocks),
)


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pass ran, by nest."""
    found: Counter[str] = Counter()

    def counted(of: Any) -> Any:
        original = of.__call__

        def call(self: Any, program: ir.Program) -> ir.Program:
            which = (getattr(self, key, "") for key in ("nest", "level"))
            found[" ".join((of.__name__, *filter(None, which)))] += 1
            made: ir.Program = original(self, program)
            return made

        return call

    for each in PASSES:
        monkeypatch.setattr(each, "__call__", counted(each))
    return found


def never(*given: Any, **named: Any) -> Any:
    raise AssertionError("nothing was left open: no model should be asked")


def test_a_complete_candidate_for_a_cpu_has_every_pass_once(
    applied: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = sized(LAYER, (96, 128), (128, 160), (160,))
    made = cpu.plan(at, MappingOptions("mlp"), CPU)
    options = MappingOptions("mlp", merge=False)
    for position, each in enumerate(made.options.values()):
        options = options.with_nest(position, each)
    for model in ("grouping", "prefetching", "heuristic", "tiles_ahead"):
        monkeypatch.setattr(cpu_presets, model, never)
    applied.clear()
    again = cpu.plan(at, options, CPU)
    assert not applied
    assert again.options == made.options
    again.scheduled()
    names = ("Chunk", "Tile", "Order", "Vectorize", "Register", "Stage", "PrefetchOperands")
    expected = Counter(
        f"{name} {nest} {level}".strip()
        for nest in ("s0", "s1")
        for name in names
        for level in (("tile", "point") if name == "Order" else ("",))
    )
    expected += Counter(f"Fuse {n}" for n, o in made.options.items() if o.fuse)
    expected += Counter(f"Stream {n}" for n, o in made.options.items() if o.stream)
    assert applied == expected + Counter(["Build"])


def test_a_complete_candidate_for_a_gpu_has_every_pass_once(
    applied: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = sized(MATMUL, (64, 4096), (4096, 64))
    layouts = gpu_layouts(at)
    whole = gpu.plan(at, MappingOptions("mlp").split(), H200, layouts).options["s0"]
    options = MappingOptions("mlp", merge=False).with_nest(0, replace(whole, split=(0, 0, 8)))
    asked: list[str] = []
    contraction = gpu_contraction.contraction

    def noted(shape: Shape, device: GpuProfile) -> Any:
        asked.append(shape.nest.name)
        return contraction(shape, device)

    monkeypatch.setattr(gpu_presets, "contraction", noted)
    applied.clear()
    plan = gpu.plan(at, options, H200, layouts)
    assert asked == ["s0.whole"]  # which nobody can say anything about
    assert applied == {"Split s0": 1, "Chunk s0": 2, "Chunk s0.whole": 2}
    applied.clear()
    plan.scheduled()
    names = ("Chunk", "Tile", "Order tile", "Order point", "Bind", "StageShared", "FeedTensorCores")
    expected = Counter(
        " ".join((name.split()[0], nest, *name.split()[1:]))
        for nest in ("s0", "s0.whole")
        for name in names
    )
    assert applied == expected + Counter(["BuildBlocks"])


def test_models_are_asked_once_for_a_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ir.Nest] = []
    contraction = gpu_contraction.contraction

    def noted(shape: Shape, device: GpuProfile) -> Any:
        asked.append(shape.nest)
        return contraction(shape, device)

    monkeypatch.setattr(gpu_presets, "contraction", noted)
    gpu.plan(sized(LAYER, (64, 4096), (4096, 64), (64,)), MappingOptions("mlp"), H200)
    assert len(asked) == len({id(nest) for nest in asked}) > 0


def test_what_was_counted_to_choose_is_not_counted_again_to_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[ir.Program] = []
    counts_of = predicted.counts_of

    def noted(program: ir.Program, device: GpuProfile) -> Any:
        counted.append(program)
        return counts_of(program, device)

    for module in (gpu_contraction, gpu_presets):
        monkeypatch.setattr(module, "counts_of", noted)
    made = gpu.plan(sized(MATMUL, (64, 4096), (4096, 64)), MappingOptions("mlp"), H200)
    assert any(n.name.endswith(".whole") for n in made.program.nests), "it is split"
    assert len(counted) == 3, "three candidates of the product, of which one makes its parts"
    counted.clear()
    own = MappingOptions("mlp").with_nest(0, NestOptions(buffers=1))
    gpu.plan(sized(MATMUL, (64, 4096), (4096, 64)), own, H200)
    assert len(counted) == 4, "other options than those that were counted"


def test_every_choice_has_its_reason_on_a_cpu() -> None:
    at = sized(LAYER, (96, 128), (128, 160), (160,))
    options = MappingOptions("mlp").tile(0, 16).stream().nest(0).register(2, 2)
    plan = cpu.plan(at, options, CPU)
    product, after = plan.nests.values()
    assert product.reason("register") == "asked for this nest"
    assert product.reason("tile") == after.reason("tile") == "asked for all nests"
    assert product.reason("vectorize") == "preset mlp"
    assert product.reason("stream").startswith("left off: it is a reduction")
    assert after.reason("register") == "as s0"
    assert all(nest.options.complete_on("CPU") for nest in plan.nests.values())


def test_every_choice_has_its_reason_on_a_gpu() -> None:
    at = sized(LAYER, (64, 4096), (4096, 64), (64,))
    options = MappingOptions("mlp").fuse().nest(0).split(0, 0, 8)
    plan = gpu.plan(at, options, H200)
    parts, whole, after = plan.nests.values()
    assert list(plan.nests) == [n.name for n in plan.program.nests] == ["s0", "s0.whole", "s1"]
    assert parts.reason("split") == "done: into 8 parts, asked for this nest"
    assert whole.reason("split") == "reduces the parts of s0"
    assert parts.reason("fuse") == "left off: there is no nest before it"
    assert parts.reason("stage") == "preset mlp"
    assert after.reason("fuse") == "asked for all nests"
    assert plan.kernels(plan.scheduled()) == [[["s0"], ["s0.whole", "s1"]]]
    assert all(nest.options.complete_on("GPU") for nest in plan.nests.values())


AT = sized(LAYER, (96, 128), (128, 160), (160,))
START = MappingOptions("naive").vectorize(8)
SOMEWHERE = {
    "tile": START.tile(0, 0, 16),
    "order": START.tile(8, 8, 8).order(1, 0, 2),
    "inner_order": START.inner_order(2, 0, 1),
    "vectorize": START.vectorize(8, 2),
    "register": START.register(2, 2, 2),
    "stage": START.chunk(8).stage(-1, 1),
    "chunk_order": START.chunk(8, 8).chunk_order(1, 0),
    "fuse": START.chunk(8, 8).fuse(),
    "stream": START.stream(),
    "peel": START.peel(),
    "prefetch": START.prefetch(0, 64),
}
"""What one of two nests at least can have."""
NOWHERE = {
    "tile": (START.tile(0, 0, 0, 16), "it has 3 dimensions, but 4 were given"),
    "order": (START.order(1, 0, 2, 3), "it has 3 dimensions, but the order"),
    "inner_order": (START.inner_order(0), "it has 3 dimensions, but the order"),
    "vectorize": (START.vectorize(8, 3), "there is no dimension 3"),
    "register": (START.register(1, 1, 1, 4), "it has 3 dimensions, but 4 were given"),
    "stage": (START.stage(9, 9), "operand 0, A: there are 0 loops"),
    "chunk": (START.chunk(0, 0, 16), "it has 2 dimensions that are not reduced, but 3 were given"),
    "chunk_order": (START.chunk_order(0), "it has 3 dimensions, but the order"),
    "fuse": (START.fuse(), "it has no chunks"),
    "stream": (START.vectorize(1).stream(), "it is a reduction"),
    "peel": (START.vectorize(1).peel(), "it is a reduction"),
    "prefetch": (START.prefetch(0, 0, 0, 64), "it has 2 operands, but 4 were given"),
    "dot": (START.dot(0, 0, 2), "it does not sum products"),
    "mma": (START.mma(0, 1, 2), "has no matrix unit"),
}


@pytest.mark.parametrize("key", SOMEWHERE)
def test_what_is_asked_for_in_all_nests_is_done_where_it_can_be(key: str) -> None:
    plan = cpu.plan(AT, SOMEWHERE[key], CPU)
    plan.scheduled()
    value = getattr(SOMEWHERE[key].default, key)
    assert value in [getattr(nest.options, key) for nest in plan.nests.values()]


@pytest.mark.parametrize("key", NOWHERE)
def test_what_no_nest_can_have_is_refused_for_all_of_them(key: str) -> None:
    options, reason = NOWHERE[key]
    with pytest.raises(NoNestError, match=f"^{key}: nest s[01]: .*{reason}.*; no other"):
        cpu.plan(AT, options, CPU)
    # Each of them asks for something else.
    nothing = NestOptions(**{key: OPTIONS[key].kind.neutral})
    cpu.plan(AT, options.with_nest(0, nothing).with_nest(1, nothing), CPU).scheduled()


def test_nests_that_share_chunks_are_a_kernel() -> None:
    at = sized(LAYER, (96, 128), (128, 160), (160,))
    apart = cpu.plan(at, MappingOptions().chunk(8, 8), CPU)
    fused = cpu.plan(at, MappingOptions().chunk(8, 8).fuse(), CPU)
    assert apart.kernels(apart.scheduled()) == [[["s0"]], [["s1"]]]
    assert fused.kernels(fused.scheduled()) == [[["s0", "s1"]]]


def test_parts_and_what_adds_them_up_are_a_kernel() -> None:
    """Where the last block of those that make the parts does that."""
    at = sized(LAYER, (16, 8192), (8192, 64), (64,))
    plan = gpu.plan(at, MappingOptions("mlp"), H200)
    built = plan.scheduled()
    assert plan.kernels(built) == [[["s0"], ["s0.whole", "s1"]]]
    text = plan_text(plan, built)
    assert "nest s0.whole, by the last blocks of s0\n" in text
    assert "nest s1, in the chunks of s0.whole\n" in text


def test_few_operations_wake_no_threads() -> None:
    two = replace(CPU, threads=2)
    small, large = sized(MATMUL, (2, 2), (2, 2)), sized(MATMUL, (512, 512), (512, 512))
    mlp = MappingOptions("mlp")
    assert cpu.plan(small, mlp, two, all_threads=False).target.threads == 1
    assert cpu.plan(large, mlp, two, all_threads=False).target.threads == 2
    assert cpu.plan(small, mlp, two).target == two
