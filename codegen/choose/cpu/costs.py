"""What things cost on a core: the numbers of the core model, which chooses options where nobody
said, and of the analytic model that features of candidates come from.

Two arithmetic instructions and two loads per cycle, as processors of the last ten years have them,
or half as many of vectors that a core works on in halves (``CpuProfile.halves_vectors``). Families
of processors differ in how they divide. Other numbers are the same for all: they are rough, as they
have to put ways of working in the right order rather than to tell times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tcl.codegen.devices.cpu import CpuProfile

OPERATION_CYCLES = 0.5
"""An arithmetic instruction on vectors, if nothing waits for its result."""
PRODUCTS_PER_CYCLE = 1 / OPERATION_CYCLES
"""Products of vectors, and as many loads."""
ACCUMULATOR_LATENCY_CYCLES = 4.0
"""From one step of an accumulator to the next ..."""
EXTREME_LATENCY_CYCLES = 5.0
"""... which keeps the smaller or larger of two floats: a minimum and a move under a mask (4 + 1 on
Intel by uops.info; less on AMD)."""
EXTREME_HALVING_CYCLES = 10.0
"""To put half of the lanes beside the others and keep the smaller or larger of two floats: a
shuffle, a comparison of NaN, a minimum and a move. Set on Zen 4."""
SERIAL_SHARE = 0.15
"""The part of shorter works, as loads or arithmetic, that does not run beside the longest."""
APART_SHARE = 0.35
"""The part of it besides, where lanes are put together from elements that lie apart: on Zen 4, sums
of ``exp`` with the lanes across rows of 61 elements take 1.22 times as long as along them."""
DIVISION_CYCLES = 4.0
"""A division of floats where the processor is not asked, as by features of learned models."""


class Divider(NamedTuple):
    """The unit that divides floats and takes square roots, one vector after the other, while others
    work: cycles from one vector to the next, of 128 bits or a single number, and of 256."""

    quotient: Mapping[int, tuple[float, float]]
    """Of a division, by the bytes of an element ..."""
    root: Mapping[int, tuple[float, float]]
    """... and of a square root."""


_AMD = Divider({4: (3.2, 3.3), 8: (4.5, 4.5)}, {4: (5.0, 5.0), 8: (8.8, 8.8)})
"""Measured on Zen 3; LLVM's model of Zen 4 has 3, 5, 5 and 9, and twice as many of 512 bits."""
_INTEL = Divider({4: (3.0, 5.0), 8: (4.0, 8.0)}, {4: (3.0, 6.0), 8: (6.0, 12.0)})
"""From Skylake on: divisions as measured on a Cascade Lake, roots by LLVM's model; twice that for
512 bits ..."""
_HASWELL = Divider({4: (7.0, 14.0), 8: (14.0, 28.0)}, {4: (7.0, 14.0), 8: (14.0, 28.0)})
"""... and before."""
_NEOVERSE = Divider({4: (3.5, 7.0), 8: (3.5, 7.0)}, {4: (3.5, 7.0), 8: (3.5, 7.0)})
"""LLVM's model of Neoverse V1, from Arm's software optimization guide: 7 cycles on two units."""


def divider(device: CpuProfile) -> Divider:
    """That of a processor's family, by features that its members alone have."""
    if device.architecture != "x86_64":
        return _NEOVERSE
    if device.has("sse4a"):
        return _AMD
    return _INTEL if {"adx", "avx512f"} & device.present else _HASWELL


