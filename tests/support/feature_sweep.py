"""Compiles kernels for random sets of features, in a process of its own: LLVM ends a process that
asks it for what it cannot do.

``python feature_sweep.py SEED COUNT [NAME]``: random sets of the CPU of this name (``host``: this
machine), else of several. ``python feature_sweep.py each``: a CPU without one feature, for
float16. Each set stands on a line before anything is compiled for it.
"""

from __future__ import annotations

import random
import sys
import warnings
from dataclasses import replace

from foreign_kernels import build, declared, undefined
from machine_cases import CASES, DEFAULT, work

from tcl.codegen.devices import features
from tcl.codegen.devices.cpu import CpuProfile, host_cpu, narrowed
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check import check
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.grammar.types import SCALAR_TYPES
from tcl.tuner.space.cpu.mapping import MappingSpace

KNOWN = ("Granite Rapids", "Sapphire Rapids", "Zen 5", "Zen 3", "Skylake-SP", "Neoverse V2")
_FOUND = {"memset", "_GLOBAL_OFFSET_TABLE_", "fmod", "fmodf", "fma", "fmaf"}
"""What kernels may call besides what their source declares: functions of C, which are there."""
_OPERATORS = "def f({0}(N) a, {0}(N) b) -> (O, P, Q, R{1}) {{ O(i) = a(i) != b(i) \
P(i) = a(i) < b(i) ? a(i) : b(i) Q(i) = a(i) <= b(i) R max=! a(i) {2} }}"
_ARITHMETIC = "S +=! a(i) * b(i) T(i) = max(a(i), b(i)) U(i) = a(i) / b(i) V(i) = a(i) % b(i)"


_CASTS = " ".join(f"O{k}(i) = {t}(a(i))" for k, t in enumerate(SCALAR_TYPES))
_OUTPUTS = ", ".join(f"O{k}" for k in range(len(SCALAR_TYPES)))


def operators(type_: str) -> SizedDef:
    """Comparisons, arithmetic and sums in a type."""
    more = ("", "") if type_ == "bool" else (", S, T, U, V", _ARITHMETIC)
    return _sized(_OPERATORS.format(type_, *more))


def casts(type_: str) -> SizedDef:
    """To all types."""
    return _sized(f"def f({type_}(N) a) -> ({_OUTPUTS}) {{ {_CASTS} }}")


def _sized(text: str) -> SizedDef:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (checked,) = check(text).values()
    return infer(checked, {t.name: (67,) for t in checked.inputs})


def missing(sized: SizedDef, options: MappingOptions, device: CpuProfile) -> set[str]:
    """What a kernel calls that a loader does not find."""
    built = build(sized, options, device)
    return undefined(built.code.object_code) - declared(built.text) - _FOUND


def _device(rng: random.Random, base: CpuProfile) -> CpuProfile:
    """Without one to six features that it may be without."""
    there = sorted(base.present - features.BASELINE[base.architecture])
    text = ",".join(f"-{f}" for f in rng.sample(there, min(len(there), rng.randrange(1, 7))))
    print(base.title, text, end=" ")
    return replace(narrowed(base, text), threads=rng.choice((1, 2)))


def _sized_def(rng: random.Random) -> SizedDef:
    kind = rng.randrange(3)
    if kind:
        type_ = rng.choice(list(SCALAR_TYPES))
        print(("operators", "casts")[kind - 1], type_, flush=True)
        return (operators, casts)[kind - 1](type_)
    case = rng.choice(CASES)
    print(case.name, flush=True)
    return work(case).sized


def _options(rng: random.Random, sized: SizedDef, device: CpuProfile) -> MappingOptions:
    """Random ones, or those that are chosen."""
    space = MappingSpace(lower(sized), device)
    drawn = space.space.sample(rng) if rng.random() < 0.5 else None
    return DEFAULT if drawn is None else space.to_options(drawn)


def each() -> None:
    """Conversions of float16 without any one feature of vectors."""
    base, seen, sized = find("Sapphire Rapids"), set[frozenset[str]](), casts("float16")
    assert base is not None
    for feature in sorted(f for f in base.present if f.startswith(("avx512", "f16c", "fma"))):
        device = narrowed(base, f"-{feature}")
        if device.present not in seen:
            print(f"-{feature}", flush=True)
            seen.add(device.present)
            assert not missing(sized, DEFAULT, device)


def sweep(seed: int, count: int, name: str) -> None:
    """Random kernels for random sets."""
    rng = random.Random(seed)
    bases = [p for p in map(find, [name] if name else KNOWN) if p is not None] or [host_cpu()]
    for _ in range(count):
        device, sized = _device(rng, rng.choice(bases)), _sized_def(rng)
        unknown = missing(sized, _options(rng, sized, device), device)
        assert not unknown, unknown


if __name__ == "__main__":
    if sys.argv[1] == "each":
        each()
    else:
        sweep(int(sys.argv[1]), int(sys.argv[2]), " ".join(sys.argv[3:]))
