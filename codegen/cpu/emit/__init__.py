"""Loop IR as LLVM IR."""
