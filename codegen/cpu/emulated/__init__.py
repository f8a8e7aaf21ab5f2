"""Instructions that a processor lacks, as functions: so that kernels with them run anywhere.

A profile says what is emulated (``CpuProfile.emulated``). What it has so is chosen, scheduled and
emitted as on a machine that has it; only then, right before LLVM compiles a kernel, its calls of
the target's intrinsics become calls of functions with the meaning that Intel's manual gives the
instructions. That shows results right, not fast: it is for tests.
"""
