"""Programs in the original's style: layers, compiled as its programs do it, on torch's CPU tensors.

Each changes nothing but the import: values are compared with torch's.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from formulations import FORMULATIONS
from places import EXAMPLES

import tcl
import tcl.tensor_comprehensions as tc
import tcl.tensor_comprehensions.tclib as tclib
from examples import definitions
from tcl.arrays.annotations import read_annotations
from tcl.arrays.random_inputs import random_inputs

ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"
ADD_SUB = f"""
{ADD}
def sub(float(N) A, float(N) B) -> (C) {{ C(i) = A(i) - B(i) }}
"""
MATMUL = "def matmul(float(M,N) A, float(N,K) B) -> (C) { C(m, k) +=! A(m, r_n) * B(r_n, k) }"


pytestmark = pytest.mark.usefixtures("quiet")


def close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert type(actual) is torch.Tensor
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --- compiling ---


def test_an_executor_writes_into_outputs() -> None:
    A, B = torch.randn(100), torch.randn(100)
    add = tc.compile(ADD, "add", "naive", A, B)
    tc.assert_almost_equal(add(A, B), torch.add(A, B), A, B)
    C = torch.zeros(100)
    assert add(A, B, outputs=(C,)) is C
    tc.assert_almost_equal(C, A + B, A, B)
    C.zero_()
    add(A, B, outputs=(C,), unchecked=True)
    tc.assert_almost_equal(C, A + B, A, B)


def test_implicit_compilation_of_two_defs() -> None:
    T = tc.define(ADD_SUB, tc.make_naive_options_factory())
    A, B = torch.randn(100), torch.randn(100)
    tc.assert_almost_equal(T.add(A, B), torch.add(A, B), A, B)
    tc.assert_almost_equal(T.sub(A, B), A - B, A, B)
    tc.assert_almost_equal(T("sub", A, B, unchecked=True), A - B, A, B)


def test_a_factory_of_the_program_chooses_by_entry_point_and_sizes() -> None:
    asked = []

    def generate(tc_str: str, entry_point: str, *inputs: torch.Tensor) -> tc.MappingOptions:
        asked.append((entry_point, [tuple(i.size()) for i in inputs], tc_str == ADD_SUB))
        return tc.MappingOptions("naive").tile([32] if entry_point == "add" else [8])

    T = tc.define(tc=ADD_SUB, mapping_options_factory=generate)
    for size in (100, 100, 50):
        A, B = torch.randn(size), torch.randn(size)
        close(T.add(A, B), A + B)
    close(T.sub(A, B), A - B)
    expected = [("add", 100), ("add", 50), ("sub", 50)]
    assert asked == [(name, [(size,), (size,)], True) for name, size in expected]


def test_tensors_of_other_strides_are_compiled_for() -> None:
    asked = []

    def generate(tc_str: str, entry_point: str, *inputs: torch.Tensor) -> tc.MappingOptions:
        asked.append([i.stride() for i in inputs])
        return tc.MappingOptions("naive")

    T = tc.define(MATMUL, generate)
    A, B = torch.randn(7, 5), torch.randn(7, 6)
    close(T.matmul(A.t(), B), A.t() @ B)
    close(T.matmul(A.t().contiguous(), B), A.t() @ B)
    close(T.matmul(A.t(), B), A.t() @ B)
    assert asked == [[(1, 5), (6, 1)], [(7, 1), (6, 1)]]


def test_options_of_every_kind_are_chained() -> None:
    options = (
        tc.MappingOptions("naive")
        .useSharedMemory(True)
        .usePrivateMemory(True)
        .unrollCopyShared(False)
        .useReadOnlyCache(True)
        .maxSharedMemory(32768)
        .mapToBlocks([256, 8])
        .mapToThreads([4, 16, 4])
        .tile([2, 8, 64, 128])
        .unroll(128)
        .fixParametersBeforeScheduling(False)
        .matchLibraryCalls(True)
        .scheduleFusionStrategy("Max")
        .outerScheduleFusionStrategy("Preserve3Coincident")
        .intraTileScheduleFusionStrategy("Min")
    )
    A, B = torch.randn(30, 40), torch.randn(40, 50)
    C = tc.compile(MATMUL, "matmul", options, A, B)(A, B)
    tc.assert_almost_equal(C, A @ B, A, B, operations=40)


def test_options_are_set_by_statements() -> None:
    options = tc.MappingOptions("naive")
    options.tile([2, 8])
    options.mapToThreads([32])
    options.outerScheduleFusionStrategy("Min")
    assert str(options) == str(tc.MappingOptions("naive").tile(2, 8).scheduleFusionStrategy("Min"))
    A, B = torch.randn(9, 10), torch.randn(10, 11)
    close(tc.compile(MATMUL, "matmul", options, A, B)(A, B), A @ B)


# --- the lower layer ---


def test_the_lower_layer_compiles_and_runs() -> None:
    A, B = torch.randn(3, 4), torch.randn(4, 5)
    executor = tclib.compile(MATMUL, "matmul", (A, B), tc.MappingOptions("naive"))
    C = executor.run((A, B), ())
    tc.assert_almost_equal(C, torch.mm(A, B), A, B, operations=4)
    assert executor.run((A, B), (C,)) is C
    assert executor.unchecked_run((A, B), (C,)) is C
    tc.assert_almost_equal(C, torch.mm(A, B), A, B, operations=4)
    close(executor.run((A, B)), A @ B)
    close(executor.unchecked_run((A, B)), A @ B)
    assert type(executor.profile_kernel((A, B), ())) is int


def test_inputs_that_require_grad_are_run_without_recording() -> None:
    A, B = torch.randn(3, 4, requires_grad=True), torch.nn.Parameter(torch.randn(4, 5))
    executor = tclib.compile(MATMUL, "matmul", (A, B), tc.MappingOptions("naive"))
    C = executor.run((A, B))
    assert not C.requires_grad
    tc.assert_almost_equal(C, torch.mm(A, B), A, B, operations=4)


def test_a_compilation_cache() -> None:
    A, B = torch.randn(30, 40), torch.randn(40, 50)
    cache = tclib.CompilationCache(MATMUL)
    assert not cache.is_compiled("matmul", (A, B))
    with pytest.raises(RuntimeError, match="is not compiled for inputs of shapes"):
        cache.run("matmul", (A, B))
    cache.compile("matmul", (A, B), tc.MappingOptions("naive"))
    assert cache.is_compiled("matmul", (A, B))
    assert not cache.is_compiled("matmul", (B, A))
    close(cache.run("matmul", (A, B)), A @ B)
    close(cache.unchecked_run("matmul", (A, B), ()), A @ B)
    (C,) = cache.alloc_outputs("matmul", (A, B))
    assert (C.shape, C.dtype) == ((30, 50), torch.float32)
    assert cache.run("matmul", (A, B), (C,)) is C
    close(C, A @ B)
    cache.compile("matmul", (A, B), tc.MappingOptions("naive").tile([8, 8]))
    close(cache.run(entryPoint="matmul", inputs=(A, B), outputs=()), A @ B)


def test_a_def_that_adds_to_its_output() -> None:
    text = """
    def count(int32(N) I, float(N) W) -> (H) { H(k) += I(i) == k ? W(i) : 0 where k in 0:4 }
    """
    I, W = torch.randint(4, (20,), dtype=torch.int32), torch.rand(20)
    cache = tclib.CompilationCache(text)
    (H,) = cache.alloc_outputs("count", (I, W))
    H.fill_(1.0)
    cache.compile("count", (I, W), "naive")
    cache.run("count", (I, W), (H,))
    close(H, 1 + torch.bincount(I, weights=W, minlength=4).float())


def test_defs_are_listed() -> None:
    assert sorted(tclib.parse_defs(ADD_SUB)) == ["add", "sub"]


# --- layers ---


def test_pooling_by_string_substitution() -> None:
    text = """
    def avgpool(float(B, C, H, W) input) -> (output) {
        output(b, c, h, w) +=!
            input(b, c, h * <sh> + kh, w * <sw> + kw) / (<kH> * <kW>)
            where kh in 0:<kH>, kw in 0:<kW>
    }
    """
    for name, value in (("sh", 1), ("sw", 1), ("kH", 2), ("kW", 2)):
        text = re.sub(f"<{name}>", str(value), text)
    T = tc.define(text, tc.make_naive_options_factory())
    inp = torch.randn(1, 2, 4, 4)
    ref = torch.nn.AvgPool2d(2, stride=1).forward(inp)
    tc.assert_almost_equal(ref, T.avgpool(inp), inp, operations=4)


def test_strided_pooling_by_format() -> None:
    sH, sW, kH, kW = 2, 2, 3, 3
    text = f"""
    def maxpool(float(B, C, H, W) input) -> (output) {{
        output(b, c, h, w) max=! input(b, c, h * {sH} + kh, w * {sW} + kw)
            where kh in 0:{kH}, kw in 0:{kW}
    }}
    """
    T = tc.define(text, tc.make_naive_options_factory())
    inp = torch.randn(2, 3, 9, 9)
    close(T.maxpool(inp), F.max_pool2d(inp, 3, stride=2))


LAYERS = [
    ("layernorm", "layernorm_sequence"),
    ("group_normalization", "group_normalization_single"),
    ("convolution", "convolution_strided"),
    ("group_convolution", "group_convolution"),
    ("masked_convolution", "masked_convolution"),
    ("nearest_code", "nearest_codes"),
    ("batch_matmul", "batch_matmul"),
    ("kronecker", "kronecker3"),
    ("softmax", "softmax"),
    ("lut", "two_lut"),
    ("mlp3", "mlp3"),
    *(("layers", name) for name in ("cosine_similarity", "tensordot", "sigmoid", "cast", "stack")),
]


@pytest.mark.parametrize(("file", "name"), LAYERS)
def test_layers_that_the_original_was_shown_with(file: str, name: str) -> None:
    checked = definitions(file)[name]
    sizes = dict(read_annotations(checked).sizes["test"])
    arrays = random_inputs(checked, sizes)
    T = tc.define((EXAMPLES / f"{file}.tc").read_text("utf-8"), tc.make_naive_options_factory())
    found = getattr(T, name)(*map(torch.from_numpy, arrays))
    inputs = dict(zip((t.name for t in checked.inputs), arrays, strict=True))
    expected = FORMULATIONS[file, name](inputs, sizes)
    for output, each in zip(
        checked.outputs, found if isinstance(found, tuple) else (found,), strict=True
    ):
        close(each, torch.as_tensor(expected[output.name]).to(each.dtype), 1e-4)


GROUP_NORM = """
def moments(float(N, K) I) -> (mean, var) {
    # var = E(x^2) - mean^2
    mean(n) +=! I(n, r_k)
     var(n) +=! I(n, r_k) * I(n, r_k)
    mean(n)  = mean(n) / (K)
     var(n)  =  var(n) / (K) - mean(n) * mean(n)
}
def group_normalization(
    float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta,
    float(N, G) mean, float(N, G) var) -> (O)
{
    O(n, g, d, h, w) = gamma(g, d)
        * ( I(n, g, d, h, w) - mean(n, g) ) * rsqrt( var(n, g) + 1e-5 ) + beta(g, d)
}
"""


def test_group_normalization_as_two_kernels() -> None:
    N, G, D, H, W = 4, 3, 2, 6, 5
    I, gamma, beta = torch.randn(N, G, D, H, W), torch.rand(G, D), torch.rand(G, D)
    T = tc.define(GROUP_NORM, tc.make_naive_options_factory())
    mean, var = T.moments(I.view((N * G, -1)))
    O = T.group_normalization(I, gamma, beta, mean.view((N, G)), var.view((N, G)))
    GN = torch.nn.GroupNorm(G, G * D)
    GN.weight.data, GN.bias.data = gamma.view(-1), beta.view(-1)
    ref = GN.forward(I.view((N, G * D, H, W)))
    tc.assert_almost_equal(ref, O.view((N, G * D, H, W)), I, operations=D * H * W)


CONVOLUTION = """
def convolution(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(M) Bias) -> (O) {
    O(n, m, h, w) +=! I(n, r_c, h + r_kh, w + r_kw) * W1(m, r_c, r_kh, r_kw)
    O(n, m, h, w)  = O(n, m, h, w) + Bias(m)
    O(n, m, h, w)  = fmax(O(n, m, h, w), 0)
}
"""


@pytest.mark.parametrize("strategy", ["Max", "Min", "Preserve3Coincident"])
def test_convolution_by_each_fusion_strategy(strategy: str) -> None:
    options = tc.MappingOptions("naive").scheduleFusionStrategy(strategy)
    I, W, bias = torch.randn(2, 4, 9, 8), torch.randn(5, 4, 3, 3), torch.randn(5)
    O = tc.compile(CONVOLUTION, "convolution", options, I, W, bias)(I, W, bias)
    tc.assert_almost_equal(O, F.relu(F.conv2d(I, W, bias)), I, W, operations=4 * 9 * 5)


def test_segments_by_data_dependent_subscripts() -> None:
    text = """
    def make_idx(int32(K) Segments) -> (Idx) {
        Idx(k) +=! (r_k < k) ? Segments(r_k) : 0 where k in 0:K+1
    }
    def segment_sums(float(N, C) X, int32(KP1) Idx, int32(MAX_L) Longest) -> (O) {
        O(k, c) +=! (Idx(k) + r_l < Idx(k + 1)) ? X(Idx(k) + r_l, c) : 0.0
            where k in 0:KP1-1, r_l in 0:MAX_L
    }
    """
    lengths = [3, 1, 4, 2]
    segments = torch.tensor(lengths, dtype=torch.int32)
    X = torch.randn(sum(lengths), 6)
    T = tc.define(text, tc.make_naive_options_factory())
    Idx = T.make_idx(segments)
    assert Idx.tolist() == [0, 3, 4, 8, 10]
    O = T.segment_sums(X, Idx, torch.ones(int(segments.max()), dtype=torch.int))
    close(O, torch.stack([part.sum(0) for part in X.split(lengths)]))


def test_a_strategy_is_for_statements_that_can_have_it() -> None:
    text = "def f(float(N) A) -> (s) { s +=! A(i) }"
    A = torch.randn(9)
    options = tc.MappingOptions("naive").scheduleFusionStrategy("Max").tile([4, 4])
    s = tc.compile(text, "f", options, A)(A)
    tc.assert_almost_equal(s, A.sum(), A, operations=9)
    with pytest.raises(tcl.OptionsError, match=r"^fuse: nest s0: there is no nest before it"):
        tcl.compile(text, "f", options.options, A)
