"""Threads that execute the same instructions together, on every GPU of NVIDIA."""

WARP = 32

MMA_ROWS, MMA_COLUMNS, MMA_DEPTH = 16, 8, 16
"""Of a product of 16-bit numbers that a warp's tensor core computes at once."""

WARPGROUP, WARPGROUP_DEPTH = 128, 64
"""Threads of four warps that multiply together on sm_90, and the points of a reduction that they do
so for at a time: as many 16-bit numbers as the 128 bytes of ``SLAB``."""
SLAB, SLAB_TURN = 128, 1024
"""Bytes of a row of a panel that a warpgroup reads, and of the 8 rows after which vectors change
places as before (PTX ISA, "128-byte swizzle"): panels begin at multiples of these."""

VECTOR = 16
"""Bytes that a thread reads or writes at once, at most."""
