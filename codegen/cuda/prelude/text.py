"""How the prelude's functions and tables are written."""

from __future__ import annotations

from collections.abc import Sequence

_PER_LINE = 4


def table(name: str, values: Sequence[float]) -> str:
    """A constant array inside of a function."""
    rows = [values[k : k + _PER_LINE] for k in range(0, len(values), _PER_LINE)]
    lines = ",\n".join("        " + ", ".join(map(repr, row)) for row in rows)
    return f"    const double {name}[] = {{\n{lines},\n    }};\n"


def device_function(head: str, body: str, comment: str = "") -> str:
    """A device function; ``body`` holds whole lines."""
    note = f"// {comment}\n" if comment else ""
    return f"{note}__device__ inline {head}\n{{\n{body}}}\n"
