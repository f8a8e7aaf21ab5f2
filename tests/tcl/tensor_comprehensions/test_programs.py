"""Programs in the original's style: layers, compiled as its programs do it, on torch's CPU tensors.

Each changes nothing but the import: values are compared with torch's.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tcl
import tcl.tensor_comprehensions as tc
import tcl.tensor_comprehensions.tclib as tclib

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


def test_explicit_compilation() -> None:
    A, B = torch.randn(100), torch.randn(100)
    add = tc.compile(ADD, "add", "naive", A, B)
    C = add(A, B)
    tc.assert_almost_equal(C, torch.add(A, B), A, B)


def test_another_compiler_is_asked_for() -> None:
    A, B = torch.randn(100), torch.randn(100)
    tc.cuda_compiler("llvm")
    add = tc.compile(ADD, "add", "naive", A, B)
    tc.cuda_compiler("nvrtc")
    tc.assert_almost_equal(add(A, B), A + B, A, B)


def test_an_executor_writes_into_outputs() -> None:
    A, B = torch.randn(100), torch.randn(100)
    add = tc.compile(ADD, "add", "naive", A, B)
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


def test_a_call_writes_into_outputs() -> None:
    T = tc.define(MATMUL, tc.make_naive_options_factory())
    A, B, C = torch.randn(3, 4), torch.randn(4, 5), torch.empty(3, 5)
    assert T.matmul(A, B, outputs=(C,)) is C
    tc.assert_almost_equal(C, torch.mm(A, B), A, B, operations=4)


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


def test_group_normalization_as_one_kernel() -> None:
    text = """
    def group_normalization(
        float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta) -> (Sum, SumSq, O)
    {
          Sum(n, g) +=! I(n, g, r_d, r_h, r_w)
        SumSq(n, g) +=! I(n, g, r_d, r_h, r_w) * I(n, g, r_d, r_h, r_w)
        O(n, g, d, h, w) = gamma(g, d)
            * ( I(n, g, d, h, w) - Sum(n, g) / (D * H * W))
            * rsqrt( (SumSq(n, g) - Sum(n, g) * Sum(n, g) / (D * H * W)) / (D * H * W) + 1e-5)
            + beta(g, d)
    }
    """
    N, G, D, H, W = 4, 3, 2, 6, 5
    I, gamma, beta = torch.randn(N, G, D, H, W), torch.ones(G, D), torch.zeros(G, D)
    T = tc.define(text, tc.make_naive_options_factory())
    Sum, _SumSq, O = T.group_normalization(I, gamma, beta)
    close(Sum, I.sum((2, 3, 4)), 1e-4)
    ref = torch.nn.GroupNorm(G, G * D).forward(I.view((N, G * D, H, W)))
    tc.assert_almost_equal(ref, O.view((N, G * D, H, W)), I, operations=D * H * W)


def test_layer_normalization() -> None:
    text = """
    def layernorm(float(T, B, C) I) -> (O, mean, centered, var) {
        mean(t, b) +=! I(t, b, c) / C
        centered(t, b, c) = I(t, b, c) - mean(t, b)
        var(t, b) +=! centered(t, b, c) * centered(t, b, c)
        var(t, b) = (var(t, b) + 1e-5 * C) / C
        O(t, b, c) = centered(t, b, c) / sqrt(var(t, b))
    }
    """
    I = torch.randn(5, 6, 64)
    O, *_ = tc.define(text, tc.make_naive_options_factory()).layernorm(I)
    close(O, F.layer_norm(I, (64,)), 1e-4)


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


def test_strided_convolution() -> None:
    sh, sw = 2, 3
    text = f"""
    def convolution(float(N, C, H, W) I, float(M, C, KH, KW) W1) -> (O) {{
        O(n, m, h, w) +=! I(n, r_c, {sh} * h + r_kh, {sw} * w + r_kw) * W1(m, r_c, r_kh, r_kw)
    }}
    """
    I, W = torch.randn(2, 4, 11, 14), torch.randn(5, 4, 3, 2)
    T = tc.define(text, tc.make_naive_options_factory())
    close(T.convolution(I, W), F.conv2d(I, W, stride=(sh, sw)), 1e-4)


def test_group_convolution() -> None:
    text = """
    def group_convolution(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1, float(G,F) B) -> (O) {
        O(n, g, o, h, w) +=! I(n, g, r_i, h + r_kh, w + r_kw) * W1(g, o, r_i, r_kh, r_kw)
        O(n, g, o, h, w)  = O(n, g, o, h, w) + B(g, o)
    }
    """
    N, G, C, FF, H, W = 2, 4, 3, 5, 8, 7
    I, W1, B = torch.randn(N, G * C, H, W), torch.randn(G * FF, C, 3, 3), torch.randn(G * FF)
    T = tc.define(text, tc.make_naive_options_factory())
    O = T.group_convolution(I.view(N, G, C, H, W), W1.view(G, FF, C, 3, 3), B.view(G, FF))
    close(O.view(N, G * FF, H - 2, W - 2), F.conv2d(I, W1, B, groups=G), 1e-4)


def test_masked_convolution() -> None:
    text = """
    def masked_convolve(float(B, C, H, W) Input, float(F, C, K, K) Weights, uint8(F, C) Mask)
        -> (Output)
    {
        Output(b, f, h, w) +=! (Mask(f, r_c) == 1) ?
            fmax(0.0, Input(b, r_c, h + r_k1, w + r_k2)) * Weights(f, r_c, r_k1, r_k2) : 0.0
    }
    """
    H, W, C, B, FF, K = 6, 7, 8, 3, 5, 1
    conv = torch.nn.Conv2d(C, FF, K, 1, 0, 1, bias=False)
    data = torch.randn(B, C, H, W)
    mask = torch.randn(FF, C, K, K).gt_(0.0)
    T = tc.define(text, tc.make_naive_options_factory())
    Output = T.masked_convolve(data, conv.weight, mask.view(FF, C).byte())
    expected = F.conv2d(F.relu(data), conv.weight * mask)
    tc.assert_almost_equal(expected, Output, data, conv.weight, mask, operations=C * K * K)


def _codes(rows: int, width: int) -> torch.Tensor:
    generator = np.random.default_rng(0)
    words = generator.integers(1 << 32, size=(rows, width // 4), dtype=np.uint32)
    return torch.from_numpy(words.view(np.uint8))


def _distances(luts: Any, codes: Any) -> Any:
    return luts[torch.arange(luts.shape[0]), codes.long()].sum(1)


def test_nearest_code_as_one_kernel() -> None:
    text = """
    def mindis(float(M, 256) L, uint8(N, M) Codes) -> (S, v, min_idx) {
              S(n) +=! L(r_m, int32(Codes(n, r_m)))
              v  min=! S(r_n)
        min_idx  min=! (S(r_n) == v) ? r_n : N
    }
    """
    codes, luts = _codes(100, 32), torch.randn(32, 256)
    S, v, min_idx = tc.define(text, tc.make_naive_options_factory()).mindis(luts, codes)
    expected = _distances(luts, codes)
    close(S, expected, 1e-4)
    assert float(v) == float(S.min())
    assert (min_idx.dtype, int(min_idx)) == (torch.int32, int(expected.argmin()))


def test_nearest_code_in_stages() -> None:
    text = """
    def reduce_codes(float(K, M, 256) L, uint8(N, M) Codes) -> (S) {
        S(k, n) +=! L(k, r_m, int32(Codes(n, r_m)))
    }
    def min_2d(float(K, D, NBYD) S) -> (V2) { V2(k, d) min=! S(k, d, r_nbyd) }
    def min_1d(float(K, D) V2) -> (V) { V(k) min=! V2(k, r_d) }
    def argmin_2d(float(K, D, NBYD) S, float(K) V) -> (MinIdx2) {
        MinIdx2(k, d) min=! (S(k, d, r_nbyd) == V(k)) ? d * NBYD + r_nbyd : NBYD * D
    }
    def argmin_1d(float(K, N) S, int32(K, D) MinIdx2) -> (MinIdx) {
        MinIdx(k) min=! (MinIdx2(k, r_d) < N) ? MinIdx2(k, r_d) : N
    }
    """
    N, D, K, M = 200, 10, 4, 16
    codes, luts = _codes(N, M), torch.randn(K, M, 256)
    T = tc.define(text, tc.make_naive_options_factory())
    S = T.reduce_codes(luts, codes)
    V = T.min_1d(T.min_2d(S.view((K, D, N // D))))
    MinIdx = T.argmin_1d(S, T.argmin_2d(S.view((K, D, N // D)), V))
    expected = torch.stack([_distances(each, codes) for each in luts])
    close(V, expected.min(1).values, 1e-4)
    assert MinIdx.tolist() == expected.argmin(1).tolist()


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


def test_tensor_dot() -> None:
    text = """
    def tensordot(float(N, C1, C2, H, W) I0, float(N, C2, C3, H, W) I1) -> (O) {
        O(n, c1, c3, h, w) +=! I0(n, c1, r_c2, h, w) * I1(n, r_c2, c3, h, w)
    }
    """
    I0, I1 = torch.randn(3, 4, 5, 6, 7), torch.randn(3, 5, 2, 6, 7)
    O = tc.define(text, tc.make_naive_options_factory()).tensordot(I0, I1)
    expected = torch.einsum("nachw,ncbhw->nabhw", I0, I1)
    tc.assert_almost_equal(O, expected, I0, I1, operations=5 * 5)


def test_batch_matrix_product() -> None:
    text = """
    def batch_matmul(float(B, N, M) X, float(B, M, K) Y) -> (Z) {
        Z(b, n, k) +=! X(b, n, r_m) * Y(b, r_m, k)
    }
    """
    X, Y = torch.randn(5, 26, 72), torch.randn(5, 72, 26)
    Z = tc.define(text, tc.make_naive_options_factory()).batch_matmul(X, Y)
    close(Z, torch.bmm(X, Y), 1e-4)


def test_kronecker_product_of_three_factors() -> None:
    text = """
    def kronecker3(float(D0, N0) W0, float(D1, N1) W1, float(D2, N2) W2, float(M, N0, N1, N2) X)
        -> (Y, XW1, XW2)
    {
        XW2(m, n0, n1, d2)   +=! X(m, n0, n1, r_n2) * W2(d2, r_n2)
        XW1(m, n0, d1, d2)   +=! XW2(m, n0, r_n1, d2) * W1(d1, r_n1)
        Y(m, d0, d1, d2)     +=! XW1(m, r_n0, d1, d2) * W0(d0, r_n0)
    }
    """
    W0, W1, W2 = torch.randn(2, 3), torch.randn(4, 5), torch.randn(3, 6)
    X = torch.randn(7, 3, 5, 6)
    Y, *_ = tc.define(text, tc.make_naive_options_factory()).kronecker3(W0, W1, W2, X)
    close(Y.reshape(7, -1), X.reshape(7, -1) @ torch.kron(torch.kron(W0, W1), W2).t(), 1e-4)


def test_softmax_and_cross_entropy() -> None:
    text = """
    def softmax(float(N, D) I) -> (O, maxVal, expDistance, expSum) {
        maxVal(n) max=! I(n, d)
        expDistance(n, d) = exp(I(n, d) - maxVal(n))
        expSum(n) +=! expDistance(n, d)
        O(n, d) = expDistance(n, d) / expSum(n)
    }
    def cross_entropy(float(N, D) P, int32(N) Labels) -> (loss, l) {
        l(n) = -log(P(n, Labels(n)))
        loss +=! l(n) / N
    }
    """
    I, labels = torch.randn(8, 10), torch.randint(10, (8,), dtype=torch.int32)
    T = tc.define(text, tc.make_naive_options_factory())
    P, *_ = T.softmax(I)
    close(P, torch.softmax(I, 1))
    loss, _ = T.cross_entropy(P, labels)
    close(loss, F.cross_entropy(I, labels.long()))


def test_sums_of_looked_up_rows() -> None:
    text = """
    def lut2(float(B, R) LUT, int32(B, N) I) -> (O) { O(b, n) = LUT(b, I(b, n)) }
    def lut_sum(float(E, D) LUT, int32(B, L) I) -> (O) { O(b, d) +=! LUT(I(b, r_l), d) }
    """
    table, I = torch.randn(30, 8), torch.randint(30, (4, 6), dtype=torch.int32)
    T = tc.define(text, tc.make_naive_options_factory())
    close(T.lut_sum(table, I), table[I.long()].sum(1))
    rows = torch.randn(4, 30)
    close(T.lut2(rows, I), rows.gather(1, I.long()))


def test_three_layers_in_one_kernel() -> None:
    text = """
    def mlp3(float(B,N) I, float(O,N) W2, float(O) B2, float(P,O) W3, float(P) B3,
             float(Q,P) W4, float(Q) B4) -> (O2, O3, O4)
    {
        O2(b, o) +=! I(b, n) * W2(o, n)
        O2(b, o)  = fmax(O2(b, o) + B2(o), 0)
        O3(b, p) +=! O2(b, o) * W3(p, o)
        O3(b, p)  = fmax(O3(b, p) + B3(p), 0)
        O4(b, q) +=! O3(b, p) * W4(q, p)
        O4(b, q)  = fmax(O4(b, q) + B4(q), 0)
    }
    """
    layers = [torch.nn.Linear(*sizes) for sizes in ((12, 8), (8, 6), (6, 2))]
    I = torch.randn(10, 12)
    T = tc.define(text, tc.make_naive_options_factory())
    *_, O4 = T.mlp3(I, *(p for layer in layers for p in (layer.weight, layer.bias)))
    expected = I
    for layer in layers:
        expected = F.relu(layer(expected))
    close(O4, expected.detach())


def test_cosine_similarity() -> None:
    text = """
    def cosine(float(M, N) I1, float(M, N) I2) -> (O, sumI1, sumI2) {
        sumI1(m) +=! I1(m, n) * I1(m, n)
        sumI2(m) +=! I2(m, n) * I2(m, n)
        O(m) +=! (I1(m, n) * I2(m, n)) * (rsqrt(sumI1(m)) * rsqrt(sumI2(m)))
    }
    """
    A, B = torch.randn(8, 20), torch.randn(8, 20)
    O, *_ = tc.define(text, tc.make_naive_options_factory()).cosine(A, B)
    close(O, F.cosine_similarity(A, B))


def test_activations_and_casts() -> None:
    text = """
    def sigmoid(float(N, C) I) -> (O) { O(n, c) = 1 / (1 + exp(-I(n, c))) }
    def cast(float(N, C) I) -> (O) { O(n, c) = int32(I(n, c)) }
    def transpose(float(N, C) I) -> (O) { O(c, n) = I(n, c) }
    def concat(float(M, N) A, float(M, N) B) -> (O) {
        O(n, i, m) = i == 0 ? A(m, n) : B(m, n) where i in 0:2
    }
    """
    I = 3 * torch.randn(6, 7)
    T = tc.define(text, tc.make_naive_options_factory())
    close(T.sigmoid(I), torch.sigmoid(I))
    assert torch.equal(T.cast(I), I.int())
    assert torch.equal(T.transpose(I), I.t())
    assert torch.equal(T.concat(I, -I), torch.stack([I.t(), -I.t()], 1))


def test_a_strategy_is_for_statements_that_can_have_it() -> None:
    text = "def f(float(N) A) -> (s) { s +=! A(i) }"
    A = torch.randn(9)
    options = tc.MappingOptions("naive").scheduleFusionStrategy("Max").tile([4, 4])
    s = tc.compile(text, "f", options, A)(A)
    tc.assert_almost_equal(s, A.sum(), A, operations=9)
    with pytest.raises(tcl.OptionsError, match=r"^fuse: nest s0: there is no nest before it"):
        tcl.compile(text, "f", options.options, A)
