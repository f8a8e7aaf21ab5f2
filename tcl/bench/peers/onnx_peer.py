"""ONNX Runtime on the CPU. Each form is the body of a graph in ONNX's text syntax.

Weights are inputs like the others: no library here may pack them before the calls. Inputs and
outputs are bound to existing memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

from tcl.bench.peers.library import PeerLibrary, element_type
from tcl.bench.task import Array, PeerForm, Registry, Task, Values, values
from tcl.tuner.measure.placement import aligned

parser: Any = import_module("onnx.parser")
runtime: Any = import_module("onnxruntime")

forms = Registry()
form = forms.form
_TYPES = {"float32": "float", "float64": "double"}
"""Names of element types in graphs that differ from NumPy's."""


class _OnnxRuntime(PeerLibrary):
    def versions(self) -> dict[str, str]:
        return {"onnxruntime": runtime.__version__}

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        if element_type(inputs) == "bfloat16":  # products of these have no kernel
            return
        given = values(inputs, task.sizes)
        for name, builder in self.registry.builders(task.entry, element_type(inputs)):
            yield name, partial(self._session, str(builder(given)), task, inputs)

    def _session(self, body: str, task: Task, inputs: Mapping[str, Array]) -> PeerForm:
        taken = ", ".join(f"{_declared(array)} {name}" for name, array in inputs.items())
        given = ", ".join(f"float {name}" for name in task.results)
        text = f'<ir_version: 10, opset_import: ["": 21]> work ({taken}) => ({given}) {{ {body} }}'
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        model = parser.parse_model(text)
        for output in model.graph.output:
            output.ClearField("type")  # inferred; the syntax has no output without a type
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        feed = {each.name: inputs[each.name] for each in session.get_inputs()}
        outputs = []
        binding = session.io_binding()
        for name, array in feed.items():
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, found in zip(task.results, session.run(list(task.results), feed), strict=True):
            out = aligned(found.shape, found.dtype, task.past)
            binding.bind_output(name, "cpu", 0, out.dtype, out.shape, out.ctypes.data)
            outputs.append(out)

        def run(kept: object = feed) -> object:  # the binding holds bare pointers
            return session.run_with_iobinding(binding)

        def results() -> list[Array]:
            run()
            return outputs

        return PeerForm(run, results, self.threads)


def _declared(array: Array) -> str:
    name = array.dtype.name
    return f"{_TYPES.get(name, name)}[{', '.join(map(str, array.shape))}]"


make = partial(_OnnxRuntime, forms)


def body(*entries: str, name: str, text: str) -> None:
    """Register a body that needs no sizes."""
    form(*entries, name=name)(lambda x: cast(Any, text))


body("matmul", name="MatMul", text="C = MatMul(A, B)")
body("matmul_int8", "matmul_uint8", name="MatMulInteger", text="C = MatMulInteger(A, B)")
body("batch_matmul_int8", name="MatMulInteger", text="Z = MatMulInteger(X, Y)")
body("tmm", name="Gemm", text="C = Gemm<transB = 1>(A, B)")
body("mtm", name="Gemm", text="C = Gemm<transA = 1>(A, B)")
body("c3", name="Gemm", text="C3 = Gemm<transB = 1>(I, W)")
body("batch_matmul", name="MatMul", text="Z = MatMul(X, Y)")
body("kronecker3_1", name="MatMul", text="T = Transpose(W2) XW2 = MatMul(X, T)")
body("mlp1", name="Gemm, Relu", text="P = Gemm(I, W1, B1) O1 = Relu(P)")
body(
    "mlp3",
    name="Gemm, Relu",
    text="P2 = Gemm<transB = 1>(I, W2, B2) O2 = Relu(P2) P3 = Gemm<transB = 1>(O2, W3, B3) "
    "O3 = Relu(P3) P4 = Gemm<transB = 1>(O3, W4, B4) O4 = Relu(P4)",
)
body("convolution", name="Conv", text="O = Conv(I, W1, B)")
body("convolution_int8", name="ConvInteger", text="O = ConvInteger(I, W1)")
body(
    "masked_convolution",
    name="Conv",
    text="One = Constant<value = uint8 {1}>() Equal = Equal(Mask, One) Kept = Cast<to = 1>(Equal) "
    "Axes = Constant<value_ints = [2, 3]>() Wide = Unsqueeze(Kept, Axes) "
    "Left = Mul(Weights, Wide) Positive = Relu(I) O = Conv(Positive, Left)",
)
body("softmax_twice", name="Softmax", text="O = Softmax<axis = 1>(I)")
body("bias_relu_scale", name="Relu", text="Sum = Add(I, bias) R = Relu(Sum) O = Mul(R, scale)")
body(
    "row_sum",
    name="ReduceSum",
    text="Axes = Constant<value_ints = [1]>() R = ReduceSum<keepdims = 0>(I, Axes)",
)
body(
    "column_sum",
    name="ReduceSum",
    text="Axes = Constant<value_ints = [0]>() C = ReduceSum<keepdims = 0>(I, Axes)",
)
body(
    "moments",
    name="ReduceMean",
    text="Axes = Constant<value_ints = [1]>() mean = ReduceMean<keepdims = 0>(I, Axes) "
    "II = Mul(I, I) Q = ReduceMean<keepdims = 0>(II, Axes) MM = Mul(mean, mean) var = Sub(Q, MM)",
)
body(
    "one_lut",
    name="Gather, ReduceSum",
    text="Rows = Gather(LUT1, I1) Axes = Constant<value_ints = [1]>() "
    "O1 = ReduceSum<keepdims = 0>(Rows, Axes)",
)
body(
    "argmin",
    name="ArgMin",
    text="Best = ArgMin<axis = 0, keepdims = 0>(Distance) "
    "Least = ReduceMin<keepdims = 0>(Distance)",
)


