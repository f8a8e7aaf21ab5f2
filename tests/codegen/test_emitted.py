"""What is emitted is what ``benchmarks/results/emitted.json.gz`` keeps of it."""

# The folder of the benchmarks is not where pytest looks by itself.

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from places import ROOT

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("benchmarks are in the source tree only", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import emitted, race
from tcl.selection.best_options import DEFAULT

KEPT = emitted.read()


def test_a_sample_is_emitted_as_it_is_kept() -> None:
    """After a change that was meant: ``python -m benchmarks.emitted --record``."""
    cases = list(KEPT)[::300]
    assert dict(zip(cases, emitted.fingerprints(cases), strict=True)) == {c: KEPT[c] for c in cases}


def test_all_defs_are_kept_and_none_has_failed() -> None:
    assert {case.name for case in KEPT} == set(emitted.all_names())
    assert not [case for case, said in KEPT.items() if said.startswith("failed")]


@pytest.mark.parametrize("target", [*emitted.CPUS, *emitted.GPUS])
def test_everything_of_a_case_counts(target: str) -> None:
    base = emitted.Case(
        target, "emitted.gathered", "B=5,L=7,E=19,D=12", "plain", '{"preset":"mlp"}'
    )
    others = [
        replace(base, sizes="B=5,L=7,E=20,D=12"),
        *(replace(base, way=way) for way in emitted.WAYS[1:]),
        replace(base, options='{"preset":"naive"}'),
        replace(base, name="matmul.matmul", sizes="M=4,N=8,K=3"),
    ]
    assert len(set(emitted.fingerprints([base, *others]))) == len(others) + 1
    assert emitted.fingerprints([base]) == emitted.fingerprints([base])


def test_what_is_refused_is_no_failure() -> None:
    options = '{"nests":[{"register":[64,64]}],"preset":"naive"}'
    case = emitted.Case("avx2", "matmul.matmul", "M=512,N=512,K=3", "plain", options)
    broken = replace(case, options="{}", name="matmul.no_such_def")
    refused, failed = emitted.fingerprints([case, broken])
    assert refused == emitted.REFUSED
    assert failed.startswith("failed: KeyError")


@pytest.mark.parametrize("threads", [1, 4])
def test_races_of_options_begin_with_the_code_of_the_default(threads: int) -> None:
    """Also where a def has a scatter, whose loops no option decides."""
    for name in ("instance_norm_backward", "region_rollup", "point_splat_depth"):
        made = race.backend(name, race.Settings(threads, 1.0))
        assert made.compile(race.completed(made)) == made.compile(DEFAULT)
