"""Measures the default options of other known processors on this one.

    python -m benchmarks.regrets [--rows "softmax*,layernorm"] [--cpus "Zen 3,Zen 4"] [--out FILE]

It shows how much is lost if the model of a core does not fit the machine. Options are chosen for
each processor, compiled for this one, and timed in turns in fresh processes, on arrays at 64 bytes
and as NumPy places them. The result is the time relative to that of this machine's own default.
Options that this machine cannot have (dot products, a matrix unit) leave a row out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from statistics import geometric_mean, median

from benchmarks.common import command, write
from benchmarks.tuned import in_fresh_process
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.program_backend import CpuBackend
from tcl.bench.rows import SUITE, Row, select
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.common.errors import TclError
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.evaluate import compile_candidate
from tcl.tuner.measure.placement import shown

CPUS = "Haswell,Skylake-SP,Ice Lake-SP,Sapphire Rapids,Zen 2,Zen 3,Zen 4,Zen 5"
OWN = "this machine"
UNMEASURED = "this machine, its stores not measured"


def profiles(names: str) -> dict[str, CpuProfile]:
    """The processors whose defaults are timed, by name; this one is the first."""
    host = host_cpu()
    found = {OWN: host, UNMEASURED: replace(host, stores=None)}
    for name in names.split(","):
        profile = known_cpus.find(name)
        if profile is None:
            raise SystemExit(f"no processor is known as {name!r}")
        found[name] = profile
    return found


def times(row: Row, cpus: Mapping[str, CpuProfile]) -> dict[str, dict[str, float]]:
    """Seconds by processor and placement."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = list(random_inputs(row.checked, row.values, 0))
        backend = CpuBackend.create(row.text, row.entry, inputs, folder)
        codes: dict[str, bytes] = {}
        for name, cpu in cpus.items():
            code = compile_candidate(backend, chosen(backend, cpu))
            if isinstance(code, bytes):
                codes[name] = code
        distinct = list(dict.fromkeys(codes.values()))
        raced = in_fresh_process(backend, distinct, 1)
    found = [{shown(place): median(samples) for place, samples in each} for each in raced]
    return {name: found[distinct.index(code)] for name, code in codes.items()}


def chosen(backend: CpuBackend, cpu: CpuProfile) -> MappingOptions:
    """The default of a processor with nothing left open."""
    sized = backend.sized
    try:
        planned = plan(sized, DEFAULT, replace(cpu, threads=1), cpu_layouts(sized))
    except TclError:
        return DEFAULT
    options = DEFAULT
    for position, choices in enumerate(planned.options.values()):
        options = options.with_nest(position, choices)
    return options


def main() -> None:
    parser = command("regrets", __doc__)
    parser.add_argument(
        "--rows", default="", help="comma-separated names or patterns; default: the suite"
    )
    parser.add_argument("--cpus", default=CPUS)
    given = parser.parse_args()
    cpus = profiles(given.cpus)
    regrets: dict[str, dict[str, list[float]]] = {}
    for row in select(given.rows) if given.rows else SUITE:
        found = times(row, cpus)
        regrets[row.name] = {
            name: [
                round(t / own, 3) for t, own in zip(each.values(), found[OWN].values(), strict=True)
            ]
            for name, each in found.items()
        }
        print(
            row.name,
            {name: each for name, each in regrets[row.name].items() if name != OWN},
            flush=True,
        )
    summary = {}
    for name in cpus:
        both = [each[name] for each in regrets.values() if name in each]
        summary[name] = [
            {"mean": round(geometric_mean(x), 3), "most": max(x)} for x in zip(*both, strict=True)
        ]
        print(
            f"{name:40} "
            + "  ".join(f"mean {s['mean']:.3f}, most {s['most']:.2f}" for s in summary[name])
        )
    stores = host_cpu().stores
    write(given.out, {"stores": stores and asdict(stores), "summary": summary, "rows": regrets})


if __name__ == "__main__":
    main()
