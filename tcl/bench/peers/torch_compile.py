"""PyTorch through ``torch.compile``: the same work as plain functions, compiled by Inductor.

Compiled functions that write an existing output (``copy_`` becomes the store of the last loop)
compete with those that return new ones: for calls into libraries the copy costs more than the new
memory.
"""

# Functions are called with the names of the defs' inputs.
# ruff: noqa: N803, E741

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from tcl.bench.peers.library import (
    IN_FLOAT32,
    NARROW_FLOATS,
    add_products_of_integers,
    add_shared,
    element_type,
)
from tcl.bench.peers.torch_narrow import native
from tcl.bench.peers.torch_peer import Torch
from tcl.bench.task import Array, Builder, PeerForm, Registry, Task, Values, as_tuple, values

torch: Any = import_module("torch")
F: Any = import_module("torch.nn.functional")

plain = Registry()
form, formula = plain.form, plain.formula
LIBRARY = frozenset(
    "matmul tmm c3 batch_matmul kronecker3_1 mlp1 mlp3 convolution group_convolution "
    "masked_convolution one_lut argmin matmul_int8 matmul_uint8 batch_matmul_int8".split()
)
"""Work that calls into a library, or that has small results: always returned anew."""


class _Compiled(Torch):
    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        tensors = {k: self.own(v) for k, v in inputs.items()}
        given = values(tensors, task.sizes, self.maker(task, inputs))
        for name, builder in plain.builders(task.entry, element_type(inputs)):
            kinds = ("",) if task.entry in LIBRARY else (" into outputs", "")
            for kind in kinds:
                yield name + kind, partial(self._compile_kind, builder, tensors, given, kind, name)

    def _compile_kind(
        self, builder: Builder, tensors: dict[str, Any], given: Values, kind: str, name: str
    ) -> PeerForm:
        first = next(iter(tensors.values()))
        if name != IN_FLOAT32 and first.dtype.is_floating_point:
            native(first)
        function = builder(given)
        torch._dynamo.reset()
        if not kind:
            fresh = torch.compile(function, dynamic=False, fullgraph=True)
            return self.form(lambda: fresh(**tensors))
        results = as_tuple(function(**tensors))
        outputs = [given.empty(*o.shape, dtype=str(o.dtype).split(".")[1]) for o in results]

        def into(out: Any, arguments: Any) -> None:
            for target, found in zip(out, as_tuple(function(**arguments)), strict=True):
                target.copy_(found)

        compiled = torch.compile(into, dynamic=False, fullgraph=True)

        def run() -> Any:
            compiled(outputs, tensors)
            return outputs

        return self.form(run)


make = partial(_Compiled, plain)


add_shared(plain, "mm")
add_products_of_integers(plain, torch.float32, torch.int32, lambda tensor, type_: tensor.to(type_))
formula("matmul", name=IN_FLOAT32, types=NARROW_FLOATS)(
    lambda A, B: (A.float() @ B.float()).to(A.dtype)
)
formula("batch_matmul", name=IN_FLOAT32, types=NARROW_FLOATS)(
    lambda X, Y: torch.bmm(X.float(), Y.float()).to(X.dtype)
)
formula("convolution", name=IN_FLOAT32, types=NARROW_FLOATS)(
    lambda I, W1, B: F.conv2d(I.float(), W1.float(), B.float()).to(I.dtype)
)
formula("convolution_int8", name="conv2d in float64")(
    lambda I, W1: F.conv2d(I.double(), W1.double()).to(torch.int32)
)
formula("batch_matmul", name="bmm")(lambda X, Y: torch.bmm(X, Y))
formula("mlp1", name="addmm, relu")(lambda I, W1, B1: torch.relu(torch.addmm(B1, I, W1)))
formula("convolution", name="conv2d")(lambda I, W1, B: F.conv2d(I, W1, B))
formula("masked_convolution", name="conv2d")(
    lambda I, Weights, Mask: F.conv2d(torch.relu(I), Weights * (Mask == 1)[:, :, None, None])
)
formula("softmax_twice", name="softmax")(lambda I: torch.softmax(I, 1))
formula("bias_relu_scale", name="bias_relu_scale")(
    lambda I, bias, scale: torch.relu(I + bias) * scale
)
formula("one_lut", name="embedding_bag")(lambda LUT1, I1: F.embedding_bag(I1, LUT1, mode="sum"))
formula("one_lut", name="index, sum")(lambda LUT1, I1: LUT1[I1].sum(1))


@formula("mlp3", name="linear, relu")
def mlp3(I: Any, W2: Any, B2: Any, W3: Any, B3: Any, W4: Any, B4: Any) -> Any:
    o2 = torch.relu(F.linear(I, W2, B2))
    return torch.relu(F.linear(torch.relu(F.linear(o2, W3, B3)), W4, B4))


@form("group_convolution", name="conv2d")
def group_convolution(x: Values) -> Callable[..., Any]:
    s = x.sizes

    def function(I: Any, W1: Any, B: Any) -> Any:
        images = I.reshape(s.N, s.G * s.C, s.H, s.W)
        filters = W1.reshape(s.G * s.F, s.C, s.KH, s.KW)
        found = F.conv2d(images, filters, B.reshape(-1), groups=s.G)
        return found.reshape(s.N, s.G, s.F, *found.shape[-2:])

    return function


@form("group_normalization_single", name="group_norm")
def group_norm(x: Values) -> Callable[..., Any]:
    s = x.sizes

    def function(I: Any, gamma: Any, beta: Any) -> Any:
        images = I.reshape(s.N, s.G * s.D, s.H, s.W)
        found = F.group_norm(images, s.G, gamma.reshape(-1), beta.reshape(-1), 1e-5)
        return found.reshape(I.shape)

    return function


@form("layernorm", name="layer_norm")
def layer_norm(x: Values) -> Callable[..., Any]:
    width, epsilon = x.sizes.D, float(x.eps)

    def function(I: Any, gamma: Any, beta: Any, eps: Any) -> Any:
        return F.layer_norm(I, (width,), gamma, beta, epsilon)

    return function


@form("attention_scores", name="bmm, softmax")
def attention(x: Values) -> Callable[..., Any]:
    scale = x.sizes.D**-0.5
    return lambda Q, K: torch.softmax(torch.bmm(Q, K.transpose(1, 2)) * scale, 2)


@form("wavenet", name="matmul")
def wavenet(x: Values) -> Callable[..., Any]:
    d, c = x.sizes.DILATION, x.sizes.DILATION_C

    def function(
        Data: Any, FilterWeight: Any, FilterBias: Any, GateWeight: Any, GateBias: Any,
        ResWeight: Any, ResBias: Any, SkipWeight: Any, SkipBias: Any, Dilation: Any,
    ) -> Any:  # fmt: skip
        taps = torch.cat([FilterWeight, GateWeight])
        both = F.conv1d(F.pad(Data, (d, 0)), taps, torch.cat([FilterBias, GateBias]), dilation=d)
        units = torch.tanh(both[:, :c]) * torch.sigmoid(both[:, c:])
        res = Data + (ResWeight @ units + ResBias[:, None])
        return res, SkipWeight @ units + SkipBias[:, None]

    return function


@formula("argmin", name="min")
def argmin(Distance: Any) -> Any:
    least, best = torch.min(Distance, 0)
    return best, least
