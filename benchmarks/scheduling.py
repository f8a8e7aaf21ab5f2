"""What it takes to schedule a product: complete options, as a search's candidates have, and none.

    python -m benchmarks.scheduling                  # medians of 200, in milliseconds
    python -m benchmarks.scheduling --calls 50 --out FILE

Nothing is emitted or compiled. The devices are data, so that any machine will do. Times are those
of this thread alone: what else runs on the machine counts for little.
"""

from __future__ import annotations

import gc
import time

from benchmarks.common import Call, command, medians, write
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import default_plan, schedule
from tcl.codegen.schedule.gpu import schedule as schedule_gpu
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

CPU = CpuProfile(
    "skylake-avx512", "+avx2,+fma,+avx512f", "x86_64-unknown-linux-gnu", 512, 2, 32 << 10, 1 << 20,
    32 << 20,
)  # fmt: skip
DEFAULT = MappingOptions("mlp")
CANDIDATE = MappingOptions.from_json(
    '{"preset":"naive","nests":[{"tile":[0,64,256],"order":[1,2,0],"inner_order":[1,0,2],'
    '"vectorize":[1,16],"register":[6,4,4],"stage":[-1,2],"chunk":[96,0],"fuse":false,'
    '"stream":false,"prefetch":[]}]}'
)
SPLIT = MappingOptions.from_json(
    '{"preset":"mlp","nests":[{"tile":[0,0,16],"order":[],"inner_order":[],"vectorize":[-1,1],'
    '"register":[2,2,4],"stage":[2,2],"chunk":[32,32],"fuse":false,"stream":false,"prefetch":[],'
    '"threads":[16,16,1],"split":[0,0,8],"buffers":3,"mma":[]}]}'
)


def product(m: int, n: int, k: int) -> SizedDef:
    """A product of matrices of float32."""
    text = "def matmul(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    return infer(check(text)["matmul"], {"A": (m, k), "B": (k, n)})


def cases() -> dict[str, Call]:
    """What is timed, by name. Scheduling begins with lowering."""
    square, deep = product(512, 512, 512), product(128, 128, 8192)
    lies, lies_deep = cpu_layouts(square), gpu_layouts(deep)

    def first_default() -> object:
        default_plan.cache_clear()
        return schedule(square, DEFAULT, CPU, lies)

    return {
        "CPU, lowering alone": lambda: lower(square, lies),
        "CPU, complete candidate": lambda: schedule(square, CANDIDATE, CPU, lies),
        "CPU, default": first_default,
        "H200, lowering alone": lambda: lower(deep, lies_deep),
        "H200, complete candidate in two nests": lambda: schedule_gpu(deep, SPLIT, H200, lies_deep),
        "H200, default in two nests": lambda: schedule_gpu(deep, DEFAULT, H200, lies_deep),
    }


def main() -> None:
    parser = command("scheduling", __doc__)
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    gc.disable()
    times = medians(cases(), given.calls, calls=1, clock=time.thread_time)
    found = {name: round(1e3 * seconds, 3) for name, seconds in times.items()}
    for name, milliseconds in found.items():
        print(f"{milliseconds:8.2f} ms  {name}")
    write(given.out, found)


if __name__ == "__main__":
    main()
