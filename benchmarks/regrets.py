"""Measures the default options of other known processors on this one.

    python -m benchmarks.regrets [--rows "softmax*,layernorm"] [--cpus "Zen 3,Zen 4"] [--out FILE]

It shows how much is lost if the model of a core does not fit the machine. Options are chosen for
each processor, compiled for this one, and timed in turns in fresh processes, on arrays at 64 bytes
and as NumPy places them. The result is the time relative to that of this machine's own default.
Products by instructions that this machine may lack leave a row out.
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
from tcl.codegen.common.envelope import seal
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.schedule.cpu import plan
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.placement import shown

CPUS = "Haswell,Skylake-SP,Ice Lake-SP,Sapphire Rapids,Zen 2,Zen 3,Zen 4,Zen 5"
OWN = "this machine"
UNMEASURED = "this machine, not measured"


def profiles(names: str) -> dict[str, CpuProfile]:
    """The processors whose defaults are timed, by name; this one is the first."""
    host = host_cpu()
    found = {OWN: host, UNMEASURED: replace(host, memory=None)}
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
        backend = CpuBackend.described(row.text, row.entry, inputs).holding(inputs, folder)
        codes: dict[str, bytes] = {}
        for name, cpu in cpus.items():
            code = default_code(backend, cpu)
            if code is not None:
                codes[name] = code
        distinct = list(dict.fromkeys(codes.values()))
        raced = in_fresh_process(backend, distinct, 1)
    found = [{shown(place): median(samples) for place, samples in each} for each in raced]
    return {name: found[distinct.index(code)] for name, code in codes.items()}


def default_code(backend: CpuBackend, cpu: CpuProfile) -> bytes | None:
    """The default schedule of a processor, compiled for this machine; None if it has products by
    instructions that this machine may lack."""
    sized, host = backend.sized, replace(host_cpu(), threads=1)
    planned = plan(sized, DEFAULT, replace(cpu, threads=1), cpu_layouts(sized))
    narrow = any(any(o.dot or ()) or o.mma for o in planned.options.values())
    if narrow and not cpu.present <= host.present:
        return None
    program = planned.scheduled()
    source = emit_program(program, host)
    return seal(kernel_code(program, source, compile_object(source.text, host), host))


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
    memory = host_cpu().memory
    write(given.out, {"memory": memory and asdict(memory), "summary": summary, "rows": regrets})


if __name__ == "__main__":
    main()