DIVIDED_SHARE = 0.5
"""The part of the shorter of both that does not run beside the longer, of what that unit does and
of other arithmetic: what waits for a quotient fills the queue of a core, which sees few points
ahead then. On Zen 3 light of six lamps, with a root and two quotients one after the other, takes
20 cycles per vector beside 13 of other arithmetic; where nothing waits, all of it runs beside."""
RECIPROCAL_CYCLES = 3.5
"""A division of all lanes by the same number goes by way of its reciprocal: a product, two that are
fused with sums, and a choice by the size of the quotient (``cpu/llvm/division.py``)."""
LONG_REMAINDER_CYCLES = 40.0
"""A quotient or remainder by a number in lanes of 64 bits, as places are: two vectors, which become
floats and integers again, and are asked whether that is exact. Of 16 places that data move around a
ring, these are 48 of the 82 cycles that a vector takes on Cascade Lake."""
EXTREME_CYCLES = 1.5
"""The smaller or larger of two floats: three instructions, as NaN has to stay NaN."""
CALL_CYCLES = 16.0
"""A built-in function."""
WHOLE_CALL = 1.4
"""Times as long on a vector that a core works on in halves as on one of these: the instructions
wait for each other, and the core looks as many of them ahead as of halves. On Zen 4 ``sin`` takes
1.54, ``exp`` 1.44, ``tanh`` 1.42, ``log`` 1.40, ``erf`` 1.22 times as long ..."""
CALLS_ALONE = 0.8, 0.9
"""... where the second part of the arithmetic, at least, is of the values that it is called for;
down to the first part, less of that. On Zen 4, overlaps of pairs of orbitals, .895 of whose work is
a power and an ``exp``, take .74 of the time in whole vectors."""
CALL_LATENCY_CYCLES = 60.0
"""From the arguments of one to its result."""
CALL_REGISTERS = 5
"""Registers that each of several calls takes that are written out one after the other, as LLVM does
them side by side ..."""
CALL_CONSTANTS = 12
"""... and those of the numbers that all of them need: of ``expit`` on 4, 7, 10 and 14 vectors, LLVM
stores 4, 18, 34 and 60 in memory."""
SPILL_CYCLES = 0.5
"""To store a register that others need, and to load it again, beside other work. Set on Zen 4."""
RELOADED_CYCLES = 1.0
"""To load what was loaded before a loop, and stored, as registers do not hold it: LLVM has most of
such vectors in two lines. Set on Cascade Lake."""
LOOP_END_CYCLES = 9.0
"""The end of a loop that the core did not foresee."""
MISPREDICTED_CYCLES = 16.0
"""A branch that the core foresaw wrongly: 13 at least on Zen 3 (AMD's optimization guide), 16 to 20
on Intel from Skylake on (A. Fog, "The microarchitecture of Intel, AMD and VIA CPUs")."""
COUNTING_CYCLES = 0.4
"""What counting and jumping back take from the arithmetic of an iteration."""
ITERATION_CYCLES = 1.0
"""Counting, jumping back and moving on along memory, where an iteration does little else: on a
Cascade Lake, rows of three floats that bytes select take .6 of the time in pairs, of four floats
that are read in order .94."""
CHECK_CYCLES = 2.0
"""To see that a subscript lies in its tensor, and to find the place: LLVM moves neither out of a
loop."""
LIST_ENTRY_CYCLES = 2.0
"""To list a point, beside its condition."""
BARRIER_CYCLES = 10_000.0
"""In which a thread waits for others before all of them read what they made together."""
TORN_LINE_CYCLES = 200.0
"""In which a line of the cache goes from one core to another and back, as both write a part."""
BOUNDARY_CYCLES = 240.0
"""Which each call loses where memory that one thread writes ends and another's begins: cores read
ahead into what others write, and take these lines from them. 70 ns on Zen 4, for rows of 4 KB of
which two threads write a half each, ..."""
BOUNDARY_LINE_CYCLES = 8.0
"""... and where few lines lie between two boundaries, so much for each of these."""

READ_AHEAD_LINES = 2
"""Lines of a row of memory that a thread fetches besides its own part: the one in which that ends,
and one that the core reads ahead. On Zen 4, 2 x 2 pools of 28,000 rows of 40 channels, which two
threads divide, take 280 us more than where they divide images."""
SENT_LINE_CYCLES = 8.0
"""In which a line that another core has written comes from its caches, of many in order. On Zen 4,
two threads read 61 layers of 27 KB in 92 us where each wrote half of each layer, in 106 where each
wrote half of the layers."""

SCALAR_LOAD_CYCLES = 0.5
"""To load one element."""
VECTOR_LOAD_CYCLES = 0.75
"""To load a vector: some of them cross cache lines."""
CROSSING = 4 / 3
"""Times as long to load vectors of windows that all cross cache lines. Set on Zen 4."""
CROSSING_LOADS = 2.0
"""Times as long to load vectors that cross cache lines, as most vectors of a window do. Set on
Zen 4."""
WINDOW_LOADS = 0.9
"""The part of the loads that may be left, at most, where a window is written out. Set on Zen 4."""
PANEL_LOAD_L1_CYCLES = 0.5
"""To load a vector from a panel in the first cache ..."""
PANEL_LOAD_L2_CYCLES = 1.25
"""... or in the second one."""
STORE_LOADS = 2.0
"""Times as long to store as to load."""
BROADCAST_CYCLES = 0.07
"""By which a load that is brought into all lanes holds up the arithmetic."""
WRAPPED_LOAD_CYCLES = 4.0
"""To load a vector from the end of a row and from its beginning, under masks, and to find how much
of it lies where."""
GATHERED_LANE_CYCLES = 1.4
"""To find an element whose place depends on data, to load it, and to put it into a lane ..."""
SELECTED_LANE_CYCLES = 0.6
"""... or, if data select an element of each lane's row alike, and it has at least 32 bits. On
Zen 4, what 90 trees ask of 700 rows takes .62 of the time with 16 rows in lanes, .47 with 8 ..."""
SELECTED_BYTES = 16 << 10
"""... and the rows of all lanes lie in so many bytes, half of the smallest first cache; with rows
of 3 KB, lanes take 3.9 times as long ..."""
LISTED_LANE_CYCLES = 1.0
"""... or, where places are listed in the order of the lanes, as LLVM loads each of them by itself.
On a Cascade Lake, bytes that a table gives for four bytes at a time take .57 of the time of those
whose lanes are four apart."""
ASKED_LANE_CYCLES = 0.5
"""More where several subscripts are computed under a condition ..."""
ASKED_CYCLES = 1.5
"""... and where that is one element for all lanes. Of transposed convolutions on Cascade Lake, two
vectors take 49 of the 73 cycles beside 24 products."""
SHUFFLE_CYCLES = 1.0
"""To take the elements of one more vector that are a few apart into another."""
SORTED_APART = 4
"""How few that is, at most, to count: with more (``devices.cpu.FEW_APART``), the shuffles wait for
each other, and choices between lanes as for elements that are read one by one take .7 to 1.0 of
the time of others."""
REMAINDER_CYCLES = 4.0
"""To find which elements of a row lanes take that begin anywhere in a period."""
TRANSPOSED_BESIDE = 0.5
"""The part of the time that transposing takes where steps of a reduction are written out, beside
whose arithmetic it runs: on Zen 4, products of 3x3 matrices take .6 of the time of single elements
with half vectors, .75 with whole ones, which it works on in halves; of 27 rows of 16 elements, with
four steps at a time, transposing takes 1 to 2 cycles of a step of 9 to 14 vectors."""
TRANSPOSED_ALONE = 1.25
"""... and in long loops whose arithmetic is more than products, and calls no function: on Zen 4,
the 33 nests that have their lanes across rows by this price take .93 of the time in the mean."""
WORD_PART_CYCLES = 2.0
"""To make an element a part of a word."""

