"""The CPU backend: loop IR → LLVM IR → object code → a callable."""
