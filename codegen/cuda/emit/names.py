"""Names in generated source, those of the def where C++ can have them, and what they stand for at a
place in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tcl.codegen.cuda.prelude.prelude import HELPERS
from tcl.codegen.loopir import ir
from tcl.grammar.check.builtins import BUILTINS


@dataclass(frozen=True, slots=True)
class CudaScope:
    """What is known at a place."""

    folds: Mapping[str, str]
    """Fold → the C++ expression of its offset; those of loops around this place."""
    dims: Mapping[str, str] = field(default_factory=dict)
    """Dimension → the variable of its value, once it has one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """``Let`` → its variable."""
    loaded: Mapping[ir.TensorRef, str] = field(default_factory=dict)
    """Element → the variable that it was read to."""

    def with_fold(self, fold: ir.Fold, text: str) -> CudaScope:
        return replace(self, folds={**self.folds, fold.name: text})

    def with_dim(self, dim: str, text: str) -> CudaScope:
        return replace(self, dims={**self.dims, dim: text})

    def with_variable(self, name: str, text: str) -> CudaScope:
        return replace(self, variables={**self.variables, name: text})

    def with_loaded(self, loaded: Mapping[ir.TensorRef, str]) -> CudaScope:
        return replace(self, loaded={**self.loaded, **loaded})


_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
    volatile wchar_t while xor xor_eq
    """
_CUDA = """
    atomicAdd atomicCAS atomicInc blockDim blockIdx gridDim linux signal stderr stdin stdout errno
    threadIdx unix warpSize
    """
"""CUDA's variables and functions, and macros of compilers and of the C library."""

_OWN = "a b block dim3 error exchange k main shared thread uint3"
"""What every kernel has."""
_LONGEST = 40

RESERVED = (
    frozenset(f"{_KEYWORDS} {_CUDA}".split())
    | HELPERS.keys()
    | BUILTINS.keys()
    | {f"{name}f" for name in BUILTINS}
    | frozenset(_OWN.split())
)
"""Names that start with an underscore apart, which compilers keep for themselves."""


class Names:
    """Gives each thing a name of its own."""

    def __init__(self, taken: Iterable[str] = RESERVED) -> None:
        self._taken = set(taken)
        self._known: dict[str, str] = {}

    def name_of(self, key: str, wish: str = "") -> str:
        """The name of what ``key`` stands for, like ``wish`` or the key itself."""
        if key not in self._known:
            self._known[key] = self.new(wish or key)
        return self._known[key]

    def new(self, wish: str) -> str:
        """A name that nothing has yet."""
        plain = re.sub(r"\W+", "_", wish, flags=re.ASCII)[:_LONGEST].strip("_") or "x"
        if plain[0].isdigit():
            plain = f"x{plain}"
        name, count = plain, 1
        while name in self._taken:
            count += 1
            name = f"{plain}_{count}"
        self._taken.add(name)
        return name
