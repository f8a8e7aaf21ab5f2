"""How often warps execute instructions, by the reader of machine code that the benchmarks have."""

from __future__ import annotations

import pytest
from places import ROOT

if not (ROOT / "README.md").exists():
    pytest.skip("runs in the source tree only", allow_module_level=True)

from benchmarks import instructions, machine_code, sass

_LOOP = """
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   S2R R3, SR_CTAID.X ;
        /*0020*/                   LEA R0, R3, R0, 0x6 ;
        /*0030*/                   SHF.R.U32.HI R1, RZ, 0x4, R0 ;
        /*0040*/                   ISETP.GE.U32.AND P0, PT, R0, c[0x0][0x218], PT ;
        /*0050*/               @P0 EXIT ;
        /*0060*/                   FSETP.GT.AND P2, PT, R9, 8, PT ;
        /*0070*/                   MOV R2, RZ ;
.L_x_1:
        /*0080*/                   FFMA R4, R5, R6, R4 ;
        /*0090*/              @!PT LDS RZ, [RZ] ;
        /*00a0*/               @P2 BRA `(.L_x_3) ;
        /*00b0*/                   IADD3 R2, R2, 0x1, RZ ;
        /*00c0*/                   ISETP.LE.U32.AND P1, PT, R2, R1, PT ;
        /*00d0*/               @P1 BRA `(.L_x_1) ;
        /*00e0*/                   IMAD.WIDE R6, R0, 0x4, R8 ;
        /*00f0*/                   STG.E [R6.64], R4 ;
        /*0100*/                   EXIT ;
.L_x_3:
        /*0110*/                   BRA `(.L_x_3);
"""


def test_warps_loop_as_long_as_their_last_thread() -> None:
    """Threads loop once more for every 16 before them; those from the size on leave at once."""
    found = sass.executed(sass.parsed(_LOOP), 2, 64, 1, [80])
    # Four warps; the fourth has no thread below 80, and the third has 16 of them.
    assert found["S2R"] == 8
    assert found["FFMA"] == found["@LDS"] == 2 + 4 + 5
    assert found["STG.E"] == 3
    assert found["EXIT"] == 4 + 3
    assert instructions.read(found)["branch"] == 4 + 3 + 2 * 11


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("SHF.R.U32.HI R1, RZ, 0x3, R0", 12),
        ("LOP3.LUT R1, R0, 0x1c, RZ, 0xc0, !PT", 0),
        ("LOP3.LUT R1, R0, 0x1c, RZ, 0xfc, !PT", 0x7F),
        ("IMAD R1, R0, 0x5, -R0", 396),
        ("LEA.HI R1, R0, R0, RZ, 0x1d", 99 + 12),
        ("IMAD.HI.U32 R1, R0, -0x55555555, RZ", 66),
        ("PRMT R1, R0, 0x9910, RZ", 99),
        ("SEL R1, R0, 0x7, !PT", 7),
        ("VIMNMX R1, R0, 0x7, PT", 7),
        ("HFMA2.MMA R1, -RZ, RZ, 0, 5.9604644775390625e-08", 1),
        ("IADD3 R1, R0, -0x1, RZ", 98),
    ],
)
def test_integers_are_computed(line: str, value: int) -> None:
    """A store is reached only with the value that the manual's meaning of an instruction gives."""
    text = f"""
        /*0000*/ MOV R0, 0x63 ;
        /*0010*/ {line} ;
        /*0020*/ ISETP.NE.AND P0, PT, R1, {hex(value)}, PT ;
        /*0030*/ @P0 EXIT ;
        /*0040*/ STG.E [R6.64], R4 ;
        /*0050*/ EXIT ;
    """
    assert sass.executed(sass.parsed(text), 1, 32, 0)["STG.E"] == 1


_LAST = """
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   ISETP.NE.AND P1, PT, R0, RZ, PT ;
        /*0020*/               @P1 BRA `(.L_x_1) ;
        /*0030*/                   MOV R5, 0x3 ;
        /*0040*/                   ATOMG.E.INC.STRONG.GPU PT, R2, desc[UR6][R2.64], R5 ;
        /*0050*/                   ISETP.EQ.AND P0, PT, R2, 0x3, PT ;
.L_x_1:
        /*0060*/                   BAR.RED.OR.DEFER_BLOCKING 0x0, P0 ;
        /*0070*/                   B2R.RESULT RZ, P0 ;
        /*0080*/              @!P0 EXIT ;
        /*0090*/                   STG.E [R6.64], R4 ;
        /*00a0*/                   EXIT ;
"""


def test_all_threads_of_a_last_block_go_on() -> None:
    """Eight groups of four blocks with two warps each."""
    found = sass.executed(sass.parsed(_LAST), 32, 64, 0, last=0.25)
    assert found["ATOMG.E.INC.STRONG.GPU"] == 32
    assert found["STG.E"] == 8 * 2
    assert sass.executed(sass.parsed(_LAST), 32, 64, 0)["STG.E"] == 0


def test_registers_are_read_from_two_banks() -> None:
    """R4 and R6 lie in one, R5 in the other; what is reused is not read again, in its place alone,
    and by the next instruction alone."""
    text = """
        /*0000*/                   FFMA R0, R4.reuse, R6, R8 ;
        /*0010*/                   FFMA R1, R4, R5, R8 ;
        /*0020*/                   FFMA R2, R4.reuse, R5, R9 ;
        /*0030*/                   IADD3 R3, R4, R6, R8 ;
        /*0040*/                   FFMA R2, R5, R4.reuse, -R9 ;
        /*0050*/                   FFMA R2, R7, 2, R9 ;"""
    assert machine_code.bank_cycles(sass.parsed(text)) == (3 + 1 + 2 + 2 + 2) / 5
