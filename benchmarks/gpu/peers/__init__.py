"""The contenders on a GPU. Each module is imported in a process of its own and has ``make``."""
