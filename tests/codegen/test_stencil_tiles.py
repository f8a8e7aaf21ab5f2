"""Register tiles of nests that reduce nothing, whose points share what they read."""

from __future__ import annotations

from dataclasses import replace

from nests import sized

from tcl.codegen.choose.cpu.access_costs import access_of
from tcl.codegen.choose.cpu.heuristics import heuristic
from tcl.codegen.choose.cpu.register_tiles import fastest
from tcl.codegen.devices import known_cpus
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import operands

_SUM = " + ".join(
    ["A(z, y, x)"]
    + [f"A(z{a}, y{b}, x{c})" for d in (" - 1", " + 1") for a, b, c in
       ((d, "", ""), ("", d, ""), ("", "", d))]
)  # fmt: skip
SEVEN = f"""float(N, N, M) A) -> (O) {{
    O(z, y, x) = {_SUM} where z in 1:N - 1, y in 1:N - 1, x in 1:M - 1 }}"""


def _rows(text: str, *shape: int, name: str = "zen 4") -> tuple[int, ...]:
    device = known_cpus.find(name)
    assert device is not None
    program = lower(sized(text, shape))
    return (heuristic(program, program.nests[0], replace(device, threads=1)).register or ())[:2]


def test_stencils_share_along_two_dimensions() -> None:
    assert _rows(SEVEN, 62, 62, 78) == (2, 2)


def test_points_that_share_nothing_have_no_tile() -> None:
    copy = "float(N, P, M) A) -> (O) { O(z, y, x) = A(z, y, x) * 2 }"
    assert not any(_rows(copy, 62, 62, 78))


def test_rows_share_what_quotients_up_to_a_bound_select() -> None:
    """An image that is enlarged: every other row reads the same ones."""
    enlarged = """float(H, W) G) -> (O) {
        O(y, x) = G(y / 2, x / 2) + G(y1, x1) where y in 0:2 * H, x in 0:2 * W,
            y1 = min((y + 1) / 2, H - 1), x1 = min((x + 1) / 2, W - 1) }"""
    assert _rows(enlarged, 150, 200, name="Cascade Lake")[0] in (2, 3, 4)


def test_a_filter_at_edges_has_lanes_in_chunks_too() -> None:
    """Places are bounded in the first and the last of 13 vectors, whichever chunk these are in;
    wider tiles would take more of the row there."""
    blurred = """float(H, W) I, float(5) K) -> (A) {
        A(y, j) +=! I(y, min(max(2 * j + k - 2, 0), W - 1)) * K(k) where j in 0:W / 2 }"""
    device = known_cpus.find("Cascade Lake")
    assert device is not None
    program = lower(sized(blurred, (301, 400), (5,)))
    (nest,) = program.nests
    dims = (nest.dims[0], replace(nest.dims[1], extent=32), nest.dims[2])
    found = fastest(program, replace(nest, dims=dims), replace(device, threads=1))
    assert found.lane == "s0.j" and found.sizes.get("s0.j", 1) == 1


def test_what_a_condition_guards_is_not_transposed() -> None:
    guarded = """float(H, W, 3) P) -> (O) {
        O(y, x, c) +=! y + i >= 1 && y + i <= H ? P(y + i - 1, x, c) : 0
            where y in 0:H, i in 0:3 }"""
    program = lower(sized(guarded, (63, 95, 3)))
    (nest,) = program.nests
    access = access_of(program, nest, operands(nest.point)[0])
    assert not access.transposed("s0.c", "s0.y", 16)
    assert replace(access, total=True).transposed("s0.c", "s0.y", 16)


def test_filters_have_no_more_rows_than_pay() -> None:
    device = known_cpus.find("Cascade Lake")
    assert device is not None
    text = """uint16(H, W) I, float(7) K) -> (A) {
        A(i, x) +=! float(I(i + k, x)) * K(k) where i in 0:H - 6 }"""
    program = lower(sized(text, (430, 321), (7,)))
    found = fastest(program, program.nests[0], replace(device, threads=1))
    assert (found.lane, found.sizes["s0.i"]) == ("s0.x", 4)
