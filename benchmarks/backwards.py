"""Compares derived backward defs, untuned, with torch's autograd kernels and JAX's gradients.

    OMP_NUM_THREADS=1 TCL_NUM_THREADS=1 taskset -c 0 python -m benchmarks.backwards --out FILE
    OMP_NUM_THREADS=2 TCL_NUM_THREADS=2 python -m benchmarks.backwards --rows softmax attention

It measures the backward pass alone: each contender gets the results of the forward pass.
``benchmarks/README.md`` describes the measurement.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import jax
import numpy as np
import torch

import tcl
from benchmarks.common import Call, command, samples, write
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.number_format import plural
from tcl.gradients.grad import gradient_text
from tcl.grammar.check.definitions import check

EXAMPLES = Path(__file__).parent.parent / "examples"
TEXT = """
def bias_relu(float(N, C) X, float(C) B) -> (O) { O(n, c) = fmax(X(n, c) + B(c), 0) }
def embedding(float(V, D) T, int32(N) At) -> (O) { O(n, d) = T(At(n), d) }
def gelu(float(N) X) -> (O) { O(n) = X(n) * (1 + erf(X(n) * 0.7071067811865476)) * 0.5 }
def avgpool(float(N, C, H, W) X) -> (O) {
    O(n, c, h, w) +=! X(n, c, 2 * h + kh, 2 * w + kw) / 4 where kh in 0:2, kw in 0:2
}
def layer_norm(float(N, D) X, float(D) G, float(D) B) -> (O, mean, scale) {
    mean(n) +=! X(n, d)
    mean(n) = mean(n) / D
    scale(n) +=! (X(n, d) - mean(n)) * (X(n, d) - mean(n))
    scale(n) = rsqrt(scale(n) / D + 1e-5)
    O(n, d) = (X(n, d) - mean(n)) * scale(n) * G(d) + B(d)
}
"""
aten: Any = torch.ops.aten
Arrays = Mapping[str, Any]
Peer = Callable[[Arrays, Arrays], Any]
"""A call's results, of the def's tensors and of preallocated gradients, by their names."""


class Row(NamedTuple):
    """A def with sizes, the inputs whose gradients are taken, and how torch has them."""

    name: str
    file: str
    """Stem of an example file; of ``TEXT`` if it is empty."""
    entry: str
    sizes: str
    wrt: tuple[str, ...]
    torch: Peer
    jax: Callable[..., Any] | None = None
    """The forward pass, where the backward pass needs nothing of it that we are given."""


def convolution(mask: tuple[bool, bool], stride: int = 1, groups: int = 1) -> Peer:
    """torch's gradients of a convolution, grouped where the tensors have a dimension for that."""

    def run(t: Arrays, _: Arrays) -> Any:
        merged = [_merged(t[n]) if groups > 1 else t[n] for n in ("d_O", "I")]
        weights = t["W1"].flatten(0, 1) if groups > 1 else t["W1"]
        pair = [stride, stride]
        found = aten.convolution_backward(
            *(*merged, weights, [weights.shape[0]], pair, [0, 0], [1, 1]),
            *(False, [0, 0], groups, [*mask, False]),
        )
        shapes = [t[n].shape for n in ("I", "W1")]
        return [f.reshape(s) for f, s, m in zip(found, shapes, mask, strict=False) if m]

    return run


def _merged(x: Any) -> Any:
    return x.flatten(1, 2)


def layer_norm(t: Arrays, _: Arrays) -> Any:
    """The scale is what torch has of the variance."""
    mean, scale = t["mean"][:, None], t["scale"][:, None]
    size = [t["X"].shape[1]]
    mask = [True] * 3
    return aten.native_layer_norm_backward(
        t["d_O"], t["X"], size, mean, scale, t["G"], t["B"], mask
    )


def group_norm(t: Arrays, _: Arrays) -> Any:
    """With the reciprocal of the deviation, which it is given."""
    n, g, d, h, w = t["I"].shape
    x, grad = (t[name].reshape(n, g * d, h, w) for name in ("I", "d_O"))
    gamma, scale = t["gamma"].flatten(), t["scale"]
    found = aten.native_group_norm_backward(
        grad, x, t["mean"], scale, gamma, n, g * d, h * w, g, [True] * 3
    )
    return found[0].reshape(n, g, d, h, w), *(f.reshape(g, d) for f in found[1:])


def bias_relu(t: Arrays, out: Arrays) -> Any:
    """Two kernels, as autograd runs them."""
    aten.threshold_backward.grad_input(t["d_O"], t["O"], 0, grad_input=out["X"])
    return out["X"], torch.sum(out["X"], 0, out=out["B"])


def embedding(t: Arrays, _: Arrays) -> Any:
    """A dense gradient of the table."""
    return aten.embedding_dense_backward(t["d_O"], t["At"], t["T"].shape[0], -1, False)


def attention(t: Arrays, _: Arrays) -> Any:
    """The fused kernel's backward pass, whose forward pass was run before."""
    inputs = [t["leaves"][n] for n in "QKV"]
    return torch.autograd.grad(t["graph"], inputs, t["d_O"][:, None], retain_graph=True)