ROWS_CROSSING_CYCLES = 5.5
"""More to store a vector as long as a line where the store before went to another row: it lies in
two lines, as a rule, of which the one before along its row has brought one. On a Cascade Lake,
outer products of 300 x 330 take .6 of the time with one row, compared with two ..."""
CROSSING_BESIDE = 0.5
"""... and the part of the arithmetic and loads that runs meanwhile."""
OTHER_LINE_CYCLES = 0.25
"""More to load from a page of its own, or a vector from cache lines of its own."""
CONFLICT_CYCLES = 0.5
"""More for each page that may push another one out of the first cache."""
COPY_IN_ORDER_CYCLES = 0.25
"""To copy an element whose neighbours in the panel are its neighbours in memory ..."""
COPY_TRANSPOSED_CYCLES = 0.5
"""... or that has neighbours in memory along another dimension ..."""
COPY_APART_CYCLES = 1.0
"""... or, as a word, that has none."""
COPY_FROM_FAR_FACTOR = 4.0
"""Times as long, where a few elements of each row at a time come from behind the second cache."""
PANEL_WRITTEN_CYCLES = 0.5
"""More per element of a panel that does not stay in the second cache."""
PANEL_OWN_L2_CYCLES = 0.1
"""Per element to read a panel from a core's own second cache once more ..."""
PANEL_OTHER_L2_CYCLES = 1.0
"""... or from that of the core that has filled it ..."""
PANEL_BEHIND_L2_CYCLES = 0.5
"""... or from behind the second caches."""

MEMORY_BYTES_PER_CYCLE = 8.0
"""From memory, read in order, where that was not measured of the machine."""
UNASKED_BYTES_PER_CYCLE = 4.0
"""Of blocks that nobody asked for ahead: each waits for memory, whatever that gives in order."""
CACHE_BYTES_PER_CYCLE = 24.0
"""From a cache behind the first."""
L2_BYTES_PER_CYCLE = 32.0
"""From the second cache to the first ..."""
L3_BYTES_PER_CYCLE = 10.0
"""... and from the third, where a few elements of each row are read at a time."""
STREAMS = 8
"""Rows of memory that are read side by side. More of them push each other's lines out of the first
cache: 16 were measured to take 1.3 times as long, 1.6 times where vectors lie in two lines, and 14
took 1.1 times as long on Zen 4."""
CACHE_LEVEL_BYTES_PER_CYCLE = (32.0, 16.0, 6.0)
"""From behind the first cache, the second and the third, where nothing is known of the order."""
CLOCK_HERTZ = 3e9
"""A constant factor changes nothing of what is chosen or learned."""

FRAGMENT_PRODUCT_CYCLES = 16.0
"""A product of two fragments, if its factors are there (Intel's optimisation manual, "Intel AMX":
16 rows, one each cycle)."""
FRAGMENT_BYTES_PER_CYCLE = 48.0
"""From the second cache to the fragments of factors (the same manual's table of caches, "sustained
bandwidth" of Sapphire Rapids)."""
DOT_PRODUCT_CYCLES = 0.75
"""A dot product of vectors, with all that belongs to it."""
FRAGMENT_LINE_CYCLES = 4.0
"""To copy a cache line that lies in a factor as it will lie in its panel ..."""
INTERLEAVED_LINE_CYCLES = 10.0
"""... or of rows whose points are interleaved."""
SUMS_ROW_CYCLES = 3.0
"""To hand over a row of sums, and to store it."""
