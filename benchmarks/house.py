"""What the house costs its readers: lines, mechanisms, homes of options, names with many homes.

    python -m benchmarks.house                 # this checkout, beside what is wanted
    python -m benchmarks.house --at OTHER      # another checkout beside it
    python -m benchmarks.house --names         # also which names, classes, cycles and imports

Lines and bytes are those of Python, C and C++, with comments and blank lines. ``define`` is the
median of nine new processes, with modules compiled before: from ``import tcl``, after NumPy's, to a
def that can be called.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("tcl", "grammar", "codegen", "tuner")
CODE = {".py", ".c", ".h", ".cpp", ".cu"}
OPTIONS = ("skip", "peel", "dot")
HEAVY = frozenset(
    "numba llvmlite cupy cupy_backends cuda torch jax lightgbm distributed dask matplotlib scipy "
    "rich ml_dtypes opt_einsum halide IPython PIL mpmath onnxruntime sqlite3 numpy nvidia pynvml "
    "importlib".split()
)
"""Packages whose import inside a function is its own reason."""
DEFINE = """
import time, numpy
start = time.perf_counter()
import tcl
tcl.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }").mm
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Module:
    """A module of the product: its dotted name, its tree, and the imports that it makes."""

    name: str
    tree: ast.Module
    path: Path

    def imports(self) -> Iterator[tuple[str, bool]]:
        """Names that are imported, and whether that is done inside a function."""
        inside = {
            id(node)
            for function in ast.walk(self.tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for node in ast.walk(function)
        }
        typing_only = {
            id(node)
            for branch in ast.walk(self.tree)
            if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
            for child in branch.body
            for node in ast.walk(child)
        }
        for node in ast.walk(self.tree):
            if id(node) in typing_only:
                continue
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, id(node) in inside
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    yield f"{node.module}.{alias.name}", id(node) in inside


def files_of(root: Path, folders: Iterable[str]) -> Iterator[Path]:
    """Files of code that git knows, in the folders that are named."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", *folders], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split("\n"):
        path = root / name
        if path.suffix in CODE and path.is_file() and not path.is_symlink():
            yield path


def modules(root: Path) -> list[Module]:
    """All modules of the product."""
    found = []
    for path in files_of(root, PRODUCT):
        if path.suffix == ".py":
            parts = list(path.relative_to(root).with_suffix("").parts)
            if parts[0] != "tcl":
                parts.insert(0, "tcl")
            if parts[-1] == "__init__":
                parts.pop()
            found.append(Module(".".join(parts), ast.parse(path.read_text()), path))
    return found


def size_of(root: Path, folders: Iterable[str]) -> tuple[int, int]:
    """Lines and bytes."""
    texts = [path.read_bytes() for path in files_of(root, folders)]
    return sum(text.count(b"\n") for text in texts), sum(map(len, texts))


def cycles(of_product: list[Module]) -> list[tuple[str, ...]]:
    """Groups of modules that import each other, imports inside functions counted."""
    known = {module.name for module in of_product}
    places = {module.name: k for k, module in enumerate(of_product)}
    edges = {
        (places[module.name], places[target])
        for module in of_product
        for name, _ in module.imports()
        for target in (name, name.rpartition(".")[0])
        if target in known and target != module.name
    }
    sources, targets = zip(*edges, strict=True)
    count = len(of_product)
    graph = coo_array((np.ones(len(edges)), (sources, targets)), (count, count))
    groups: dict[int, list[str]] = defaultdict(list)
    for name, group in zip(
        places, connected_components(graph, connection="strong")[1], strict=True
    ):
        groups[group].append(name)
    return [tuple(sorted(group)) for group in groups.values() if len(group) > 1]


def homes(of_product: list[Module], kinds: type | tuple[type, ...]) -> dict[str, set[str]]:
    """Name of a function or class, at any depth → modules that define it; names of Python's own
    protocols, with underscores on both sides, are left out."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in of_product:
        for node in ast.walk(module.tree):
            if isinstance(node, kinds) and not node.name.startswith("__"):  # type: ignore[attr-defined]
                found[node.name].add(module.name)  # type: ignore[attr-defined]
    return found


def touched(of_product: list[Module], option: str) -> list[str]:
    """Modules that name an option: as a word of code or as a string."""
    found = []
    for module in of_product:
        for node in ast.walk(module.tree):
            if option in (getattr(node, at, None) for at in ("id", "attr", "arg", "value")):
                found.append(module.name)
                break
    return found


def define_ms(python: str) -> float:
    """Milliseconds of ``define`` in a new process."""
    with tempfile.TemporaryDirectory() as compiled:
        # As where the package is installed, whatever the environment says of bytecode.
        told = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}

        def once() -> float:
            done = subprocess.run(
                [python, "-c", DEFINE], capture_output=True, text=True, check=True, env=told
            )
            return float(done.stdout) * 1000

        once()
        return statistics.median(once() for _ in range(9))