def matmul(t: Arrays, out: Arrays) -> Any:
    """Two products."""
    torch.mm(t["d_C"], t["B"].T, out=out["A"])
    return out["A"], torch.mm(t["A"].T, t["d_C"], out=out["B"])


def softmax(kernel: Any) -> Peer:
    """Of rows."""
    return lambda t, out: kernel(t["d_O"], t["O"], 1, torch.float32, grad_input=out["I"])


def logs(t: Arrays, out: Arrays) -> Any:
    """Of rows."""
    return aten._log_softmax_backward_data.out(t["d_O"], t["O"], 1, torch.float32, out=out["I"])


def gelu(t: Arrays, out: Arrays) -> Any:
    """By erf."""
    return aten.gelu_backward.grad_input(t["d_O"], t["X"], grad_input=out["X"])


def avgpool(t: Arrays, out: Arrays) -> Any:
    """Of windows that do not overlap."""
    sizes = [2, 2], [2, 2], [0, 0]
    return aten.avg_pool2d_backward.grad_input(
        t["d_O"], t["X"], *sizes, False, True, None, grad_input=out["X"]
    )


def lax_convolution(stride: int) -> Callable[..., Any]:
    """JAX's."""
    return lambda x, w, b: jax.lax.conv(x, w, (stride, stride), "VALID") + b[None, :, None, None]


WINDOWS = "N=8, C=32, F=32, H=30, W=30, KH=3, KW=3"
GROUPS = {4: "N=4, G=32, C=4, F=4, H=30, W=30", 8: "N=4, G=32, C=8, F=8, H=22, W=22"}
GROUPS[16] = "N=4, G=32, C=16, F=16, H=16, W=16"
DATA, WEIGHTS, BOTH = (True, False), (False, True), (True, True)


def _convolution_row(name: str, entry: str, mask: tuple[bool, bool], stride: int) -> Row:
    wrt = tuple(n for n, asked in zip(("I", "W1"), mask, strict=True) if asked)
    run, forward = convolution(mask, stride), lax_convolution(stride)
    return Row(name, "convolution", entry, WINDOWS, wrt, run, forward)


def _group_row(channels: int) -> Row:
    sizes, run = f"{GROUPS[channels]}, KH=3, KW=3", convolution(BOTH, groups=32)
    name, file = f"grouped convolution, C={channels}", "group_convolution"
    return Row(name, file, file, sizes, ("I", "W1"), run)


ROWS = (
    Row("matmul", "matmul", "matmul", "M=384, K=384, N=384", ("A", "B"), matmul, jax.numpy.matmul),
    _convolution_row("convolution, data", "convolution", DATA, 1),
    _convolution_row("convolution, weights", "convolution", WEIGHTS, 1),
    _convolution_row("strided convolution", "convolution_strided", BOTH, 2),
    *map(_group_row, GROUPS),
    Row("layer norm", "", "layer_norm", "N=1024, D=768", ("X", "G", "B"), layer_norm),
    Row(
        *("group norm", "group_normalization", "group_normalization_single"),
        *("N=16, G=8, D=8, H=28, W=28", ("I", "gamma", "beta"), group_norm),
    ),
    Row(
        *("softmax", "softmax", "softmax", "N=1024, D=1000", ("I",)),
        softmax(aten._softmax_backward_data.out),
    ),
    Row("log softmax", "softmax", "log_softmax", "N=1024, D=1000", ("I",), logs),
    Row("bias, relu", "", "bias_relu", "N=1024, C=1000", ("X", "B"), bias_relu),
    Row("gelu", "", "gelu", "N=1000000", ("X",), gelu),
    Row("average pooling", "", "avgpool", "N=8, C=32, H=56, W=56", ("X",), avgpool),
    Row("embedding", "", "embedding", "V=8000, D=64, N=4096", ("T",), embedding),
    Row(
        *("attention", "attention_scores", "attention", "B=8, S=256, D=64, T=256, E=64"),
        *(("Q", "K", "V"), attention),
    ),
)

ROUNDS = 11
SAMPLE = 0.01
"""Seconds that a sample lasts at least, where a call is shorter."""
PAUSE = 0.02
"""Seconds between contenders, in which threads of the last one stop waiting for work."""
ALONE = os.environ.get("TCL_NUM_THREADS") == "1"
CLOCK = time.process_time if ALONE else time.perf_counter
"""With one thread the processor's time, so that what else runs on the machine counts for little."""
TOLERANCE = 2e-4
"""Of gradients, relative to the largest."""


