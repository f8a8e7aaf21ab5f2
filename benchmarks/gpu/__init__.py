"""The GPU command: ``python -m benchmarks.gpu --out FOLDER``. See ``benchmarks/README.md``."""
