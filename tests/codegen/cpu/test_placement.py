"""Arrays that begin anywhere: results are those of arrays on boundaries, nothing is touched beside
them, and vectors that are written lie in one line of the cache where a nest asks for that."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import (
    Array,
    accepted,
    fenced,
    plain,
    poisoned,
    random_options,
    run,
    sized_of,
)
from nests import ARM, NARROW, WIDE
from sampling import swept
from strategies import random_program

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import assembly
from tcl.codegen.devices.cpu import LINE, CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.printer import show
from tcl.codegen.loopir.walk import statements
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.schedule.cpu import schedule
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

SCALE = "def f({0}(M, N) A, {0}(N) B) -> (O) {{ O(m, n) = A(m, n) + B(n) }}"
TYPES = ["float", "double", "int8", "uint16", "int64", "half", "uint8"]
AVX512 = "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd,+f16c"


def moved(values: Array, past: int, *, after: bool) -> Array:
    """The values in memory that ends at a forbidden page, or begins ``past`` bytes after one."""
    size = values.nbytes
    memory = fenced((size,), np.uint8, True) if after else fenced((past + size,), np.uint8, False)
    found: Array = memory[memory.size - size :].view(values.dtype).reshape(values.shape)
    found[...] = values
    return found


def check_moved(sized: SizedDef, options: MappingOptions, inputs: list[Array], rng: Random) -> None:
    """A kernel on arrays that begin anywhere, against the reference."""
    expected = poisoned(sized)
    with np.errstate(all="ignore"):
        compile_reference(sized)(inputs, expected)
    strides = {t.name: a.strides for t, a in zip(sized.checked.inputs, inputs, strict=True)}
    kernel = compile_cpu(sized, options, strides=strides)
    for after in (False, True):

        def anywhere(array: Array, after: bool = after) -> Array:
            if not array.flags.c_contiguous or not array.size:
                return array
            return moved(array, rng.randrange(0, LINE, array.itemsize), after=after)

        outputs = [anywhere(a) for a in poisoned(sized)]
        kernel([anywhere(a) for a in inputs], outputs)
        for out, want in zip(outputs, expected, strict=True):
            exact = out.dtype.kind in "biu"
            rtol = 0 if exact else {2: 5e-2, 4: 1e-4}.get(out.itemsize, 1e-9)
            np.testing.assert_allclose(plain(out), plain(want), rtol=rtol, atol=rtol * 10)


def with_boundaries(sized: SizedDef, options: MappingOptions) -> MappingOptions:
    """The options with loops that begin on boundaries in all nests that can have some."""
    for position in range(len(sized.statements)):
        if accepted(sized, options.nest(position).peel(), host_cpu()):
            options = options.nest(position).peel()
    return options


def random_case(seed: int) -> tuple[SizedDef, MappingOptions, list[Array], Random] | None:
    program, rng = random_program(seed, max_statements=3), Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sized = infer(check(program.source)[program.entry], program.shapes)
    arrays = program.inputs(seed)
    inputs = [arrays[t.name] for t in sized.checked.inputs]
    if not all(program.outputs[t.name].exact for t in sized.checked.outputs):
        return None
    return sized, with_boundaries(sized, random_options(rng, sized)), inputs, rng


@pytest.mark.parametrize("first", swept(range(0, 60, 20), range(1000, 3000, 20)))
def test_random_programs_anywhere(first: int) -> None:
    for seed in range(first, first + 20):
        if (case := random_case(seed)) is not None:
            sized, options, inputs, rng = case
            check_moved(sized, options, inputs, rng)


ROWWISE = {
    "one": "O(m, n) = A(m, n) * 2 + B(n)",
    "guarded": "O(m, n) = n > 2 ? A(m, n - 1) : B(n)",
    "in place": "O(m, n) = A(m, n) S(m) +=! A(m, n) O(m, n) = O(m, n) * B(n) + S(m)",
    "with another": "O(m, n) = A(m, n) + 1 P(m, n) = O(m, n) * B(n)",
    "across": "O(m, n) = A(m, n) + 1 P(n, m) = A(m, n) * B(n)",
    "gathered": "O(m, n) = A(m, int32(B(n)) % 4)",
}


def rowwise(name: str, type_: str, rows: int, columns: int) -> tuple[SizedDef, list[Array]]:
    body = ROWWISE[name]
    names = [n for n in "OSP" if f"{n}(" in body]
    text = f"def f({type_}(M, N) A, {type_}(N) B) -> ({', '.join(names)}) {{ {body} }}"
    rng = np.random.default_rng(columns)
    dtype = numpy_dtype(sized_of(text, np.ones((2, 9)), np.ones(9)).checked.inputs[0].type)
    inputs = [rng.integers(0, 4, s).astype(dtype) for s in ((rows, columns), columns)]
    return sized_of(text, *inputs), inputs


def random_rowwise(name: str, rng: Random) -> tuple[SizedDef, MappingOptions, list[Array]]:
    type_ = rng.choice(["float", "double", "int32", "int8", "int64"])
    sized, inputs = rowwise(name, type_, rng.randint(1, 5), rng.choice([33, 40, 100, 64, 129]))
    chosen = MappingOptions()
    for position in range(len(sized.statements)):
        width = rng.choice([2, 4, 8, 16])
        chosen = chosen.nest(position).vectorize(width, 1)
        one = chosen.nest(position)
        changes = (
            partial(one.register, rng.choice([1, 2]), rng.choice([1, 2, 3])),
            partial(one.tile, rng.choice([0, 2]), rng.choice([0, 32, 48])),
            partial(one.chunk, 0, rng.choice([0, 64])),
            one.peel,
            one.stream,
        )
        for change in changes:
            tried = change()
            own = tried.own(position).over(chosen.own(position))
            tried = chosen.with_nest(position, own)
            if accepted(sized, tried, host_cpu()):
                chosen = tried
    return sized, chosen, inputs


@pytest.mark.parametrize("name", ROWWISE)
@pytest.mark.parametrize("seed", swept([""], range(120)))
def test_loops_that_begin_on_boundaries(name: str, seed: object) -> None:
    rng = Random(f"{name}{seed}")
    peeled = 0
    for _ in range(8):
        sized, options, inputs = random_rowwise(name, rng)
        peeled += "at a multiple of" in show(schedule(sized, options, host_cpu()))
        check_moved(sized, options, inputs, rng)
    assert seed or peeled > 3  # else this shows nothing


@pytest.mark.parametrize("unchecked", [False, True])
def test_what_was_overwritten_is_no_subscript_at_the_ends(unchecked: bool) -> None:
    """Points that vectors have overwritten are computed once more with those at the ends: what is
    there now may be no index any longer."""
    text = "def f(int32(N) I, int32(N) B) -> (A, S) { A(n) = I(n) S +=! I(n) A(n) = B(A(n)) }"
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 45, 45).astype(np.int32)
    values = rng.integers(1 << 29, 1 << 30, 45).astype(np.int32)
    sized = sized_of(text, indices, values)
    options = MappingOptions().nest(2).vectorize(8).nest(2).peel()
    kernel = compile_cpu(sized, options, unchecked=unchecked)
    for past in range(0, LINE, 4):
        memory = np.empty(45 * 4 + 2 * LINE, np.uint8)
        first = -memory.ctypes.data % LINE + past
        found = memory[first : first + 45 * 4].view(np.int32)
        kernel([indices, values], [found, np.empty((), np.int32)])
        np.testing.assert_array_equal(found, values[indices])


@pytest.mark.parametrize("type_", TYPES)
def test_every_place_of_every_type(type_: str) -> None:
    rng = np.random.default_rng(3)
    sized = sized_of(SCALE.format(type_), np.zeros((3, 83)), np.zeros(83))
    dtype = numpy_dtype(sized.checked.outputs[0].type)
    a, b = (rng.integers(0, 2, s).astype(dtype) for s in ((3, 83), 83))
    (expected,) = run(SCALE.format(type_), a, b)
    for width, stream in ((16, True), (32, False), (64, True)):
        options = MappingOptions().vectorize(max(2, width // dtype.itemsize), 1)
        kernel = compile_cpu(sized, options.nest(0).peel().nest(0).stream(stream))
        assert ("!nontemporal" in kernel.llvm) == stream
        for past in range(0, LINE, dtype.itemsize):
            memory = np.full(3 * 83 * dtype.itemsize + 3 * LINE, 77, np.uint8)
            first = -memory.ctypes.data % LINE + LINE + past
            out = memory[first : first + expected.nbytes].view(dtype).reshape(expected.shape)
            kernel([a, b], [out])
            np.testing.assert_array_equal(out, expected)
            memory[first : first + expected.nbytes] = 77
            assert (memory == 77).all()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("O(m) +=! A(m, n)", MappingOptions().vectorize(8, 0), "is a reduction"),
        ("O(m, n) = A(m, n)", MappingOptions(), "without lanes"),
        ("O(m, n) = A(m, n)", MappingOptions().vectorize(8, 0), "lanes along .*m are not adjacent"),
        (
            "O(m, n) = A(m, n)",
            MappingOptions().vectorize(32),
            "20 points .* are too few; at least 32 are",
        ),
        ("O(m, n) = A(m, n)", MappingOptions().vectorize(4).tile(0, 6), "too few"),
        ("O(m, n) = A(m, n)", MappingOptions().vectorize(8).chunk(0, 18), "2 points .* too few"),
        ("O(m, n) = A(m, n)", MappingOptions().vectorize(8).stage(0), "operands are copied"),
    ],
)
def test_what_cannot_begin_on_a_boundary_is_refused(
    text: str, options: MappingOptions, words: str
) -> None:
    sized = sized_of(f"def f(float(M, N) A) -> (O) {{ {text} }}", np.zeros((18, 20)))
    for asked in (options.nest(0).peel(), options.peel()):
        with pytest.raises(OptionsError, match=f"peel: nest s0: .*{words}"):
            schedule(sized, asked, WIDE)


def test_a_nest_that_was_asked_for_it_has_loops_of_its_own() -> None:
    """Fused with another one it would begin where that one does."""
    text = "def f(float(N) A) -> (O, P) { O(n) = A(n) * 2 P(n) = O(n) + 1 }"
    sized = sized_of(text, np.ones(100, np.float32))
    options = MappingOptions().vectorize(8)
    fused = schedule(sized, options, host_cpu())
    assert len(fused.kernels) == 1
    shown = show(schedule(sized, options.nest(1).peel(), host_cpu()))
    assert "at a multiple of" in shown


def test_rows_that_differ_begin_on_boundaries_of_their_own() -> None:
    """A loop outside of others begins on a boundary where all of their vectors then do."""
    options = MappingOptions().vectorize(4, 1).tile(0, 32).inner_order(1, 0).nest(0).peel()

    def where(columns: int) -> list[str]:
        sized = sized_of(SCALE.format("float"), np.zeros((5, columns)), np.zeros(columns))
        body = schedule(sized, options, WIDE).kernels[0].body
        loops = [s.loop for s in statements(body) if isinstance(s, ir.For)]
        return [x.fold.level for x in loops if x.alignment]

    assert where(64) == ["tile"]
    with pytest.raises(OptionsError, match="is not a multiple of 16 bytes"):
        where(65)


def _streamed(device: CpuProfile, columns: int) -> str:
    text = SCALE.format("float")
    sized = sized_of(text, np.zeros((4096, columns)), np.zeros(columns))
    options = MappingOptions("mlp")
    program = schedule(sized, options, device)
    return assembly(emit_program(program, device).text, device)


def test_whole_lines_go_past_the_caches_of_wide_machines() -> None:
    """A vector of 64 bytes that is not on a line would be written in two: none is."""
    wide = replace(WIDE, name="x86-64-v4", features=AVX512)
    for columns in (4096, 4099):
        asm = _streamed(wide, columns)
        past = re.findall(r"\bmovnt\w*|\bvmovnt\w+\s+%?(\wmm)", asm)
        assert past and set(past) == {"zmm"}  # no pieces of 16 bytes
        # Nor are the ends stored under masks, which wait for what is on its way past the caches.
        assert not re.search(r"\bv?mov\w+\s+%\wmm\d+, \S*\(\S*\) *\{%k\d\}", asm)
    narrow = replace(NARROW, name="x86-64-v3", features="+avx,+avx2,+fma")
    assert set(re.findall(r"vmovnt\w+\s+%?(\wmm)", _streamed(narrow, 4099))) == {"ymm"}


@pytest.mark.parametrize(("device", "masks"), [(NARROW, False), (ARM, False), (WIDE, True)])
def test_ends_are_written_without_masks_where_these_are_slow(
    device: CpuProfile, masks: bool
) -> None:
    device = replace(device, features=AVX512 if masks else "")
    sized = sized_of(SCALE.format("float"), np.zeros((4, 99)), np.zeros(99))
    program = schedule(sized, MappingOptions().vectorize(4).nest(0).peel(), device)
    text = emit_program(program, device).text
    assert ("llvm.masked.store" in text) is masks
    # In pieces, the first ones and the last ones: a call would empty the registers.
    pieces = set(re.findall(r"load (i\d+), .* align 1$", text, re.MULTILINE))
    assert pieces == (set() if masks else {"i64", "i32"})
    assert "llvm.memcpy" not in text


@pytest.mark.parametrize(("features", "asked"), [("+sse4a", True), ("", False)])
def test_ends_of_rows_are_asked_for_where_that_turns_no_streamer(
    features: str, asked: bool
) -> None:
    device = replace(WIDE, features=AVX512 + "," + features)
    sized = sized_of(SCALE.format("float"), np.zeros((4, 999)), np.zeros(999))
    program = schedule(sized, MappingOptions().vectorize(16).nest(0).peel(), device)
    assert ("llvm.prefetch" in emit_program(program, device).text) is asked


def _most_stored_after_reads(columns: int, formula: str = "A(m, n) + B(n)") -> int:
    """How many vectors are stored at most before another one is read."""
    text = f"def f(float(M, N) A, float(N) B) -> (O) {{ O(m, n) = {formula} }}"
    sized = sized_of(text, np.zeros((3, columns)), np.zeros(columns))
    options = MappingOptions().vectorize(8, 1).nest(0).peel()
    built = emit_program(schedule(sized, options, WIDE), WIDE).text
    order = re.findall(r"(load|store) <8 x float>", built)
    return max(map(len, re.findall("s+", "".join(x[0] for x in order))))


def test_several_vectors_are_read_before_any_is_stored() -> None:
    """A load that looks like one of what was stored just before waits for that."""
    assert _most_stored_after_reads(1024) == 4
    assert _most_stored_after_reads(1024, "(A(m, n) - B(n)) * rsqrt(B(0))") == 4
    # Short rows, and calls for each element, would be much code for little.
    assert _most_stored_after_reads(64) < 4
    assert _most_stored_after_reads(1024, "exp(A(m, n) + B(n))") < 4


@pytest.mark.parametrize("name", ROWWISE)
@pytest.mark.parametrize("seed", swept(["", 1], range(2, 60)))
def test_rows_of_many_vectors(name: str, seed: object) -> None:
    rng = Random(f"many {name}{seed}")
    type_ = rng.choice(["float", "double", "int32", "int8", "int64"])
    for columns in (256, rng.randint(257, 300), rng.randint(300, 700)):
        sized, inputs = rowwise(name, type_, 3, columns)
        options = MappingOptions()
        for position in range(len(sized.statements)):
            options = options.nest(position).vectorize(rng.choice([4, 8, 16, 64]), 1)
            if rng.randint(0, 1):
                options = options.nest(position).stream()
        if accepted(sized, options, host_cpu()):
            check_moved(sized, with_boundaries(sized, options), inputs, rng)
