"""Register tiles of nests that reduce nothing, whose points share what they read."""

from __future__ import annotations

from dataclasses import replace

from nests import sized

from tcl.codegen.choose.cpu.heuristics import heuristic
from tcl.codegen.devices import known_cpus
from tcl.codegen.loopir.lower import lower

_SUM = " + ".join(
    ["A(z, y, x)"]
    + [f"A(z{a}, y{b}, x{c})" for d in (" - 1", " + 1") for a, b, c in
       ((d, "", ""), ("", d, ""), ("", "", d))]
)  # fmt: skip
SEVEN = f"""float(N, N, M) A) -> (O) {{
    O(z, y, x) = {_SUM} where z in 1:N - 1, y in 1:N - 1, x in 1:M - 1 }}"""


def _rows(text: str, *shape: int) -> tuple[int, ...]:
    device = known_cpus.find("zen 4")
    assert device is not None
    program = lower(sized(text, shape))
    return (heuristic(program, program.nests[0], replace(device, threads=1)).register or ())[:2]


def test_stencils_share_along_two_dimensions() -> None:
    assert _rows(SEVEN, 62, 62, 78) == (2, 2)


def test_points_that_share_nothing_have_no_tile() -> None:
    copy = "float(N, P, M) A) -> (O) { O(z, y, x) = A(z, y, x) * 2 }"
    assert not any(_rows(copy, 62, 62, 78))
