"""The functions that CUDA C++ lacks and the kernels' source defines, each only where it is used.

They stand in ``prelude.cu``, each after those that it uses and with an empty line before it, and
need no header. Where one holds PTX, the emulator supplies it instead, in plain C++. Some are
written once for each of several rows, whose values stand where ``$`` and their names do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tcl.codegen.common import chebyshev
from tcl.codegen.cuda.cpp.types import c_type
from tcl.codegen.cuda.prelude import bessel_coefficients
from tcl.grammar.syntax.types import SCALAR_TYPES, ScalarType

_Row = Mapping[str, str]


def _integer(t: ScalarType) -> _Row:
    """A type that floats are converted to, and its limits."""
    low, high = map(str, t.limits)
    if t.bits >= 32:
        high += ("" if low != "0" else "U" if t.bits == 64 else "u") + "LL" * (t.bits == 64)
        low = f"-{high} - 1" if low != "0" else low  # without its sign it is too large for the type
    return {"name": t.name, "type": c_type(t), "low": low, "high": high}


def _matrices(count: int, end: str) -> _Row:
    """A form of ``ldmatrix``."""
    to, outputs = (", ".join(p.format(k) for k in range(count)) for p in ("%{}", '"=r"(d[{}])'))
    how, ptx = ", transposed" * bool(end), end.replace("_", ".")
    return {"form": f"{count}{end}", "count": str(count), "how": how, "ptx": ptx, "to": to} | {
        "outputs": outputs
    }


def _wgmma(columns: int, kind: str, what: str) -> _Row:
    """An instruction of warpgroups."""
    each = columns // 2
    rows = [range(k, min(k + 8, each)) for k in range(0, each, 8)]
    numbers = ('"' + "".join(f"%{k}{', ' * (k + 1 < each)}" for k in row) + '"' for row in rows)
    sums = (", ".join(f'"+f"(d[{k}])' for k in row) for row in rows)
    names = ("first", "second", "third", "fourth")
    after = {name: str(each + k) for k, name in enumerate(names)}
    texts = {"numbers": "\n        ".join(numbers), "sums": ",\n          ".join(sums)}
    return {"wide": str(columns), "kind": kind, "what": what, "each": str(each)} | after | texts


_BESSEL: tuple[_Row, ...] = (
    {
        "order": "0",
        "odd": "",
        "sign_of_x": "",
        "cosine": "c + s",  # the phase is x less an eighth of a turn
        "sine": "s - c",
        "at_zero": "",
        "regular": "value",
        "near": "value / (0.5 * a + 1.0)",
        "whole": "value",
    },
    {
        "order": "1",
        "odd": "a * ",
        "sign_of_x": "copysign(1.0, x) * ",
        "cosine": "s - c",  # ... less three eighths
        "sine": "-s - c",
        "at_zero": "    if (x == 0.0) return -infinity();\n",
        "regular": "(x * value - 0.6366197723675814 / x)",
        "near": "value * a / (a + a + 1.0)",
        "whole": "copysign(value, x)",
    },
)
_ROWS: Mapping[str, Sequence[_Row]] = {
    "$name": [_integer(t) for t in SCALAR_TYPES.values() if t.is_integral],
    "$order": _BESSEL,
    "$shape": [
        dict(zip(("shape", "depth", "kind", "what"), row.split(), strict=True))
        for row in ("16_f16 16 f16 float16", "16_bf16 16 bf16 bfloat16", "8_tf32 8 tf32 tf32")
    ],
    "$wide": [
        _wgmma(columns, *names)
        for columns in (64, 128, 256)
        for names in (("f16", "float16"), ("bf16", "bfloat16"))
    ],
    "$form": [_matrices(count, end) for count in (2, 4) for end in ("", "_trans")],
}
"""By the value that a function's name has."""
_TABLES = vars(chebyshev) | vars(bessel_coefficients)
_NAME = re.compile(
    r"^(?:template .*)?__device__ \w+ .*?([\w$]+)\(|^template .* (vector) ", re.MULTILINE
)


def _table(values: Sequence[float]) -> str:
    """A constant array's values."""
    rows = (values[k : k + 4] for k in range(0, len(values), 4))
    lines = ",\n".join("        " + ", ".join(map(repr, row)) for row in rows)
    return f"{{\n{lines},\n    }}"


def _read_helpers() -> Iterator[tuple[str, str]]:
    """The functions and their texts."""
    _, *blocks = (Path(__file__).parent / "prelude.cu").read_text().split("\n\n")
    for block in blocks:
        found = _NAME.search(block)
        assert found is not None
        name = found[1] or found[2]
        rows = next((rows for value, rows in _ROWS.items() if value in name), [{}])
        for row in rows:
            texts = [name, block.rstrip("\n") + "\n"]
            for key, value in row.items():
                texts = [text.replace(f"${key}", value) for text in texts]
            yield texts[0], re.sub(r"\$(\w+)", lambda m: _table(_TABLES[m[1]]), texts[1])


HELPERS: dict[str, str] = dict(_read_helpers())
"""Name → definition, each after those that it uses."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def helpers_in(source: str) -> frozenset[str]:
    """The helper functions that a piece of source calls itself."""
    return frozenset(_WORD.findall(source)) & HELPERS.keys()


def prelude(used: Iterable[str]) -> str:
    """The definitions of these helper functions, and of those that they use in turn. Raises
    ``KeyError`` for a name that is none."""
    needed: set[str] = set()
    pending = set(used)
    while pending:
        name = pending.pop()
        needed.add(name)
        pending |= helpers_in(HELPERS[name]) - needed
    return "\n".join(text for name, text in HELPERS.items() if name in needed)
