"""The built-in functions as LLVM IR."""
