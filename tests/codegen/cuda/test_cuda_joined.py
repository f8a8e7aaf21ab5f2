"""Products that share their blocks, as one needs what another one made."""

from __future__ import annotations

from cuda_checks import Work, case_of, check_cases

from examples import definitions, sized_for
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import DEFAULT
from tcl.codegen.schedule.gpu import schedule

SIZES = (
    "B=2,RESIDUAL_C=20,RECEPTIVE_FIELD=130,DILATION_C=32,SKIP_C=40,DILATION=5",
    "B=1,RESIDUAL_C=8,RECEPTIVE_FIELD=41,DILATION_C=8,SKIP_C=12,DILATION=6",
)


def test_a_cell_of_a_network_takes_one_launch() -> None:
    checked = definitions("wavenet")["wavenet"]
    cases = []
    for sizes in SIZES:
        given = dict(parse_sizes(sizes, checked))
        work = Work(sizes, sized_for(checked, given), random_inputs(checked, given))
        cases.append(case_of(work, DEFAULT))
    # Rows of 41 points begin at no vectors.
    assert [len(c.module.launches) for c in cases] == [1, 5]
    check_cases(cases).none()


def test_long_products_keep_their_own_blocks() -> None:
    """Each has more work than a launch takes."""
    checked = definitions("wavenet")["wavenet"]
    sizes = "B=1,RESIDUAL_C=256,RECEPTIVE_FIELD=65536,DILATION_C=256,SKIP_C=256,DILATION=32"
    sized = sized_for(checked, dict(parse_sizes(sizes, checked)))
    assert len(schedule(sized, DEFAULT, H200).kernels) > 1


def test_small_layers_take_one_launch() -> None:
    """Each block has all layers of a row, whatever their widths are."""
    checked = definitions("mlp3")["mlp3"]
    cases = []
    for sizes in ("B=67,N=33,O=20,P=7,Q=2", "B=70,N=5,O=64,P=31,Q=3"):
        given = dict(parse_sizes(sizes, checked))
        work = Work(sizes, sized_for(checked, given), random_inputs(checked, given))
        cases.append(case_of(work, DEFAULT))
    assert [len(c.module.launches) for c in cases] == [1, 1]
    check_cases(cases).none()
