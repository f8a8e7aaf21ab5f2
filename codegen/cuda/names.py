"""Names that mean something in the kernels' source already, and no tensor or variable may have."""

from __future__ import annotations

from tcl.codegen.cuda.prelude import HELPERS
from tcl.grammar.builtins import BUILTINS

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
    atomicAdd atomicCAS blockDim blockIdx gridDim linux signal stderr stdin stdout errno threadIdx
    unix warpSize
    """
"""CUDA's variables and functions, and macros of compilers and of the C library."""

RESERVED = (
    frozenset(f"{_KEYWORDS} {_CUDA}".split())
    | HELPERS.keys()
    | BUILTINS.keys()
    | {f"{name}f" for name in BUILTINS}
)
"""Names that start with an underscore apart, which compilers keep for themselves."""