def rows(root: Path, names: bool) -> dict[str, tuple[float, float]]:
    """The table of one checkout: what there is, and what is wanted at most."""
    of_product = modules(root)
    functions = homes(of_product, (ast.FunctionDef, ast.AsyncFunctionDef))
    classes = homes(of_product, ast.ClassDef)
    lines, size = size_of(root, PRODUCT)
    own = root / ".venv/bin/python"
    inside = [(m.name, name) for m in of_product for name, late in m.imports() if late]
    light = [(m, name) for m, name in inside if name.partition(".")[0] not in HEAVY]
    rooms: dict[Path, int] = defaultdict(int)
    for module in of_product:
        rooms[module.path.parent] += 1
    many = {name: of for name, of in functions.items() if len(of) >= 4}
    several = {name: of for name, of in classes.items() if len(of) >= 2}
    circles = cycles(of_product)
    if names:
        for title, group in (("functions", many), ("classes", several)):
            print(f"\n{title} of one name:")
            for name, of in sorted(group.items(), key=lambda item: -len(item[1])):
                print(f"  {name} {len(of)}: {', '.join(sorted(of)[:6])}")
        print("\ncycles:", *circles, sep="\n  ")
        print("\nimports of our own or light packages inside functions:")
        print(*(f"  {module}: {name}" for module, name in sorted(light)), sep="\n")
    python = str(own) if own.exists() else sys.executable
    return {
        "product lines": (lines, 60_000),
        "product bytes": (size, 2_450_000),
        "benchmarks lines": (size_of(root, ["benchmarks"])[0], 5_000),
        "tests lines": (size_of(root, ["tests"])[0], 42_000),
        **{f"product files with {o!r}": (len(touched(of_product, o)), 8) for o in OPTIONS},
        "import cycles": (len(circles), 0),
        "imports inside functions": (len({(m, n.rpartition(".")[0]) for m, n in inside}), 110),
        "of them not of a heavy package": (len({(m, n.rpartition(".")[0]) for m, n in light}), 0),
        "function names in four files or more": (len(many), 90),
        "class names with several homes": (len(several), 30),
        "most files in one room": (max(rooms.values()), 25),
        "define, ms": (round(define_ms(python), 1), 60),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--at", type=Path, action="append", default=[], help="another checkout")
    parser.add_argument("--names", action="store_true", help="list the names, cycles and imports")
    asked = parser.parse_args()
    columns = {str(at): rows(at, False) for at in asked.at} | {"here": rows(ROOT, asked.names)}
    print(
        f"{'':40}" + "".join(f"{name[-14:]:>16}" for name in columns) + f"{'wanted, at most':>18}"
    )
    for row, (_, wanted) in columns["here"].items():
        cells = "".join(f"{column[row][0]:>16,}" for column in columns.values())
        print(f"{row:40}{cells}{wanted:>18,}")


if __name__ == "__main__":
    main()
