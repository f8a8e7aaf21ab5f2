"""What peers compute, and how it is compared with the reference."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcl.arrays.random_inputs import random_inputs
from tcl.bench.lanes import expected
from tcl.bench.peers import numpy_peer
from tcl.bench.peers.library import exact_blocks, largest_term
from tcl.bench.rows import ROWS, Row
from tcl.bench.task import Peer, Task
from tcl.tuner.measure.correctness import mismatch
from tcl.tuner.measure.placement import PLACEMENTS

Array = np.ndarray[Any, np.dtype[Any]]


def test_expectations_of_a_sample_agree_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(r for r in ROWS if r.entry == "tmm")
    sizes = {"M": 9, "N": 5, "K": 4}
    arrays = random_inputs(row.checked, sizes)
    everything = expected(row, sizes, arrays)
    monkeypatch.setattr("tcl.bench.lanes._POINTS", 60)
    sample = expected(row, sizes, arrays)
    assert everything.picked is None
    assert sample.picked is not None
    assert (sample.picked[0], sample.picked[-1]) == (0, 8)
    np.testing.assert_array_equal(sample.arrays[0], everything.arrays[0][list(sample.picked)])


@pytest.mark.parametrize("spoil", ["value", "shape", "nan", "missing"])
@pytest.mark.parametrize("sampled", [False, True])
def test_wrong_results_are_found(
    spoil: str, sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sampled:
        monkeypatch.setattr("tcl.bench.lanes._POINTS", 60)
    row = next(r for r in ROWS if r.entry == "tmm")
    sizes = {"M": 9, "N": 5, "K": 4}
    a, b = random_inputs(row.checked, sizes)
    wanted = expected(row, sizes, (a, b))
    right = a @ b.T
    assert wanted.why_wrong([right]) is None
    if spoil == "value":
        right[0, 0] += 1
    elif spoil == "shape":
        right = right[:-1]
    elif spoil == "nan":
        right[1, 1] = np.nan
    assert wanted.why_wrong([right] * (spoil != "missing")) is not None


# Peers.


def check_forms(peer: Peer, row: Row) -> int:
    """Compare every form that a peer has for a def with the reference; how many there are."""
    sizes = SMALL.get(row.entry) or replace(row, sizes="test").values
    arrays = random_inputs(row.checked, sizes)
    names = tuple(t.name for t in row.checked.inputs)
    task = Task(row.text, row.entry, sizes, names, row.results)
    wanted = expected(row, sizes, arrays)
    count = 0
    for name, make in peer.forms(task, dict(zip(names, arrays, strict=True))):
        try:
            form = make()
        except RuntimeError as error:
            if "not tried" not in str(error):  # a type that is slow here
                raise
            continue
        form.run()
        for array, right in zip(form.results(), wanted.arrays, strict=True):
            exact = right.dtype.kind in "iu"
            found = array.astype(right.dtype) if exact else array
            assert mismatch(name, found, right, 1 if right.itemsize == 2 else 64) is None
        count += 1
    return count


DEFS = list({(row.entry, row.type): row for row in ROWS}.values())
SMALL = {
    "group_convolution": {"N": 2, "G": 2, "C": 2, "F": 3, "H": 5, "W": 4, "KH": 3, "KW": 2},
    "masked_convolution": {"B": 2, "C": 3, "H": 5, "W": 4, "F": 4, "K": 1},
}


@pytest.mark.parametrize("row", DEFS, ids=lambda r: f"{r.entry}, {r.type}")
def test_numpy_forms_are_right(row: Row) -> None:
    assert check_forms(numpy_peer.make(1), row) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "package", "complete"),
    [
        ("torch_peer", "torch", True),
        ("torch_compile", "torch", True),
        ("jax_peer", "jax", True),
        ("onnx_peer", "onnxruntime", False),
        ("halide_peer", "halide", False),
    ],
)
def test_other_peers_are_right(module: str, package: str, complete: bool) -> None:
    """In a process of their own, as they change what a process is."""
    pytest.importorskip(package)
    code = (
        f"import test_bench_peers as t; from tcl.bench.peers import {module} as m; "
        f"p = m.make(1); counts = [t.check_forms(p, r) for r in t.DEFS]; print(counts); "
        f"assert sum(counts) > 4 and (min(counts) > 0 or not {complete})"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), *sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("past", [p.past for p in PLACEMENTS.values()])
def test_outputs_of_peers_begin_where_they_are_asked_to(past: int) -> None:
    row = next(r for r in ROWS if r.entry == "matmul_int8")
    sizes = replace(row, sizes="test").values
    arrays = dict(zip("AB", random_inputs(row.checked, sizes), strict=True))
    task = Task(row.text, row.entry, sizes, ("A", "B"), row.results, past=past)
    for _, make in numpy_peer.make(1).forms(task, arrays):
        assert make().results()[0].ctypes.data % 64 == past


def test_terms_that_float32_adds_up_exactly() -> None:
    for depth, largest in ((1, 1), (1024, 128 * 128), (1025, 128 * 128), (5, 1 << 30)):
        blocks = exact_blocks(depth, largest)
        assert [k for b in blocks for k in range(b.start, b.stop)] == list(range(depth))
        assert len(blocks) == 1 or max(b.stop - b.start for b in blocks) * largest <= max(
            1 << 24, largest
        )
    assert largest_term("uint8") == 255 * 128
    assert largest_term("torch.int8") == 128 * 128
