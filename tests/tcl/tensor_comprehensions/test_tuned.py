"""Programs in the original's style that tune: short searches, on torch's CPU tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import of_brief_searches

import tcl.tensor_comprehensions as tc
import tcl.tensor_comprehensions.tclib as tclib

TENSORDOT = """
def tensordot(float(N, C1, C2, H, W) I0, float(N, C2, C3, H, W) I1) -> (O) {
    O(n, c1, c3, h, w) +=! I0(n, c1, c2, h, w) * I1(n, c2, c3, h, w)
}
"""
ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"


pytestmark = pytest.mark.usefixtures("quiet", "searches_in_threads")


def short() -> tc.TunerConfig:
    return tc.TunerConfig().threads(1).generations(1).pop_size(3)


def test_tuning_and_compiling_at_once() -> None:
    A, B = torch.randn(1000), torch.randn(1000)
    add = tc.autotune_and_compile(
        ADD, "add", A, B, starting_options="naive", tuner_config=short().number_elites(3)
    )
    C = add(A, B)
    tc.assert_almost_equal(C, torch.add(A, B), A, B)
    C.zero_()
    add(A, B, outputs=(C,))
    tc.assert_almost_equal(C, torch.add(A, B), A, B)


def test_what_was_tuned_is_loaded_by_the_lower_layer(tmp_path: Path) -> None:
    I0, I1 = torch.randn(2, 4, 3, 5, 4), torch.randn(2, 3, 4, 5, 4)
    (tmp_path / "cache").touch()  # as tempfile.NamedTemporaryFile makes it
    file = str(tmp_path / "cache")
    tuner = tc.Tuner(TENSORDOT, file)
    top1 = tuner.tune("tensordot", (I0, I1), tc.MappingOptions("naive"), short())
    (best,) = tc.MappingOptionsCache(file).load(TENSORDOT, "tensordot", (I0, I1), 10)
    assert str(top1) == str(best)
    O = tclib.compile(TENSORDOT, "tensordot", (I0, I1), best).run((I0, I1), ())
    ref = tclib.compile(TENSORDOT, "tensordot", (I0, I1), tc.MappingOptions("naive"))
    tc.assert_almost_equal(ref.run((I0, I1), ()), O, I0, I1, operations=6)
    nothing = tc.MappingOptionsCache(file).load(
        tc=TENSORDOT, entry_point="tensordot", inputs=(I1, I0.flip(0)), num_candidates=1
    )
    assert nothing == []


def test_gradients_of_what_is_tuned() -> None:
    text = """
    def square(float(N) A) -> (O) { O(n) = A(n) * A(n) }
    def square_grad(float(N) A, float(N) d_O) -> (d_A) { d_A(n) = 2 * A(n) * d_O(n) }
    """
    tuned = tc.make_autotuned_options_factory(starting_options="naive", tuner_config=short())

    def generate(tc_str: str, entry_point: str, *inputs: torch.Tensor) -> Any:
        if entry_point == "square":
            return tc.MappingOptions("naive")
        return tuned(tc_str, entry_point, *inputs)

    T = tc.define(text, generate)
    A = torch.randn(500, requires_grad=True)
    for _ in range(2):  # the second time nothing is tuned
        A.grad = None
        tc.make_autograd(T.square, T.square_grad)(A).sum().backward()
    torch.testing.assert_close(A.grad, 2 * A.detach())


SUMS = "def sums(float(N, K) I) -> (S) { S(n) +=! I(n, r_k) }"
REINFORCED = f"""
import sys
import torch
import tcl.tensor_comprehensions as tc

SUMS = "{SUMS}"

if __name__ == "__main__":
    tc.SILENT = True
    T = tc.define(SUMS, tc.make_autotuned_options_factory(
        tuner_config=tc.TunerConfig().threads(1).generations(1).pop_size(3),
        cache_filename=sys.argv[1], load_from_cache=True, store_to_cache=True))
    I = torch.randn(8, 60)
    torch.testing.assert_close(T.sums(I), I.sum(1), rtol=1e-5, atol=1e-5)
"""


def test_reinforcement_over_two_processes(tmp_path: Path) -> None:
    program, file = tmp_path / "program.py", str(tmp_path / "cache")
    program.write_text(REINFORCED)
    data = torch.randn(8, 60)
    stored = tc.make_autotuned_options_factory(
        starting_options="naive", tuner_config=short(), cache_filename=file, store_to_cache=True
    )
    S = tc.define(SUMS, stored).sums(data)
    torch.testing.assert_close(S, data.sum(1), rtol=1e-5, atol=1e-5)
    (first,) = tc.MappingOptionsCache(file).load(SUMS, "sums", (data,), 10)
    command = [sys.executable, str(program), file]
    done = subprocess.run(
        command, env=of_brief_searches(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = tc.MappingOptionsCache(file).load(SUMS, "sums", (data,), 10)
    # The second search may end with what it began with.
    assert len(found) in (1, 2) and str(first) in map(str, found)


def test_a_program_that_loads_or_else_tunes(tmp_path: Path) -> None:
    file, tuned = str(tmp_path / "cache"), []

    def generate(tc_str: str, entry_point: str, *inputs: torch.Tensor) -> Any:
        loaded = tc.make_load_from_cache_options_factory(file)(tc_str, entry_point, *inputs)
        if loaded is not None:
            return loaded
        tuned.append(entry_point)
        return tc.make_autotuned_options_factory(
            starting_options="naive",
            tuner_config=short().devices("0"),
            cache_filename=file,
            store_to_cache=True,
        )(tc_str, entry_point, *inputs)

    A, B = torch.randn(300), torch.randn(300)
    for _ in range(2):
        tc.assert_almost_equal(tc.define(ADD, generate).add(A, B), A + B, A, B)
    assert tuned == ["add"]
