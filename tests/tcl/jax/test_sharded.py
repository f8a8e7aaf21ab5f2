"""Defs under ``jax.shard_map``: outputs vary as those of JAX's own operations do."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import jax, jax.numpy as jnp, numpy as np, tcl
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mm = tcl.jax.call('''
def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
def mm_grad(float(M, K) A, float(K, N) B, float(M, N) d_C) -> (d_A, d_B) {
    d_A(m, k) +=! d_C(m, n) * B(k, n)
    d_B(k, n) +=! A(m, k) * d_C(m, n)
}
''', "mm", backward="mm_grad")
scale = tcl.jax.call('''
def scale(float(N) A, float s) -> (B) { B(n) = A(n) * s }
def scale_grad(float(N) A, float s, float(N) d_B) -> (d_A, d_s) {
    d_A(n) = d_B(n) * s
    d_s +=! d_B(n) * A(n)
}
''', "scale", backward="scale_grad")
mesh = Mesh(jax.devices(), ("x",))
A, B = jnp.arange(32.0).reshape(8, 4) % 5, jnp.arange(20.0).reshape(4, 5) % 7
square, vector = jnp.arange(16.0).reshape(4, 4) / 16, jnp.arange(8.0)

def apart(f, inputs, outputs):
    return jax.shard_map(f, mesh=mesh, in_specs=inputs, out_specs=outputs)

def refused(f, *inputs):
    try:
        f(*inputs)
    except (ValueError, TypeError) as error:
        return str(error).replace("'mm'", "'matmul'").split(chr(10))[0]
    return "nothing was refused"

halves = (P("x"), P())
cases = {
    "halves": lambda f: apart(f, halves, P("x"))(A, B),
    "the same everywhere": lambda f: apart(f, (P(), P()), P())(A, B),
    "halves of what is summed": lambda f: apart(
        lambda a, b: jax.lax.psum(f(a, b), "x"), (P(None, "x"), P("x")), P()
    )(A, B),
    "gradients": lambda f: jax.grad(
        lambda a, b: (apart(f, halves, P("x"))(a, b) ** 2).sum(), (0, 1)
    )(A, B),
    "gradients of parts, summed": lambda f: apart(
        lambda a, b: jax.grad(lambda b: (f(a, b) ** 2).sum())(b), halves, P()
    )(A, B),
    "what scan carries": lambda f: apart(
        lambda a, b: jax.lax.scan(lambda c, _: (f(c, b), None), a, None, length=3)[0],
        halves, P("x"),
    )(square, square),
    "gradients through scan": lambda f: jax.grad(lambda b: apart(
        lambda a, b: jax.lax.scan(lambda c, _: (f(c, b), None), a, None, length=3)[0],
        halves, P("x"),
    )(square, b).sum())(square),
    "vmap inside": lambda f: apart(jax.vmap(f, (0, None)), halves, P("x"))(A[:, None], B),
    "vmap outside": lambda f: jax.vmap(apart(f, halves, P("x")), (0, None))(A[None], B),
    "remat": lambda f: jax.grad(
        lambda a: apart(jax.checkpoint(f), halves, P("x"))(a, B).sum()
    )(A),
    "unchecked": lambda f: jax.shard_map(
        f, mesh=mesh, in_specs=halves, out_specs=P("x"), check_vma=False
    )(A, B),
    "wrong out_specs": lambda f: refused(apart(f, halves, P()), A, B),
    "wrong out_specs, compiled": lambda f: refused(jax.jit(apart(f, halves, P())), A, B),
    "a carry that varies later": lambda f: refused(apart(
        lambda a, b: jax.lax.scan(lambda c, _: (f(a, c), None), b, None, length=2)[0],
        halves, P("x"),
    ), square, square),
}
for name, case in cases.items():
    found, expected = case(mm), case(jnp.matmul)
    same = jax.tree.all(jax.tree.map(
        lambda x, y: x == y if isinstance(x, str) else np.allclose(x, y), found, expected
    ))
    assert same and found != "nothing was refused", (name, found, expected)
gradient = jax.grad(lambda s: apart(scale, (P("x"), P()), P("x"))(vector, s).sum())(2.0)
assert float(gradient) == 28, gradient
both = Mesh(np.reshape(jax.devices(), (1, 2)), ("x", "y"))
one, other = P("x", None), P(None, "y")
found = jax.shard_map(mm, mesh=both, in_specs=(one, other), out_specs=P("x", "y"))(A, B[:, :4])
np.testing.assert_array_equal(found, A @ B[:, :4])
spread = jax.device_put(A, NamedSharding(mesh, P("x", None)))  # XLA gathers what lies on several
assert len(spread.devices()) == 2
np.testing.assert_array_equal(jax.jit(mm)(spread, B), A @ B)
assert len(apart(mm, halves, P("x"))(spread, B).devices()) == 2

with jax.set_mesh(jax.make_mesh((2,), ("x",))):  # whose axes are part of types
    a, b = jax.reshard(A, P("x")), jax.reshard(B, P())
    np.testing.assert_array_equal(mm(a, b), A @ B)
    np.testing.assert_array_equal(
        jax.grad(lambda a: mm(a, b).sum())(a), jax.grad(lambda a: (a @ B).sum())(A)
    )
"""


def test_what_varies_over_a_mesh() -> None:
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
