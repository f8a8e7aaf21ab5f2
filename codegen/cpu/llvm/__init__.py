"""LLVM IR as text, and what is done with registers."""
