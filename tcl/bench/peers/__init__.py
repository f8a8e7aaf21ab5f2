"""The contenders. Each module is imported in a process of its own and has ``make(threads)``."""