def contenders(row: Row) -> dict[str, Call]:
    """A call of each, on the same memory."""
    text = (EXAMPLES / f"{row.file}.tc").read_text("utf-8") if row.file else TEXT
    checked = check(text)[row.entry]
    sizes = {n: int(v) for n, v in (part.split("=") for part in row.sizes.split(", "))}
    random, arrays = np.random.default_rng(0), {}
    for tensor in checked.inputs:
        shape = [sizes[d] if isinstance(d, str) else d for d in tensor.dims or ()]
        if tensor.type.is_float:
            arrays[tensor.name] = random.standard_normal(shape, dtype=np.float32)
        else:
            arrays[tensor.name] = random.integers(0, sizes["V"], shape, np.int32)
    outputs = getattr(tcl.define(text), row.entry)(*arrays.values())
    if len(checked.outputs) == 1:
        outputs = (outputs,)
    arrays |= {t.name: o for t, o in zip(checked.outputs, outputs, strict=True)}
    wanted = "C" if "C" in arrays else "O"
    arrays[f"d_{wanted}"] = random.standard_normal(arrays[wanted].shape, dtype=np.float32)
    derived = gradient_text(checked, row.wrt, wanted=wanted)
    (its,) = check(derived).values()
    run = getattr(tcl.define(derived), its.name)
    given = [arrays[t.name] for t in its.inputs]
    names = [f"d_{name}" for name in row.wrt]
    results = tuple(np.empty_like(arrays[name]) for name in row.wrt)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    out = {name: torch.empty_like(tensors[name]) for name in row.wrt}
    if row.entry == "attention":
        tensors |= _attention_graph(tensors)
    if row.entry == "group_normalization_single":
        tensors["scale"] = (tensors["var"] + 1e-5).rsqrt()

    def ours() -> Any:
        run(*given, outputs=results, wanted=names)
        return results

    found: dict[str, Call] = {"tcl": ours, "torch": lambda: row.torch(tensors, out)}
    if row.jax is not None:
        found["jax"] = _of_jax(row, checked, arrays, arrays[f"d_{wanted}"])
    return found


def _of_jax(row: Row, checked: Any, arrays: Arrays, seed: Any) -> Call:
    """JAX's gradients by what is asked for, compiled; XLA leaves the forward pass out."""
    names = [t.name for t in checked.inputs]
    forward = row.jax
    assert forward is not None

    def backward(seed: Any, *inputs: Any) -> Any:
        _, pull = jax.vjp(forward, *inputs)
        found = dict(zip(names, pull(seed), strict=True))
        return [found[name] for name in row.wrt]

    compiled = jax.jit(backward)
    own = [jax.numpy.asarray(each) for each in (seed, *(arrays[n] for n in names))]
    return lambda: jax.block_until_ready(compiled(*own))


def _attention_graph(tensors: Arrays) -> dict[str, Any]:
    leaves = {n: tensors[n].clone().requires_grad_() for n in "QKV"}
    # Of one head: the def has one batch dimension.
    graph = torch.nn.functional.scaled_dot_product_attention(*(leaves[n][:, None] for n in "QKV"))
    return {"leaves": leaves, "graph": graph}


def measured(row: Row) -> dict[str, list[float]]:
    """Seconds per call of each contender, in turns."""
    runs = contenders(row)
    expected = [np.asarray(each.detach()).copy() for each in _as_list(runs["torch"]())]
    for name, run in runs.items():  # compiled here, and compared
        for own, theirs in zip(_as_list(run()), expected, strict=True):
            worst = np.max(np.abs(np.asarray(own) - theirs), initial=0)
            if worst > TOLERANCE * math.sqrt(theirs.size) * np.mean(np.abs(theirs)):
                raise SystemExit(f"{name} is wrong by {worst:g} on {row.name}")
    return samples(runs, ROUNDS, least=SAMPLE, pause=PAUSE, clock=CLOCK)


def _as_list(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple | list) else [found]


def main() -> None:
    """Measure, print, and write what ``--out`` says."""
    parser = command("backwards", __doc__)
    names = [row.name for row in ROWS]
    parser.add_argument("--rows", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    torch.set_num_threads(thread_count(None))
    print(f"{plural(thread_count(None), 'thread')}: microseconds of a call (medians), and the best")
    print("peer's over ours, of the medians and of the least samples")
    found: list[dict[str, Any]] = []
    for row in (row for row in ROWS if row.name in given.rows):
        taken = measured(row)
        times = {name: median(each) for name, each in taken.items()}
        least = {name: min(each) for name, each in taken.items()}
        ratio, ratio_least = (
            min(t for n, t in each.items() if n != "tcl") / each["tcl"] for each in (times, least)
        )
        shown = "".join(f"{name} {1e6 * t:9.1f}  " for name, t in times.items())
        print(f"{row.name:28}{ratio:6.2f}{ratio_least:8.2f}   {shown}", flush=True)
        about = {"name": row.name, "sizes": row.sizes, "wrt": row.wrt}
        ratios = {"ratio": round(ratio, 3), "ratio_of_least": round(ratio_least, 3)}
        found.append({**about, **ratios, "seconds": times, "samples": taken})
    for name, words in (("ratio", "medians"), ("ratio_of_least", "least samples")):
        mean = geometric_mean([each[name] for each in found])
        print(f"geometric mean of {len(found)} rows {mean:.2f}, by {words}")
    versions = {each.__name__: each.__version__ for each in (np, torch, jax)}
    write(given.out, {**versions, "threads": thread_count(None), "rows": found})


if __name__ == "__main__":
    main()