@form("group_convolution", name="Conv")
def group_convolution(x: Values) -> Any:
    s = x.sizes
    height, width = s.H - s.KH + 1, s.W - s.KW + 1
    return (
        f"IS = Constant<value_ints = [{s.N}, {s.G * s.C}, {s.H}, {s.W}]>() "
        f"WS = Constant<value_ints = [{s.G * s.F}, {s.C}, {s.KH}, {s.KW}]>() "
        f"OS = Constant<value_ints = [{s.N}, {s.G}, {s.F}, {height}, {width}]>() "
        "Flat = Constant<value_ints = [-1]>() Images = Reshape(I, IS) Filters = Reshape(W1, WS) "
        f"Bias = Reshape(B, Flat) Found = Conv<group = {s.G}>(Images, Filters, Bias) "
        "O = Reshape(Found, OS)"
    )


@form("group_normalization_single", name="GroupNormalization")
def group_norm(x: Values) -> Any:
    s = x.sizes
    return (
        f"IS = Constant<value_ints = [{s.N}, {s.G * s.D}, {s.H}, {s.W}]>() "
        f"OS = Constant<value_ints = [{s.N}, {s.G}, {s.D}, {s.H}, {s.W}]>() "
        "Flat = Constant<value_ints = [-1]>() Images = Reshape(I, IS) "
        "Scale = Reshape(gamma, Flat) Bias = Reshape(beta, Flat) "
        f"Found = GroupNormalization<epsilon = 1.0e-5, num_groups = {s.G}>(Images, Scale, Bias) "
        "O = Reshape(Found, OS)"
    )


@form("layernorm", name="LayerNormalization")
def layer_norm(x: Values) -> Any:
    return f"O = LayerNormalization<axis = 1, epsilon = {float(x.eps):.9e}>(I, gamma, beta)"


@form("attention_scores", name="MatMul, Softmax")
def attention(x: Values) -> Any:
    return (
        f"Scale = Constant<value_float = {x.sizes.D**-0.5:.9e}>() "
        "T = Transpose<perm = [0, 2, 1]>(K) Score = MatMul(Q, T) Scaled = Mul(Score, Scale) "
        "P = Softmax<axis = 2>(Scaled)"
    )


@form("stencil", name="Conv")
def stencil(x: Values) -> Any:
    return (
        f"IS = Constant<value_ints = [1, 1, {x.sizes.M}, {x.sizes.N}]>() "
        f"OS = Constant<value_ints = [{x.sizes.M - 2}, {x.sizes.N - 2}]>() "
        "Cross = Constant<value = float[1, 1, 3, 3] {0, 0.2, 0, 0.2, 0.2, 0.2, 0, 0.2, 0}>() "
        "Image = Reshape(I, IS) Found = Conv(Image, Cross) O = Reshape(Found, OS)"
    )


@form("wavenet", name="Conv")
def wavenet(x: Values) -> Any:
    d = x.sizes.DILATION
    conv = f"Conv<dilations = [{d}], pads = [{d}, 0]>"
    return (
        f"F = {conv}(Data, FilterWeight, FilterBias) G = {conv}(Data, GateWeight, GateBias) "
        "T = Tanh(F) E = Sigmoid(G) Units = Mul(T, E) Axes = Constant<value_ints = [2]>() "
        "RW = Unsqueeze(ResWeight, Axes) SW = Unsqueeze(SkipWeight, Axes) "
        "Added = Conv(Units, RW, ResBias) Res = Add(Data, Added) Skip = Conv(Units, SW, SkipBias)"
    )
